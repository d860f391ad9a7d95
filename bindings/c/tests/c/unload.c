/*
 * Loads the library, has it look up the name of a host, and unloads it: the thread that does so may
 * still run.
 */

#include <ccix.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* ISO C has no conversion from dlsym()'s result to a function. */
static void find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    CHECK(symbol != NULL);
    memcpy(function, &symbol, sizeof(symbol));
}

static int is_mapped(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    int found = 0;

    CHECK(maps != NULL);
    while (fgets(line, sizeof(line), maps)) {
        found |= strstr(line, "libcci.so") != NULL;
    }
    fclose(maps);
    return found;
}

int main(void)
{
    int (*init)(uint32_t, uint32_t, uint32_t *);
    int (*finalize)(void);
    int (*create)(cci_device_t *, int, cci_endpoint_t **, cci_os_handle_t *);
    int (*connect)(cci_endpoint_t *, const char *, const void *, uint32_t, cci_conn_attribute_t, const void *, int,
                   const struct timeval *);
    void *library = dlopen("libcci.so.2", RTLD_NOW);
    cci_endpoint_t *endpoint;
    uint32_t caps;

    CHECK(library != NULL);
    find(library, "cci_init", &init);
    find(library, "cci_finalize", &finalize);
    find(library, "cci_create_endpoint", &create);
    find(library, "cci_connect", &connect);
    CHECK(init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS);
    CHECK(create(NULL, 0, &endpoint, NULL) == CCI_SUCCESS);
    CHECK(connect(endpoint, "sock://localhost:1", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_SUCCESS);
    CHECK(finalize() == CCI_SUCCESS);
    CHECK(is_mapped());
    CHECK(dlclose(library) == 0);
    CHECK(is_mapped());
    return 0;
}
