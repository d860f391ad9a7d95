//! The settings of a device.

use cci_proto::decimal;
use cci_transport::{Arguments, LocalAddress, OpenError, Service};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

/// Begins every URI of this transport.
pub(crate) const SCHEME: &str = "tcp://";

/// Largest message unless the key `mss` is set, bytes.
pub(crate) const MSS: u32 = 8192;
/// What the key `mss` takes, bytes.
pub(crate) const SEND_SIZES: RangeInclusive<u32> = 64..=1 << 16;

/// Whose bytes of RMA carry a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    Off,
    /// Those to peers on other hosts.
    Remote,
    Always,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Where it listens.
    pub(crate) local: LocalAddress,
    /// First and last port; 0: any.
    pub(crate) ports: (u16, u16),
    /// Congestion control; `None`: cubic on loop-back addresses, else the system's.
    pub(crate) congestion: Option<String>,
    /// Largest message, if the device says so.
    pub(crate) mss: Option<u32>,
    pub(crate) checks: Checks,
    /// Streams of a lane, at most.
    pub(crate) streams: u32,
}

impl Settings {
    /// Reads the keys of a device, which are checked, and the service, which stands above the key
    /// `port`.
    pub(crate) fn read(keys: &Arguments<'_>, service: Option<&str>) -> Result<Self, OpenError> {
        let (given, interface) = (LocalAddress::given_ip(keys)?, keys.text("interface"));
        let named = service.map(Service::parse).transpose()?;
        let ports = match service {
            Some(text) => named.and_then(|service| ports(service.port).ok()).ok_or_else(|| Service::refusal(text))?,
            None => keys.text("port").and_then(|port| ports(port).ok()).unwrap_or((0, 0)),
        };
        // The service stands above the keys.
        let at = named.and_then(|service| service.ip);
        let (given, interface) = if at.is_some() { (at, None) } else { (given, interface) };
        let is_local = interface.is_none() && keys.text("listen") != Some("network");
        let ip = given.or(is_local.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        Ok(Self {
            local: LocalAddress::choose(ip, interface)?,
            ports,
            congestion: keys.text("congestion").map(str::to_owned),
            mss: keys.parsed("mss"),
            checks: match keys.text("check") {
                Some("always") => Checks::Always,
                Some("remote") => Checks::Remote,
                _ => Checks::Off,
            },
            streams: keys.parsed("streams").unwrap_or(1),
        })
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
    use crate::driver::settings;
    use cci_proto::Status;

    #[test]
    fn a_port_is_a_number_or_a_range() {
        assert_eq!([ports("0"), ports("5000"), ports("5000-5003")], [Ok((0, 0)), Ok((5000, 5000)), Ok((5000, 5003))]);
        for wrong in ["", "-", "+5", "5-", "7-5", "0-5", "65536", "a"] {
            assert!(ports(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn settings_are_read_from_keys_and_service() {
        let read = |key: &str, value: &str, service| settings(&[(key.into(), value.into())], service);
        let settings = read("port", "5000-5003", None).expect("keys");
        assert_eq!((settings.local.ip, settings.ports), (IpAddr::V4(Ipv4Addr::LOCALHOST), (5000, 5003)));
        assert_eq!((settings.mss, settings.checks, settings.streams), (None, Checks::Off, 1));
        assert_eq!(read("streams", "8", None).expect("keys").streams, 8);
        assert_eq!(settings.congestion_to(settings.local.ip), Some("cubic"));
        assert_eq!(settings.congestion_to(IpAddr::from([192, 0, 2, 1])), None);
        assert_eq!(read("port", "5000", Some("6000")).expect("keys").ports, (6000, 6000));
        assert_eq!(read("mss", "65536", None).expect("keys").mss, Some(65_536));
        assert_eq!(read("check", "remote", None).expect("keys").checks, Checks::Remote);
        assert_eq!(read("check", "always", None).expect("keys").checks, Checks::Always);
        assert!(read("listen", "local", None).expect("keys").local.loopback);
        assert!(read("interface", "lo", None).expect("keys").local.loopback);
        assert_eq!(read("ip", "127.3.2.1", None).expect("keys").local.ip, IpAddr::from([127, 3, 2, 1]));
    }

    #[test]
    fn wrong_values_say_what_to_write() {
        let refused =
            |key: &str, value: &str, service| settings(&[(key.into(), value.into())], service).expect_err("refused");
        for (key, value, want) in [
            ("ip", "nonsense", "write an IP address of this host"),
            ("ip", "0.0.0.0", "write one of this host's addresses"),
            ("ip", "::", "write one of this host's addresses"),
            ("ip", "239.1.2.3", "write one of this host's addresses"),
            ("interface", "", "write the name of an interface"),
            ("port", "65536", "write a port from 0 to 65535"),
            ("port", "+5", "write a port from 0 to 65535"),
            ("mss", "63", "write a whole number from 64 to 65536"),
            ("mss", "65537", "write a whole number from 64 to 65536"),
            ("mss", "8k", "write a whole number from 64 to 65536"),
            ("congestion", "", "write the name of a congestion control"),
            ("congestion", "longer-than-the-kernel-takes", "write the name of a congestion control"),
            ("check", "never", "write off or remote or always"),
            ("streams", "0", "write a whole number from 1 to 8"),
            ("streams", "9", "write a whole number from 1 to 8"),
            (
                "prot",
                "1",
                "its keys are ip, interface, port, mss, congestion, check, streams, listen, security, secret_file",
            ),
        ] {
            let error = refused(key, value, None);
            assert_eq!(error.status, Status::Inval, "{error}");
            let sentence = error.to_string();
            assert!(sentence.contains(want) && sentence.contains(key), "{sentence}");
        }
        assert!(refused("port", "1", Some("x")).to_string().contains("the service 'x' is not PORT or ADDRESS:PORT"));
        for (key, value, status, want) in [
            ("ip", "203.0.113.77", Status::AddrNotAvail, "this host has no address 203.0.113.77"),
            ("interface", "no-such", Status::NoDev, "there is no interface no-such; this host has"),
        ] {
            let error = refused(key, value, None);
            assert!(error.status == status && error.to_string().contains(want), "{error}");
        }
    }

    /// Runs again in a process with another environment.
    #[test]
    fn keys_come_from_the_environment_below_those_of_the_device() {
        const CHILD: &str = "CCI_TEST_CHILD";
        if std::env::var_os(CHILD).is_none() {
            let mut child = std::process::Command::new(std::env::current_exe().expect("this test"));
            child.args(["--exact", "settings::tests::keys_come_from_the_environment_below_those_of_the_device"]);
            child.env(CHILD, "1").env("CCI_TCP_PORT", "5000").env("CCI_TCP_MSS", "100").env("CCI_TCP_CHECK", "");
            assert!(child.status().expect("the child runs").success());
            return;
        }
        let settings = settings(&[("mss".into(), "200".into())], None).expect("keys");
        assert_eq!((settings.ports, settings.mss, settings.checks), ((5000, 5000), Some(200), Checks::Off));
    }
}
