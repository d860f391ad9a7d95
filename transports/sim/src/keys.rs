//! The settings of a device.

use crate::network::{Faults, LinkSettings, Processor};
use cci_proto::Status;
use cci_transport::OpenError;

/// Keys that a sim device understands.
pub const KEYS: [&str; 15] = [
    "network",
    "node",
    "port",
    "seed",
    "mtu",
    "loss",
    "duplicate",
    "corrupt",
    "delay",
    "jitter",
    "bandwidth",
    "queue",
    "send_overhead",
    "recv_overhead",
    "gap",
];

/// Largest frame unless the key `mtu` is set, bytes.
const MTU: u16 = 9000;
/// Smallest and largest value of the key `mtu`.
const MTUS: std::ops::RangeInclusive<u16> = 1200..=65_000;

/// What the keys and the service hint of an endpoint say.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) network: String,
    pub(crate) node: Option<u32>,
    pub(crate) port: Option<u16>,
    pub(crate) seed: Option<u64>,
    pub(crate) mtu: u16,
    /// What the links are like on which the node sends.
    pub(crate) link: LinkSettings,
    /// What the node's processor takes for a frame.
    pub(crate) processor: Processor,
}

fn wrong(key: &str, value: &str, want: &str) -> OpenError {
    OpenError::new(Status::Inval, format!("the value '{value}' of the key '{key}' is not {want}"))
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, OpenError> {
    value.parse().map_err(|_| wrong(key, value, "a decimal number, or it is too large"))
}

/// A percentage, as parts of a million.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1,000,000")]
fn ppm(key: &str, value: &str) -> Result<u32, OpenError> {
    let percent: f64 = value.parse().map_err(|_| wrong(key, value, "a percentage"))?;
    if (0.0..=100.0).contains(&percent) {
        Ok((percent * 10_000.0).round() as u32)
    } else {
        Err(wrong(key, value, "a percentage between 0 and 100"))
    }
}

/// Whether a network can have this name: it stands in URIs.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(fits)
}

impl Settings {
    pub(crate) fn parse(arguments: &[(String, String)], service: Option<&str>) -> Result<Self, OpenError> {
        let mut settings = Self {
            network: "default".into(),
            node: None,
            port: None,
            seed: None,
            mtu: MTU,
            link: LinkSettings::default(),
            processor: Processor::default(),
        };
        for (key, value) in arguments {
            settings.set(key, value)?;
        }
        settings.link.mtu = usize::from(settings.mtu);
        if let Some(service) = service {
            let (node, port) = service.split_once(':').unwrap_or((service, ""));
            let want = "NODE or NODE:PORT, such as 3:1";
            let refused = || OpenError::new(Status::Inval, format!("the service '{service}' is not {want}"));
            settings.node = Some(node.parse().map_err(|_| refused())?);
            settings.port = if port.is_empty() { None } else { Some(port.parse().map_err(|_| refused())?) };
        }
        Ok(settings)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), OpenError> {
        let Faults { loss, duplicate, corrupt, .. } = &mut self.link.faults;
        match key {
            "network" if is_name(value) => self.network = value.into(),
            "network" => return Err(wrong(key, value, "a name of at most 64 letters, digits, '-', '_' and '.'")),
            "node" => self.node = Some(number(key, value)?),
            "port" => self.port = Some(number(key, value)?),
            "seed" => self.seed = Some(number(key, value)?),
            "mtu" => {
                self.mtu = number(key, value)?;
                if !MTUS.contains(&self.mtu) {
                    return Err(wrong(key, value, "between 1200 and 65000 bytes"));
                }
            }
            "loss" => *loss = ppm(key, value)?,
            "duplicate" => *duplicate = ppm(key, value)?,
            "corrupt" => *corrupt = ppm(key, value)?,
            "delay" => self.link.delay = number(key, value)?,
            "jitter" => self.link.jitter = number(key, value)?,
            "bandwidth" => self.link.bandwidth = number(key, value)?,
            "queue" => self.link.queue = number(key, value)?,
            "send_overhead" => self.processor.send_overhead = number(key, value)?,
            "recv_overhead" => self.processor.recv_overhead = number(key, value)?,
            "gap" => self.processor.gap = number(key, value)?,
            _ => {
                let what = format!("sim has no key '{key}'; its keys are {}", KEYS.join(", "));
                return Err(OpenError::new(Status::Inval, what));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)], service: Option<&str>) -> Result<Settings, OpenError> {
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Settings::parse(&pairs, service)
    }

    #[test]
    fn every_key_is_understood() {
        let values =
            ["net-1", "4", "5", "6", "1500", "0.1", "10", "2.5", "1000", "200", "125000000", "30000", "70", "80", "90"];
        let pairs: Vec<_> = KEYS.into_iter().zip(values).collect();
        let settings = parse(&pairs, None).unwrap();
        assert_eq!((settings.network.as_str(), settings.node, settings.port), ("net-1", Some(4), Some(5)));
        assert_eq!((settings.seed, settings.mtu, settings.link.mtu), (Some(6), 1500, 1500));
        let Faults { loss, duplicate, corrupt, .. } = settings.link.faults;
        assert_eq!((loss, duplicate, corrupt), (1000, 100_000, 25_000));
        let link = &settings.link;
        assert_eq!((link.delay, link.jitter, link.bandwidth, link.queue), (1000, 200, 125_000_000, 30_000));
        assert_eq!(
            settings.processor,
            Processor { send_overhead: 70, recv_overhead: 80, gap: 90, ..Processor::default() }
        );
    }

    #[test]
    fn the_service_names_node_and_port() {
        let settings = parse(&[("node", "1")], Some("7:9")).unwrap();
        assert_eq!((settings.node, settings.port), (Some(7), Some(9)));
        let settings = parse(&[("port", "2")], Some("7")).unwrap();
        assert_eq!((settings.node, settings.port), (Some(7), None));
    }

    #[test]
    fn what_is_wrong_is_refused_by_name() {
        for (key, value) in [
            ("loss", "101"),
            ("loss", "-1"),
            ("loss", "NaN"),
            ("mtu", "1199"),
            ("mtu", "65001"),
            ("network", "a/b"),
            ("network", ""),
            ("delay", "1us"),
            ("gap", "-1"),
            ("colour", "1"),
        ] {
            let error = parse(&[(key, value)], None).unwrap_err().to_string();
            assert!(error.contains(&format!("'{key}'")), "{error}");
        }
        for service in ["", "x", "1:", "1:x", "1:70000"] {
            assert_eq!(parse(&[], Some(service)).is_ok(), service == "1:", "{service}");
        }
    }
}
