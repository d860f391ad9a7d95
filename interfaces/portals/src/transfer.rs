//! Reads of what a peer has offered, piece by piece.

use crate::operations::{Bulk, Kind, Operation, Phase};
use crate::state::{Sending, State};
use crate::wire;
use cci::{Connection, Endpoint, Notify, RegisterError, Rights, Rma, RmaError};

/// The part in which the byte at `offset` of the whole is, and the offset there.
fn locate(lengths: impl Iterator<Item = u64>, mut offset: u64) -> Option<(usize, u64, u64)> {
    for (index, len) in lengths.enumerate() {
        if offset < len {
            return Some((index, offset, len - offset));
        }
        offset -= len;
    }
    None
}

/// Begins as many reads as there is room for. `Gone`: all have begun, or one was refused for good.
pub(crate) fn begin(
    endpoint: &Endpoint,
    connection: Connection,
    (offset, length, reads): (u64, u64, &mut Bulk),
    context: u64,
) -> Sending {
    let Some(own_parts) = reads.own.clone() else { return Sending::Gone };
    while reads.begun < length && !reads.has_failed {
        let local = locate(own_parts.iter().map(cci::Registration::len), offset + reads.begun);
        let remote = locate(reads.remote.iter().map(|(len, _)| *len), reads.begun);
        let (Some((own, own_offset, own_left)), Some((other, other_offset, other_left))) = (local, remote) else {
            reads.has_failed = true;
            break;
        };
        let len = own_left.min(other_left).min(length - reads.begun);
        let rma = Rma::new(own_parts[own].handle(), &reads.remote[other].1, len);
        let rma = rma.local_offset(own_offset).remote_offset(other_offset);
        match endpoint.read(connection, &rma, Notify::Always(context)) {
            Ok(()) => {
                reads.begun += len;
                reads.open += 1;
            }
            // What has begun goes on meanwhile.
            Err(RmaError::NoBuffers) => return Sending::Blocked,
            Err(_) => reads.has_failed = true,
        }
    }
    Sending::Gone
}

impl State {
    /// Has the memory descriptor of an operation registered for this side's reads. It stays so:
    /// peers have no right to it, and whoever registers memory for each read pays for that each
    /// time.
    pub(crate) fn register_own(&mut self, endpoint: &Endpoint, number: u64) -> Result<(), Sending> {
        let Some((operation, reads)) = self.operations.get_whole(number) else { return Err(Sending::Gone) };
        let Some(memory) = self.objects.memories.get_mut(operation.memory) else {
            self.abandon(endpoint, number);
            return Err(Sending::Gone);
        };
        if memory.own.is_none() {
            let parts = memory.region.parts().map(|part| endpoint.register(part.clone(), Rights::NONE));
            match parts.collect() {
                Ok(registered) => memory.own = Some(registered),
                Err(RegisterError::NoMemory) => return Err(Sending::Blocked),
                Err(_) => {
                    self.abandon(endpoint, number);
                    return Err(Sending::Gone);
                }
            }
        }
        reads.own.clone_from(&memory.own);
        Ok(())
    }

    /// A read has ended.
    pub(crate) fn on_read(&mut self, endpoint: &Endpoint, number: u64, is_done: bool) {
        let Some((operation, reads)) = self.operations.get_whole(number) else { return };
        reads.open -= 1;
        reads.has_failed |= !is_done;
        let is_over = reads.has_failed || reads.begun == operation.length;
        if reads.open == 0 && is_over {
            self.finish_reads(endpoint, number);
        }
    }

    /// All reads have ended: the data are in place, or will not be.
    pub(crate) fn finish_reads(&mut self, endpoint: &Endpoint, number: u64) {
        let Some((_, reads)) = self.operations.get_whole(number).filter(|(of, _)| of.phase == Phase::Reading) else {
            return;
        };
        let is_done = !reads.has_failed;
        let Some(operation) = self.operations.remove(number) else { return };
        let status = if is_done { wire::DONE } else { wire::FAILED };
        if operation.kind == Kind::Take {
            let length = operation.length;
            let status = if is_done && self.has_no_ack(&operation) { wire::DROPPED } else { status };
            self.end_served(&operation, is_done);
            self.fin(endpoint, &operation, operation.request.operation, (status, length, operation.facts.offset));
        } else {
            // The number of the target's operation was kept there.
            let theirs = operation.request.offset;
            self.end_reply(&operation, is_done);
            self.fin(endpoint, &operation, theirs, (status, 0, 0));
        }
    }

    /// Tells the partner that its memory was read, on the link of the operation alone.
    fn fin(&mut self, endpoint: &Endpoint, operation: &Operation, theirs: u64, answer: (u8, u64, u64)) {
        if self.link(operation.whom) == Some(operation.on_link) {
            self.send_fin(endpoint, operation.whom, theirs, answer);
        }
    }
}
