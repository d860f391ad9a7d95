//! The counters page of an endpoint: who may read it, and the gauges in it.

mod core;

use cci_mem::counters::Page;
use cci_mem::sync::AtomicU64;

/// A value of the counters page that a transport copies there at intervals
/// ([`Core::set_gauges`](crate::Core::set_gauges)). [`Page`] has what each means.
///
/// # Example
///
/// ```
/// use cci_transport::Gauge;
///
/// assert_ne!(Gauge::Strays, Gauge::InFlight);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gauge {
    /// [`Page::not_ready`].
    NotReady,
    /// [`Page::refused`].
    Refused,
    /// [`Page::strays`].
    Strays,
    /// [`Page::malformed`].
    Malformed,
    /// [`Page::frames_sent`].
    FramesSent,
    /// [`Page::frames_received`].
    FramesReceived,
    /// [`Page::resent`].
    Resent,
    /// [`Page::duplicates`].
    Duplicates,
    /// [`Page::spurious`].
    Spurious,
    /// [`Page::unheld`].
    Unheld,
    /// [`Page::in_flight`].
    InFlight,
    /// [`Page::unlisted`].
    Unlisted,
}

/// How many there are.
const GAUGES: usize = Gauge::Unlisted as usize + 1;

impl Gauge {
    fn word(self, page: &Page) -> &AtomicU64 {
        match self {
            Self::NotReady => &page.not_ready,
            Self::Refused => &page.refused,
            Self::Strays => &page.strays,
            Self::Malformed => &page.malformed,
            Self::FramesSent => &page.frames_sent,
            Self::FramesReceived => &page.frames_received,
            Self::Resent => &page.resent,
            Self::Duplicates => &page.duplicates,
            Self::Spurious => &page.spurious,
            Self::Unheld => &page.unheld,
            Self::InFlight => &page.in_flight,
            Self::Unlisted => &page.unlisted,
        }
    }
}

/// What a way has set last.
#[derive(Clone, Copy, Default)]
pub(super) struct GaugesOfWay([u64; GAUGES]);
