//! What a mapping does for a message, told part by part to whoever measures it.

/// A part of the work on a message. `docs/design/perf-am.md` has the categories of these.
///
/// # Example
///
/// ```
/// use cci_am_via::Part;
///
/// assert_eq!(Part::ALL.len(), Part::COUNT);
/// assert_eq!(Part::ALL[Part::Build as usize], Part::Build);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "whoever measures shows all of them")]
pub enum Part {
    /// Posts a send.
    PostSend = 0,
    /// Posts a receive.
    PostReceive,
    /// Gives the buffer of a send that has completed back.
    RecycleSend,
    /// Finds the channel and the buffer of a receive that has completed.
    RecycleReceive,
    /// Builds a send: the message and its header in a buffer.
    Build,
    /// Takes a send from the completion queue, with its descriptor.
    NotifySend,
    /// Takes a receive from the completion queue, with its descriptor.
    NotifyReceive,
    /// Before a send: its channel, its credit, its buffer.
    BookkeepSend,
    /// Of a message that has come: its header, the credits that it brings and that go back.
    Process,
    /// Reads a message out of its buffer.
    Read,
    /// The engine and the handler: what the message means.
    Act,
    /// Polls that found nothing.
    Wait,
}

impl Part {
    /// How many there are.
    pub const COUNT: usize = 12;
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::PostSend,
        Self::PostReceive,
        Self::RecycleSend,
        Self::RecycleReceive,
        Self::Build,
        Self::NotifySend,
        Self::NotifyReceive,
        Self::BookkeepSend,
        Self::Process,
        Self::Read,
        Self::Act,
        Self::Wait,
    ];
}

/// Sees what a [`crate::ViaMapping`] does with messages that fit in one buffer. The time since the
/// call before was spent on that part. Bulk data and what opens a channel are not told.
///
/// # Example
///
/// ```
/// use cci_am_via::{Part, Watch};
/// use std::cell::Cell;
///
/// /// Counts posts.
/// struct Posts(Cell<u64>);
/// impl Watch for Posts {
///     fn spent(&self, part: Part) {
///         self.0.set(self.0.get() + u64::from(part == Part::PostSend));
///     }
/// }
/// ```
pub trait Watch: 'static {
    /// The time since the last call was spent on this part.
    fn spent(&self, part: Part);
}

/// Nobody: costs nothing.
///
/// # Example
///
/// ```
/// let mapping: fn(cci_am_via::ViaMapping<cci_am_via::Unwatched>) -> cci_am_via::ViaMapping = |mapping| mapping;
/// # let _ = mapping;
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing in it")]
pub struct Unwatched;

impl Watch for Unwatched {
    #[inline(always)]
    fn spent(&self, _: Part) {}
}
