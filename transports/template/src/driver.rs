//! The record of this transport. The facade reads it before an endpoint is opened.

use crate::Template;
use crate::inbox::Inbox;
use crate::mailbox::Mailbox;
use cci_proto::{Status, decimal};
use cci_transport::{
    Condition, Core, Driver, ExpectedClients, NameCall, OpenError, PendingEvents, Readiness, Scope, Transport,
    TransportOptions, random,
};
use std::collections::BTreeMap;

/// Largest message, bytes. Nothing here limits it; a network would.
const MAX_SEND_SIZE: u32 = 8192;

/// Endpoints of one process.
///
/// ```
/// assert_eq!(cci_template::DRIVER.name, "template");
/// assert!((cci_template::DRIVER.discover)().is_empty(), "its devices come from a configuration only");
/// ```
pub static DRIVER: Driver = Driver {
    name: "template",
    scope: Scope::Process,
    // No program prefers it to a transport that is made for speed.
    rank: 0,
    priority: 0,
    // It implements `Transport` itself. A network that loses frames is a link instead.
    is_link: false,
    uses_library: false,
    example_uri: "template://1",
    // Nothing can be configured. Each key would have a check here.
    keys: &[],
    loopback: &[],
    discover: Vec::new,
    inspect: |_| Condition {
        up: true,
        reason: "queues in the memory of this process".into(),
        max_send_size: MAX_SEND_SIZE,
    },
    open,
    over: None,
};

/// Opens the transport of an endpoint. The service is the number in its URI.
fn open(core: &Core, options: &TransportOptions<'_>) -> Result<Box<dyn Transport>, OpenError> {
    let no_number = || OpenError::new(Status::Inval, "the service is no number; give a whole number");
    let wanted = options.service.map(|text| decimal(text).ok_or_else(no_number)).transpose()?;
    let system = |refused| OpenError::call("cannot open a template endpoint", refused);
    // The key makes handles of registrations unguessable, and different in each endpoint.
    let [key] = random().by("getrandom").map_err(system)?;
    let inbox = Inbox::new(core, options.max_send_size).by("mmap").map_err(system)?;
    // Last, because peers can find the endpoint from here on.
    let mailbox = Mailbox::open(wanted, key)?;
    let mut template = Template {
        mailbox,
        readiness: Readiness::default(),
        inbox,
        sides: BTreeMap::new(),
        last_number: 0,
        expected: ExpectedClients::default(),
        pending_events: PendingEvents::default(),
        max_send_size: options.max_send_size,
    };
    // The handle is readable until it is armed: a program that sleeps first must not miss a frame.
    Readiness::signal(&mut template);
    Ok(Box::new(template))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci_mem::guarded::Threading;
    use cci_transport::{CoreOptions, Endpoint};
    use std::time::Duration;

    fn core() -> Core {
        let mut core = None;
        let cell = Endpoint::open(Threading::Many, |cell| {
            core = Core::new(cell, &CoreOptions::default()).ok();
            None
        });
        assert!(cell.is_ok());
        core.expect("memory")
    }

    fn open_as(core: &Core, service: &str) -> Result<Box<dyn Transport>, OpenError> {
        open(core, &TransportOptions { service: Some(service), ..TransportOptions::new(&[], MAX_SEND_SIZE) })
    }

    /// The facade drops a transport without closing it where the rest of an endpoint cannot be
    /// opened.
    #[test]
    fn a_transport_that_is_dropped_gives_its_number_back() {
        let core = core();
        let dropped = open_as(&core, "71001").expect("a number of its own");
        assert!(open_as(&core, "71001").is_err(), "it is taken");
        drop(dropped);
        assert!(Mailbox::find(71_001).is_none());
        assert!(open_as(&core, "71001").is_ok());
    }

    #[test]
    fn a_transport_that_is_closed_and_then_dropped_leaves_its_number_to_the_next_one() {
        let mut core = core();
        let mut first = open_as(&core, "71002").expect("a number of its own");
        first.close(&mut core, Duration::ZERO);
        let second = open_as(&core, "71002").expect("free again");
        drop(first);
        assert!(Mailbox::find(71_002).is_some(), "the second one's");
        drop(second);
        assert!(Mailbox::find(71_002).is_none());
    }
}
