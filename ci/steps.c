/* Runs a program, and prints the instructions that its first thread executes between one int3 and
 * the next, each pair in a line: "steps N". Single steps, so it needs no counters of the processor
 * and runs programs that valgrind does not. Usage: steps PROGRAM [ARGUMENT]... */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed(const char *what) {
    fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
    return 1;
}

int main(int argc, char **argv) {
    int counts = 0, status;
    long steps = 0;
    pid_t program;
    if (argc < 2) {
        fputs("usage: steps PROGRAM [ARGUMENT]...\n", stderr);
        return 2;
    }
    program = fork();
    if (program < 0)
        return failed("fork");
    if (program == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
            execvp(argv[1], argv + 1);
        _exit(failed(argv[1]));
    }
    /* It stops when it has been executed. */
    if (waitpid(program, &status, 0) < 0)
        return failed("waitpid");
    while (!WIFEXITED(status) && !WIFSIGNALED(status)) {
        siginfo_t why;
        int passed_on = 0;
        if (ptrace(PTRACE_GETSIGINFO, program, NULL, &why) < 0)
            return failed("PTRACE_GETSIGINFO");
        if (WSTOPSIG(status) != SIGTRAP) {
            passed_on = WSTOPSIG(status);
        } else if (why.si_code == SI_KERNEL) { /* an int3 */
            if (counts) {
                printf("steps %ld\n", steps - 1);
                fflush(stdout);
            }
            counts = !counts;
            steps = 0;
        } else {
            steps++;
        }
        if (ptrace(counts ? PTRACE_SINGLESTEP : PTRACE_CONT, program, NULL, passed_on) < 0)
            return failed("ptrace");
        if (waitpid(program, &status, 0) < 0)
            return failed("waitpid");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
