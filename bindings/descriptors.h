/*
 * What the programs of tests share about descriptors: the library keeps none below 3, and programs
 * that are executed inherit none.
 *
 * DESCRIPTORS says when a program closes its standard input, output and error: "closed", before
 * main(); "closing", in the call of close_standard(). Copies of them are numbered from COPIES on.
 */

#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COPIES 200
/* Numbers that are looked at. */
#define MOST 4096

/* What was inherited, by number. */
static char inherited_[MOST];

static inline void complain_(const char *when, const char *what, int number, const char *name)
{
    dprintf(COPIES + 2, "%s: descriptor %d, %s, %s\n", when, number, name, what);
    _exit(1);
}

__attribute__((constructor)) static void begin_descriptors_(void)
{
    const char *when = getenv("DESCRIPTORS");
    int at;

    for (at = 3; at < MOST; at++) {
        inherited_[at] = fcntl(at, F_GETFD) >= 0;
    }
    for (at = 0; at < 3; at++) {
        fcntl(at, F_DUPFD_CLOEXEC, COPIES + at);
    }
    if (when != NULL && strcmp(when, "closed") == 0) {
        for (at = 0; at < 3; at++) {
            close(at);
        }
    }
#ifdef __GLIBC__
    /* What checks say. */
    stderr = fdopen(COPIES + 2, "w");
#endif
}

/* Each descriptor is closed by exec, and those below 3 are the program's. */
static inline void check_descriptors(const char *when)
{
    static const char *const kinds[] = {"socket:", "anon_inode:", "/memfd:"};
    char path[64], name[256];
    int number;
    size_t kind;

    for (number = 0; number < MOST; number++) {
        int flags = fcntl(number, F_GETFD);
        ssize_t length;

        if (flags < 0) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/self/fd/%d", number);
        length = readlink(path, name, sizeof name - 1);
        name[length < 0 ? 0 : length] = '\0';
        for (kind = 0; kind < 3 && number < 3; kind++) {
            if (strncmp(name, kinds[kind], strlen(kinds[kind])) == 0) {
                complain_(when, "is a standard one", number, name);
            }
        }
        if (number >= 3 && !(flags & FD_CLOEXEC) && !inherited_[number]) {
            complain_(when, "is inherited", number, name);
        }
    }
}

/*
 * What a program that is executed has beside its standard descriptors: only what this one had. A
 * child of fork() would close sockets before exec().
 */
static inline void check_executed(const char *when)
{
    extern char **environ;
    char script[MOST * 5 + 256] = "for f in /proc/$$/fd/*; do case ${f##*/} in 0|1|2";
    char *end = script + strlen(script);
    char sh[] = "/bin/sh", command[] = "-c";
    char *arguments[] = {sh, command, script, NULL};
    posix_spawn_file_actions_t actions;
    int at, status;
    pid_t child;

    for (at = 3; at < MOST; at++) {
        if (inherited_[at]) {
            end += sprintf(end, "|%d", at);
        }
    }
    /* The folder that the shell has read is listed, and is there no more. */
    strcpy(end, ") ;; *) if [ -L $f ]; then readlink $f >&2; exit 1; fi;; esac; done");
    posix_spawn_file_actions_init(&actions);
    for (at = 0; at < 3; at++) {
        if (fcntl(COPIES + at, F_GETFD) >= 0) {
            posix_spawn_file_actions_adddup2(&actions, COPIES + at, at);
        }
    }
    if (posix_spawn(&child, sh, &actions, NULL, arguments, environ) != 0 || waitpid(child, &status, 0) != child ||
        status != 0) {
        dprintf(COPIES + 2, "%s: what is executed inherits a descriptor\n", when);
        _exit(1);
    }
    posix_spawn_file_actions_destroy(&actions);
}

/*
 * Prints to what was closed, and closes what was not: the library's connections go on all the same.
 * Nothing comes out.
 */
static inline void close_standard(const char *when)
{
    const char *closed = getenv("DESCRIPTORS");
    int at;

    check_descriptors(when);
    check_executed(when);
    if (closed == NULL || strcmp(closed, "never") == 0) {
        return;
    }
    for (at = 0; at < 3; at++) {
        if (strcmp(closed, "closed") == 0 && (dprintf(at, "lost\n") > 0 || errno != EBADF)) {
            complain_(when, "takes what is printed", at, "which was closed");
        }
        close(at);
    }
}

/* The standard descriptors as they were. */
static inline void restore_standard(const char *when)
{
    int at;

    check_descriptors(when);
    for (at = 0; at < 3; at++) {
        dup2(COPIES + at, at);
    }
}

#endif /* DESCRIPTORS_H */
