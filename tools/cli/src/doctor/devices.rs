//! The devices that the library finds.

use super::finding::{Finding, Verdict};
use cci::{Context, Device};

pub(super) fn findings() -> Vec<Finding> {
    match Context::new() {
        Ok(context) => of(context.devices()),
        Err(error) => vec![Finding::with_remedy(
            "devices",
            Verdict::Fails,
            error.to_string(),
            "correct the configuration that CCI_CONFIG and CCI_CTP name",
        )],
    }
}

fn of(devices: &[Device]) -> Vec<Finding> {
    if devices.is_empty() {
        let remedy = "name transports in CCI_CTP that this host has, or unset it";
        return vec![Finding::with_remedy("devices", Verdict::Fails, "none", remedy)];
    }
    let finding = |device: &Device| {
        let subject = format!("device {}", device.name);
        if device.up {
            Finding::ok(subject, device.reason.clone())
        } else {
            let found = format!("not usable: {}", device.reason);
            Finding::with_remedy(
                subject,
                Verdict::Fails,
                found,
                "change or remove its section in the file that CCI_CONFIG names",
            )
        }
    };
    devices.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_down_fails_with_its_reason() {
        let device = Device {
            name: "sm0".into(),
            transport: "sm".into(),
            up: true,
            reason: "shared memory".into(),
            arguments: vec![],
            max_send_size: 1,
            rate: 0,
            pci: None,
            priority: 0,
            is_default: false,
            names: cci::SharedNames::default(),
        };
        let down = Device { name: "fast".into(), up: false, reason: "no such transport".into(), ..device.clone() };
        let found = of(&[device, down]);
        assert_eq!((found[0].verdict, found[1].verdict), (Verdict::Ok, Verdict::Fails));
        assert_eq!(found[1].found, "not usable: no such transport");
        assert_eq!(of(&[])[0].verdict, Verdict::Fails);
    }
}
