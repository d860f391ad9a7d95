//! `cci info`: the devices of this host.

use crate::arguments::InfoArguments;
use cci::{Context, Device, Scope};
use cci_report::{UserError, while_doing};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;

/// Lists the devices.
pub(crate) fn info(arguments: &InfoArguments) -> Result<(), UserError> {
    let context = Context::new().map_err(|error| UserError(error.to_string()))?;
    let text = if arguments.json {
        format!("{:#}\n", as_json(context.devices()))
    } else {
        listing(context.devices()) + &protection(context.devices()) + &environment()
    };
    std::io::stdout().write_all(text.as_bytes()).map_err(while_doing("cannot write the list"))
}

/// The lines of the original's program, which scripts read; after them, apart, why each device is
/// or is not usable.
fn listing(devices: &[Device]) -> String {
    // Plural whatever the number: one form for scripts to look for.
    let mut text = format!("Found {} CCI devices:\n", devices.len());
    for (number, device) in devices.iter().enumerate() {
        let _ = write!(text, "{number:2}: {} ({})", device.name, device.transport);
        if let Some(pci) = device.pci {
            let _ = write!(text, " {:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
        }
        if device.rate > 0 {
            let _ = write!(text, " {} MBit/s", device.rate / 1_000_000);
        }
        let _ = write!(text, " MSS={}", device.max_send_size);
        if device.is_default {
            text.push_str(" (default)");
        }
        text.push('\n');
    }
    text.push('\n');
    for device in devices {
        let state = if device.up { "usable" } else { "not usable" };
        let _ = writeln!(text, "{} is {state}: {}", device.name, device.reason);
    }
    text
}

/// What protects the connections of each device that reaches other hosts, and the cipher.
fn protection(devices: &[Device]) -> String {
    let mut text = String::new();
    let reaches_others = |device: &&Device| {
        device.up && cci::driver(&device.transport).is_some_and(|driver| driver.scope == Scope::Network)
    };
    for device in devices.iter().filter(reaches_others) {
        let _ = match device.protection() {
            Ok(clause) => writeln!(text, "Connections over {} are {clause}.", device.name),
            Err(why) => writeln!(text, "No endpoint of {} opens: {why}.", device.name),
        };
    }
    let _ = writeln!(text, "The cipher is {}.", cci_seal::cipher_name());
    text
}

/// What of the environment decides which devices are shown.
fn environment() -> String {
    let mut text = String::new();
    for (variable, effect) in [("CCI_CONFIG", "lists the devices"), ("CCI_CTP", "selects transports")] {
        if let Some(value) = std::env::var_os(variable).filter(|value| !value.is_empty()) {
            let _ = writeln!(text, "{variable}={} {effect}; what it leaves out is not shown.", value.display());
        }
    }
    text
}

/// The value of a key, or how long it is where nobody is to see it.
fn shown(device: &Device, key: &str, value: &str) -> String {
    let key = cci::driver(&device.transport).and_then(|driver| driver.key(key));
    key.filter(|key| key.check.is_secret()).map_or_else(|| value.to_owned(), |key| key.check.show(value))
}

fn as_json(devices: &[Device]) -> Value {
    let devices: Vec<_> = devices
        .iter()
        .map(|device| {
            let pci =
                device.pci.map(|pci| json!({ "domain": pci.domain, "bus": pci.bus, "dev": pci.dev, "func": pci.func }));
            let arguments: Vec<_> = device
                .arguments
                .iter()
                .map(|(key, value)| json!({ "key": key, "value": shown(device, key, value) }))
                .collect();
            json!({
                "name": device.name,
                "transport": device.transport,
                "up": device.up,
                "reason": device.reason,
                "max_send_size": device.max_send_size,
                "rate": device.rate,
                "pci": pci,
                "priority": device.priority,
                "default": device.is_default,
                "arguments": arguments,
            })
        })
        .collect();
    json!({ "schema": "cci-info/1", "cipher": cci_seal::cipher_name(), "devices": devices })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci::Pci;

    fn devices() -> Vec<Device> {
        let device = Device {
            name: "eth0".into(),
            transport: "sock".into(),
            up: true,
            reason: "UDP sockets".into(),
            arguments: vec![("mtu".into(), "1500".into()), ("security".into(), "off".into())],
            max_send_size: 1344,
            rate: 0,
            pci: Some(Pci { domain: 0, bus: 0, dev: 3, func: 0 }),
            priority: 30,
            is_default: true,
            names: cci::SharedNames::default(),
        };
        let other = Device {
            name: "sm0".into(),
            transport: "sm".into(),
            up: false,
            reason: "no shared memory here".into(),
            arguments: vec![],
            max_send_size: 256,
            rate: 64_000_000_000,
            pci: None,
            is_default: false,
            ..device.clone()
        };
        vec![device, other]
    }

    #[test]
    fn the_listing_has_the_lines_that_scripts_read() {
        assert_eq!(
            listing(&devices()),
            "Found 2 CCI devices:\n 0: eth0 (sock) 0000:00:03.0 MSS=1344 (default)\n 1: sm0 (sm) 64000 MBit/s MSS=256\n\n\
             eth0 is usable: UDP sockets\nsm0 is not usable: no shared memory here\n"
        );
    }

    #[test]
    fn the_first_line_has_one_form_whatever_the_number() {
        assert!(listing(&devices()[..1]).starts_with("Found 1 CCI devices:\n"));
        assert_eq!(listing(&[]), "Found 0 CCI devices:\n\n");
    }

    #[test]
    fn the_json_has_the_same_and_the_arguments() {
        let mut json = as_json(&devices());
        let cipher = json.as_object_mut().and_then(|json| json.remove("cipher")).expect("a cipher");
        assert_eq!(cipher, cci_seal::cipher_name(), "which one depends on the build");
        insta::assert_snapshot!(format!("{json:#}"));
    }

    #[test]
    fn a_secret_is_not_shown() {
        let mut device = devices().remove(0);
        device.arguments.push(("secret".into(), "5f".repeat(32)));
        let text = as_json(&[device]).to_string();
        assert!(text.contains("a secret of 64 characters") && !text.contains("5f5f"), "{text}");
    }

    #[test]
    fn what_protects_a_device_is_named_with_the_cipher() {
        let mut all = devices();
        all[0].arguments.retain(|(key, _)| key != "mtu");
        let text = protection(&all);
        assert!(text.starts_with("Connections over eth0 are plain, since the key security"), "{text}");
        assert!(text.ends_with(&format!("The cipher is {}.\n", cci_seal::cipher_name())) && !text.contains("sm0"));
    }
}
