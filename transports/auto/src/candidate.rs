//! What may lead to a URI: ways, and addresses of the peer.

use cci_transport::source_address;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// A way to be tried.
pub(crate) struct Candidate {
    pub(crate) way: u8,
    /// The peer's URI of that way.
    pub(crate) uri: String,
    /// The way, and which address where the peer has several: for sentences.
    pub(crate) label: String,
    /// Whom the request is for, where that is not the route's target.
    pub(crate) target: Option<u64>,
}

/// What leads to a URI.
pub(crate) struct Route {
    /// What is to be tried, best first.
    pub(crate) left: VecDeque<Candidate>,
    /// Why other ways are not.
    pub(crate) reasons: Vec<String>,
    /// The identity of the endpoint, if it has ways.
    pub(crate) target: Option<u64>,
    /// A URI of whoever listens where the endpoint listened, if it has a port.
    pub(crate) place: Option<String>,
}

impl Route {
    /// To an endpoint with ways.
    pub(crate) fn new(reasons: Vec<String>, target: u64) -> Self {
        Self { left: VecDeque::new(), reasons, target: Some(target), place: None }
    }
}

/// An address of the peer, with the routes to it.
pub(crate) struct Address {
    /// The peer's URI of a way without the scheme.
    pub(crate) rest: String,
    /// `None`: it is no address.
    pub(crate) ip: Option<IpAddr>,
    /// The address of this host that the routes choose; `None`: nobody asked, or there is none.
    pub(crate) source: Option<IpAddr>,
}

impl Address {
    pub(crate) fn of(rest: String) -> Self {
        let ip = rest.parse().ok().map(|at: SocketAddr| at.ip());
        Self { rest, ip, source: None }
    }

    /// Asks for the routes.
    pub(crate) fn find_source(&mut self) -> std::io::Result<()> {
        if let Ok(at) = self.rest.parse() {
            self.source = Some(source_address(&at)?);
        }
        Ok(())
    }

    /// How near it is: [`common_bits`] with the source.
    pub(crate) fn nearness(&self) -> u32 {
        self.source.zip(self.ip).map_or(0, |(from, to)| common_bits(from, to))
    }
}

/// Why a way does not lead to an address.
pub(crate) fn no_address_like(rest: &str) -> String {
    format!("it has no address of the family of {rest}; let it listen at one, with the key ip")
}

/// How many leading bits two addresses have in common (RFC 6724, section 5, rule 9): many in one
/// subnet.
pub(crate) fn common_bits(one: IpAddr, other: IpAddr) -> u32 {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (u32::from(one) ^ u32::from(other)).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => (u128::from(one) ^ u128::from(other)).leading_zeros(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_subnet_have_most_bits_in_common() {
        let bits = |one: &str, other: &str| common_bits(one.parse().expect("an IP"), other.parse().expect("an IP"));
        assert_eq!(bits("10.0.1.1", "10.0.1.1"), 32);
        assert_eq!(bits("10.0.1.1", "10.0.1.2"), 30);
        assert_eq!(bits("10.0.1.1", "10.0.0.2"), 23);
        assert_eq!(bits("2001:db8::1", "2001:db8:0:1::1"), 63);
        assert_eq!(bits("10.0.1.1", "2001:db8::1"), 0);
    }
}
