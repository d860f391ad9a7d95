//! The service of an endpoint over IP: its port, and maybe the address at which it listens.

use crate::{OpenError, is_endpoint_ip};
use cci_mem::interfaces::interface_addresses;
use cci_mem::lookup::{Lookup, Wait, by_system};
use cci_proto::Status;
use std::net::{IpAddr, Ipv4Addr};

/// The host name of the loop-back address, which needs no lookup.
const LOCALHOST: &str = "localhost";

/// A service, `PORT` or `ADDRESS:PORT`, taken apart. The address is an IP of this host, in brackets
/// if it is of IPv6, or a name of this host.
///
/// ```
/// use cci_transport::Service;
///
/// let service = Service::parse("[::1]:5000")?;
/// assert_eq!((service.ip, service.port), (Some("::1".parse().expect("an IP")), "5000"));
/// assert_eq!(Service::parse("5000")?.ip, None);
/// # Ok::<(), cci_transport::OpenError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service<'a> {
    /// Where the endpoint is to listen, if the service says so.
    pub ip: Option<IpAddr>,
    /// The port, or what else a transport takes in its place.
    pub port: &'a str,
}

impl<'a> Service<'a> {
    /// Takes a service apart. A name is looked up, which blocks for 5 s at most. The port is not
    /// checked: [`Service::refusal`] is what to answer if it is wrong.
    ///
    /// # Errors
    ///
    /// The address is malformed, is no address of an endpoint, or is a name without an address of
    /// this host.
    pub fn parse(text: &'a str) -> Result<Self, OpenError> {
        let Some((host, port)) = text.rsplit_once(':') else { return Ok(Self { ip: None, port: text }) };
        if host.is_empty() {
            return Ok(Self { ip: None, port });
        }
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_name = |host: &str| host.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        let ip = match (bare, host.parse::<Ipv4Addr>()) {
            (Some(v6), _) => Some(IpAddr::V6(v6.parse().map_err(|_| Self::refusal(text))?)),
            (None, Ok(v4)) => Some(IpAddr::V4(v4)),
            (None, Err(_)) if host.eq_ignore_ascii_case(LOCALHOST) => Some(Ipv4Addr::LOCALHOST.into()),
            (None, Err(_)) if is_name(host) => Some(own_address(host, by_system, Wait::default())?),
            (None, Err(_)) => return Err(Self::refusal(text)),
        };
        if ip.is_some_and(|ip| !is_endpoint_ip(&ip)) {
            let what = format!(
                "the service '{text}' names an address to which others cannot connect; write one of this host's, or \
                 the port alone"
            );
            return Err(OpenError::new(Status::Inval, what));
        }
        Ok(Self { ip, port })
    }

    /// The error of a service in a wrong form.
    #[must_use]
    pub fn refusal(text: &str) -> OpenError {
        let what = format!(
            "the service '{text}' is not PORT or ADDRESS:PORT; write a port from 0 to 65535, such as 5000, or an \
             address of this host before it, such as 127.0.0.1:5000 or [::1]:5000"
        );
        OpenError::new(Status::Inval, what)
    }
}

/// The first address of a name that this host has.
fn own_address(name: &str, lookup: Lookup, wait: Wait<'_>) -> Result<IpAddr, OpenError> {
    let found = wait.addresses_by(lookup, name, 0).map_err(|why| {
        let what = format!("the host name '{name}' of the service cannot be resolved: {why}; write an address");
        OpenError::new(Status::AddrNotAvail, what)
    })?;
    let own = interface_addresses().unwrap_or_default();
    let is_own = |ip: &IpAddr| ip.is_loopback() || own.iter().any(|line| line.ip == Some(*ip));
    let found: Vec<_> = found.iter().map(|at| at.ip()).collect();
    found.iter().copied().find(is_own).ok_or_else(|| {
        let all = found.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ");
        let what = format!("the host name '{name}' of the service stands for {all}, which this host has not; write one of its addresses");
        OpenError::new(Status::AddrNotAvail, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock;
    use crate::resolver::tests::{ALONE, await_no_threads};
    use std::net::SocketAddr;
    use std::sync::Mutex;
    use std::time::Duration;

    #[test]
    fn a_service_is_a_port_with_or_without_an_address() {
        let ip = |text: &str| Some(text.parse::<IpAddr>().expect("an IP"));
        for (text, expected, port) in [
            ("5000", None, "5000"),
            (":5000", None, "5000"),
            ("5000-5003", None, "5000-5003"),
            ("127.0.0.1:5000", ip("127.0.0.1"), "5000"),
            ("192.0.2.1:0", ip("192.0.2.1"), "0"),
            ("[::1]:5000", ip("::1"), "5000"),
            ("localhost:5000", ip("127.0.0.1"), "5000"),
        ] {
            let service = Service::parse(text).expect(text);
            assert_eq!((service.ip, service.port), (expected, port), "{text}");
        }
    }

    #[test]
    fn the_name_of_a_service_is_looked_up_within_a_limit() {
        static SILENCE: Mutex<()> = Mutex::new(());
        fn silent(_: &str, _: u16) -> std::io::Result<Vec<SocketAddr>> {
            drop(lock(&SILENCE));
            Ok(Vec::new())
        }
        let _alone = lock(&ALONE);
        let silence = lock(&SILENCE);
        let wait = Wait { limit: Duration::from_millis(100), ..Wait::default() };
        let error = own_address("a-host", silent, wait).expect_err("nobody answers").to_string();
        assert!(error.contains("'a-host'") && error.contains("no name server answers within the limit"), "{error}");
        drop(silence);
        await_no_threads();
    }

    #[test]
    fn a_wrong_service_names_the_right_forms() {
        for wrong in ["::1:5000", "[::1:5000", "[127.0.0.1]:5000", "tcp://127.0.0.1:5000", "a b:1", "[fe80::1%e]:1"] {
            let error = Service::parse(wrong).expect_err(wrong).to_string();
            assert!(error.contains(&format!("'{wrong}'")) && error.contains("such as 127.0.0.1:5000"), "{error}");
        }
        for everywhere in ["0.0.0.0:5000", "[::]:5000", "239.1.2.3:5000"] {
            let error = Service::parse(everywhere).expect_err(everywhere);
            assert!(error.to_string().ends_with("or the port alone"), "{error}");
        }
        let error = Service::parse("no-such-host.invalid:5000").expect_err("no such host");
        assert!(error.to_string().contains("cannot be resolved"), "{error}");
    }
}
