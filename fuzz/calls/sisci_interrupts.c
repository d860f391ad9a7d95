/* libsisci: interrupts, without bytes and with. */

#include "sisci_calls.h"

static sci_local_interrupt_t interrupts[OTHERS];
static sci_remote_interrupt_t remote_interrupts[OTHERS];
static sci_local_data_interrupt_t data_interrupts[OTHERS];
static sci_remote_data_interrupt_t remote_data_interrupts[OTHERS];

static sci_callback_action_t on_interrupt(void *arg, sci_local_interrupt_t interrupt, sci_error_t status) {
    (void)arg, (void)interrupt, (void)status;
    return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_data(void *arg, sci_local_data_interrupt_t interrupt, void *data, unsigned int length,
                                     sci_error_t status) {
    (void)arg, (void)interrupt, (void)data, (void)status;
    return length % 2 ? SCI_CALLBACK_CANCEL : SCI_CALLBACK_CONTINUE;
}

/* The numbers of interrupts on the board: at 0 those without bytes, at 1 those with. */
static unsigned int *number_at(int of, unsigned kind, unsigned at) {
    return (unsigned int *)(void *)board->entries[of][kind] + at;
}

static unsigned int a_number(unsigned kind) {
    int of = processes == 2 && one_in(2) ? !process : process;

    return one_in(50) ? (unsigned int)draw() : *number_at(of, kind, below(OTHERS));
}

void interrupt(void) {
    unsigned at = below(OTHERS);
    unsigned int number = first_id + below(100);
    int calls_back = one_in(3);

    switch (below(9)) {
    case 0:
        DO(SCIRemoveInterrupt, interrupts[at], SCI_NO_FLAGS, &error);
        if (DO(SCICreateInterrupt, ONE_OF(devices), &interrupts[at], 0, one_in(300) ? NULL : &number,
               calls_back ? on_interrupt : NULL, NULL, calls_back ? SCI_FLAG_USE_CALLBACK : flags(SCI_FLAG_FIXED_INTNO),
               &error))
            *number_at(process, 0, at) = number;
        break;
    case 1:
    case 2:
        DO(SCIDisconnectInterrupt, remote_interrupts[at], SCI_NO_FLAGS, &error);
        DO(SCIConnectInterrupt, ONE_OF(devices), &remote_interrupts[at], a_node(), 0, a_number(0), 20, SCI_NO_FLAGS, &error);
        break;
    case 3:
        DO(SCIWaitForInterrupt, ONE_OF(interrupts), below(3), SCI_NO_FLAGS, &error);
        break;
    default:
        DO(SCITriggerInterrupt, ONE_OF(remote_interrupts), SCI_NO_FLAGS, &error);
    }
}

void data_interrupt(void) {
    unsigned at = below(OTHERS);
    unsigned int number = first_id + below(100), length = length_to(500);
    static unsigned char bytes[1024];
    int calls_back = one_in(3);

    switch (below(9)) {
    case 0:
        DO(SCIRemoveDataInterrupt, data_interrupts[at], SCI_NO_FLAGS, &error);
        if (DO(SCICreateDataInterrupt, ONE_OF(devices), &data_interrupts[at], 0, &number, calls_back ? on_data : NULL, NULL,
               calls_back ? SCI_FLAG_USE_CALLBACK : flags(SCI_FLAG_FIXED_INTNO), &error))
            *number_at(process, 1, at) = number;
        break;
    case 1:
    case 2:
        DO(SCIDisconnectDataInterrupt, remote_data_interrupts[at], SCI_NO_FLAGS, &error);
        DO(SCIConnectDataInterrupt, ONE_OF(devices), &remote_data_interrupts[at], a_node(), 0, a_number(1), 20, SCI_NO_FLAGS,
           &error);
        break;
    case 3:
    case 4:
        DO(SCIWaitForDataInterrupt, ONE_OF(data_interrupts), bytes, one_in(300) ? NULL : &length, below(3), SCI_NO_FLAGS,
           &error);
        break;
    default:
        DO(SCITriggerDataInterrupt, ONE_OF(remote_data_interrupts), one_in(300) ? NULL : memory, length, SCI_NO_FLAGS, &error);
    }
}
