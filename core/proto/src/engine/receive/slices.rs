//! Reassembly of frames that arrive in slices.

use crate::Time;
use crate::engine::connection::conn::bit;
use crate::engine::flow::limits::WINDOW;
use crate::engine::flow::slices::Owner;
use crate::engine::host::Host;
use crate::engine::state::Engine;
use crate::wire::{DATA, Data, Record, Records};

impl Engine {
    /// Handles a slice of a sequenced frame.
    pub(super) fn handle_slice<H: Host>(
        &mut self,
        now: Time,
        index: u32,
        data: &Data,
        mut records: Records<'_>,
        host: &mut H,
    ) {
        let Some(conn) = self.table.get_mut(index) else { return };
        let largest = usize::from(self.config.mtu).saturating_sub(DATA);
        let (true, Some(Record::Slice { total, at, bytes })) = (conn.is_reliable(), records.next()) else {
            self.stats.malformed += 1;
            return;
        };
        if usize::from(total) > largest {
            self.stats.malformed += 1;
            return;
        }
        let gap = data.seq.wrapping_sub(conn.recv_next) as usize;
        let is_here = self.flows.get(conn.flow).is_some_and(|flow| flow.reorder_queue.has(gap));
        if gap == 0
            && is_here
            && let Some(none) = Records::again(&[])
        {
            // It waits for a slot, and its sender asks whether there is one.
            return self.handle_sequenced(now, index, data, none, bytes.len(), host);
        }
        if gap >= WINDOW || is_here {
            // It has come, or it comes too early.
            self.stats.duplicates += 1;
            conn.set(bit::ACK_NOW);
            return;
        }
        let owner = Owner { id: conn.id, endpoint: conn.to, network: conn.to.network() };
        let Some(whole) = self.slices.take(now, owner, data.seq, (total, at, bytes)) else { return };
        match Records::again(&whole).filter(|records| !records.is_slice()) {
            Some(records) => self.handle_sequenced(now, index, data, records, DATA + whole.len(), host),
            None => self.stats.malformed += 1,
        }
    }
}
