//! Endpoints by host and port: `cci://HOST:PORT` (`docs/design/auto.md`, By host and port).

use crate::auto::Auto;
use crate::candidate::{Address, Candidate, Route, no_address_like};
use cci_proto::{ConnectError, WHOEVER_LISTENS};
use cci_transport::{HostAndPort, LocalAddress, Scope, is_endpoint_ip, source_address};
use siphasher::sip::SipHasher13;
use std::collections::VecDeque;
use std::hash::Hasher;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Takes host and port apart.
pub(crate) fn parse(text: &str) -> Option<HostAndPort<'_>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".-_:%".contains(c);
    HostAndPort::parse(text).filter(|at| at.host.chars().all(is_part))
}

/// The target of a request, by a way within this host, for the endpoint that listens at an address.
/// It is never that of whoever listens.
pub(crate) fn target_at(at: SocketAddr) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(at.to_string().as_bytes());
    hasher.finish() | 1
}

/// The addresses of this host that a host's name or IP stands for. Empty: it is another host's, or
/// the system is to look it up.
fn own_addresses(at: &HostAndPort<'_>) -> Vec<IpAddr> {
    let is_own =
        |ip: IpAddr| ip.is_loopback() || source_address(&SocketAddr::new(ip, at.port)).is_ok_and(|source| source == ip);
    match at.literal() {
        Some((ip, None)) => [ip].into_iter().filter(|ip| is_own(*ip)).collect(),
        Some((_, Some(_))) => Vec::new(),
        None if at.host.eq_ignore_ascii_case("localhost") => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        None if rustix::system::uname().nodename().to_bytes() == at.host.as_bytes() => LocalAddress::of_network(),
        None => Vec::new(),
    }
}

impl Auto {
    /// What leads to whoever listens at a port of a host.
    pub(crate) fn ways_to_port(&self, at: &HostAndPort<'_>) -> Result<Route, ConnectError> {
        if at.literal().is_some_and(|(ip, _)| !is_endpoint_ip(&ip)) {
            return Err(ConnectError::BadUri);
        }
        let rest = match at.host.contains(':') {
            true => format!("[{}]:{}", at.host, at.port),
            false => format!("{}:{}", at.host, at.port),
        };
        let own = own_addresses(at);
        let mut route = Route::new(self.down.clone(), WHOEVER_LISTENS);
        let mut last = VecDeque::new();
        for number in self.numbers() {
            let (name, scope) = (self.name(number), self.ways[usize::from(number)].scope);
            if self.ways_of(name).next() != Some(number) {
                continue;
            }
            if scope == Scope::Network {
                self.add_network(name, &rest, !own.is_empty(), &mut route);
                continue;
            }
            if self.ways[usize::from(number)].driver.key("port").is_none() {
                route.reasons.push(format!("{name}: its endpoints have no port"));
                continue;
            }
            let candidate = |target, label| Candidate {
                way: number,
                uri: format!("{name}://:{}", at.port),
                label,
                target: Some(target),
            };
            if own.is_empty() {
                route.reasons.push(format!("{name}: {} is no address of this host", at.host));
            }
            for ip in &own {
                let at = SocketAddr::new(*ip, at.port);
                route.left.push_back(candidate(target_at(at), format!("{name} {at}")));
            }
            // Who listens to the network does not listen on the loop-back interface.
            if own.iter().any(IpAddr::is_loopback) {
                last.push_back(candidate(WHOEVER_LISTENS, format!("{name} :{}", at.port)));
            }
        }
        route.left.append(&mut last);
        Ok(route)
    }

    /// Adds the way of a transport between hosts.
    fn add_network(&self, name: &str, rest: &str, is_here: bool, route: &mut Route) {
        let mut address = Address::of(rest.to_owned());
        // Without a route the way reports what is wrong.
        let _ = address.find_source();
        let Some(number) = self.way_for(name, &address) else {
            return route.reasons.push(format!("{name}: {}", no_address_like(rest)));
        };
        if !is_here && self.ways[usize::from(number)].stays_here() {
            let why = "its socket is local; give it a service, or listen = network";
            return route.reasons.push(format!("{name}: {why}"));
        }
        let uri = format!("{name}://{rest}");
        route.left.push_back(Candidate { way: number, uri, label: name.to_owned(), target: Some(WHOEVER_LISTENS) });
    }

    /// Whether a request with this target is for this endpoint.
    pub(crate) fn is_target(&self, target: u64) -> bool {
        let is_here = |way: &crate::way::Way| way.address().is_some_and(|at| target_at(at) == target);
        target == self.identity || target == WHOEVER_LISTENS || self.ways.iter().any(is_here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_are_told_from_what_is_no_uri() {
        for (text, host) in [
            ("127.0.0.1:5000", "127.0.0.1"),
            ("[::1]:5000", "::1"),
            ("node-7.example:5000", "node-7.example"),
            ("[fe80::1%eth0]:5000", "fe80::1%eth0"),
        ] {
            assert_eq!(parse(text).map(|at| (at.host, at.port)), Some((host, 5000)), "{text}");
        }
        let whole = "q2Vb0c_S1xk.Jf83kQpa.x9E,sm=4711/0,sock=192.0.2.1:5000";
        for wrong in ["", "a", "a:", "a:0", ":5000", "a b:1", "a/b:1", "::1:5000", whole, "239.1.2.3:5000?ttl=1"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_target_of_an_address_is_the_same_in_every_build() {
        let target = |text: &str| target_at(text.parse().expect("an address"));
        assert_eq!(target("127.0.0.1:5000"), 1_446_121_275_343_019_993);
        assert_ne!(target("127.0.0.1:5000"), target("127.0.0.1:5001"));
        assert_ne!(target("127.0.0.1:5000"), target("[::1]:5000"));
    }

    #[test]
    fn a_host_that_is_not_this_one_has_no_address_here() {
        let own = |text: &str| own_addresses(&parse(text).expect("host and port"));
        assert_eq!(own("127.0.0.9:1"), [IpAddr::from([127, 0, 0, 9])]);
        assert_eq!(own("LocalHost:1"), [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()]);
        assert!(own("203.0.113.77:1").is_empty() && own("elsewhere.example:1").is_empty());
    }
}
