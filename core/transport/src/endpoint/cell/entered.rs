//! Calls within an endpoint.

use super::{Endpoint, Entered, Outside, Popped};
use crate::{Body, Connection, Core, Message, Posted, Slot, Transport};
use cci_mem::source::Source;
use cci_proto::{Flags, PollError, SendError, Unusable};

impl Endpoint {
    /// The next event. Makes progress when none waits, and now and then although one does.
    ///
    /// # Errors
    ///
    /// No event waits and every receive buffer is held by the program, or the endpoint cannot be
    /// used here.
    #[inline]
    pub fn next_event(&self) -> Result<Option<&'static Slot>, PollError> {
        let mut entered = match self.enter_at_once() {
            Ok(entered) => entered,
            Err(outside) => return self.enter_for_event(outside),
        };
        match entered.pop() {
            Popped::Event(slot) => Ok(Some(slot)),
            Popped::Nothing => Self::poll(entered),
            Popped::Unknown => Self::look_for_event(entered),
        }
    }

    /// Apart from [`Endpoint::next_event`], which needs fewer registers without it.
    #[inline(never)]
    fn poll(entered: Entered<'_>) -> Result<Option<&'static Slot>, PollError> {
        entered.poll()
    }

    /// Likewise.
    #[inline(never)]
    fn look_for_event(entered: Entered<'_>) -> Result<Option<&'static Slot>, PollError> {
        entered.look_for_event()
    }

    /// As [`Endpoint::next_event`], by the lock.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::next_event`].
    #[inline(never)]
    pub fn enter_for_event(&self, outside: Outside<'_>) -> Result<Option<&'static Slot>, PollError> {
        drop(outside);
        self.enter_by_lock()?.look_for_event()
    }

    /// Runs `act` with the endpoint to itself, which must not come back here.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be used here.
    #[inline(always)]
    pub fn with<T>(&self, act: impl FnOnce(&mut Core, &mut dyn Transport) -> T) -> Result<T, Unusable> {
        let mut place = self.enter_place()?;
        let Some(body) = place.as_mut() else { return Err(self.why_closed()) };
        let result = act(&mut body.core, &mut *body.transport);
        if body.core.is_armed() {
            body.transport.settle(&mut body.core);
        }
        Ok(result)
    }
}

impl Body {
    /// Ends a call that has looked for events. `is_empty`: it found none; `told`: the handle was
    /// readable because there is room.
    #[inline(always)]
    pub(crate) fn end_look(&mut self, is_empty: bool, told: bool) {
        let Self { transport, core } = self;
        if is_empty {
            if told {
                core.forget_room();
            }
            if core.is_handle_in_use() {
                if core.is_armed() {
                    core.on_empty_call();
                } else {
                    transport.leave_edge(core);
                }
            }
        }
        if core.is_armed() {
            transport.settle(core);
        }
    }
}

impl<'a> Entered<'a> {
    /// Leaves the endpoint, when the result is dropped.
    #[inline(always)]
    pub fn outside(self) -> Outside<'a> {
        self.body.outside()
    }

    pub(crate) fn body_mut(&mut self) -> &mut Body {
        &mut self.body
    }
}

impl Entered<'_> {
    /// The oldest event, if one waits and progress is not due.
    #[inline(always)]
    pub fn pop(&mut self) -> Popped {
        let core = &mut self.body.core;
        if core.is_armed() {
            return Popped::Unknown;
        }
        if core.has_event() {
            return core.pop_at_once().map_or(Popped::Unknown, Popped::Event);
        }
        if core.is_handle_in_use() { Popped::Unknown } else { Popped::Nothing }
    }

    /// The next event, after [`Popped::Nothing`].
    ///
    /// # Errors
    ///
    /// No event waits and every receive buffer is held by the program.
    #[inline(always)]
    pub fn poll(mut self) -> Result<Option<&'static Slot>, PollError> {
        let Body { transport, core } = &mut *self.body;
        match transport.poll(core) {
            None if core.holds_all_recv() => self.refuse_poll(),
            found => Ok(found),
        }
    }

    /// Apart from [`Entered::poll`], which needs fewer registers without it.
    #[cold]
    #[inline(never)]
    fn refuse_poll(self) -> Result<Option<&'static Slot>, PollError> {
        Err(PollError::NoBuffers)
    }

    /// The oldest event, after progress if none waits or progress is due.
    ///
    /// # Errors
    ///
    /// No event waits and every receive buffer is held by the program.
    #[inline(always)]
    pub fn look_for_event(mut self) -> Result<Option<&'static Slot>, PollError> {
        let Body { transport, core } = &mut *self.body;
        let told = core.tells_room();
        if core.wants_progress() {
            transport.progress(core);
        }
        let found = core.pop();
        self.body.end_look(found.is_none(), told);
        match found {
            None if self.body.core.holds_all_recv() => Err(PollError::NoBuffers),
            found => Ok(found),
        }
    }

    /// Sends a message on an open connection of this endpoint, of at most its largest size.
    /// `flags`: SILENT, or none.
    ///
    /// # Errors
    ///
    /// Refused: nothing was sent.
    #[inline(always)]
    pub fn post(
        mut self,
        connection: &'static Connection,
        message: Source<'_>,
        context: u64,
        flags: Flags,
    ) -> Result<(), SendError> {
        let Body { transport, core } = &mut *self.body;
        let sent = transport.post(message, context, connection, core, flags);
        if core.is_armed() || sent.is_err() {
            return self.end_post(sent);
        }
        Ok(())
    }

    /// As [`Entered::post`], of a message in pieces; `posted`: not waited for.
    ///
    /// # Errors
    ///
    /// Refused: nothing was sent.
    #[inline]
    pub fn post_gathered(
        mut self,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Result<(), SendError> {
        let Body { transport, core } = &mut *self.body;
        let sent = transport.send(core, connection, message, posted).map(drop);
        if core.is_armed() || sent.is_err() {
            return self.end_post(sent);
        }
        Ok(())
    }

    /// Apart from [`Entered::post`], which needs fewer registers without it.
    #[cold]
    #[inline(never)]
    fn end_post(mut self, sent: Result<(), SendError>) -> Result<(), SendError> {
        let Body { transport, core } = &mut *self.body;
        if core.is_armed() {
            transport.settle(core);
        }
        sent
    }
}
