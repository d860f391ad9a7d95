//! How lanes end, and endpoints.

use crate::endpoint::Tcp;
use crate::frame::Kind;
use crate::lane::shared::{Cause, Elsewhere};
use crate::lane::{Lane, Phase, end_connect};
use crate::sys;
use cci_mem::cancellation::Uncancelled;
use cci_mem::sync::Ordering;
use cci_proto::Failure;
use cci_transport::{Core, Transport, Unsent, monotonic, send_rest};
use rustix::net::{Shutdown, shutdown};
use std::time::Duration;

impl Tcp {
    /// Takes a lane that is over away: its connections are broken, and its connects end, or are
    /// dialed for again.
    #[cold]
    pub(crate) fn bury(&mut self, core: &mut Core, number: u32, cause: &Cause) {
        if let Cause::Joins(offer, stream, asked) = cause {
            return self.join_stream(number, (*offer, *stream), asked.as_deref());
        }
        self.end_dial(number);
        let Some((lane, shared)) = self.lane(number) else { return };
        // A server that was full has closed the stream: the client dials again.
        let was_full = *cause == Cause::Full || *cause == Cause::Gone && !lane.incoming.has_greeted();
        if lane.dialed && was_full && !lane.table.is_empty() {
            // A version without sealed streams closes one without a word.
            let may_be_old = *cause == Cause::Gone && lane.seal.is_some();
            lane.asks_plain |= may_be_old && shared.sealing.as_ref().is_some_and(|sealing| sealing.takes_plain());
            lane.drop_socket(shared);
            lane.begin_again();
            lane.was_turned_away = true;
            return lane.pause(shared);
        }
        let Some(mut lane) = self.remove_lane(number) else { return };
        if self.dialed.get(&lane.peer) == Some(&number) && lane.dialed {
            self.dialed.remove(&lane.peer);
        }
        let shared = &mut self.shared;
        shared.inbox.ungrant(lane.given.outstanding());
        shared.grants_due |= !shared.wanting.is_empty();
        shared.inbox.requests.forget(|request| request.lane == number);
        lane.drop_socket(shared);
        let connections: Vec<_> = lane.table.cells().collect();
        for cell in connections {
            let local = cell.local.load(Ordering::Relaxed);
            if lane.table.pending(local).is_some() {
                let Some((cell, Some(mut pending))) = lane.leave(shared, local) else { continue };
                let (failure, reason) = why(&lane, cause);
                // A request that may be at a program is not made a second time.
                let is_strange = *cause == Cause::Violation && !lane.incoming.has_greeted();
                let next = match pending.is_asked && !is_strange {
                    true => Err(reason),
                    false => pending.others.without(reason, shared.now),
                };
                match next {
                    Ok(next) => {
                        (pending.is_asked, pending.was_busy) = (false, false);
                        shared.redirected.push((cell, pending, Elsewhere::Address(next)));
                    }
                    Err(reason) => end_connect(shared, core, cell, &pending, failure, Some(reason)),
                }
            } else {
                if matches!(cause, Cause::System(_) | Cause::Violation | Cause::Silent | Cause::Forged) {
                    core.explain_break(cell, why(&lane, cause).1);
                }
                lane.break_connection(shared, core, local, Failure::Disconnected);
            }
        }
        if let Some(work) = lane.work.take() {
            shared.reuse(lane.out.take_buffer());
            drop(work);
        }
        self.forget_lane(number);
    }

    /// No list of lanes names this one any more.
    pub(crate) fn forget_lane(&mut self, number: u32) {
        let shared = &mut self.shared;
        for list in [&mut shared.active, &mut shared.owing, &mut shared.urgent] {
            list.retain(|other| *other != number);
        }
        shared.wanting.retain(|other| *other != number);
    }

    /// Closes the endpoint: what was sent is delivered within the limit, and all streams end.
    pub(crate) fn close_all(&mut self, core: &mut Core, limit: Duration) {
        let _uncancelled = Uncancelled::new();
        let end = monotonic() + limit;
        if let Some(listener) = self.listener.take() {
            let _ = self.shared.set.unwatch(&listener);
            let _ = shutdown(&listener, Shutdown::Both);
        }
        send_rest(self, core, limit, <Self as Transport>::handle, |tcp, core| {
            if !tcp.lanes.iter().flatten().any(|lane| lane.has_unsent()) {
                return Unsent::Nothing;
            }
            let (found, _) = tcp.step_once(core);
            if found { Unsent::Moving } else { Unsent::Waiting }
        });
        self.end_requests(core);
        // The program's memory is not touched once its endpoint is closed.
        self.shared.registrations.clear();
        let numbers: Vec<u32> = self.lanes.iter().flatten().map(|lane| lane.number).collect();
        for number in &numbers {
            let Some((lane, shared)) = self.lane(*number) else { continue };
            lane.forget_memory(shared, core);
            if lane.phase == Phase::Open {
                let remotes: Vec<u32> =
                    lane.table.open_cells().map(|cell| cell.remote.load(Ordering::Relaxed)).collect();
                for remote in remotes {
                    lane.put(shared, Kind::Disconnect, 0, remote, &[]);
                }
            }
            lane.flush(shared, core);
            if let Some(socket) = &lane.socket {
                let _ = shutdown(socket, Shutdown::Write);
            }
        }
        // Closing a stream with unread bytes destroys what the peer has not read.
        for number in &numbers {
            let Some((lane, _)) = self.lane(*number) else { continue };
            let Some(socket) = &lane.socket else { continue };
            let mut nowhere = [0; 4096];
            loop {
                while matches!(sys::receive(socket, &mut nowhere), Ok(1..)) {}
                if sys::unsent(socket) == 0 || monotonic() >= end {
                    break;
                }
                std::thread::yield_now();
            }
        }
        for number in numbers {
            if let Some((lane, shared)) = self.lane(number) {
                lane.drop_socket(shared);
            }
        }
        self.lanes.clear();
        self.names.clear();
    }

    fn end_requests(&mut self, core: &mut Core) {
        let requests: Vec<_> = self.shared.inbox.requests.iter().copied().collect();
        for request in requests {
            if let Some((lane, shared)) = self.lane(request.lane) {
                lane.answer(shared, Kind::Reject, request.number, &[&[0; 4]]);
                lane.flush(shared, core);
            }
        }
        self.shared.inbox.requests.clear();
    }
}

/// Why the connects of a lane end with it.
fn why(lane: &Lane, cause: &Cause) -> (Failure, String) {
    let peer = lane.peer_uri();
    match cause {
        Cause::Refused(reason) | Cause::System(reason) => (Failure::Refused, reason.clone()),
        Cause::Violation => {
            (Failure::Refused, format!("{peer} does not speak the protocol of tcp endpoints; check the URI"))
        }
        Cause::Forged => {
            let reason = "what came on the stream was not sealed by a peer with the secret, or was changed on its way";
            (Failure::Refused, format!("the stream to {peer} has ended: {reason}"))
        }
        Cause::Silent => (Failure::TimedOut, format!("{peer} does not answer any more")),
        Cause::Gone | Cause::Full | Cause::Idle | Cause::Joins(..) => {
            (Failure::Refused, format!("{peer} has closed the stream before it answered"))
        }
    }
}
