//! The record of this transport: its keys.

use crate::SimLink;
use crate::address::is_name;
use cci_reliable::{MAX_SEND_SIZE, transport_over};
use cci_transport::{
    Arguments, Check, Condition, Core, Driver, Key, OpenError, Scope, Security, Transport, TransportOptions,
};

/// Smallest and largest value of the key `mtu`.
const MTUS: std::ops::RangeInclusive<u16> = 1200..=65_000;
const NUMBER: Check = Check::Number(0, u64::MAX);
const PERCENTAGE: Check = Check::By(percentage);

/// A virtual network within this process. It is there by configuration only.
pub static DRIVER: Driver = Driver {
    name: "sim",
    scope: Scope::Process,
    rank: 0,
    priority: 10,
    is_link: true,
    uses_library: false,
    example_uri: "sim://default/0:1",
    keys: &[
        Key { name: "network", check: Check::By(network) },
        Key { name: "node", check: Check::Number(0, u32::MAX as u64) },
        Key { name: "port", check: Check::Number(0, u16::MAX as u64) },
        Key { name: "seed", check: NUMBER },
        Key { name: "mtu", check: Check::Number(*MTUS.start() as u64, *MTUS.end() as u64) },
        Key { name: "loss", check: PERCENTAGE },
        Key { name: "duplicate", check: PERCENTAGE },
        Key { name: "corrupt", check: PERCENTAGE },
        Key { name: "delay", check: NUMBER },
        Key { name: "jitter", check: NUMBER },
        Key { name: "bandwidth", check: NUMBER },
        Key { name: "queue", check: NUMBER },
        Key { name: "send_overhead", check: NUMBER },
        Key { name: "recv_overhead", check: NUMBER },
        Key { name: "gap", check: NUMBER },
        Security::SECURITY,
        Security::SECRET_FILE,
        Security::SECRET,
    ],
    loopback: &[],
    discover: Vec::new,
    inspect: |_| Condition {
        up: true,
        reason: "a network in the memory of this process, in virtual time".into(),
        max_send_size: MAX_SEND_SIZE,
    },
    open,
    over: None,
};

fn open(core: &Core, options: &TransportOptions<'_>) -> Result<Box<dyn Transport>, OpenError> {
    let link = SimLink::open(options.arguments, options.service)?;
    let security = Security::of(&Arguments::check(&DRIVER, options.arguments)?, None)?;
    transport_over(core, link, options, false, security)
}

fn network(value: &str) -> Result<(), String> {
    if is_name(value) { Ok(()) } else { Err("write a name of at most 64 letters, digits, '-', '_' and '.'".into()) }
}

fn percentage(value: &str) -> Result<(), String> {
    let percent: Option<f64> = value.parse().ok();
    let is_fine = percent.is_some_and(|percent| (0.0..=100.0).contains(&percent));
    if is_fine { Ok(()) } else { Err("write a percentage from 0 to 100".into()) }
}
