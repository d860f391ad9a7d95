//! The addresses to which a URI leads: by number, or by a name that was looked up.

use crate::address;
use cci_transport::{HostAnswer, LocalAddress, interface_index, is_endpoint_ip};
use rustix::fd::OwnedFd;
use std::net::IpAddr;

/// Whether an endpoint at this address reaches endpoints at this IP: of its own family, and of one
/// host.
pub(crate) fn is_reached(ip: &IpAddr, local: &LocalAddress) -> bool {
    ip.is_ipv4() == local.ip.is_ipv4() && is_endpoint_ip(ip)
}

/// The addresses of an endpoint whose host's name was looked up, at least one, or why it has none.
pub(crate) fn found_addresses(answer: HostAnswer, local: &LocalAddress) -> Result<Vec<cci_proto::Address>, String> {
    let HostAnswer { host, found } = answer;
    let found = found.map_err(|why| format!("the host name '{host}' cannot be resolved: {why}"))?;
    let family = if local.ip.is_ipv4() { "IPv4" } else { "IPv6" };
    let ours: Vec<_> = found.iter().filter(|name| is_reached(&name.ip(), local)).map(address::of_socket).collect();
    if ours.is_empty() { Err(format!("the host name '{host}' has no {family} address")) } else { Ok(ours) }
}

/// The address of an endpoint whose URI names its host by number.
pub(crate) fn resolve(uri: &address::Uri<'_>, local: &LocalAddress, socket: &OwnedFd) -> Option<cci_proto::Address> {
    let (ip, zone) = uri.at.literal()?;
    let interface = match zone {
        Some(zone) => interface_index(socket, zone)?,
        None => local.index,
    };
    let other = LocalAddress { ip, interface: String::new(), index: interface, loopback: false };
    is_reached(&ip, local).then(|| address::of_socket(&other.socket(uri.at.port)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

    #[test]
    fn a_name_without_an_address_of_ours_is_told_in_a_sentence() {
        let local = LocalAddress { ip: Ipv4Addr::LOCALHOST.into(), interface: String::new(), index: 0, loopback: true };
        let answer = |host: &str, found| HostAnswer { host: host.into(), found };
        let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 1));
        let [one, other] = [1, 2].map(|last| SocketAddr::from(([127, 0, 0, last], 1)));
        let found = found_addresses(answer("here", Ok(vec![one, v6, other])), &local);
        assert_eq!(found, Ok(vec![address::of_socket(&one), address::of_socket(&other)]));
        let sentence = found_addresses(answer("wanted", Err("no such host".into())), &local);
        assert_eq!(sentence, Err("the host name 'wanted' cannot be resolved: no such host".into()));
        assert_eq!(
            found_addresses(answer("six", Ok(vec![v6])), &local),
            Err("the host name 'six' has no IPv4 address".into())
        );
    }
}
