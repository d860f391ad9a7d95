//! The record of this transport. The facade reads it before an endpoint is opened.

use crate::inbound::{Batch, Inbound};
use crate::network::Mx;
use crate::process::Lease;
use crate::requests::Requests;
use crate::sys::{Code, End, Library};
use crate::wire::Place;
use cci_over::{MOST_ENDPOINTS, Over, Parts, Watcher};
use cci_proto::{Status, decimal};
use cci_transport::{
    Arguments, Check, Condition, Core, Driver, Key, NameCall, OpenError, Scope, Transport, TransportOptions, random,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// The library unless the configuration names another.
const LIBRARY: &str = "libmyriexpress.so";
/// Largest message, bytes: that of the measurements of the CCI paper.
const MAX_SEND_SIZE: u32 = 1024;
/// Buffers for control messages, beside those for the program's.
const CONTROLS: u32 = 256;

/// CCI over Myrinet Express.
///
/// ```
/// assert_eq!(cci_over_mx::DRIVER.name, "mx");
/// assert!((cci_over_mx::DRIVER.discover)().is_empty(), "its devices come from a configuration only");
/// ```
pub static DRIVER: Driver = Driver {
    name: "mx",
    scope: Scope::Network,
    // Only where it is named.
    rank: 0,
    priority: 50,
    is_link: false,
    uses_library: true,
    example_uri: "mx://192.0.2.1/3",
    keys: &[Key { name: "library", check: Check::Text }],
    loopback: &[],
    discover: Vec::new,
    inspect,
    open,
    over: None,
};

fn inspect(arguments: &[(String, String)]) -> Condition {
    let name = arguments.iter().rfind(|(key, _)| key == "library").map_or(LIBRARY, |(_, name)| name);
    match Library::load(name) {
        Ok(_) => Condition { up: true, reason: format!("over {name}"), max_send_size: MAX_SEND_SIZE },
        Err(reason) => Condition { up: false, reason, max_send_size: 0 },
    }
}

/// Opens the transport of an endpoint. The service is the id of its MX endpoint.
fn open(core: &Core, options: &TransportOptions<'_>) -> Result<Box<dyn Transport>, OpenError> {
    let arguments = Arguments::check(&DRIVER, options.arguments)?;
    let number = |text| decimal(text).filter(|number| *number <= MOST_ENDPOINTS);
    let wrong = || {
        let what = "the service is no id of an MX endpoint; give a number that the library has, such as 3";
        OpenError::new(Status::Inval, what.to_owned())
    };
    let wanted = options.service.map(|text| number(text).ok_or_else(wrong)).transpose()?;
    let name = arguments.text("library").unwrap_or(LIBRARY);
    let parts = Parts::new(core, options.max_send_size)
        .map_err(|source| OpenError::system("cannot open an endpoint over MX", source))?;
    let count = u32::try_from(core.send_count().1).unwrap_or(u32::MAX / 2) + CONTROLS;
    let requests = Requests::new(count, parts.longest())?;
    let [seed] = random()
        .by("getrandom")
        .map_err(|refused| OpenError::call("no random numbers for an endpoint over MX", refused))?;
    let lease = Lease::take(name)?;
    let inbound = Inbound::new(Arc::clone(parts.handle()), parts.longest());
    let messages = requests.pool.memory().clone();
    let end =
        End::open(&lease.library, wanted, inbound, messages).map_err(|code| refusal(&lease.library, name, code))?;
    let watcher = Watcher::new(end.waits(), "cci-mx", Arc::clone(parts.handle()));
    let mut mx = Mx {
        own: Place { nic: 0, id: 0, session: None, address: None },
        lease: Some(lease),
        end,
        requests,
        watcher,
        is_armed: false,
        incoming: Batch::default(),
        finished: VecDeque::new(),
        ended: VecDeque::new(),
        owed: VecDeque::new(),
        seed,
    };
    let address = mx.end.address().map_err(|code| {
        let what = format!("mx_get_endpoint_addr of {name} fails: {}", mx.end.text_of(code));
        cci_over::Network::end(&mut mx, Vec::new());
        OpenError::new(Status::NoDev, what)
    })?;
    mx.own = mx.end.place(address);
    Ok(Over::open(mx, parts))
}

fn refusal(library: &Library, name: &str, code: Code) -> OpenError {
    let text = library.text_of(code);
    match code {
        Code::DEVICE_CYCLE => OpenError::new(
            Status::NoDev,
            format!(
                "the library {name} would use another library in its turn ({text}); \
                 name another device by CCI_MX_DEVICE, such as sm"
            ),
        ),
        Code::BUSY => OpenError::new(Status::AddrNotAvail, format!("mx_open_endpoint of {name} fails: {text}")),
        _ => OpenError::new(
            Status::NoDev,
            format!("mx_open_endpoint of {name} fails: {text}; check the device of the library"),
        ),
    }
}
