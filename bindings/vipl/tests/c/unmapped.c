/*
 * Memory that is not mapped is refused when it is registered. So it is in a part of a range, and at
 * addresses that no program has. Memory that is mapped is taken, whatever its rights.
 */

#include "sides.h"

#include <stdint.h>
#include <sys/mman.h>

static VIP_RETURN try_to_register(SIDE *side, void *start, size_t length) {
    VIP_MEM_ATTRIBUTES attributes = {side->tag, VIP_TRUE, VIP_TRUE};
    VIP_MEM_HANDLE handle = 77;
    VIP_RETURN code = VipRegisterMem(side->nic, start, length, &attributes, &handle);
    if (code == VIP_SUCCESS) {
        CHECK_OK(VipDeregisterMem(side->nic, start, handle));
    } else {
        CHECK(handle == 77);
    }
    return code;
}

static void refused(SIDE *side, void *start, size_t length) {
    CHECK_CODE(try_to_register(side, start, length), VIP_INVALID_PARAMETER);
}

int main(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    SIDE side;
    char *pages = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, flags, -1, 0);
    char *wide = mmap(NULL, (size_t)1 << 36, PROT_READ | PROT_WRITE, flags, -1, 0);
    size_t at;

    CHECK(pages != MAP_FAILED && wide != MAP_FAILED);
    open_side(&side);
    CHECK(munmap(pages + 3 * page, page) == 0);
    /* A hole at the end, at the start, amid, and alone; from the middle of a page too. */
    CHECK_OK(try_to_register(&side, pages, 3 * page));
    CHECK_OK(try_to_register(&side, pages + 100, 3 * page - 100));
    CHECK_OK(try_to_register(&side, pages + 4 * page, 1));
    refused(&side, pages, 3 * page + 1);
    refused(&side, pages + page + 7, 2 * page);
    refused(&side, pages + 4 * page - 1, 2);
    refused(&side, pages, 8 * page);
    refused(&side, pages + 3 * page + 9, 10);
    /* Mapped, touched or not: reading alone suffices to send. */
    CHECK(mprotect(pages, page, PROT_READ) == 0);
    CHECK_OK(try_to_register(&side, pages, 2 * page));
    CHECK_OK(try_to_register(&side, wide, (size_t)1 << 36));
    CHECK(wide[(size_t)1 << 35] == 0);
    /* The first page, and what is the kernel's. */
    for (at = 1; at < 4096; at *= 8) {
        refused(&side, (void *)(uintptr_t)at, 16);
    }
    refused(&side, (void *)(UINTPTR_MAX - 4096), 64);
    refused(&side, (void *)(UINTPTR_MAX - 64), 64);
    refused(&side, (void *)(UINTPTR_MAX / 2 - 4096), 4096);
    refused(&side, (void *)(UINTPTR_MAX / 2 + 1), 4096);
    refused(&side, pages, (size_t)(UINTPTR_MAX - (uintptr_t)pages));
    close_side(&side);
    puts("refused");
    return 0;
}
