/*
 * Each side forks in each phase of a large message: before it is matched, and while it is read. The
 * children's calls are refused, and the message is whole.
 */

#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define LONGEST (4 << 20)

static unsigned char out[LONGEST], in[LONGEST];

static void fork_one(mx_request_t request) {
    pid_t child = fork();
    mx_status_t status;
    uint32_t result;
    int ended;

    if (child == 0) {
        /* The error handler of the parent is the child's too. */
        int code = mx_test(endpoint, &request, &status, &result);

        /* Ends as programs do: what the library has of the parent is not ended with it. */
        exit(code == MX_NOT_INITIALIZED && mx_finalize() == MX_NOT_INITIALIZED ? 0 : 1);
    }
    CHECK(waitpid(child, &ended, 0) == child && ended == 0);
}

int main(int argc, char **argv) {
    unsigned round, byte;

    CHECK(argc == 5);
    begin(argv, NULL, 0);
    mx_set_error_handler(MX_ERRORS_RETURN);
    for (round = 0; round < 4; round++) {
        mx_request_t request;
        mx_status_t status;
        uint32_t result = 0;

        for (byte = 0; byte < LONGEST; byte++)
            out[byte] = (unsigned char)(byte * 7 + round);
        if (rank == 0) {
            request = start_send(out, LONGEST, round);
            OK(mx_test(endpoint, &request, &status, &result));
            if (round == 0)
                fork_one(request);
            /* The other side has been told of it, and does not receive it yet. */
            finish(start_send(NULL, 0, 100));
            finish(start_receive(NULL, 0, 101));
            if (round == 1)
                fork_one(request);
            if (result == 0)
                finish(request);
            continue;
        }
        while (result == 0)
            OK(mx_iprobe(endpoint, round, MX_MATCH_MASK_NONE, &status, &result));
        if (round == 2)
            fork_one(NULL);
        finish(start_receive(NULL, 0, 100));
        finish(start_send(NULL, 0, 101));
        request = start_receive(in, LONGEST, round);
        OK(mx_test(endpoint, &request, &status, &result));
        if (result == 0) {
            if (round == 3)
                fork_one(request);
            finish(request);
        }
        for (byte = 0; byte < LONGEST; byte++)
            CHECK(in[byte] == (unsigned char)(byte * 7 + round));
    }
    finish_together("whole");
    return 0;
}
