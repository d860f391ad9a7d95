//! Setup and teardown of connections: connect, accept, reject, redirect, disconnect.

use super::Reliable;
use super::cookies::{PendingConnection, cookie_of, is_engines};
use super::deferred::index_of;
use super::host::HostCtx;
use crate::Link;
use cci_mem::sync::Ordering;
use cci_proto::engine::{Index, Open};
use cci_proto::{Address, ConnectError, EventKind, Failure, RequestError, Time};
use cci_transport::{Connect, Connection, Core, Slot};
use std::time::Duration;

impl<L: Link> Reliable<L> {
    /// Closes a connection of the engine.
    pub(super) fn close_index(&mut self, core: &mut Core, now: Time, index: Index) {
        self.engine.close(now, index, &mut HostCtx { state: &mut self.host, core });
    }

    pub(super) fn connect_peer(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        let found = match self.link.names() {
            Some(names) => names.begin(connect.uri, self.names.next)?,
            None => Some(self.link.resolve(connect.uri)?),
        };
        let Some(to) = found else {
            let now = self.link.now();
            return self.await_address(core, now, connect);
        };
        let slot = core.take_send().ok_or(ConnectError::NoBuffers)?;
        self.connect_to(core, &[to], connect, slot).inspect_err(|_| core.release(slot))
    }

    /// Sends a connection request to an address, and to the others of its host until one answers.
    /// If it is refused, the caller still owns the slot.
    pub(super) fn connect_to(
        &mut self,
        core: &mut Core,
        addresses: &[Address],
        connect: &Connect<'_>,
        slot: &'static Slot,
    ) -> Result<(), ConnectError> {
        let (to, others) = addresses.split_first().ok_or(ConnectError::BadUri)?;
        let opened = core.open_connection(connect.attribute, connect.context, self.host.max_send_size);
        let Ok(cell) = opened else { return Err(ConnectError::NoMemory) };
        let now = self.link.now();
        let opening = PendingConnection {
            slot: Some(slot),
            kind: EventKind::Connect,
            context: connect.context,
            redirected: false,
            to: *to,
            tried: (!others.is_empty()).then(|| self.tried(addresses)),
        };
        // The engine's index follows below; the engine reports no event before.
        let cookie = self.enter(cell, Index(u32::MAX), opening);
        let open = Open {
            to: *to,
            attribute: connect.attribute,
            payload: connect.payload,
            host_cookie: cookie,
            // Without a timeout it waits for ever.
            timeout: Some(connect.timeout.unwrap_or(Duration::MAX)),
            token: 0,
        };
        match self.engine.connect(now, &open) {
            Ok(index) => {
                self.engine.set_path(index, self.link.path_mtu(to));
                for other in others {
                    self.engine.add_address(index, *other, self.link.path_mtu(other));
                }
                cell.local.store(index.0, Ordering::Relaxed);
            }
            Err(error) => {
                self.host.openings.end(cookie);
                core.end_connection(cell);
                return Err(error);
            }
        }
        self.set_timeouts(now, cell);
        self.transmit(core, now, false);
        self.run_deferred(core, now);
        Ok(())
    }

    /// Stores why a connect to this address has timed out. `is_answered`: an endpoint is there.
    #[cold]
    pub(super) fn explain_timeout(&self, core: &mut Core, slot: &'static Slot, to: &Address, is_answered: bool) {
        let mut name = String::new();
        // A string takes everything.
        let _ = self.link.write_name(to, &mut name);
        let reason = match core.reason(slot) {
            // It names all addresses.
            Some(tried) if !is_answered => tried.to_owned(),
            Some(tried) => format!("{tried}; one has answered, but not the program"),
            None if is_answered => {
                format!("the program at {name} has not answered the request, or has no room for another request")
            }
            None => format!("{name} does not answer; start its program, and have firewalls let its port pass"),
        };
        let silence = self.link.silence(to).filter(|_| !is_answered);
        core.explain(slot, silence.map_or(reason.clone(), |why| format!("{reason}; {why}")));
    }

    /// Stores why a connect to this address was refused: the two sides do not agree on security.
    #[cold]
    pub(super) fn explain_security(&self, core: &mut Core, slot: &'static Slot, to: &Address) {
        let mut name = String::new();
        // A string takes everything.
        let _ = self.link.write_name(to, &mut name);
        let reason = if self.host.keys.is_some() {
            format!(
                "{name} does not agree to a sealed connection: it has no secret, another one, or an older library; give \
                 both endpoints the same secret (the key secret_file), or set security = prefer here"
            )
        } else {
            format!(
                "{name} takes sealed connections only; give this endpoint its secret, by the key secret_file or by \
                 CCI_SECRET_FILE"
            )
        };
        core.explain(slot, reason);
    }

    /// A sentence about the addresses of a host.
    #[cold]
    fn tried(&self, addresses: &[Address]) -> String {
        let mut all = String::new();
        for (at, address) in addresses.iter().enumerate() {
            all.push_str(if at == 0 { "" } else { ", " });
            // A string takes everything.
            let _ = self.link.write_name(address, &mut all);
        }
        format!("the addresses of its host were asked in turn: {all}")
    }

    pub(super) fn accept_request(
        &mut self,
        core: &mut Core,
        request: &'static Slot,
        context: u64,
    ) -> Result<(), RequestError> {
        let Some(pending) = self.host.inbox.pending_requests.take(request) else {
            self.host.fail_opening(core, (None, EventKind::Accept, context), Failure::Disconnected);
            return Ok(());
        };
        let now = self.link.now();
        self.accept_index(core, now, pending.index, pending.attribute, (None, context));
        self.transmit(core, now, false);
        self.run_deferred(core, now);
        Ok(())
    }

    pub(super) fn reject_request(&mut self, core: &mut Core, request: &'static Slot) {
        if let Some(pending) = self.host.inbox.pending_requests.take(request) {
            let now = self.link.now();
            // An error means that the client is gone.
            let _ = self.engine.reject(now, pending.index, &mut HostCtx { state: &mut self.host, core });
            self.transmit(core, now, false);
        }
    }

    pub(super) fn expect_client(
        &mut self,
        core: &mut Core,
        token: u64,
        context: u64,
        limit: Duration,
    ) -> Result<(), RequestError> {
        self.expected.expect(core, token, context, self.link.now() + limit)?;
        self.engine.expect(token);
        Ok(())
    }

    /// Cancels an expected client, without event.
    pub(super) fn forget_client(&mut self, core: &mut Core, token: u64) -> bool {
        let was_expected = self.expected.forget(core, token);
        if was_expected {
            self.engine.forget(token);
        }
        was_expected
    }

    pub(super) fn redirect_request(
        &mut self,
        core: &mut Core,
        request: &'static Slot,
        uri: &str,
        token: u64,
    ) -> Result<(), RequestError> {
        // A client that is gone needs no answer; the endpoint that expects it reports its absence.
        let Some(pending) = self.host.inbox.pending_requests.take(request) else { return Ok(()) };
        let now = self.link.now();
        if let Err(error) = self.engine.redirect(
            now,
            pending.index,
            uri.as_bytes(),
            token,
            &mut HostCtx { state: &mut self.host, core },
        ) {
            self.host.inbox.pending_requests.insert(request, pending);
            return Err(error);
        }
        self.transmit(core, now, false);
        Ok(())
    }

    pub(super) fn disconnect_peer(&mut self, core: &mut Core, cell: &'static Connection) {
        self.host.pending_events.forget(cell);
        if cell.attribute().is_multicast() {
            return self.leave_group(core, cell);
        }
        if is_engines(core, cell) {
            let now = self.link.now();
            // Messages in the coalescer leave before CLOSE.
            self.transmit(core, now, false);
            self.close_index(core, now, index_of(cell));
            self.host.openings.end(cookie_of(cell));
            self.host.inbox.detach(cell);
            self.host.orphan(core, cell);
            core.end_connection(cell);
            self.transmit(core, now, true);
            self.run_deferred(core, now);
        }
    }
}
