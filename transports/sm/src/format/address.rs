//! URIs, service hints and socket names.

use cci_proto::{Status, decimal};
use cci_transport::OpenError;
use rustix::net::SocketAddrUnix;
use std::fmt;

/// Process and number of an endpoint in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) pid: u32,
    pub(crate) id: u32,
}

impl Address {
    /// From "PID/ID".
    pub(crate) fn from_service(service: &str) -> Option<Self> {
        let (pid, id) = service.split_once('/')?;
        Some(Self { pid: number(pid)?, id: number(id)? })
    }

    /// From a URI of this transport.
    pub(crate) fn from_uri(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix("sm://")?;
        match rest.strip_prefix(':') {
            Some(port) => {
                number(port).and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0).map(Self::of_port)
            }
            None => Self::from_service(rest),
        }
    }

    /// Of the endpoint that processes of this host find by a port. No process has the number 0.
    pub(crate) fn of_port(port: u16) -> Self {
        Self { pid: 0, id: port.into() }
    }

    /// Name of the listening socket.
    pub(crate) fn socket(self) -> rustix::io::Result<SocketAddrUnix> {
        SocketAddrUnix::new_abstract_name(format!("cci-sm/{}/{}", self.pid, self.id).as_bytes())
    }

    /// From a service hint, for this process.
    pub(crate) fn for_service(service: &str) -> Result<Self, OpenError> {
        Self::from_service(service).ok_or_else(|| {
            OpenError::new(
                Status::Inval,
                format!(
                    "the service '{service}' of sm is not of the form PID/ID; write two decimal numbers, such as \
                     4711/0, or give a port to the default device"
                ),
            )
        })
    }
}

/// A decimal number without sign or leading zeroes, so that one endpoint has one URI.
fn number(text: &str) -> Option<u32> {
    let canonical = text == "0" || text.starts_with(|first: char| ('1'..='9').contains(&first));
    decimal(text).filter(|_| canonical)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm://{}/{}", self.pid, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn only_the_canonical_form_is_an_address() {
        assert_eq!(Address::from_uri("sm://12/3"), Some(Address { pid: 12, id: 3 }));
        for wrong in [
            "sm://12",
            "sm://12/",
            "sm:///3",
            "sm://012/3",
            "sm://+1/3",
            "sm://1/3/4",
            "sm://1/4294967296",
            "tcp://1/2",
            "1/ 2",
        ] {
            assert_eq!(Address::from_uri(wrong), None, "{wrong}");
        }
        let address = Address { pid: 7, id: 0 };
        assert_eq!(Address::from_uri(&address.to_string()), Some(address));
    }

    #[test]
    fn a_port_stands_for_the_endpoint_that_has_its_name() {
        let of_port = Address::of_port(5000);
        assert_eq!(Address::from_uri("sm://:5000"), Some(of_port));
        assert_eq!(Address::from_uri(&of_port.to_string()), Some(of_port));
        for wrong in ["sm://:", "sm://:0", "sm://:05", "sm://:65536", "sm://:+1", "sm://::1"] {
            assert_eq!(Address::from_uri(wrong), None, "{wrong}");
        }
    }
}
