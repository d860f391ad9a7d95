//! Clients that another endpoint sends here, and those that are sent elsewhere
//! (`docs/design/auto.md`, Brokers).

use crate::auto::Auto;
use crate::candidate::common_bits;
use crate::uri::Uri;
use crate::way::NO_WAY;
use cci_proto::{EventKind, Failure, RequestError};
use cci_transport::{Core, Slot, monotonic};
use std::cmp::Reverse;
use std::net::SocketAddr;
use std::time::Duration;

/// How long a way expects a client: until it is told to forget it.
const ALWAYS: Duration = Duration::from_secs(100 * 365 * 86_400);

impl Auto {
    /// Expects a client by each way, as its own is not known.
    pub(crate) fn expect_client(
        &mut self,
        core: &mut Core,
        token: u64,
        context: u64,
        limit: Duration,
    ) -> Result<(), RequestError> {
        self.expected.expect(core, token, context, monotonic() + limit)?;
        // One for all ways: one of them ends it.
        self.accepts.expect(token, context);
        self.plain = NO_WAY;
        for number in self.numbers() {
            let expected = self.within(core, number, |transport, core| transport.expect(core, token, token, ALWAYS));
            if let Some(Err(error)) = expected {
                self.forget_client(core, token);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Forgets a client, without event. False: it was not expected.
    pub(crate) fn forget_client(&mut self, core: &mut Core, token: u64) -> bool {
        self.forget_by_all(core, token);
        self.accepts.forget(token);
        self.expected.forget(core, token)
    }

    /// Has each way forget a client. False: it has come by one of them.
    fn forget_by_all(&mut self, core: &mut Core, token: u64) -> bool {
        let mut all = true;
        for number in self.numbers() {
            all &=
                self.within(core, number, |transport, core| transport.forget_expected(core, token)).unwrap_or_default();
        }
        all
    }

    /// A client has come by one of the ways: the others expect it no more.
    pub(crate) fn end_expectation(&mut self, core: &mut Core, token: u64) {
        if self.expected.forget(core, token) {
            self.forget_by_all(core, token);
        }
    }

    /// Ends expectations that are late: where no way has the client, it has not come.
    #[cold]
    pub(crate) fn expire_clients(&mut self, core: &mut Core) {
        let now = monotonic();
        while let Some(late) = self.expected.take_late(now) {
            if self.forget_by_all(core, late.token) {
                self.accepts.forget(late.token);
                let behind = core.newest_event();
                core.finish_of_way(late.slot, (EventKind::Accept, late.context), Err(Failure::TimedOut), behind);
            } else {
                core.release(late.slot);
            }
        }
    }

    /// Sends the client of a request to another endpoint, by the way that it has come.
    pub(crate) fn redirect_client(
        &mut self,
        core: &mut Core,
        request: &'static Slot,
        uri: &str,
        token: u64,
    ) -> Result<(), RequestError> {
        let way = self.ways.get(usize::from(core.way_of_slot(request))).ok_or(RequestError::NotARequest)?;
        let (name, own) = (way.name, way.address());
        let rests = Uri::parse(uri).ok_or(RequestError::OtherDevice)?.rests(name);
        // The client has come in the network of this way's address: it is likely to reach what is
        // near that.
        let nearness = |rest: &String| {
            let at: Option<SocketAddr> = rest.parse().ok();
            at.zip(own).map_or(0, |(at, own)| common_bits(at.ip(), own.ip()))
        };
        let rest = rests.iter().min_by_key(|rest| Reverse(nearness(rest))).ok_or(RequestError::OtherDevice)?;
        let there = format!("{name}://{rest}");
        let redirected = self
            .call_for_request(core, request, |transport, core| transport.redirect(core, request, &there, token))
            .unwrap_or(Err(RequestError::NotARequest));
        if redirected.is_ok() {
            self.end_request(core, request);
        }
        redirected
    }
}
