//! In which lists of the endpoint a lane stands: those that every call polls, and those that the
//! clock looks at.

/// Ticks of the coarse clock without a frame after which a lane goes cold.
const COOL: u8 = 2;

/// Whether calls poll a lane, and the clock looks at it.
#[derive(Default)]
pub(crate) struct Schedule {
    /// Every call polls the lane; it stands in `SlowPath::hot`, or will.
    hot: bool,
    /// The clock looks at the lane; it stands in `SlowPath::timed`, or will.
    timed: bool,
    /// A wake-up has been read since the last look.
    rung: bool,
    /// Ticks without a frame while hot.
    silent: u8,
    /// Frames received at the last tick.
    polled: u64,
}

impl Schedule {
    /// Whether every call polls the lane, or will.
    #[inline]
    pub(crate) fn is_hot(&self) -> bool {
        self.hot
    }

    /// Calls are to poll the lane. False: they did already.
    #[inline]
    pub(crate) fn begin_polling(&mut self) -> bool {
        !std::mem::replace(&mut self.hot, true)
    }

    /// The lane stands among those that calls poll.
    pub(crate) fn make_hot(&mut self) {
        (self.hot, self.silent) = (true, 0);
    }

    /// Calls poll the lane no more. False: they did not.
    pub(crate) fn make_cold(&mut self) -> bool {
        std::mem::take(&mut self.hot)
    }

    /// Counts a tick of the coarse clock while the lane is hot, which has `received` so many frames
    /// until now. Returns whether it may go cold.
    pub(crate) fn on_tick(&mut self, received: u64) -> bool {
        if self.polled != received {
            (self.polled, self.silent) = (received, 0);
            return false;
        }
        self.silent = self.silent.saturating_add(1);
        self.silent > COOL
    }

    /// The clock is to look at the lane. False: it did already.
    #[inline]
    pub(crate) fn begin_timing(&mut self) -> bool {
        !std::mem::replace(&mut self.timed, true)
    }

    /// The clock may forget the lane.
    pub(crate) fn end_timing(&mut self) {
        self.timed = false;
    }

    /// A wake-up was read from the socket.
    pub(crate) fn on_wake_up_read(&mut self) {
        self.rung = true;
    }

    /// Whether a wake-up was read since the last call of this.
    pub(crate) fn take_wake_up(&mut self) -> bool {
        std::mem::take(&mut self.rung)
    }
}
