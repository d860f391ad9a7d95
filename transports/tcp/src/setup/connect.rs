//! The calls of a program that concern connections.

use crate::endpoint::{PendingName, Tcp};
use crate::frame::Kind;
use crate::lane::shared::Elsewhere;
use crate::lane::{NO_LANE, PendingConnect, Phase, end_connect};
use crate::settings::SCHEME;
use crate::setup::addresses::OtherAddresses;
use cci_mem::sync::Ordering;
use cci_proto::{ConnectError, EventKind, Failure, RequestError, Time};
use cci_transport::{
    Connect, Connection, Core, HostAndPort, Slot, interface_index, is_endpoint_ip, is_link_local, monotonic,
};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::Duration;

/// How long a connect without a timeout waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// Host and port of a URI.
pub(crate) fn host_and_port(uri: &str) -> Option<HostAndPort<'_>> {
    HostAndPort::parse(uri.strip_prefix(SCHEME)?)
}

impl Tcp {
    pub(crate) fn begin_connect(&mut self, core: &mut Core, connect: &Connect<'_>) -> Result<(), ConnectError> {
        let server = host_and_port(connect.uri).ok_or(ConnectError::BadUri)?;
        if connect.attribute.is_multicast() {
            return Err(ConnectError::NotImplemented);
        }
        let now = monotonic();
        self.shared.now = now;
        let deadline = now + connect.timeout.unwrap_or(PATIENCE);
        let address = match server.literal() {
            Some((ip, zone)) if is_endpoint_ip(&ip) => {
                Some(self.address(ip, zone, server.port).ok_or(ConnectError::BadUri)?)
            }
            Some(_) => return Err(ConnectError::BadUri),
            None => None,
        };
        let slot = core.take_send().ok_or(ConnectError::NoBuffers)?;
        let Some(address) = address else {
            self.last_name += 1;
            let number = self.last_name;
            if !self.resolver.ask(number, server.host, server.port) {
                core.release(slot);
                return Err(ConnectError::NoThread);
            }
            let payload = connect.payload.into();
            let (attribute, context) = (connect.attribute, connect.context);
            self.names.push(PendingName { number, slot, attribute, payload, context, deadline });
            self.shared.open_operations += 1;
            return Ok(());
        };
        let Ok(cell) = core.open_connection(connect.attribute, connect.context, self.shared.max_send_size) else {
            core.release(slot);
            return Err(ConnectError::NoMemory);
        };
        self.shared.open_operations += 1;
        let payload = connect.payload.into();
        self.join(core, address, cell, PendingConnect::new(slot, connect.context, (now, deadline), payload));
        Ok(())
    }

    /// The address of a URI. `None`: it names an interface that is not there, or needs none.
    fn address(&self, ip: IpAddr, zone: Option<&str>, port: u16) -> Option<SocketAddr> {
        match (ip, zone) {
            (ip, None) => Some(SocketAddr::new(ip, port)),
            (IpAddr::V4(_), Some(_)) => None,
            (IpAddr::V6(v6), Some(zone)) => {
                let index = interface_index(self.listener.as_ref()?, zone).filter(|_| is_link_local(&ip))?;
                Some(SocketAddrV6::new(v6, port, 0, index).into())
            }
        }
    }

    /// Has a connect use the lane to this address, which is dialed if there is none.
    pub(crate) fn join(
        &mut self,
        core: &mut Core,
        address: SocketAddr,
        cell: &'static Connection,
        pending: PendingConnect,
    ) {
        let is_living = |lane: &crate::lane::Lane| lane.phase != Phase::Over && !lane.table.is_full();
        let known = self.dialed.get(&address).copied();
        let known = known.filter(|number| self.lane(*number).is_some_and(|(lane, _)| is_living(lane)));
        let number = known.unwrap_or_else(|| {
            let number = self.add_lane(address, Phase::Queued);
            self.dialed.insert(address, number);
            number
        });
        let Some((lane, shared)) = self.lane(number) else { return };
        lane.dialed = true;
        if known.is_none() {
            lane.idle_since = pending.since;
        }
        shared.check_by(pending.others.next_at().map_or(pending.deadline, |at| at.min(pending.deadline)));
        lane.enter(cell, Some(pending));
        if known.is_none() {
            return self.dial(core, number);
        }
        let now = shared.now;
        lane.ask_all(shared, now);
        lane.flush(shared, core);
    }

    /// Goes on with connects whose host was looked up, and ends those whose time is over.
    pub(crate) fn take_names(&mut self, core: &mut Core, now: Time) {
        while let Some((number, answer)) = self.resolver.next_answer() {
            let Some(at) = self.names.iter().position(|name| name.number == number) else { continue };
            let name = self.names.swap_remove(at);
            let is_v4 = self.shared.settings.local.ip.is_ipv4();
            let found =
                answer.found.map_err(|why| format!("the host name '{}' cannot be resolved: {why}", answer.host));
            let addresses = found.map(|mut found| {
                found.retain(|address| is_endpoint_ip(&address.ip()));
                // Those of this endpoint's own family come first.
                found.sort_by_key(|address| address.is_ipv4() != is_v4);
                found
            });
            let addresses = addresses.and_then(|found| match found.is_empty() {
                true => Err(format!("the host name '{}' has no address", answer.host)),
                false => Ok(found),
            });
            self.go_on(core, name, addresses);
        }
        while let Some(at) = self.names.iter().position(|name| name.deadline <= now) {
            let name = self.names.swap_remove(at);
            self.resolver.forget(name.number);
            self.shared.open_operations = self.shared.open_operations.saturating_sub(1);
            core.finish_opening(name.slot, EventKind::Connect, name.context, Err(Failure::TimedOut));
            core.explain(name.slot, "the host's name was not resolved within the timeout".into());
        }
    }

    /// Goes on with a connect at the addresses of its host, of which there is at least one.
    pub(crate) fn go_on(&mut self, core: &mut Core, name: PendingName, addresses: Result<Vec<SocketAddr>, String>) {
        let PendingName { slot, attribute, payload, context, deadline, .. } = name;
        let failed = match addresses {
            Ok(addresses) => match core.open_connection(attribute, context, self.shared.max_send_size) {
                Ok(cell) => {
                    let mut pending = PendingConnect::new(slot, context, (self.shared.now, deadline), payload);
                    pending.others = OtherAddresses::new(addresses[1..].iter().copied(), self.shared.now);
                    return self.join(core, addresses[0], cell, pending);
                }
                Err(_) => (Failure::NoMemory, None),
            },
            Err(reason) => (Failure::Refused, Some(reason)),
        };
        self.shared.open_operations = self.shared.open_operations.saturating_sub(1);
        core.finish_opening(slot, EventKind::Connect, context, Err(failed.0));
        if let Some(reason) = failed.1 {
            core.explain(slot, reason);
        }
    }

    /// Has clients ask the next address of their host, or the endpoints that they were sent to. A
    /// name of a host in a peer's words is not looked up.
    pub(crate) fn follow_redirects(&mut self, core: &mut Core) {
        while let Some((cell, pending, elsewhere)) = self.shared.redirected.pop() {
            let uri = match elsewhere {
                Elsewhere::Address(address) => {
                    self.join(core, address, cell, pending);
                    continue;
                }
                Elsewhere::Uri(uri) => uri,
            };
            let address = host_and_port(&uri).and_then(|server| {
                let (ip, _) = server.literal().filter(|(ip, zone)| zone.is_none() && is_endpoint_ip(ip))?;
                Some(SocketAddr::new(ip, server.port))
            });
            match address {
                Some(address) => self.join(core, address, cell, pending),
                None => {
                    let uri: String = uri.chars().filter(|letter| !letter.is_control()).take(64).collect();
                    let reason = format!("the client was sent to '{uri}', which is no address of a tcp endpoint");
                    end_connect(&mut self.shared, core, cell, &pending, Failure::Refused, Some(reason));
                }
            }
        }
    }

    pub(crate) fn accept_request(
        &mut self,
        core: &mut Core,
        request: &'static Slot,
        context: u64,
    ) -> Result<(), RequestError> {
        let slot = core.take_send().ok_or(RequestError::NoBuffers)?;
        self.shared.now = monotonic();
        self.shared.inbox.begin_call(core);
        let request = self.shared.inbox.requests.take(request);
        let lane = request.and_then(|request| Some((self.lane(request.lane)?, request)));
        match lane {
            Some(((lane, shared), request)) => {
                lane.accept_client(shared, core, (request.number, request.attribute), slot, context);
            }
            None => core.finish_opening(slot, EventKind::Accept, context, Err(Failure::Disconnected)),
        }
        Ok(())
    }

    pub(crate) fn reject_request(&mut self, core: &mut Core, request: &'static Slot) {
        // A client that is gone needs no answer.
        let Some(request) = self.shared.inbox.requests.take(request) else { return };
        if let Some((lane, shared)) = self.lane(request.lane) {
            lane.answer(shared, Kind::Reject, request.number, &[&[0; 4]]);
            lane.flush(shared, core);
        }
    }

    pub(crate) fn redirect_request(&mut self, core: &mut Core, request: &'static Slot, uri: &str, token: u64) {
        let Some(request) = self.shared.inbox.requests.take(request) else { return };
        if let Some((lane, shared)) = self.lane(request.lane) {
            lane.answer(shared, Kind::Redirect, request.number, &[&token.to_le_bytes(), uri.as_bytes()]);
            lane.flush(shared, core);
        }
    }

    pub(crate) fn disconnect_peer(&mut self, core: &mut Core, cell: &'static Connection) {
        self.shared.pending_events.forget(cell);
        let (number, remote) = (cell.local.load(Ordering::Relaxed), cell.remote.load(Ordering::Relaxed));
        if cell.lane.load(Ordering::Relaxed) != NO_LANE
            && let Some((lane, shared)) = self.lane_of(cell)
            && lane.table.cell(number).is_some_and(|other| std::ptr::eq(other, cell))
        {
            lane.flush(shared, core);
            lane.leave(shared, number);
            lane.end_connection_state(shared, core, number, cell, Failure::Disconnected);
            lane.put(shared, Kind::Disconnect, 0, remote, &[]);
            lane.flush(shared, core);
        }
        core.end_connection(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::host_and_port;

    #[test]
    fn a_uri_names_a_host_and_a_port() {
        let found = |uri| host_and_port(uri).map(|server| (server.host, server.port));
        assert_eq!(found("tcp://192.0.2.1:5000"), Some(("192.0.2.1", 5000)));
        assert_eq!(found("tcp://[::1]:5000"), Some(("::1", 5000)));
        assert_eq!(found("tcp://host.example:1"), Some(("host.example", 1)));
        for wrong in [
            "sock://h:1",
            "tcp://h",
            "tcp://:1",
            "tcp://h:0",
            "tcp://h:65536",
            "tcp://h:+1",
            "tcp://::1:1",
            "tcp://[::1:1",
        ] {
            assert_eq!(found(wrong), None, "{wrong}");
        }
        assert_eq!(found("tcp://[fe80::1%eth0]:5000"), Some(("fe80::1%eth0", 5000)));
    }
}
