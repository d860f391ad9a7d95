//! The record of this transport. The facade reads it before an endpoint is opened.

use crate::blocks::Blocks;
use crate::net::Net;
use crate::network::{Choice, Lease};
use crate::portals::Portals;
use crate::sys::{Bound, Code, Interface, Library, Wanted, options};
use crate::watcher::Queue;
use crate::wire::{Address, Class, MESSAGES, TOKEN};
use cci_mem::memory::Memory;
use cci_over::{MOST_ENDPOINTS, Opening, Over, Parts, Watcher};
use cci_proto::{MAX_REQUEST, Status, decimal};
use cci_transport::{Arguments, Check, Condition, Core, Driver, Key, OpenError, Scope, Transport, TransportOptions};
use std::sync::Arc;

/// The library unless the configuration names another.
const LIBRARY: &str = "libportals3.so.2";
/// Largest message, bytes: that of the measurements of the CCI paper.
const MAX_SEND_SIZE: u32 = 8192;
/// Events that the queue of an endpoint has room for: what peers have been granted (`cci-over`),
/// two for each of 1,024 operations, what the other blocks take, and the rest for control messages.
const EVENTS: u64 = 16_384;
/// Buffers for control messages, beside those for the program's.
const CONTROLS: u32 = 256;
/// Messages of the largest size that a block takes, and blocks for messages that may be lost and
/// for requests.
const TOGETHER: u64 = 16;
const LOSSY: usize = 4;
const SETUP: usize = 2;
const REQUESTS: u64 = 128;

/// CCI over Portals 3.3.
///
/// ```
/// assert_eq!(cci_over_portals::DRIVER.name, "portals");
/// assert!((cci_over_portals::DRIVER.discover)().is_empty(), "its devices come from a configuration only");
/// ```
pub static DRIVER: Driver = Driver {
    name: "portals",
    scope: Scope::Network,
    // Only where it is named.
    rank: 0,
    priority: 50,
    is_link: false,
    uses_library: true,
    example_uri: "portals://192.0.2.1:7/1",
    keys: &[
        Key { name: "library", check: Check::Text },
        Key { name: "interface", check: Check::Number(0, u32::MAX as u64) },
        Key { name: "pid", check: Check::Number(0, u32::MAX as u64 - 1) },
        Key { name: "send", check: Check::OneOf(&["copy", "bind"]) },
    ],
    loopback: &[],
    discover: Vec::new,
    inspect,
    open,
    over: None,
};

fn library(arguments: &[(String, String)]) -> &str {
    arguments.iter().rfind(|(key, _)| key == "library").map_or(LIBRARY, |(_, name)| name)
}

fn inspect(arguments: &[(String, String)]) -> Condition {
    let name = library(arguments);
    match Library::load(name) {
        Ok(_) => Condition { up: true, reason: format!("over {name}"), max_send_size: MAX_SEND_SIZE },
        Err(reason) => Condition { up: false, reason, max_send_size: 0 },
    }
}

/// Opens the transport of an endpoint. The service is its number in the process.
fn open(core: &Core, options: &TransportOptions<'_>) -> Result<Box<dyn Transport>, OpenError> {
    let arguments = Arguments::check(&DRIVER, options.arguments)?;
    let refused = |what: &str| OpenError::new(Status::Inval, what.to_owned());
    let number = |text| decimal(text).filter(|number| (1..=MOST_ENDPOINTS).contains(number));
    let wanted = options
        .service
        .map(|text| {
            number(text).ok_or_else(|| refused("the service is no number of an endpoint; give one from 1 to 16777214"))
        })
        .transpose()?;
    let choice = Choice {
        library: arguments.text("library").unwrap_or(LIBRARY),
        interface_id: arguments.parsed("interface").unwrap_or(0),
        pid: arguments.parsed("pid"),
    };
    let parts = Parts::new(core, options.max_send_size)
        .map_err(|source| OpenError::system("cannot open an endpoint over Portals", source))?;
    let lease = Lease::take(&choice, wanted)?;
    let interface = Arc::clone(&lease.interface);
    let no_room = |code: Code| {
        let what =
            format!("no room in the library {}: {}; open fewer endpoints", choice.library, interface.name_of(code));
        OpenError::new(Status::NoMem, what)
    };
    let queue = interface.queue(EVENTS).map_err(no_room)?;
    let made = make(core, options, (lease, queue), arguments.text("send") == Some("bind"), &parts);
    let portals = made.map_err(|code| {
        interface.free_queue(queue);
        no_room(code)
    })?;
    Ok(Over::open(portals, parts))
}

fn make(
    core: &Core,
    options: &TransportOptions<'_>,
    (lease, queue): (Lease, u32),
    is_bind: bool,
    parts: &Parts,
) -> Result<Portals, Code> {
    let interface = Arc::clone(&lease.interface);
    let most = options.max_send_size;
    let request = (MAX_REQUEST + Opening::LEN) as u32;
    let place = (lease.number, queue);
    let count = u32::try_from(core.send_count().1).unwrap_or(u32::MAX / 2) + CONTROLS;
    let net = Net::new((Arc::clone(&interface), lease.number, queue), (count, parts.longest()), is_bind)?;
    let reliable = Blocks::new(Class::Reliable, place, most.max(request), TOGETHER);
    let mut unreliable = Blocks::new(Class::Unreliable, place, most, TOGETHER);
    let mut setup = Blocks::new(Class::Setup, place, request, REQUESTS);
    for _ in 0..LOSSY {
        unreliable.grow(&interface)?;
    }
    for _ in 0..SETUP {
        setup.grow(&interface)?;
    }
    let fixed = vec![
        empty(&interface, lease.number, Class::Wake, Some(queue))?,
        empty(&interface, lease.number, Class::Sentinel, None)?,
    ];
    let watcher = Watcher::new(Queue { interface, queue }, "cci-portals", Arc::clone(parts.handle()));
    Ok(Portals { lease: Some(lease), net, watcher, reliable, unreliable, setup, fixed, is_short: false })
}

/// An entry for empty puts.
fn empty(interface: &Interface, number: u32, class: Class, queue: Option<u32>) -> Result<Bound, Code> {
    let wanted = Wanted { options: options::PUT | options::NO_START, threshold: None, max_size: 0, user: 0, queue };
    interface.attach((MESSAGES, Address::bits(number, class, 0), TOKEN), Memory::none(), &wanted, false)
}
