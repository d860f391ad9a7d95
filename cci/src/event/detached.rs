//! Events that outlive the borrow of their endpoint.

use super::Event;
use crate::binding::EndpointCell;
use crate::endpoint::{EndpointFor, let_go};
use cci_transport::Slot;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;

/// An event that does not borrow its endpoint, but keeps it open: for deferred handlers, and for
/// other threads.
///
/// It gives its buffer back when it is dropped. An endpoint whose owner is dropped first closes
/// when its last detached event is. [`DetachedEvent::attach`] turns it into an [`Event`] again, for
/// a request to be answered.
///
/// # Example
///
/// ```
/// use cci::{Connect, Context, DetachedEvent, Endpoint, EndpointOptions, Event};
///
/// let device = Context::new()?.default_device()?.clone();
/// let (server, client) = (Endpoint::open(&device, &EndpointOptions::new())?, Endpoint::open(&device, &EndpointOptions::new())?);
/// client.connect(&Connect::to(server.uri()).payload(b"later"))?;
///
/// let mut deferred: Vec<DetachedEvent> = Vec::new();
/// while deferred.is_empty() {
///     client.get_event()?;
///     deferred.extend(server.get_event()?.map(Event::detach));
/// }
/// for event in deferred {
///     assert_eq!(event.request().map(|request| request.payload()), Some(b"later".to_vec()));
///     match event.attach(&server) {
///         Ok(Event::Request(request)) => request.accept(1)?,
///         _ => unreachable!("it was a request of this endpoint"),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DetachedEvent {
    /// Dropped by `drop`, before the endpoint is let go.
    event: ManuallyDrop<Event<'static>>,
    endpoint: Option<(&'static EndpointCell, u32)>,
}

impl Event<'_> {
    /// Makes the event outlive its borrow of the endpoint: the endpoint stays open until the result
    /// is dropped. Costs two locked instructions.
    #[must_use]
    pub fn detach(self) -> DetachedEvent {
        DetachedEvent::of(self)
    }
}

impl DetachedEvent {
    pub(super) fn of(event: Event<'_>) -> Self {
        let slot: &'static Slot = event.into_held().keep();
        let endpoint = slot.owner.get().map(|owner| {
            owner.hold();
            (owner, owner.generation())
        });
        Self { event: ManuallyDrop::new(Event::of(slot)), endpoint }
    }

    /// Returns the event, which borrows its endpoint from now on.
    ///
    /// # Errors
    ///
    /// It is an event of another endpoint, and comes back.
    pub fn attach<T>(mut self, endpoint: &EndpointFor<T>) -> Result<Event<'_>, Self> {
        if !self.endpoint.is_some_and(|(cell, _)| std::ptr::eq(cell, endpoint.cell)) {
            return Err(self);
        }
        if let Some((cell, _)) = self.endpoint.take() {
            // Not the last one: `endpoint` holds it too.
            let _ = cell.let_go();
        }
        let slot = self.event.held().slot;
        std::mem::forget(self);
        Ok(Event::of(slot))
    }
}

impl Deref for DetachedEvent {
    type Target = Event<'static>;

    fn deref(&self) -> &Event<'static> {
        &self.event
    }
}

impl Drop for DetachedEvent {
    fn drop(&mut self) {
        let slot = self.event.held().slot;
        drop(Event::of(slot));
        if let Some((cell, life)) = self.endpoint
            && cell.generation() == life
        {
            let_go(cell, life);
        }
    }
}

impl fmt::Debug for DetachedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
