//! The transport of an endpoint over a link, as a driver opens it.

use crate::{Link, Reliable, ReliableOptions};
use cci_transport::{Core, OpenError, Security, Transport, TransportOptions};

/// Largest message of endpoints over a link, bytes: it is cut into frames as the path needs.
pub const MAX_SEND_SIZE: u32 = 8192;

/// Makes this link a transport. `unchecked_on_host`: the check over RMA bytes may be left out
/// towards endpoints of this host that agree. `security`: what connections are protected by.
///
/// # Errors
///
/// Those of [`Reliable::open`].
pub fn transport_over(
    core: &Core,
    link: impl Link,
    options: &TransportOptions<'_>,
    unchecked_on_host: bool,
    security: Security,
) -> Result<Box<dyn Transport>, OpenError> {
    let reliable = ReliableOptions {
        max_send_size: options.max_send_size,
        threading: options.threading,
        unchecked_on_host,
        first_seq: None,
        security,
    };
    #[cfg(feature = "trace")]
    if let Some(stamps) = &options.stamps {
        let link = crate::TracedLink::new(link, stamps.clone());
        return Ok(Box::new(Reliable::open(core, link, &reliable)?));
    }
    Ok(Box::new(Reliable::open(core, link, &reliable)?))
}
