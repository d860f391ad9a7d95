//! Links, and the memory that is registered for one.

use cci::{Connection, Endpoint, Memory, RegisterError, Registration, Rights};

/// One link to a partner: a later one to the same partner is another.
///
/// # Example
///
/// ```
/// use cci_rendezvous::Link;
///
/// let link = Link { peer: 3, life: 1 };
/// assert_ne!(link, Link { life: 2, ..link });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a name in two words")]
pub struct Link {
    /// The number of the partner.
    pub peer: u32,
    /// Counts the links to it.
    pub life: u32,
}

/// Registers all of the memory for a link, or nothing.
///
/// # Errors
///
/// As [`Endpoint::register_for`]; of the first piece that cannot be registered.
///
/// # Example
///
/// ```
/// use cci::{Connection, Endpoint, Memory, Registration, Rights};
///
/// fn registered(endpoint: &Endpoint, link: Connection, memory: Vec<Memory>) -> Option<Vec<Registration<Memory>>> {
///     let mut all = Vec::new();
///     cci_rendezvous::register(endpoint, link, (memory.into_iter(), &mut all), Rights::NONE).ok()?;
///     Some(all)
/// }
/// ```
pub fn register(
    endpoint: &Endpoint,
    connection: Connection,
    (memory, registered): (impl Iterator<Item = Memory>, &mut Vec<Registration<Memory>>),
    rights: Rights,
) -> Result<(), RegisterError> {
    for memory in memory {
        match endpoint.register_for(connection, memory, rights) {
            Ok(registration) => registered.push(registration),
            Err(why) => {
                registered.clear();
                return Err(why);
            }
        }
    }
    Ok(())
}
