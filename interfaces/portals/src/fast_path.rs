//! The usual work in one pass: a short put to a partner for whom nothing waits, and its end.
//! Whatever else happens takes the ways of `initiator.rs`; these begin with nothing done here.

use crate::handles::Handle;
use crate::operations::Whom;
use crate::partner::Partner;
use crate::state::{GIVEN, State};
use crate::types::EventKind;
use crate::wire::{LONGEST, Request};
use cci::{Endpoint, Notify};

/// The longest put that is gathered on the stack, bytes.
const SHORT: usize = 112;

impl State {
    /// Sends a put that leaves nothing to be told of: no ack is due, and its memory descriptor
    /// leaves no events of a send. Its bytes have left the memory as this returns, so it is over.
    /// False: nothing has been done.
    #[inline(always)]
    pub(crate) fn put_at_once(
        &mut self,
        endpoint: &Endpoint,
        whom: Whom,
        (memory, offset, length): (Handle, u64, u64),
        request: &Request,
    ) -> bool {
        let Self { partners, objects, .. } = self;
        let Whom::Peer(peer) = whom else { return false };
        let Some(connection) = partners.get(peer).and_then(Partner::is_free) else { return false };
        let Some(of) = objects.memories.get_mut(memory) else { return false };
        if length > SHORT as u64
            || request.wants_ack
            || of.leaves(EventKind::SendStart)
            || of.leaves(EventKind::SendEnd)
        {
            return false;
        }
        let mut message = [0; LONGEST + SHORT];
        let Some(front) = message.first_chunk_mut() else { return false };
        let header = request.write(front);
        let len = header + length as usize;
        let Some(body) = message.get_mut(header..len) else { return false };
        if !of.region.copy_out(offset, body)
            || endpoint.send(connection, &message[..len], Notify::OnFailure(0)).is_err()
        {
            return false;
        }
        of.count();
        let is_over = of.is_over();
        objects.registers[4] += 1;
        objects.registers[5] += length;
        let link = objects.next_link();
        if is_over {
            let facts = self.facts_of_send((offset, length), request, link);
            self.objects.settle(memory, &facts);
        }
        true
    }

    /// Sends the put that has just been entered. False: nothing has been done.
    #[inline]
    pub(crate) fn send_at_once(&mut self, endpoint: &Endpoint, number: u64) -> bool {
        let Self { operations, partners, objects, .. } = self;
        let Some(operation) = operations.get_mut(number) else { return false };
        let Whom::Peer(peer) = operation.whom else { return false };
        let Some(connection) = partners.get(peer).and_then(Partner::is_free) else { return false };
        let Some(memory) = objects.memories.get(operation.memory) else { return false };
        if operation.length > SHORT as u64 {
            return false;
        }
        let mut message = [0; LONGEST + SHORT];
        let Some(front) = message.first_chunk_mut() else { return false };
        let header = operation.request.write(front);
        let len = header + operation.length as usize;
        let Some(body) = message.get_mut(header..len) else { return false };
        // A message that does not fit is refused, and offered then.
        if !memory.region.copy_out(operation.offset, body)
            || endpoint.send(connection, &message[..len], Notify::Always(GIVEN | number)).is_err()
        {
            return false;
        }
        self.undelivered += 1;
        if operation.request.wants_ack {
            self.end_send(number);
            return true;
        }
        objects.registers[4] += 1;
        objects.registers[5] += operation.facts.rlength;
        objects.end(operation.memory, EventKind::SendEnd, &operation.facts);
        operations.release(number);
        true
    }
}
