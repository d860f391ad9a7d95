//! The record of this transport. The facade reads it before an endpoint is opened.

use crate::Template;
use crate::handle::Handle;
use crate::inbox::Inbox;
use crate::mailbox::{Mailbox, parse};
use cci_proto::Status;
use cci_transport::{
    Condition, Core, Driver, ExpectedClients, OpenError, Opening, PendingEvents, Scope, Transport, random,
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
};

/// Opens the transport of an endpoint. The service is the number in its URI.
fn open(core: &Core, opening: &Opening<'_>) -> Result<Box<dyn Transport>, OpenError> {
    let wanted = match opening.service {
        Some(text) => Some(
            parse(text)
                .ok_or_else(|| OpenError::new(Status::Inval, "the service is no number; give a whole number"))?,
        ),
        None => None,
    };
    let system = |source: rustix::io::Errno| OpenError::system("cannot open a template endpoint", source);
    // The key makes handles of registrations unguessable, and different in each endpoint.
    let [key] = random().map_err(system)?;
    let handle = Handle::new().map_err(system)?;
    let inbox = Inbox::new(core, opening.max_send_size).map_err(system)?;
    // Last, because peers can find the endpoint from here on.
    let mailbox = Mailbox::open(wanted, handle.waker(), key)?;
    // The handle is readable until it is armed: a program that sleeps first must not miss a frame.
    mailbox.probe();
    Ok(Box::new(Template {
        mailbox,
        handle,
        inbox,
        sides: BTreeMap::new(),
        last_number: 0,
        expected: ExpectedClients::default(),
        pending_events: PendingEvents::default(),
        max_send_size: opening.max_send_size,
    }))
}
