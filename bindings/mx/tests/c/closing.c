/*
 * An endpoint is closed while another thread runs its unexpected handler: once that thread's calls
 * have ended its id is free and its descriptors are closed, although the thread lives on.
 */

#include <dirent.h>
#include <pthread.h>

#include "pair.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int stage;

static void go_to(int new) {
    pthread_mutex_lock(&lock);
    stage = new;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_for(int wanted) {
    pthread_mutex_lock(&lock);
    while (stage < wanted)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static mx_unexp_handler_action_t handler(void *context, mx_endpoint_addr_t source, uint64_t match_info,
                                         uint32_t length, void *data) {
    (void)context, (void)source, (void)match_info, (void)length, (void)data;
    go_to(1);
    wait_for(2);
    return MX_RECV_FINISHED;
}

static void *handle(void *unused) {
    mx_request_t request;

    /* The thread keeps the endpoint of its last call at hand. */
    OK(mx_progress(endpoint));
    request = start_send("hello", 5, 1);
    /* Any of these calls may run the handler, and then find the endpoint closed. */
    (void)mx_forget(endpoint, &request);
    while (mx_progress(endpoint) == MX_SUCCESS)
        ;
    go_to(3);
    wait_for(4);
    return unused;
}

/* The descriptors of this process, and one. */
static int descriptors(void) {
    DIR *all = opendir("/proc/self/fd");
    int count = 0;

    CHECK(all != NULL);
    while (readdir(all) != NULL)
        count++;
    closedir(all);
    return count;
}

int main(void) {
    mx_endpoint_addr_t own;
    mx_endpoint_t again;
    pthread_t thread;
    uint32_t id;
    uint64_t nic;
    int before;

    OK(mx_init());
    before = descriptors();
    OK(mx_set_error_handler(MX_ERRORS_RETURN));
    OK(mx_open_endpoint(0, MX_ANY_ENDPOINT, KEY, NULL, 0, &endpoint));
    OK(mx_get_endpoint_addr(endpoint, &own));
    OK(mx_decompose_endpoint_addr(own, &nic, &id));
    OK(mx_connect(endpoint, nic, id, KEY, PATIENCE * 1000, &peer));
    OK(mx_register_unexp_handler(endpoint, handler, NULL));
    CHECK(pthread_create(&thread, NULL, handle, NULL) == 0);
    wait_for(1);
    OK(mx_close_endpoint(endpoint));
    go_to(2);
    wait_for(3);
    CHECK(descriptors() == before);
    OK(mx_open_endpoint(0, id, KEY, NULL, 0, &again));
    OK(mx_close_endpoint(again));
    go_to(4);
    CHECK(pthread_join(thread, NULL) == 0);
    OK(mx_finalize());
    puts("closed");
    return 0;
}
