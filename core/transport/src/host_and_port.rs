//! HOST:PORT, as URIs of transports over IP have it.

use cci_proto::decimal;
use std::net::IpAddr;

/// HOST:PORT, taken apart. The host is a name or an IP address; an IPv6 address stands in brackets,
/// where it may name the interface of its link (`[fe80::1%eth0]:5000`). The port is from 1 to
/// 65535.
///
/// ```
/// use cci_transport::HostAndPort;
///
/// let peer = HostAndPort::parse("[fe80::1%eth0]:5000").expect("host and port");
/// assert_eq!((peer.host, peer.port), ("fe80::1%eth0", 5000));
/// assert_eq!(peer.literal(), Some(("fe80::1".parse().expect("an IP"), Some("eth0"))));
/// let named = HostAndPort::parse("node-7.example:80").expect("host and port");
/// assert!(named.literal().is_none(), "a name, to be looked up");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAndPort<'a> {
    /// Name or IP, without brackets.
    pub host: &'a str,
    /// The port, not 0.
    pub port: u16,
}

impl<'a> HostAndPort<'a> {
    /// Takes a text apart. `None`: it is not HOST:PORT.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = match host.strip_prefix('[') {
            Some(inner) => inner.strip_suffix(']')?,
            // More than one colon: an IPv6 address without its brackets, whose last group is not to
            // become a port.
            None if host.contains(':') => return None,
            None => host,
        };
        let port = decimal(port).filter(|port| *port != 0)?;
        (!host.is_empty()).then_some(Self { host, port })
    }

    /// The IP and the name of its interface. `None`: the host is a name, which is looked up.
    #[must_use]
    pub fn literal(&self) -> Option<(IpAddr, Option<&'a str>)> {
        let (ip, interface) = match self.host.split_once('%') {
            Some((ip, interface)) => (ip, Some(interface)),
            None => (self.host, None),
        };
        Some((ip.parse().ok()?, interface))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_are_taken_apart() {
        for (text, host, port) in [
            ("192.0.2.1:5000", "192.0.2.1", 5000),
            ("[::1]:5000", "::1", 5000),
            ("[2001:db8::1]:1", "2001:db8::1", 1),
            ("[fe80::1%eth0]:65535", "fe80::1%eth0", 65_535),
            ("host.example:1", "host.example", 1),
        ] {
            assert_eq!(HostAndPort::parse(text), Some(HostAndPort { host, port }), "{text}");
        }
        for wrong in
            ["", ":", "h", "h:", ":1", "h:0", "h:65536", "h:+1", "h:1 ", "::1:1", "[::1:1", "[]:1", "[::1]", "::1]:1"]
        {
            assert_eq!(HostAndPort::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_ip_is_told_from_a_name() {
        let literal = |host| HostAndPort { host, port: 1 }.literal();
        let ip = |text: &str| text.parse().expect("an IP");
        assert_eq!(literal("192.0.2.1"), Some((ip("192.0.2.1"), None)));
        assert_eq!(literal("::1"), Some((ip("::1"), None)));
        assert_eq!(literal("fe80::1%eth0"), Some((ip("fe80::1"), Some("eth0"))));
        for name in ["host.example", "192.0.2", "eth0%::1", "%"] {
            assert_eq!(literal(name), None, "{name}");
        }
    }
}
