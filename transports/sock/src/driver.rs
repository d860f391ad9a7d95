//! The record of this transport: its keys, and whether a device of it can be opened.

use crate::address::SCHEME;
use crate::link::Sock;
use cci_proto::Status;
use cci_reliable::{Link, MAX_SEND_SIZE, transport_over};
use cci_transport::{
    Arguments, Check, Condition, Core, Discovered, Driver, Key, LocalAddress, OpenError, Scope, Security, Transport,
    TransportOptions,
};

/// The smallest packet that the key `mtu` may name: the smallest MTU of IPv6, RFC 8200 section 5.
const MIN_PACKET: u64 = 1280;

/// UDP sockets between hosts.
pub static DRIVER: Driver = Driver {
    name: "sock",
    scope: Scope::Network,
    rank: 10,
    priority: 30,
    is_link: true,
    uses_library: false,
    example_uri: "sock://192.0.2.1:5000",
    keys: &[
        LocalAddress::IP,
        LocalAddress::INTERFACE,
        Key { name: "port", check: Check::Number(0, 65_535) },
        Key { name: "mtu", check: Check::Number(MIN_PACKET, 65_535) },
        Key { name: "bufsize", check: Check::Number(65_536, 1 << 30) },
        Key { name: "check", check: Check::OneOf(&["always", "remote"]) },
        Key { name: "connect", check: Check::OneOf(&["local", "network"]) },
        LocalAddress::LISTEN,
        Security::SECURITY,
        Security::SECRET_FILE,
        Security::SECRET,
    ],
    loopback: &[("interface", "lo")],
    discover: || vec![Discovered { name: "sock0".into(), arguments: LocalAddress::found() }],
    inspect,
    open,
    over: None,
};

fn open(core: &Core, options: &TransportOptions<'_>) -> Result<Box<dyn Transport>, OpenError> {
    let link = Sock::open(options.arguments, options.service)?;
    let unchecked_on_host = link.unchecked_on_host();
    transport_over(core, link, options, unchecked_on_host, security(options.arguments)?)
}

/// What a device with these keys asks of its connections.
fn security(arguments: &[(String, String)]) -> Result<Security, OpenError> {
    Security::of(&Arguments::check(&DRIVER, &DRIVER.with_environment(arguments))?, None)
}

/// Up if an endpoint with these keys can be opened.
fn inspect(arguments: &[(String, String)]) -> Condition {
    let (refusal, uri) = match Sock::open(&without_port(arguments), None) {
        Ok(link) => (None, link.uri().to_owned()),
        // A shortage that may pass is no refusal: opening an endpoint says so itself.
        Err(error) if error.status == Status::NoMem => (None, String::new()),
        Err(error) => (Some(error.to_string()), String::new()),
    };
    let host = uri.rsplit_once(':').map_or("", |(host, _)| host).trim_start_matches(SCHEME);
    Condition {
        up: refusal.is_none(),
        reason: refusal.unwrap_or_else(|| format!("UDP from {host}")),
        max_send_size: MAX_SEND_SIZE,
    }
}

/// The keys of a trial: the port may be in use by the endpoint that it is meant for.
fn without_port(arguments: &[(String, String)]) -> Vec<(String, String)> {
    arguments.iter().filter(|(key, _)| key != "port").cloned().collect()
}
