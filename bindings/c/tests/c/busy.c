/*
 * A peer that is stopped in the midst of an RMA: destroy, deregister and finalize say so, and a
 * later finalize says when it is over.
 */

#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* More than the caches hold, so that a writer that never stops is nearly always copying. */
enum { SIZE = 16 << 20, TRIES = 200 };

struct invitation {
    char uri[128];
    cci_rma_handle_t handle;
};

/* Writes to the parent's memory as long as it can. */
static void write_for_ever(int from)
{
    struct invitation invitation;
    unsigned char *source = malloc(SIZE);
    cci_rma_handle_t *local;
    cci_connection_t *connection;
    cci_endpoint_t *endpoint;
    cci_event_t *event;

    /*
     * Not longer than this program, however that ends: no alarm rings in a child that is stopped.
     */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(PATIENCE);
    CHECK(read(from, (void *)&invitation, sizeof(invitation)) == (ssize_t)sizeof(invitation));
    CHECK(source != NULL);
    memset(source, 0xff, SIZE);
    start();
    endpoint = open_endpoint(NULL);
    CHECK_OK(cci_rma_register(endpoint, source, SIZE, 0, &local));
    CHECK_OK(cci_connect(endpoint, invitation.uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
    event = expect(endpoint, CCI_EVENT_CONNECT);
    CHECK_STATUS((int)event->connect.status, CCI_SUCCESS);
    connection = event->connect.connection;
    CHECK_OK(cci_return_event(event));
    CHECK_OK(cci_send(connection, "begun", 5, NULL, CCI_FLAG_SILENT));
    while (cci_rma(connection, NULL, 0, local, 0, &invitation.handle, 0, SIZE, NULL,
                   CCI_FLAG_WRITE | CCI_FLAG_BLOCKING) == CCI_SUCCESS) {
    }
    exit(0);
}

/*
 * Stops a child so that it holds an announcement, seen by deregister. Its number, or 0: it was not
 * copying.
 */
static int try_it(void)
{
    int ways[2];
    int status;
    int number;
    pid_t child;
    char name[64];
    struct invitation invitation;
    unsigned char *target;
    cci_rma_handle_t *handle;
    cci_endpoint_t *endpoint;
    cci_event_t *event;

    CHECK(pipe(ways) == 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(ways[1]);
        write_for_ever(ways[0]);
    }
    close(ways[0]);
    start();
    target = calloc(1, SIZE);
    CHECK(target != NULL);
    endpoint = open_endpoint(NULL);
    CHECK_OK(cci_rma_register(endpoint, target, SIZE, CCI_FLAG_WRITE, &handle));
    {
        char *uri = uri_of(endpoint);
        unsigned char bytes[sizeof(invitation)] = {0};
        memcpy(bytes, uri, strlen(uri));
        memcpy(bytes + sizeof(invitation.uri), (const void *)handle, sizeof(*handle));
        CHECK(write(ways[1], bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes));
        free(uri);
    }
    event = expect(endpoint, CCI_EVENT_CONNECT_REQUEST);
    CHECK_OK(cci_accept(event, NULL));
    CHECK_OK(cci_return_event(event));
    CHECK_OK(cci_return_event(expect(endpoint, CCI_EVENT_ACCEPT)));
    CHECK_OK(cci_return_event(expect(endpoint, CCI_EVENT_RECV)));
    while (*(volatile unsigned char *)target == 0) {
    }
    CHECK(kill(child, SIGSTOP) == 0 && waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));

    number = cci_rma_deregister(endpoint, handle);
    if (number == CCI_EBUSY) {
        snprintf(name, sizeof(name), "process %d", (int)child);
        CHECK(strstr(ccix_last_error(), name) != NULL);
        CHECK_STATUS(cci_destroy_endpoint(endpoint), CCI_EBUSY);
        CHECK(strstr(ccix_last_error(), name) != NULL);
        CHECK_STATUS(cci_destroy_endpoint(endpoint), CCI_EINVAL);
        /* Busy, and still initialized: it is called again. */
        CHECK_STATUS(cci_finalize(), CCI_EBUSY);
        CHECK(strstr(ccix_last_error(), name) != NULL);
        CHECK_STATUS(cci_finalize(), CCI_EBUSY);
        CHECK(kill(child, SIGCONT) == 0);
        while ((number = cci_finalize()) == CCI_EBUSY) {
        }
        CHECK_OK(number);
        number = 1;
    } else {
        CHECK_OK(number);
        CHECK_OK(cci_destroy_endpoint(endpoint));
        CHECK_OK(cci_finalize());
        CHECK(kill(child, SIGCONT) == 0);
        number = 0;
    }
    /* From here on nobody writes. */
    memset(target, 1, SIZE);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (status = 0; status < SIZE; status++) {
        CHECK(target[status] == 1);
    }
    free(target);
    close(ways[1]);
    CHECK_STATUS(cci_finalize(), CCI_ERROR);
    return number;
}

int main(void)
{
    int tries;
    for (tries = 0; tries < TRIES; tries++) {
        if (try_it()) {
            return 0;
        }
    }
    fprintf(stderr, "no child was stopped in the midst of an RMA in %d tries\n", TRIES);
    return 1;
}
