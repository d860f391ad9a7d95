//! Several events by one call.

use crate::binding;
use crate::endpoint::EndpointFor;
use crate::event::Event;
use cci_proto::PollError;

impl<T> EndpointFor<T> {
    /// Appends the next events to `events`, at most `most`, and returns how many there were: what
    /// [`EndpointFor::get_event`] would return call by call, with one lock for up to 16 of them. 0:
    /// none now. Never blocks.
    ///
    /// For a program that waits edge-triggered, only a call that returns 0 promises an edge.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::get_event`]; then nothing was appended.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci::{Context, Endpoint, EndpointOptions};
    /// # let endpoint = Endpoint::open(Context::new()?.default_device()?, &EndpointOptions::new())?;
    /// let mut events = Vec::with_capacity(16);
    /// while endpoint.get_events(&mut events, 16)? > 0 {
    ///     for event in events.drain(..) {
    ///         println!("{:?}", event.kind());
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_events<'e>(&'e self, events: &mut Vec<Event<'e>>, most: usize) -> Result<usize, PollError> {
        self.poll(most, |event| events.push(event))
    }

    /// Hands the next events to `handler`, at most `most`, oldest first, and returns how many there
    /// were. A message lies where it arrived, and its buffer goes back when the handler drops it.
    /// Never blocks.
    ///
    /// The handler runs without the endpoint's lock: it may make every call, and so may other
    /// threads meanwhile. If it panics, events that it has not seen are dropped.
    ///
    /// # Errors
    ///
    /// As [`EndpointFor::get_event`]; then the handler has not been called.
    ///
    /// # Example
    ///
    /// ```
    /// # use cci::{Context, Endpoint, EndpointOptions, Event};
    /// # let endpoint = Endpoint::open(Context::new()?.default_device()?, &EndpointOptions::new())?;
    /// let mut bytes = 0;
    /// endpoint.poll(1000, |event| {
    ///     if let Event::Received(message) = event {
    ///         bytes += message.len();
    ///     }
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn poll<'e>(&'e self, most: usize, mut handler: impl FnMut(Event<'e>)) -> Result<usize, PollError> {
        binding::poll(self.cell, most, |slot| {
            handler(Event::of(slot));
            true
        })
    }
}
