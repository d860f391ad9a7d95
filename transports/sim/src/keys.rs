//! The settings of a device, by its keys.

use crate::driver::DRIVER;
use crate::network::{LinkSettings, Processor};
use crate::settings::Settings;
use cci_proto::Status;
use cci_transport::{Arguments, OpenError};

/// Largest frame unless the key `mtu` is set, bytes.
const MTU: u16 = 9000;

/// A percentage, as parts of a million.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1,000,000")]
fn ppm(percent: f64) -> u32 {
    (percent * 10_000.0).round() as u32
}

impl Settings {
    pub(crate) fn parse(arguments: &[(String, String)], service: Option<&str>) -> Result<Self, OpenError> {
        let keys = Arguments::check(&DRIVER, arguments)?;
        let mut settings = Self {
            network: keys.text("network").unwrap_or("default").into(),
            node: keys.parsed("node"),
            port: keys.parsed("port"),
            seed: keys.parsed("seed"),
            mtu: keys.parsed("mtu").unwrap_or(MTU),
            link: link(&keys),
            processor: processor(&keys),
        };
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
}

/// The links on which the node sends.
fn link(keys: &Arguments<'_>) -> LinkSettings {
    let mut link = LinkSettings::default();
    let percentage = |key: &str, parts: &mut u32| *parts = keys.parsed(key).map_or(*parts, ppm);
    percentage("loss", &mut link.faults.loss);
    percentage("duplicate", &mut link.faults.duplicate);
    percentage("corrupt", &mut link.faults.corrupt);
    let number = |key: &str, value: &mut u64| *value = keys.parsed(key).unwrap_or(*value);
    number("delay", &mut link.delay);
    number("jitter", &mut link.jitter);
    number("bandwidth", &mut link.bandwidth);
    number("queue", &mut link.queue);
    link
}

/// What a frame takes of the node's processor.
fn processor(keys: &Arguments<'_>) -> Processor {
    let mut processor = Processor::default();
    let number = |key: &str, value: &mut u64| *value = keys.parsed(key).unwrap_or(*value);
    number("send_overhead", &mut processor.send_overhead);
    number("recv_overhead", &mut processor.recv_overhead);
    number("gap", &mut processor.gap);
    processor
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Faults;

    fn parse(pairs: &[(&str, &str)], service: Option<&str>) -> Result<Settings, OpenError> {
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Settings::parse(&pairs, service)
    }

    #[test]
    fn every_key_is_understood() {
        let values =
            ["net-1", "4", "5", "6", "1500", "0.1", "10", "2.5", "1000", "200", "125000000", "30000", "70", "80", "90"];
        let digits = "0".repeat(64);
        let values = values.into_iter().chain(["off", "file", &digits]);
        let pairs: Vec<_> = DRIVER.keys.iter().map(|key| key.name).zip(values).collect();
        assert_eq!(pairs.len(), DRIVER.keys.len());
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
