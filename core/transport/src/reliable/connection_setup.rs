//! Connections: asked for, answered, closed.

use super::Reliable;
use super::connection_table::Opening;
use super::deferred::{ExpectedClient, index_of};
use super::host::HostCtx;
use crate::{Connect, Connection, Core, Link, Slot};
use cci_mem::sync::Ordering;
use cci_proto::engine::{Index, Open};
use cci_proto::{Address, ConnectError, EventKind, Failure, RequestError, Time};
use std::time::Duration;

impl<L: Link> Reliable<L> {
    /// Lets go of a place of the engine.
    pub(super) fn close_index(&mut self, core: &mut Core, now: Time, index: Index) {
        self.engine.close(now, index, &mut HostCtx { state: &mut self.host, core });
    }

    pub(super) fn connect_peer(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        let Some(to) = self.link.begin_resolve(connect.uri, self.names.next)? else {
            let now = self.link.now();
            return self.await_name(core, now, connect);
        };
        let slot = core.take_send().ok_or(ConnectError::NoBuffers)?;
        self.connect_to(core, to, connect, slot).inspect_err(|_| core.release(slot))
    }

    /// Asks the endpoint at an address for a connection. Refused: the slot is still the caller's.
    pub(super) fn connect_to(
        &mut self,
        core: &mut Core,
        to: Address,
        connect: &Connect<'_>,
        slot: &'static Slot,
    ) -> Result<(), ConnectError> {
        let opened = core.open_connection(connect.attribute, connect.context, self.host.max_send_size);
        let Ok(cell) = opened else { return Err(ConnectError::NoMemory) };
        let now = self.link.now();
        let opening =
            Opening { slot: Some(slot), kind: EventKind::Connect, context: connect.context, redirected: false };
        // Its place in the engine follows at once; nothing is told about it before.
        let user = self.enter(cell, Index(u32::MAX), opening);
        let open = Open {
            to,
            attribute: connect.attribute,
            payload: connect.payload,
            host_cookie: user,
            // Without a limit it waits for ever.
            timeout: Some(connect.timeout.unwrap_or(Duration::MAX)),
            token: 0,
        };
        match self.engine.connect(now, &open) {
            Ok(index) => cell.local.store(index.0, Ordering::Relaxed),
            Err(error) => {
                self.host.table.leave(user);
                core.end_connection(cell);
                return Err(error);
            }
        }
        self.set_timeouts(now, cell);
        self.transmit(core, now, false);
        self.run_deferred(core, now);
        Ok(())
    }

    pub(super) fn accept_request(
        &mut self,
        core: &mut Core,
        request: &'static Slot,
        context: u64,
    ) -> Result<(), RequestError> {
        let Some(asked) = self.host.inbox.take_request(request) else {
            self.host.fail_opening(core, (None, EventKind::Accept, context), Failure::Disconnected);
            return Ok(());
        };
        let now = self.link.now();
        self.accept_index(core, now, asked.index, asked.attribute, (None, context));
        self.transmit(core, now, false);
        self.run_deferred(core, now);
        Ok(())
    }

    pub(super) fn reject_request(&mut self, core: &mut Core, request: &'static Slot) {
        if let Some(asked) = self.host.inbox.take_request(request) {
            let now = self.link.now();
            // Its client is gone, should the engine know nothing of it.
            let _ = self.engine.reject(now, asked.index);
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
        let slot = core.take_send().ok_or(RequestError::NoBuffers)?;
        self.engine.expect(token);
        self.expected.push(ExpectedClient { token, context, slot, deadline: self.link.now() + limit });
        Ok(())
    }

    /// Takes an expectation back, without event.
    pub(super) fn forget_client(&mut self, core: &mut Core, token: u64) {
        if let Some(at) = self.expected.iter().position(|expected| expected.token == token) {
            core.release(self.expected.swap_remove(at).slot);
            self.engine.forget(token);
        }
    }

    pub(super) fn redirect_request(
        &mut self,
        core: &mut Core,
        request: &'static Slot,
        uri: &str,
        token: u64,
    ) -> Result<(), RequestError> {
        // A client that is gone needs no answer; the endpoint that expects it reports its absence.
        let Some(asked) = self.host.inbox.take_request(request) else { return Ok(()) };
        let now = self.link.now();
        if let Err(error) = self.engine.redirect(now, asked.index, uri.as_bytes(), token) {
            self.host.inbox.put_back(asked);
            return Err(error);
        }
        self.transmit(core, now, false);
        Ok(())
    }

    pub(super) fn disconnect_peer(&mut self, core: &mut Core, cell: &'static Connection) {
        self.host.pending_events.retain(|(_, other)| !std::ptr::eq(*other, cell));
        if cell.attribute().is_multicast() {
            return self.leave_group(core, cell);
        }
        if let Some(user) = self.host.table.user(cell) {
            let now = self.link.now();
            // What waits for others leaves before the farewell.
            self.transmit(core, now, false);
            self.close_index(core, now, index_of(cell));
            self.host.table.leave(user);
            self.host.inbox.detach(cell);
            self.transmit(core, now, true);
            self.run_deferred(core, now);
        }
        core.end_connection(cell);
    }
}
