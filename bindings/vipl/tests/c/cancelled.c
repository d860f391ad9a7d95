/*
 * A thread that is cancelled opens, waits for clients, connects and closes all the same, in both
 * models, and whichever of its calls takes the events.
 */

#include <semaphore.h>

#include "sides.h"

#include "../../../cancelled_thread.h"

static void from_begin_to_end(void) {
    SIDE side;
    ADDRESS own, other;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    VIP_CQ_HANDLE queue;
    VIP_VI_HANDLE vi;

    open_side(&side);
    own = address_of(&side, &side, sizeof(void *));
    other = own;
    CHECK_OK(VipNSInit(side.nic, NULL));
    CHECK_OK(VipNSGetHostByName(side.nic, "localhost", &other.address, 0));
    CHECK_OK(VipNSShutdown(side.nic));
    CHECK_CODE(VipConnectWait(side.nic, &own.address, SHORT, &other.address, &attributes, &connection), VIP_TIMEOUT);
    CHECK_OK(VipCreateCQ(side.nic, 8, &queue));
    vi = new_vi(&side, VIP_SERVICE_RELIABLE_DELIVERY, NULL, queue);
    CHECK_CODE(VipConnectRequest(vi, &own.address, &own.address, SHORT, &attributes), VIP_NO_MATCH);
    CHECK_OK(VipDestroyVi(vi));
    CHECK_OK(VipDestroyCQ(queue));
    close_side(&side);
}

typedef struct {
    SIDE *side;
    ADDRESS server;
    sem_t is_over;
} CLIENT;

static void *request(void *argument) {
    CLIENT *client = argument;
    ADDRESS local = address_of(client->side, "client", 6);
    CHECK_OK(request_matched(client->side->vi, &local, &client->server, LIMIT));
    CHECK(sem_post(&client->is_over) == 0);
    return NULL;
}

/* The thread that is cancelled accepts; another one asks. */
static void accept_client(SIDE *server, SIDE *side) {
    static int last;
    ADDRESS remote;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    VIP_VI_STATE state;
    CLIENT client;
    pthread_t thread;
    char name[32];

    client.side = side;
    client.server = address_of(server, name, (size_t)snprintf(name, sizeof(name), "%d.%d", last++, (int)getpid()));
    CHECK(sem_init(&client.is_over, 0, 0) == 0);
    CHECK(pthread_create(&thread, NULL, request, &client) == 0);
    CHECK(pthread_detach(thread) == 0);
    CHECK_OK(VipConnectWait(server->nic, &client.server.address, LIMIT, &remote.address, &attributes, &connection));
    CHECK_OK(VipConnectAccept(connection, server->vi));
    /* To join it would be a cancellation point, and to wait for it too. */
    while (sem_trywait(&client.is_over) != 0) {
        CHECK_OK(VipQueryVi(server->vi, &state, NULL, NULL, NULL));
    }
}

static void on_received(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor) {
    (void)context, (void)nic, (void)vi, (void)descriptor;
}

static void on_entry(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN is_receive) {
    (void)context, (void)nic, (void)vi, (void)is_receive;
}

static void accept_and_notify(void) {
    SIDE server, client;
    VIP_CQ_HANDLE queue;

    open_side(&server);
    open_side(&client);
    CHECK_OK(VipCreateCQ(server.nic, 8, &queue));
    server.vi = new_vi(&server, VIP_SERVICE_RELIABLE_DELIVERY, queue, NULL);
    client.vi = new_vi(&client, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    accept_client(&server, &client);
    CHECK_OK(VipRecvNotify(server.vi, NULL, on_received));
    CHECK_OK(VipSendNotify(client.vi, NULL, on_received));
    CHECK_OK(VipCQNotify(queue, NULL, on_entry));
    end_vi(&client);
    end_vi(&server);
    CHECK_OK(VipDestroyCQ(queue));
    close_side(&client);
    close_side(&server);
}

/* The calls that take the events of the side that listens end its connect. */
static void peers(void) {
    SIDE one, other;
    ADDRESS left, right;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CQ_HANDLE queue;
    VIP_VI_HANDLE vi;
    VIP_VI_STATE state;
    VIP_BOOLEAN is_receive;
    VIP_RETURN asks = VIP_NOT_DONE;
    time_t deadline = time(NULL) + PATIENCE;
    char names[2][32];
    int round;

    open_side(&one);
    open_side(&other);
    CHECK_OK(VipCreateCQ(one.nic, 8, &queue));
    one.vi = new_vi(&one, VIP_SERVICE_RELIABLE_DELIVERY, NULL, queue);
    other.vi = new_vi(&other, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    left = address_of(&one, names[0], (size_t)snprintf(names[0], sizeof(names[0]), "a%d", (int)getpid()));
    right = address_of(&other, names[1], (size_t)snprintf(names[1], sizeof(names[1]), "b%d", (int)getpid()));
    /* Nobody asks. */
    CHECK_OK(VipConnectPeerRequest(one.vi, &left.address, &right.address, SHORT));
    CHECK_CODE(VipConnectPeerWait(one.vi, &attributes), VIP_TIMEOUT);
    CHECK_OK(VipConnectPeerRequest(one.vi, &left.address, &right.address, LIMIT));
    CHECK_OK(VipConnectPeerRequest(other.vi, &right.address, &left.address, LIMIT));
    do {
        CHECK(time(NULL) < deadline);
        CHECK(VipConnectPeerDone(one.vi, &attributes) != VIP_TIMEOUT);
        for (round = 0; round < 3; round++) {
            if (asks == VIP_NOT_DONE) {
                asks = VipConnectPeerDone(other.vi, &attributes);
            }
            CHECK_CODE(VipCQWait(queue, 2, &vi, &is_receive), VIP_TIMEOUT);
        }
        CHECK_OK(VipQueryVi(one.vi, &state, NULL, NULL, NULL));
    } while (asks == VIP_NOT_DONE || state != VIP_STATE_CONNECTED);
    CHECK_OK(asks);
    end_vi(&one);
    end_vi(&other);
    CHECK_OK(VipDestroyCQ(queue));
    close_side(&one);
    close_side(&other);
}

static void print_fault(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
    on_fault(context, error);
    pthread_testcancel();
}

/* The handler of errors runs into a cancellation point, as a print is one. */
static void told_of_errors(void) {
    SIDE server, client;
    open_side(&server);
    open_side(&client);
    server.vi = new_vi(&server, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    client.vi = new_vi(&client, VIP_SERVICE_RELIABLE_DELIVERY, NULL, NULL);
    CHECK_OK(VipErrorCallback(server.nic, &server, print_fault));
    accept_client(&server, &client);
    CHECK_OK(VipDisconnect(client.vi));
    await_state(&server, VIP_STATE_ERROR, &client);
    CHECK(server.faults[VIP_ERROR_CONN_LOST] == 1);
    close_sides(&server, &client);
}

int main(void) {
    run_cancelled(from_begin_to_end);
    run_cancelled(accept_and_notify);
    run_cancelled(peers);
    run_cancelled(told_of_errors);
    puts("called");
    return 0;
}
