//! Messages that are published at once: into a lane where nothing waits.

use crate::format::layout::{pair, unpair};
use crate::lane::Lane;
use crate::shortcut::Sm;
use cci_mem::memory::Memory;
use cci_mem::ring::{BODY, Violation};
use cci_mem::source::Source;
use cci_mem::sync::Ordering;
use cci_proto::SendError;
use cci_transport::{Connection, Core, Message, Posted, Slot, Transport};

impl Sm {
    /// As [`Transport::post`], with a SEND event or silently, of a message of whole words or of any
    /// length. Whole words need fewer registers.
    #[inline(never)]
    pub(crate) fn post_as<const SILENT: bool, const WHOLE: bool>(
        &mut self,
        message: Source<'_>,
        context: u64,
        connection: &'static Connection,
        core: &mut Core,
    ) -> Result<(), SendError> {
        if let Some(lane) = self.clear_lane(connection).filter(|_| message.len() <= BODY)
            && let Some(wire) = lane.ample_wire()
            && let Some(slot) = if SILENT { Some(None) } else { core.take_last_send().map(Some) }
        {
            if let Some(slot) = slot {
                core.finish(slot, connection, context, Ok(()));
            }
            let message = if WHOLE { message.whole_words() } else { message };
            let must_wake = wire.push_message(core, connection, message);
            return if must_wake { lane.wake_after_post() } else { Ok(()) };
        }
        self.post_any::<SILENT>(message, context, connection, core)
    }

    /// The lane of a connection, if nothing waits there.
    #[inline(always)]
    fn clear_lane(&mut self, connection: &'static Connection) -> Option<&mut Lane> {
        let number = connection.lane.load(Ordering::Relaxed);
        let lane = self.slow.lanes.get_mut(number as usize)?.as_deref_mut()?;
        if number != self.clear {
            if !lane.is_clear() {
                return None;
            }
            self.clear = number;
        }
        Some(lane)
    }

    /// As [`Sm::post_as`], of a message that goes into a payload slot, or whatever is in the way.
    /// Last there, with the same arguments, so that the fast path needs no stack.
    #[inline(never)]
    fn post_any<const SILENT: bool>(
        &mut self,
        message: Source<'_>,
        context: u64,
        connection: &'static Connection,
        core: &mut Core,
    ) -> Result<(), SendError> {
        let posted = if SILENT { Posted::Silent(context) } else { Posted::Event(context) };
        if message.len() > BODY
            && let Some(sent) = self.send_in_slot(core, connection, Message::One(message), posted)
        {
            return sent;
        }
        self.send(core, connection, Message::One(message), posted).map(drop)
    }

    /// Sends a message in a payload slot that is at hand, if nothing is in the way.
    #[inline(always)]
    pub(crate) fn send_in_slot(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        message: Message<'_>,
        posted: Posted,
    ) -> Option<Result<(), SendError>> {
        let lane = self.clear_lane(connection)?;
        let wire = lane.ample_wire().filter(|wire| wire.has_slot_at_hand())?;
        if let Posted::Event(context) = posted {
            let event = core.take_last_send()?;
            core.finish(event, connection, context, Ok(()));
        }
        Some(match wire.push_in_slot(core, connection, message) {
            Ok(false) => Ok(()),
            Ok(true) => lane.wake_after_post(),
            Err(Violation) => {
                let number = lane.number();
                self.slow().state.protocol_errors.push(number);
                Ok(())
            }
        })
    }

    /// As [`Transport::reserve`], of a room that takes a payload slot.
    pub(crate) fn reserve_slot(&mut self, connection: &'static Connection, len: usize) -> Option<(Memory, u64)> {
        let is_clear = self.clear_lane(connection).is_some();
        let (lane, state) = self.slow.lane_for(connection)?;
        let reserved = lane.reserve(state, len).map(|(slot, memory)| (memory, pair(slot, lane.number())));
        // A slot less, in a lane where nothing waits for one, leaves the next calls as they were.
        if !is_clear || reserved.is_none() {
            self.slow();
        }
        reserved
    }

    /// As [`Transport::commit`].
    pub(crate) fn commit_slot(
        &mut self,
        core: &mut Core,
        connection: &'static Connection,
        (room, len): (u64, usize),
        posted: Posted,
    ) -> Result<Option<&'static Slot>, SendError> {
        let (slot, number) = unpair(room);
        // What is published at once leaves the next calls as they were.
        if !self.clear_lane(connection).is_some_and(|lane| lane.number() == number && lane.ample_wire().is_some()) {
            self.slow();
        }
        let Some(lane) = self.slow.lanes.get_mut(number as usize).and_then(Option::as_deref_mut) else {
            return Err(SendError::Disconnected);
        };
        lane.commit(&mut self.slow.state, core, connection, (slot, len), posted)
    }
}
