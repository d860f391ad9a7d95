/*
 * A program without standard descriptors, or that closes them while its VIs are connected.
 */

#include "sides.h"

#include "../../../descriptors.h"

int main(void) {
    SIDE server, client;
    VIP_DESCRIPTOR *sent, *received;

    open_sides(&server, &client, VIP_SERVICE_RELIABLE_DELIVERY);
    close_standard("connected");
    memset(client.data, 7, 60000);
    received = fill(&server, 0, 0, 60000);
    post_receive(&server, received);
    sent = fill(&client, 0, 0, 60000);
    post_send(&client, sent);
    finish(&client, sent, 0, &server);
    finish(&server, received, 1, &client);
    CHECK(server.data[0] == 7 && server.data[59999] == 7);
    sent = fill_rdma(&client, 1, VIP_CONTROL_OP_RDMAWRITE, &server, 100000, 0, 60000);
    post_send(&client, sent);
    finish(&client, sent, 0, &server);
    CHECK(server.data[159999] == 7);
    restore_standard("exchanged");
    close_sides(&server, &client);
    puts("exchanged");
    return 0;
}
