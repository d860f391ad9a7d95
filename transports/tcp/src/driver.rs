//! The record of this transport: its keys, and whether a device of it can be opened.

use crate::frame::MOST_STREAMS;
use crate::open;
use crate::settings::{SEND_SIZES, ports};
use cci_transport::{Check, Discovered, Driver, Key, LocalAddress, Scope};

/// TCP streams between hosts.
///
/// ```
/// assert_eq!(cci_tcp::DRIVER.name, "tcp");
/// assert_eq!((cci_tcp::DRIVER.discover)()[0].name, "tcp0");
/// ```
pub static DRIVER: Driver = Driver {
    name: "tcp",
    scope: Scope::Network,
    rank: 5,
    priority: 30,
    is_link: false,
    uses_library: false,
    example_uri: "tcp://192.0.2.1:5000",
    keys: &[
        LocalAddress::IP,
        LocalAddress::INTERFACE,
        Key { name: "port", check: Check::By(port) },
        Key { name: "mss", check: Check::Number(*SEND_SIZES.start() as u64, *SEND_SIZES.end() as u64) },
        Key { name: "congestion", check: Check::By(congestion) },
        Key { name: "check", check: Check::OneOf(&["off", "remote", "always"]) },
        Key { name: "streams", check: Check::Number(1, MOST_STREAMS) },
        LocalAddress::LISTEN,
    ],
    loopback: &[("ip", "127.0.0.1")],
    discover: || vec![Discovered { name: "tcp0".into(), arguments: LocalAddress::found() }],
    inspect: open::inspect,
    open: open::open,
    over: None,
};

fn congestion(value: &str) -> Result<(), String> {
    // The kernel cuts a longer name off.
    let is_name = !value.is_empty() && value.len() < 16;
    if is_name { Ok(()) } else { Err("write the name of a congestion control, such as cubic".into()) }
}

fn port(value: &str) -> Result<(), String> {
    ports(value).map(drop)
}
