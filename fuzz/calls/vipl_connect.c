/* libvipl: connections. */

#include "vipl_calls.h"

static VIP_CONN_HANDLE connection;

/* An address of this host. */
ADDRESS address_at(unsigned nic, const char *name) {
    VIP_NIC_ATTRIBUTES attributes;
    ADDRESS address;

    memset(&address, 0, sizeof address);
    if (CALL(VipQueryNic, nics[nic], &attributes) != VIP_SUCCESS || attributes.NicAddressLen > 16)
        return address;
    address.address.HostAddressLen = attributes.NicAddressLen;
    address.address.DiscriminatorLen = (VIP_UINT16)strlen(name);
    memcpy(address.room + 4, attributes.LocalNicAddress, attributes.NicAddressLen);
    memcpy(address.room + 4 + attributes.NicAddressLen, name, strlen(name));
    return address;
}

/* Both sides of the peer-to-peer model, which need no thread that waits. */
void connect_peers(void) {
    static unsigned rounds;
    unsigned one = below(VIS), other = (one + 1 + below(VIS - 1)) % VIS, tries;
    char names[2][32];
    ADDRESS addresses[2];
    VIP_VI_ATTRIBUTES attributes;
    VIP_RETURN codes[2] = {VIP_NOT_DONE, VIP_NOT_DONE};

    rounds++;
    snprintf(names[0], sizeof names[0], "a%d.%u", (int)getpid(), rounds);
    snprintf(names[1], sizeof names[1], "b%d.%u", (int)getpid(), rounds);
    addresses[0] = address_at(nic_of[one], names[0]);
    addresses[1] = address_at(nic_of[other], names[1]);
    if (CALL(VipConnectPeerRequest, vis[one], &addresses[0].address, &addresses[1].address, 30) != VIP_SUCCESS)
        return;
    if (CALL(VipConnectPeerRequest, vis[other], &addresses[1].address, &addresses[0].address, 30) != VIP_SUCCESS)
        return;
    for (tries = 0; tries < 200 && (codes[0] == VIP_NOT_DONE || codes[1] == VIP_NOT_DONE); tries++) {
        codes[0] = CALL(VipConnectPeerDone, vis[one], &attributes);
        codes[1] = one_in(30) ? CALL(VipConnectPeerWait, vis[other], &attributes)
                              : CALL(VipConnectPeerDone, vis[other], &attributes);
    }
}

/* The client and server model between two processes: the one waits, the other one asks. */
static void serve(void) {
    ADDRESS local = address_at(0, process ? "cs1" : "cs0"), remote;
    unsigned at = below(VIS);
    VIP_VI_ATTRIBUTES attributes;
    char name[24];

    snprintf(name, sizeof name, "%u.%d", *(unsigned *)(void *)board->entries[0][9], process);
    local = address_at(nic_of[at], name);
    if (CALL(VipConnectWait, nics[nic_of[at]], &local.address, 4, &remote.address, &attributes, &connection) !=
        VIP_SUCCESS)
        return;
    if (one_in(4))
        CALL(VipConnectReject, connection);
    else if (CALL(VipConnectAccept, connection, vis[at]) != VIP_SUCCESS || one_in(20))
        CALL(VipConnectReject, connection);
}

static void ask(void) {
    ADDRESS local = address_at(0, "client"), remote;
    char name[24];
    VIP_VI_ATTRIBUTES attributes;
    unsigned at = below(VIS), tries;

    snprintf(name, sizeof name, "%u.%d", *(unsigned *)(void *)board->entries[0][9], !process);
    remote = address_at(nic_of[at], name);
    for (tries = 0; tries < 20; tries++)
        if (CALL(VipConnectRequest, vis[at], &local.address, &remote.address, 4, &attributes) != VIP_NO_MATCH)
            return;
}

void connect_some(void) {
    if (processes == 1 || one_in(4))
        connect_peers();
    else if (one_in(2))
        serve();
    else
        ask();
}
