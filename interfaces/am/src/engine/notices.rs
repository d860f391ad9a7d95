//! Messages of the engine's own: segments, credits, and requests that ended without a reply.

use super::{Context, Due, Turn};
use crate::mapping::{Mapping, Refused};
use crate::peers::Way;
use crate::wire::{BATCH, HEADER, Header, Kind};

/// A message of a header alone.
fn bare(kind: Kind, id: u32) -> [u8; HEADER] {
    Header { id, ..Header::new(kind) }.emit()
}

impl<S, M: Mapping> Turn<'_, S, M> {
    /// Sends the notices that wait, as far as there is room.
    pub(super) fn flush_due(&mut self) {
        for _ in 0..self.core.due.len() {
            let Some(due) = self.core.due.pop_front() else { return };
            let flushed = match due {
                Due::Source(index) => self.flush_source(index),
                Due::Target(index) => self.flush_target(index),
                Due::Fresh(index) => {
                    self.age(index);
                    Ok(())
                }
            };
            if flushed == Err(Refused::NoRoom) {
                self.core.due.push_back(due);
            }
        }
    }

    /// Reports ended requests, however few.
    pub(crate) fn flush_batches(&mut self) {
        while let Some(index) = self.core.batching.pop() {
            self.notify_source(index);
        }
    }

    /// Sends what is due to a source, now or once there is room.
    pub(super) fn notify_source(&mut self, index: u32) {
        if self.flush_source(index) == Err(Refused::NoRoom) {
            self.core.due.push_back(Due::Source(index));
        }
    }

    pub(super) fn notify_target(&mut self, index: u32) {
        if self.flush_target(index) == Err(Refused::NoRoom) {
            self.core.due.push_back(Due::Target(index));
        }
    }

    /// Credits of a target have stayed for one flush more.
    fn age(&mut self, index: u32) {
        let Some(target) = self.core.targets.at_mut(index) else { return };
        target.fresh = target.fresh.saturating_sub(1);
        if target.fresh > 0 {
            self.core.due.push_back(Due::Fresh(index));
        } else if target.revoked > 0 {
            self.notify_target(index);
        }
    }

    /// The order matters: a source is to have every credit before it is asked for them.
    fn flush_source(&mut self, index: u32) -> Result<(), Refused> {
        let core = &mut *self.core;
        let context = Context::Source(core.sources.key(index)).pack();
        let Some(source) = core.sources.at_mut(index) else { return Ok(()) };
        let Some(channel) = source.channel else { return Ok(()) };
        let send = |message: &[u8]| self.mapping.reply(channel, message, context);
        if source.segment_is_due {
            send(&core.segment.notice::<M>(source.is_accepted))?;
            source.segment_is_due = false;
        }
        while !source.ended.is_empty() {
            let count = source.ended.len().min(BATCH);
            let kept = source.kept.min(u32::try_from(count).unwrap_or_default());
            let (count_byte, kept_byte) =
                (u8::try_from(count).unwrap_or_default(), u8::try_from(kept).unwrap_or_default());
            let header = Header { handler: kept_byte, count: count_byte, ..Header::new(Kind::Ended) };
            core.scratch.clear();
            core.scratch.extend_from_slice(&header.emit());
            source.ended[..count].iter().for_each(|id| core.scratch.extend_from_slice(&id.to_le_bytes()));
            send(&core.scratch)?;
            source.ended.drain(..count);
            source.kept -= kept;
        }
        if source.grant > 0 {
            send(&bare(Kind::Grant, source.grant))?;
            source.grant = 0;
        }
        if source.revoke_is_due {
            send(&bare(Kind::Revoke, source.loan.asked))?;
            source.revoke_is_due = false;
        }
        Ok(())
    }

    fn flush_target(&mut self, index: u32) -> Result<(), Refused> {
        let core = &mut *self.core;
        let context = Context::Target(core.targets.key(index)).pack();
        let Some(target) = core.targets.at_mut(index) else { return Ok(()) };
        let Way::Open(channel) = target.way else { return Ok(()) };
        let send = |message: &[u8]| self.mapping.send(channel, message, context);
        if target.segment_is_due {
            send(&core.segment.notice::<M>(true))?;
            target.segment_is_due = false;
        }
        if target.revoked > 0 && target.fresh == 0 {
            let given = std::mem::take(&mut target.revoked).min(target.available);
            target.available -= given;
            target.release = Some(target.release.unwrap_or(0).saturating_add(given));
        }
        if let Some(count) = target.release {
            send(&bare(Kind::Release, count))?;
            target.release = None;
        }
        if target.want_is_due {
            send(&bare(Kind::Want, 0))?;
            target.want_is_due = false;
        }
        Ok(())
    }

    /// Gives free credits to who waits for them, and asks others for what is missing.
    pub(super) fn serve_waiting(&mut self) {
        while let Some(index) = self.core.pool.next() {
            if let Some(source) = self.core.sources.at_mut(index) {
                source.grant += self.core.pool.lend_one(&mut source.loan);
                self.notify_source(index);
            }
        }
        if self.core.pool.missing() > 0 {
            self.ask_for_credits();
        }
    }

    fn ask_for_credits(&mut self) {
        for index in self.core.sources.indices() {
            let core = &mut *self.core;
            if core.pool.missing() == 0 {
                return;
            }
            if let Some(source) = core.sources.at_mut(index)
                && core.pool.ask(&mut source.loan)
            {
                source.revoke_is_due = true;
                source.asked_at = core.clock.tick();
                self.notify_source(index);
            }
        }
    }
}
