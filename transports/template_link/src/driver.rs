//! The record of this transport. The facade reads it before an endpoint is opened.

use crate::{SCHEME, UdpLink};
use cci_reliable::{MAX_SEND_SIZE, transport_over};
use cci_transport::{Condition, Driver, Scope, Security};

/// Endpoints of this host.
///
/// ```
/// assert_eq!(cci_template_link::DRIVER.name, "template-link");
/// assert!((cci_template_link::DRIVER.discover)().is_empty(), "its devices come from a configuration only");
/// ```
pub static DRIVER: Driver = Driver {
    name: SCHEME.split_at(SCHEME.len() - "://".len()).0,
    scope: Scope::Host,
    // No program prefers it to a transport that is made for speed.
    rank: 0,
    priority: 0,
    is_link: true,
    uses_library: false,
    example_uri: "template-link://127.0.0.1:4711",
    // Nothing can be configured. Each key would have a check here.
    keys: &[],
    loopback: &[],
    discover: Vec::new,
    inspect: |_| Condition { up: true, reason: "UDP on the loop-back interface".into(), max_send_size: MAX_SEND_SIZE },
    open: |core, options| transport_over(core, UdpLink::open(options.service)?, options, false, Security::off()),
    over: None,
};
