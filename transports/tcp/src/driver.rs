//! The record of this transport: its keys, whether a device of it can be opened, and opening.

use crate::endpoint::Tcp;
use crate::frame::MOST_STREAMS;
use crate::lane::shared::Shared;
use crate::open::listen_at;
use crate::seal::Secret;
use crate::settings::{MSS, SEND_SIZES, Settings, ports};
use cci_proto::Status;
use cci_transport::{
    Arguments, Check, Condition, Core, Discovered, Driver, Key, LocalAddress, NameCall, OpenError, Scope, Security,
    Transport, TransportOptions, random, room_for,
};

/// More than the buffers and tables of an endpoint take, bytes.
const BUFFERS: usize = 1 << 20;

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
        Security::SECURITY,
        Security::SECRET_FILE,
        Security::SECRET,
    ],
    loopback: &[("ip", "127.0.0.1")],
    discover: || vec![Discovered { name: "tcp0".into(), arguments: LocalAddress::found() }],
    inspect,
    open,
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

/// Opens the transport of an endpoint. The service is the port.
fn open(core: &Core, options: &TransportOptions<'_>) -> Result<Box<dyn Transport>, OpenError> {
    Ok(Box::new(open_tcp(core, options)?))
}

fn open_tcp(core: &Core, options: &TransportOptions<'_>) -> Result<Tcp, OpenError> {
    let security = security(options.arguments)?;
    let tcp = open_with(core, options, Secret::of(&security))?;
    core.note_protection(security.protect());
    Ok(tcp)
}

/// The security of a device with these keys.
fn security(arguments: &[(String, String)]) -> Result<Security, OpenError> {
    let all = DRIVER.with_environment(arguments);
    Security::of(&Arguments::check(&DRIVER, &all)?, None)
}

/// Opens the transport with this secret, or with none.
pub(crate) fn open_with(core: &Core, options: &TransportOptions<'_>, secret: Option<Secret>) -> Result<Tcp, OpenError> {
    let settings = settings(options.arguments, options.service)?;
    let system = |refused| OpenError::call("cannot open a tcp endpoint", refused);
    let (listener, uri) = listen_at(&settings)?;
    room_for(BUFFERS)?;
    let words = random().by("getrandom").map_err(system)?;
    let max_send_size = settings.mss.unwrap_or(options.max_send_size);
    let shared = Shared::new(core, (settings, secret), max_send_size, words).map_err(system)?;
    Tcp::new(core, shared, listener, uri, options.threading).map_err(system)
}

/// The settings of a device with these keys, and with those that only the environment has.
pub(crate) fn settings(arguments: &[(String, String)], service: Option<&str>) -> Result<Settings, OpenError> {
    let all = DRIVER.with_environment(arguments);
    Settings::read(&Arguments::check(&DRIVER, &all)?, service)
}

/// Up if an endpoint with these keys can be opened.
fn inspect(arguments: &[(String, String)]) -> Condition {
    // The port may be in use by the endpoint that it is meant for.
    let others: Vec<_> = arguments.iter().filter(|(key, _)| key != "port").cloned().collect();
    let settings = settings(&others, None);
    let max_send_size = settings.as_ref().ok().and_then(|settings| settings.mss).unwrap_or(MSS);
    let opened = settings.and_then(|settings| listen_at(&settings).map(|_| settings.local.ip));
    let (up, reason) = match opened.and_then(|ip| Ok((ip, security(arguments)?))) {
        Ok((ip, security)) if security.psk().is_some() => (true, format!("TCP from {ip}, {security}")),
        Ok((ip, _)) => (true, format!("TCP from {ip}")),
        // A shortage that may pass is no refusal: opening an endpoint says so itself.
        Err(error) if error.status == Status::NoMem => (true, "TCP".into()),
        Err(error) => (false, error.to_string()),
    };
    Condition { up, reason, max_send_size }
}
