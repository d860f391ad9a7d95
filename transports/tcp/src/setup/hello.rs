//! The lane's side of setting up: HELLO, requests and their answers.

use crate::frame::{ConnectBody, Fields, Greeting, HELLO, Header, Hello, Kind, OPERATIONS, Refusal, Violation};
use crate::inbox::Request;
use crate::lane::shared::{Cause, Elsewhere, Shared};
use crate::lane::{Lane, Phase, end_connect};
use crate::seal::{Asked, SHARE};
use crate::settings::Checks;
use crate::setup::addresses::OtherAddresses;
use crate::sys;
use cci_mem::sync::Ordering;
use cci_proto::{Attribute, EventKind, Failure, MAX_REQUEST, Time};
use cci_transport::{Connection, ConnectionState, Core, Slot, random};
use rustix::net::{Shutdown, shutdown};
use std::time::Duration;

/// A request that found no room is repeated after this time, and up to as much again.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// The HELLO of this endpoint.
pub(crate) fn own_hello(s: &Shared, dialed: bool, refusal: Option<Refusal>) -> Hello {
    let (max_send_size, identity, operations) = (s.max_send_size, s.identity, OPERATIONS);
    Hello { dialed, sealed: false, max_send_size, identity, offer: [0; 2], stream: 0, operations, refusal }
}

impl Lane {
    /// Says HELLO, and begins a handshake where this side asks for a sealed stream.
    pub(crate) fn say_hello(&mut self, s: &mut Shared) {
        if self.out.is_bare() {
            let buffer = s.buffer();
            self.out.set_buffer(buffer);
        }
        let sealed = self.asks_sealed(s);
        let bytes = Hello { offer: self.make_offer(s), sealed, ..own_hello(s, self.dialed, None) }.emit();
        self.out.room(bytes.len()).copy_from_slice(&bytes);
        if sealed && let Some(share) = self.begin_handshake(s, &bytes) {
            self.out.room(share.len()).copy_from_slice(&share);
        }
        self.activate(s);
    }

    /// Says in a HELLO why the lane is not served, and ends it.
    #[cold]
    pub(crate) fn refuse(&mut self, s: &mut Shared, refusal: Refusal) {
        let bytes = own_hello(s, self.dialed, Some(refusal)).emit();
        // Nothing was sent on this stream, so that it has room.
        if let Some(socket) = &self.socket {
            let _ = sys::send(socket, &bytes);
            let _ = shutdown(socket, Shutdown::Write);
        }
        self.end(s, Cause::Idle);
    }

    /// The listener refuses the stream.
    #[cold]
    fn on_refusal(&mut self, s: &mut Shared, refusal: Refusal) {
        let peer = self.peer_uri();
        let takes_plain = s.sealing.as_ref().is_some_and(|sealing| sealing.takes_plain());
        let reason = match refusal {
            Refusal::Full => return self.end(s, Cause::Full),
            Refusal::NoSecret if takes_plain => {
                self.asks_plain = true;
                return self.end(s, Cause::Full);
            }
            Refusal::Version => format!("{peer} speaks another version of the protocol; use one version of cci"),
            Refusal::Sealed => {
                format!("{peer} serves sealed streams only; give this side the secret of the peer (secret_file)")
            }
            Refusal::OtherSecret => {
                format!("{peer} has another secret; give both sides the same one, and compare with `cci key show`")
            }
            Refusal::NoSecret => {
                format!("{peer} has no secret, and this side has one; give the peer the same one (secret_file)")
            }
        };
        self.end(s, Cause::Refused(reason));
    }

    /// The peer has said HELLO.
    pub(crate) fn on_hello(
        &mut self,
        s: &mut Shared,
        hello: Result<Hello, Greeting>,
        (raw, share): (&[u8; HELLO], Option<&[u8; SHARE]>),
    ) -> Result<(), Violation> {
        let hello = match hello {
            Ok(hello) => hello,
            Err(Greeting::Nonsense) => return Err(Violation),
            Err(Greeting::OtherVersion(version)) => {
                if !self.dialed {
                    self.refuse(s, Refusal::Version);
                }
                let peer = self.peer_uri();
                self.end(
                    s,
                    Cause::Refused(format!("{peer} speaks version {version} of the protocol; use one version of cci")),
                );
                return Ok(());
            }
        };
        // TCP connects a socket to itself where the port is free and of the ephemeral range.
        if hello.dialed == self.dialed {
            return Err(Violation);
        }
        if let Ok(stream @ 1..) = usize::try_from(hello.stream) {
            if self.dialed {
                return Err(Violation);
            }
            let asked = share.map(|share| Box::new(Asked { hello: *raw, share: *share }));
            self.end(s, Cause::Joins(hello.offer, stream, asked));
            return Ok(());
        }
        if let Some(refusal) = hello.refusal {
            self.on_refusal(s, refusal);
            return Ok(());
        }
        if !self.settle_sealing(s, raw, share)? {
            return Ok(());
        }
        self.phase = Phase::Open;
        self.checks = match s.settings.checks {
            // The tag of a record says more than a sum.
            _ if self.is_sealed() => false,
            Checks::Off => false,
            Checks::Remote => !self.is_on_this_host(),
            Checks::Always => true,
        };
        (self.operations, self.peer_max) = (hello.operations.min(OPERATIONS), hello.max_send_size);
        if !self.dialed {
            if !self.is_sealed() {
                self.say_hello(s);
            }
        } else {
            self.take_offer(s, hello.offer);
            if self.is_sealed() {
                let now = s.now;
                self.ask_all(s, now);
            }
        }
        self.activate(s);
        s.check_by(s.now);
        Ok(())
    }

    /// Sends the requests of all connects that have not been asked, or are to be asked again.
    pub(crate) fn ask_all(&mut self, s: &mut Shared, now: Time) {
        // On a sealed stream nothing leaves before the handshake is over.
        let waits = self.seal.as_ref().is_some_and(|seal| !seal.is_open());
        if waits || !matches!(self.phase, Phase::Greeting | Phase::Open) {
            return;
        }
        let is_due = |at: Option<Time>| at.is_none_or(|at| at <= now);
        let due: Vec<u32> = self
            .table
            .all_pending()
            .filter(|(_, pending)| !pending.is_asked && is_due(pending.ask_at))
            .map(|(number, _)| number)
            .collect();
        for number in due {
            let Some(cell) = self.table.cell(number) else { continue };
            let Some(pending) = self.table.pending_mut(number) else { continue };
            (pending.is_asked, pending.ask_at) = (true, None);
            let body = ConnectBody {
                attribute: cell.attribute(),
                identity: [s.identity[0], number.into()],
                token: pending.token,
            };
            let payload = pending.payload.clone();
            self.put(s, Kind::Connect, 0, number, &[&body.emit(), &payload]);
        }
    }

    /// The peer asks for a connection.
    pub(crate) fn on_connect(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        header: &Header,
        fields: &mut Fields<'_>,
    ) -> Result<(), Violation> {
        if self.dialed || fields.rest().len() > ConnectBody::LEN + MAX_REQUEST {
            return Err(Violation);
        }
        let body = ConnectBody::parse(fields).ok_or(Violation)?;
        self.has_asked = true;
        if body.token != 0 {
            match s.expected.take(body.token) {
                Some(client) => {
                    self.accept_client(s, core, (header.connection, body.attribute), client.slot, client.context)
                }
                None => self.answer(s, Kind::Reject, header.connection, &[&[0; 4]]),
            }
            return Ok(());
        }
        if core.is_stray_request(fields.rest()) {
            self.answer(s, Kind::Reject, header.connection, &[&[0; 4]]);
            return Ok(());
        }
        let request = Request { lane: self.number, number: header.connection, attribute: body.attribute };
        s.keeps_one = false;
        if !s.inbox.request(core, request, fields.rest()) {
            // The client asks again when lanes have given grants back.
            s.keeps_one = s.inbox.is_short(core);
            s.is_short |= s.keeps_one;
            self.answer(s, Kind::Busy, header.connection, &[]);
        }
        Ok(())
    }

    /// Makes the connection of a request, and queues its ACCEPT event in this slot.
    pub(super) fn accept_client(
        &mut self,
        s: &mut Shared,
        core: &mut Core,
        (number, attribute): (u32, Attribute),
        slot: &'static Slot,
        context: u64,
    ) {
        let most = s.max_send_size.min(self.peer_max);
        let opened = if self.table.is_full() { None } else { core.open_connection(attribute, context, most).ok() };
        let Some(cell) = opened else {
            self.answer(s, Kind::Reject, number, &[&[0; 4]]);
            return core.finish_opening(slot, EventKind::Accept, context, Err(Failure::NoMemory));
        };
        let own = self.enter(cell, None);
        self.open(s, core, cell, number, most);
        self.put(s, Kind::Accept, 0, number, &[&own.to_le_bytes(), &s.max_send_size.to_le_bytes()]);
        self.pay(s);
        core.finish_opening(slot, EventKind::Accept, context, Ok(cell));
        self.flush(s, core);
    }

    /// Opens a connection at this side.
    fn open(&mut self, s: &mut Shared, core: &mut Core, cell: &'static Connection, remote: u32, most: u32) {
        cell.remote.store(remote, Ordering::Relaxed);
        cell.max_send_size.store(most, Ordering::Relaxed);
        #[expect(clippy::cast_possible_truncation, reason = "it wraps around")]
        cell.opened_at.store((s.now.0 / 1_000_000) as u32, Ordering::Relaxed);
        cell.set_state(ConnectionState::Open);
        self.is_watched |= cell.keepalive.load(Ordering::Relaxed) > 0;
        s.check_by(s.now);
        self.top_up(s, core);
        self.owe(s);
    }

    /// The server has accepted.
    pub(crate) fn on_accept(&mut self, s: &mut Shared, core: &mut Core, header: &Header, fields: &mut Fields<'_>) {
        let (remote, max_send_size) = (fields.u32(), fields.u32());
        let Some((cell, pending)) = self.table.answered(header.connection) else {
            // The connect has timed out meanwhile.
            return self.answer(s, Kind::Disconnect, remote, &[]);
        };
        let most = cell.max_send_size.load(Ordering::Relaxed).min(max_send_size);
        self.open(s, core, cell, remote, most);
        s.open_operations = s.open_operations.saturating_sub(1);
        core.finish_opening(pending.slot, EventKind::Connect, pending.context, Ok(cell));
        self.open_streams(s);
    }

    /// The server has rejected.
    pub(crate) fn on_reject(&mut self, s: &mut Shared, core: &mut Core, header: &Header) {
        if self.table.pending(header.connection).is_some()
            && let Some((cell, Some(pending))) = self.leave(s, header.connection)
        {
            let reason = format!("the program at {} has rejected the request", self.peer_uri());
            end_connect(s, core, cell, &pending, Failure::Refused, Some(reason));
        }
    }

    /// The server has no room for the request: it is repeated.
    pub(crate) fn on_busy(&mut self, s: &mut Shared, header: &Header) {
        let now = s.now;
        if let Some(pending) = self.table.pending_mut(header.connection) {
            let at = now + ASK_AGAIN + jitter(ASK_AGAIN);
            (pending.is_asked, pending.was_busy, pending.ask_at) = (false, true, Some(at));
            s.check_by(at);
        }
    }

    /// The server names another endpoint, which expects the token.
    pub(crate) fn on_redirect(&mut self, s: &mut Shared, core: &mut Core, header: &Header, fields: &mut Fields<'_>) {
        let token = fields.u64();
        let uri = String::from_utf8_lossy(fields.rest()).into_owned();
        if self.table.pending(header.connection).is_none() {
            return;
        }
        let Some((cell, Some(mut pending))) = self.leave(s, header.connection) else { return };
        // A second redirect is refused: two endpoints could send a client to and fro for ever.
        if pending.token != 0 || token == 0 {
            let reason = format!("{} redirects a client that was redirected already", self.peer_uri());
            return end_connect(s, core, cell, &pending, Failure::Refused, Some(reason));
        }
        (pending.token, pending.is_asked, pending.was_busy, pending.ask_at) = (token, false, false, None);
        pending.others = OtherAddresses::default();
        s.redirected.push((cell, pending, Elsewhere::Uri(uri)));
    }

    /// The peer ends a connection, or withdraws a request.
    pub(crate) fn on_disconnect(&mut self, s: &mut Shared, core: &mut Core, header: &Header) {
        if header.flags & crate::frame::OWN != 0 {
            let (lane, number) = (self.number, header.connection);
            s.inbox.requests.forget(|request| request.lane == lane && request.number == number);
        } else if self.table.pending(header.connection).is_none() {
            self.break_connection(s, core, header.connection, Failure::Disconnected);
        }
    }
}

/// A random part of this time: those that were refused together do not come together again.
pub(super) fn jitter(most: Duration) -> Duration {
    let [word] = random().unwrap_or([0]);
    most.mul_f64((word >> 32) as f64 / f64::from(u32::MAX))
}
