/*
 * Endpoints under limits of address space and of file size, set after cci_init(): a status and a
 * sentence, never a signal. Run with a configuration of one device for each transport.
 */

#include "check.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEP = 256 * 1024, MOST = 400 * 1024 * 1024 };

static rlim_t address_space(void)
{
    FILE *about = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    CHECK(about != NULL && fscanf(about, "%lu", &pages) == 1);
    fclose(about);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Sets a soft limit; the hard one stays, so that it can be raised again. */
static void limit(int resource, rlim_t bytes)
{
    struct rlimit now;

    CHECK(getrlimit(resource, &now) == 0);
    now.rlim_cur = bytes;
    CHECK(setrlimit(resource, &now) == 0);
}

/* Opens an endpoint and closes it: whether that was possible. Else there is a sentence. */
static int opens(cci_device_t *device)
{
    cci_endpoint_t *endpoint = NULL;
    cci_os_handle_t fd;
    int status = cci_create_endpoint(device, 0, &endpoint, &fd);
    const char *sentence = ccix_last_error();

    if (status == CCI_SUCCESS) {
        CHECK_OK(cci_destroy_endpoint(endpoint));
        return 1;
    }
    limit(RLIMIT_AS, RLIM_INFINITY);
    CHECK_STATUS(status, CCI_ENOMEM);
    CHECK(endpoint == NULL && strlen(sentence) > 20);
    return 0;
}

/* From 1 MiB more than there is until an endpoint can be opened, in steps. */
static void walk(cci_device_t *device)
{
    rlim_t begin = address_space();
    rlim_t more;
    int refused = 0;

    for (more = 1 << 20; more < MOST; more += STEP) {
        limit(RLIMIT_AS, begin + more);
        if (opens(device)) {
            break;
        }
        refused++;
    }
    limit(RLIMIT_AS, RLIM_INFINITY);
    CHECK(more < MOST && refused > 0);
}

static void walk_file_sizes(cci_device_t *device)
{
    rlim_t size;

    for (size = 0; size < MOST; size = size ? size * 4 : 1024) {
        limit(RLIMIT_FSIZE, size);
        if (opens(device)) {
            break;
        }
    }
    CHECK(size < MOST);
    limit(RLIMIT_FSIZE, RLIM_INFINITY);
}

struct attempt {
    cci_device_t *device;
    rlim_t more;
    int opened;
};

static void *attempt(void *argument)
{
    struct attempt *attempt = argument;

    limit(RLIMIT_AS, address_space() + attempt->more);
    attempt->opened = opens(attempt->device);
    return NULL;
}

/*
 * The same in children, where nothing is left of an earlier attempt: each has one limit. In every
 * other one a new thread opens the endpoint, for which the allocator takes address space of its
 * own.
 */
static void walk_afresh(size_t at)
{
    rlim_t more;
    int status = 0;

    for (more = 1 << 20; more < MOST; more += 3 * (rlim_t)STEP + 4096) {
        pid_t child = fork();

        CHECK(child >= 0);
        if (child == 0) {
            cci_device_t *const *devices;
            struct attempt one;
            pthread_t thread;

            start();
            CHECK_OK(cci_get_devices(&devices));
            one.device = devices[at];
            one.more = more;
            one.opened = 0;
            if (more / STEP % 2 == 0) {
                attempt(&one);
            } else {
                CHECK(pthread_create(&thread, NULL, attempt, &one) == 0);
                CHECK(pthread_join(thread, NULL) == 0);
            }
            _exit(one.opened ? 0 : 7);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status));
        if (WEXITSTATUS(status) != 7) {
            break;
        }
    }
    CHECK(WEXITSTATUS(status) == 0);
}

int main(void)
{
    cci_device_t *const *devices;
    size_t at;

    start();
    CHECK_OK(cci_get_devices(&devices));
    for (at = 0; devices[at]; at++) {
        walk_file_sizes(devices[at]);
        walk(devices[at]);
    }
    CHECK(at > 0);
    while (at-- > 0) {
        walk_afresh(at);
    }
    CHECK_OK(cci_finalize());
    return 0;
}
