//! What a layer over VIs does for a message, part by part, for whoever measures it.

/// A part of the work on a message. `docs/design/perf-am.md` has the categories of these.
///
/// # Example
///
/// ```
/// use cci_via::Part;
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
