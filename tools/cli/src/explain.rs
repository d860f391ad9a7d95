//! `cci explain`: the way to an endpoint.

use crate::arguments::ExplainArguments;
use cci::{Connect, ConnectionReport, Context, Device, Driver, Endpoint, EndpointOptions, EventKind, Failure, Scope};
use cci_perf::reach::{advice_on, no_transport_of};
use cci_report::{UserError, while_doing};
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Connects to the endpoint at the URI and says which way messages and RMA take.
pub(crate) fn explain(arguments: &ExplainArguments) -> Result<(), UserError> {
    let context = Context::new().map_err(|error| UserError(error.to_string()))?;
    let device = device_of(context.devices(), &arguments.uri)?;
    let endpoint = Endpoint::open(device, &EndpointOptions::new())
        .map_err(while_doing("cannot open an endpoint to connect from"))?;
    let report = report(&endpoint, &arguments.uri, arguments.timeout)?;
    let text = text(device, &arguments.uri, &report);
    std::io::stdout().write_all(text.as_bytes()).map_err(while_doing("cannot write the explanation"))
}

/// The device whose transport the URI names.
fn device_of<'d>(devices: &'d [Device], uri: &str) -> Result<&'d Device, UserError> {
    let scheme = uri.split_once("://").map(|(scheme, _)| scheme).filter(|scheme| !scheme.is_empty());
    let scheme = scheme.ok_or_else(|| {
        UserError(format!("{uri:?} is not a URI of an endpoint: it begins with the transport, as in sm://1234/0"))
    })?;
    let transport = cci::driver_for_scheme(scheme).map_or(scheme, |driver| driver.name);
    let mut of_scheme = devices.iter().filter(|device| device.transport == transport);
    let known = || devices.iter().map(|device| device.transport.as_str());
    let first = of_scheme.clone().next().ok_or_else(|| no_transport_of(scheme, known()))?;
    of_scheme
        .find(|device| device.up)
        .ok_or_else(|| UserError(format!("the device {} is not usable: {}", first.name, first.reason)))
}

fn report(endpoint: &Endpoint, uri: &str, timeout: Duration) -> Result<ConnectionReport, UserError> {
    endpoint
        .connect(&Connect::to(uri).timeout(timeout))
        .map_err(|error| UserError(format!("cannot connect to {uri}: {error}")))?;
    let begin = Instant::now();
    while begin.elapsed() < 2 * timeout {
        let event = endpoint.get_event().map_err(|error| UserError(error.to_string()))?;
        let Some(event) = event.filter(|event| event.kind() == EventKind::Connect) else {
            std::thread::sleep(Duration::from_micros(200));
            continue;
        };
        return match (event.outcome(), event.connection()) {
            (Ok(()), Some(connection)) => loop {
                let report = endpoint.report(connection);
                let report = report.map_err(while_doing("the connection ended before it could be described"))?;
                if !report.is_opening || begin.elapsed() >= timeout {
                    break Ok(report);
                }
                // Progress; nothing is sent here.
                endpoint.get_event().map_err(|error| UserError(error.to_string()))?;
                std::thread::sleep(Duration::from_micros(200));
            },
            (outcome, _) => Err(not_reached(uri, outcome.err(), event.reason().as_deref(), timeout)),
        };
    }
    Err(not_reached(uri, Some(Failure::TimedOut), None, timeout))
}

/// `reason`: what the library knows beyond the failure.
fn not_reached(uri: &str, failure: Option<Failure>, reason: Option<&str>, timeout: Duration) -> UserError {
    let advice = failure.map_or_else(|| "it ended without a reason".into(), |it| advice_on(uri, it, reason, timeout));
    // What the failure means is in the advice.
    let reason = reason.filter(|reason| failure.is_none_or(|failure| failure.to_string() != *reason));
    let reason = reason.map_or_else(String::new, |reason| format!("{reason}; "));
    UserError(format!("{uri} was not reached: {reason}{advice}"))
}

fn text(device: &Device, uri: &str, report: &ConnectionReport) -> String {
    let rtt = report.rtt.map_or_else(|| "not measured".into(), |rtt| format!("{} ns", rtt.as_nanos()));
    format!(
        "{uri}\n  transport  {} (device {}: {})\n  messages   {}\n  RMA        {}\n  why        {}\n  peers      \
         {}\n  security   {}\n  MTU        {} bytes\n  window     {}\n  round trip {rtt}\n",
        report.transport,
        device.name,
        device.reason,
        report.path,
        report.rma_path,
        report.why,
        peers(device, report),
        security(device, report),
        report.mtu,
        report.window
    )
}

/// What protects the connection on its way, or why nothing needs to.
fn security<'r>(device: &Device, report: &'r ConnectionReport) -> &'r str {
    if !report.protection.is_empty() {
        &report.protection
    } else if taken(device, report).is_some_and(|driver| driver.scope < Scope::Network) {
        "nothing crosses a network"
    } else {
        "plain, since nothing can seal it"
    }
}

/// The transport of the connection. Over several ones the path begins with that which is taken.
fn taken(device: &Device, report: &ConnectionReport) -> Option<&'static Driver> {
    let way = report.path.split_once(": ").and_then(|(way, _)| cci::driver(way));
    cci::driver(&device.transport).filter(|driver| driver.over.is_none()).or(way)
}

/// By what the endpoints of a connection know each other.
fn peers(device: &Device, report: &ConnectionReport) -> &'static str {
    let driver = cci::driver(&device.transport);
    let taken = taken(device, report);
    if report.protection.starts_with("sealed") {
        "have the same secret"
    } else if driver
        .is_some_and(|driver| device.arguments.iter().any(|(key, _)| key == "secret" && driver.key(key).is_some()))
    {
        "prove the secret of the device"
    } else if taken.is_some_and(|driver| driver.scope == Scope::Host) {
        "are of this user, by the word of the system"
    } else {
        "are not authenticated"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(transport: &str, up: bool) -> Device {
        Device {
            name: format!("{transport}0"),
            transport: transport.into(),
            up,
            reason: "a reason".into(),
            arguments: vec![],
            max_send_size: 1,
            rate: 0,
            pci: None,
            priority: 0,
            is_default: false,
            names: cci::SharedNames::default(),
        }
    }

    #[test]
    fn the_scheme_of_the_uri_chooses_the_device() {
        let devices = [device("sock", true), device("sm", false), device("sm", true), device("eth", false)];
        assert_eq!(device_of(&devices, "sm://1/2").unwrap().name, "sm0");
        assert!(device_of(&devices, "sm://1/2").unwrap().up);
        let down = device_of(&devices, "eth://x").unwrap_err().0;
        assert!(down.contains("eth0") && down.contains("a reason"), "{down}");
        let unknown = device_of(&devices, "ofi://x").unwrap_err().0;
        assert!(unknown.contains("ofi") && unknown.contains("sock, sm"), "{unknown}");
        assert!(device_of(&devices, "nonsense").unwrap_err().0.contains("not a URI"));
    }

    #[test]
    fn the_reason_of_a_failure_is_a_sentence() {
        let why = Some("nobody listens there");
        let text = not_reached("sm://1/2", Some(Failure::Refused), why, Duration::from_secs(5)).0;
        assert!(text.contains("nobody listens there; its program must run"), "{text}");
        let text = not_reached("sm://1/2", Some(Failure::TimedOut), None, Duration::from_secs(5)).0;
        assert!(text.contains("reached: no answer within 5s"), "{text}");
        let why = Some("the host's name was not resolved within the timeout");
        let text = not_reached("tcp://silent.example:5000", Some(Failure::TimedOut), why, Duration::from_secs(5)).0;
        assert!(text.contains("was not resolved within the timeout; see that a name server answers"), "{text}");
        assert!(!text.contains("firewall") && !text.contains("port"), "{text}");
    }

    #[test]
    fn peers_are_known_by_a_secret_by_the_system_or_not_at_all() {
        let of = |transport: &str, path: &str, secret: bool| {
            let mut device = device(transport, true);
            device.arguments.extend(secret.then(|| ("secret".to_owned(), "0".repeat(64))));
            peers(&device, &ConnectionReport { path: path.into(), ..ConnectionReport::default() })
        };
        assert_eq!(of("auto", "sock: UDP over IPv4", false), "are not authenticated");
        assert_eq!(of("auto", "sock: UDP over IPv4", true), "prove the secret of the device");
        assert_eq!(of("mx", "MX", true), "are not authenticated", "it has no such key");
        let sealed = ConnectionReport { protection: "sealed by a cipher".into(), ..ConnectionReport::default() };
        assert_eq!(peers(&device("sock", true), &sealed), "have the same secret");
        assert_eq!(security(&device("sock", true), &sealed), "sealed by a cipher");
        let plain = ConnectionReport::default();
        assert_eq!(security(&device("sm", true), &plain), "nothing crosses a network");
        assert!(security(&device("mx", true), &plain).starts_with("plain"));
        for (transport, path) in [("auto", "sm: a lane"), ("sm", "a lane")] {
            assert_eq!(of(transport, path, false), "are of this user, by the word of the system");
        }
    }

    #[test]
    fn the_explanation_names_paths_and_reason() {
        let report = ConnectionReport {
            transport: "sm",
            path: "a lane".into(),
            rma_path: "process_vm".into(),
            why: "the probe worked".into(),
            mtu: 8192,
            window: 256,
            ..ConnectionReport::default()
        };
        insta::assert_snapshot!(text(&device("sm", true), "sm://1/2", &report));
    }
}
