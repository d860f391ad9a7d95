//! What an endpoint is opened with.

/// What an endpoint is opened with.
#[derive(Clone, Copy, Debug)]
pub struct CoreOptions {
    /// Receive slots.
    pub recv_count: usize,
    /// Send slots.
    pub send_count: usize,
    /// RMA descriptors, beside the send slots.
    pub rma_count: usize,
    /// Whether to raise an event when a peer disconnects or dies.
    pub disconnect_events: bool,
    /// Whether peers are read and answered while the program makes no calls.
    pub present: bool,
    /// Whether peers that owe acknowledgements are waited for until the network says that nobody is
    /// there.
    pub patient: bool,
    /// Ways ([`Core::enter_way`](crate::Core::enter_way)), for a transport that stands over so many
    /// others; 0: none.
    pub ways: u8,
}

impl CoreOptions {
    /// The defaults. Programs keep 8,192 sends and 8,192 RMAs outstanding on one connection and
    /// treat ENOBUFS as fatal.
    pub const DEFAULT: Self = Self {
        recv_count: 4096,
        send_count: 8192,
        rma_count: 16384,
        disconnect_events: false,
        present: false,
        patient: false,
        ways: 0,
    };
}

impl Default for CoreOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}
