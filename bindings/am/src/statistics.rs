//! Counts of messages: `amx_stats_t`.

use std::cell::Cell;

/// A count for each sort of message.
pub(crate) type Counts = [u64; 3];

/// `amx_stats_t`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Stats {
    pub(crate) requests_sent: Counts,
    pub(crate) replies_sent: Counts,
    pub(crate) requests_received: Counts,
    pub(crate) replies_received: Counts,
    pub(crate) request_bytes: Counts,
    pub(crate) reply_bytes: Counts,
    pub(crate) returned: u64,
}

#[unsafe(export_name = "AMUDP_initial_stats")]
static UDP: Stats = ZERO;
#[unsafe(export_name = "AMMPI_initial_stats")]
static MPI: Stats = ZERO;

const ZERO: Stats = Stats {
    requests_sent: [0; 3],
    replies_sent: [0; 3],
    requests_received: [0; 3],
    replies_received: [0; 3],
    request_bytes: [0; 3],
    reply_bytes: [0; 3],
    returned: 0,
};

#[derive(Default)]
pub(crate) struct Statistics(Cell<Stats>);

impl Statistics {
    pub(crate) fn get(&self) -> Stats {
        self.0.get()
    }

    pub(crate) fn reset(&self) {
        self.0.set(ZERO);
    }

    #[inline]
    pub(crate) fn count(&self, change: impl FnOnce(&mut Stats)) {
        let mut stats = self.0.get();
        change(&mut stats);
        self.0.set(stats);
    }
}

impl Stats {
    pub(crate) fn add(&mut self, more: &Self) {
        for at in 0..3 {
            self.requests_sent[at] += more.requests_sent[at];
            self.replies_sent[at] += more.replies_sent[at];
            self.requests_received[at] += more.requests_received[at];
            self.replies_received[at] += more.replies_received[at];
            self.request_bytes[at] += more.request_bytes[at];
            self.reply_bytes[at] += more.reply_bytes[at];
        }
        self.returned += more.returned;
    }
}
