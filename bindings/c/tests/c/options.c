/* Options: defaults, what is set is read back, and what is inherited. */

#include "check.h"

static uint32_t get(const void *handle, cci_opt_name_t name)
{
    uint32_t value = 12345;
    CHECK_OK(cci_get_opt(handle, name, &value));
    return value;
}

static void set(const void *handle, cci_opt_name_t name, uint32_t value)
{
    CHECK_OK(cci_set_opt(handle, name, &value));
    CHECK(get(handle, name) == value);
}

int main(void)
{
    cci_endpoint_t *endpoint;
    struct cci_alignment alignment;
    struct pair before;
    struct pair after;
    char *one;
    char *two;

    start();
    endpoint = open_endpoint(NULL);
    CHECK(get(endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT) == 0);
    CHECK(get(endpoint, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT) == 0);
    CHECK(get(endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT) >= 1000);
    CHECK(get(endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT) >= 1000);

    /* Each call gives a string of its own. */
    one = uri_of(endpoint);
    two = uri_of(endpoint);
    CHECK(one != two && strcmp(one, two) == 0);
    free(one);
    free(two);

    memset(&alignment, 0xff, sizeof(alignment));
    CHECK_OK(cci_get_opt(endpoint, CCI_OPT_ENDPT_RMA_ALIGN, &alignment));
    CHECK(alignment.rma_write_local_addr <= 8 && alignment.rma_read_length <= 8);

    before = connect_self(endpoint, CCI_CONN_ATTR_RO);
    CHECK(get(before.client, CCI_OPT_CONN_SEND_TIMEOUT) == 0);
    CHECK(get(before.client, CCI_OPT_CONN_KEEPALIVE_TIMEOUT) == 0);
    set(endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT, 5000000);
    set(endpoint, CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, 60000000);
    set(endpoint, CCI_OPT_ENDPT_RECV_BUF_COUNT, 100);
    set(endpoint, CCI_OPT_ENDPT_SEND_BUF_COUNT, 50);
    after = connect_self(endpoint, CCI_CONN_ATTR_RO);
    CHECK(get(before.client, CCI_OPT_CONN_SEND_TIMEOUT) == 0);
    CHECK(get(after.client, CCI_OPT_CONN_SEND_TIMEOUT) == 5000000);
    CHECK(get(after.server, CCI_OPT_CONN_KEEPALIVE_TIMEOUT) == 60000000);
    set(after.client, CCI_OPT_CONN_SEND_TIMEOUT, 7);
    set(after.client, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, 0);
    CHECK(get(endpoint, CCI_OPT_ENDPT_SEND_TIMEOUT) == 5000000);

    CHECK_OK(cci_destroy_endpoint(endpoint));
    CHECK_OK(cci_finalize());
    return 0;
}
