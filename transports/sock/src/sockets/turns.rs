//! Which of an endpoint's sockets a call reads first, and whether it reads the others too.

/// Every so many calls read the other sockets first, so that a busy socket does not starve them and
/// idle ones cost little.
const OTHERS_EVERY: u32 = 16;
/// After datagrams change from one socket to another, this many calls read all of them.
const MIXED: u32 = 1024;

/// A socket at which datagrams arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Source {
    #[default]
    Own,
    Connected,
    Outward,
}

impl Source {
    /// The one that is read after this one.
    #[inline]
    pub(super) fn next(self) -> Self {
        match self {
            Self::Own => Self::Connected,
            Self::Connected => Self::Outward,
            Self::Outward => Self::Own,
        }
    }
}

/// The turns of the sockets.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Where the last datagrams arrived.
    last: Source,
    calls: u32,
    /// Calls left that read all sockets.
    mixed: u32,
}

impl Turns {
    /// What this call reads first, and whether it goes on where that has nothing.
    #[inline]
    pub(super) fn begin(&mut self) -> (Source, bool) {
        self.calls = self.calls.wrapping_add(1);
        let is_turn = self.calls.is_multiple_of(OTHERS_EVERY);
        let is_mixed = self.mixed > 0;
        self.mixed = self.mixed.saturating_sub(1);
        (if is_turn { self.last.next() } else { self.last }, is_turn || is_mixed)
    }

    /// Records which socket had datagrams.
    #[inline]
    pub(super) fn on_received(&mut self, from: Source) {
        if self.last != from {
            (self.last, self.mixed) = (from, MIXED);
        }
    }

    /// The connected socket is closed.
    pub(super) fn on_closed(&mut self) {
        if self.last == Source::Connected {
            self.last = Source::Own;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many datagrams of each source, and how many reads, so many calls make of sockets that
    /// always have something if they are busy.
    fn read(busy: &[Source], calls: u32) -> ([u32; 3], u32) {
        let (mut turns, mut found, mut reads) = (Turns::default(), [0; 3], 0);
        for _ in 0..calls {
            let (first, goes_on) = turns.begin();
            let order = [first, first.next(), first.next().next()];
            for source in order.into_iter().take(if goes_on { 3 } else { 1 }) {
                reads += 1;
                if busy.contains(&source) {
                    found[source as usize] += 1;
                    turns.on_received(source);
                    break;
                }
            }
        }
        (found, reads)
    }

    #[test]
    fn busy_sockets_do_not_starve_each_other() {
        let (found, _) = read(&[Source::Own, Source::Connected, Source::Outward], 48_000);
        assert!(found.iter().all(|count| *count >= 10_000), "{found:?}");
    }

    #[test]
    fn idle_sockets_cost_a_read_in_sixteen_calls() {
        for busy in [Source::Own, Source::Connected, Source::Outward] {
            let calls = 160_000;
            let (found, reads) = read(&[busy], calls);
            assert!(found[busy as usize] > calls - 1024, "{busy:?}: {found:?}");
            assert!(reads < calls + calls / 8 + 2 * MIXED, "{busy:?}: {reads} reads");
        }
    }

    #[test]
    fn a_closed_socket_is_not_read_first() {
        let mut turns = Turns::default();
        turns.on_received(Source::Connected);
        turns.on_closed();
        assert_eq!(turns.begin().0, Source::Own);
        turns.on_received(Source::Outward);
        turns.on_closed();
        assert_eq!(turns.begin().0, Source::Outward);
    }
}
