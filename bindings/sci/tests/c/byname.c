/*
 * Loads the library by its name, and finds both sets of symbols and the flags: LIBRARY.
 */

#include <dlfcn.h>

#include "pair.h"

typedef void (*begin_t)(unsigned int flags, sci_error_t *error);
typedef void (*open_t)(sci_desc_t *sd, unsigned int flags, sci_error_t *error);

int main(int argc, char **argv) {
    static const char *const sets[] = {"ST", "MT"};
    unsigned int set;
    void *library;

    CHECK(argc == 2);
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    for (set = 0; set < 2; set++) {
        char name[80];
        begin_t initialize;
        open_t open_device;
        begin_t none;
        sci_desc_t device = NULL;

        snprintf(name, sizeof name, "_SISCI_PUBLIC_FUNC_%s_SCIInitialize", sets[set]);
        *(void **)&initialize = dlsym(library, name);
        snprintf(name, sizeof name, "_SISCI_PUBLIC_FUNC_%s_SCIOpen", sets[set]);
        *(void **)&open_device = dlsym(library, name);
        *(void **)&none = dlsym(library, "SCIInitialize");
        CHECK(initialize != NULL && open_device != NULL && none == NULL);
        OK(initialize(0, &error));
        OK(open_device(&device, 0, &error));
        CHECK(device != NULL);
    }
    CHECK(*(const unsigned int *)dlsym(library, "_SISCI_PUBLIC_CONST_SCI_FLAG_USE_CALLBACK") == SCI_FLAG_USE_CALLBACK);
    puts("found");
    return 0;
}
