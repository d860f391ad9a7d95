//! The settings of a device.

use crate::driver::DRIVER;
use cci_proto::{Status, decimal};
use cci_transport::{Arguments, OpenError};
use std::net::{IpAddr, Ipv4Addr};

/// Largest message unless the key `mss` is set, bytes.
pub(crate) const MSS: u32 = 8192;

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Where it listens.
    pub(crate) ip: IpAddr,
    /// First and last port; 0: any.
    pub(crate) ports: (u16, u16),
    /// Congestion control; `None`: cubic on loop-back addresses, else the system's.
    pub(crate) congestion: Option<String>,
}

impl Settings {
    /// Reads the keys of a device, and the service, which stands above the key `port`.
    pub(crate) fn parse(arguments: &[(String, String)], service: Option<&str>) -> Result<Self, OpenError> {
        let keys = Arguments::check(&DRIVER, arguments)?;
        let ip = keys.parsed("ip").unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        if ip.is_unspecified() || ip.is_multicast() {
            let what = format!(
                "the value of the key 'ip' is '{ip}', to which others cannot connect; write an address of this host"
            );
            return Err(OpenError::new(Status::Inval, what));
        }
        let ports = match service {
            Some(service) => ports(service).map_err(|remedy| {
                OpenError::new(Status::Inval, format!("the service '{service}' is not a port; {remedy}"))
            })?,
            None => keys.text("port").and_then(|port| ports(port).ok()).unwrap_or((0, 0)),
        };
        Ok(Self { ip, ports, congestion: keys.text("congestion").map(str::to_owned) })
    }

    /// The congestion control for streams to this address; `None`: the system's.
    pub(crate) fn congestion_to(&self, ip: IpAddr) -> Option<&str> {
        // With bbr, a stream of 64 MiB runs at half the speed over the loop-back interface.
        self.congestion.as_deref().or(if ip.is_loopback() { Some("cubic") } else { None })
    }
}

/// A port, or a range of ports.
pub(crate) fn ports(text: &str) -> Result<(u16, u16), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (decimal(first), decimal(last)) {
        (Some(first), Some(last)) if first <= last && (first > 0 || last == 0) => Ok((first, last)),
        _ => Err("write a port from 0 to 65535, or a range such as 5000-5003".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_number_or_a_range() {
        assert_eq!([ports("0"), ports("5000"), ports("5000-5003")], [Ok((0, 0)), Ok((5000, 5000)), Ok((5000, 5003))]);
        for wrong in ["", "-", "+5", "5-", "7-5", "0-5", "65536", "a"] {
            assert!(ports(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn settings_are_read_from_keys_and_service() {
        let read = |key: &str, value: &str, service| Settings::parse(&[(key.into(), value.into())], service);
        let settings = read("port", "5000-5003", None).expect("keys");
        assert_eq!((settings.ip, settings.ports), (IpAddr::V4(Ipv4Addr::LOCALHOST), (5000, 5003)));
        assert_eq!(settings.congestion_to(settings.ip), Some("cubic"));
        assert_eq!(settings.congestion_to(IpAddr::from([192, 0, 2, 1])), None);
        assert_eq!(read("port", "5000", Some("6000")).expect("keys").ports, (6000, 6000));
        let sentence = |settings: Result<Settings, OpenError>| settings.expect_err("refused").to_string();
        assert!(sentence(read("port", "x", None)).contains("port"));
        assert!(sentence(read("port", "1", Some("x"))).contains("the service 'x' is not a port"));
        assert!(sentence(read("ip", "0.0.0.0", None)).contains("others cannot connect"));
        assert!(sentence(read("prot", "1", None)).contains("prot"));
    }
}
