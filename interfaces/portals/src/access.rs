//! Access control: who may use which portal index.

use crate::errors::Error;
use crate::types::{ANY, Limits, ProcessId};
use crate::wanted::Wanted;

/// An entry of the access control table. Each part may be [`ANY`].
///
/// # Example
///
/// ```
/// use cci_portals::{ANY, AccessEntry, ProcessId};
///
/// let everybody = AccessEntry { process: ProcessId::ANY, uid: ANY, jid: ANY, portal: ANY };
/// assert_ne!(everybody, AccessEntry { portal: 4, ..everybody });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "as the specification has it")]
pub struct AccessEntry {
    /// The initiator.
    pub process: ProcessId,
    /// Its user.
    pub uid: u32,
    /// Its job.
    pub jid: u32,
    /// The portal index.
    pub portal: u32,
}

/// The table. At first entry 0 lets this user in from anywhere, and no other entry lets in anybody.
#[derive(Debug)]
pub(crate) struct Access(Vec<Option<AccessEntry>>);

impl Access {
    pub(crate) fn new(limits: Limits, uid: u32) -> Self {
        let mut entries = vec![None; limits.max_ac_index as usize + 1];
        entries[0] = Some(AccessEntry { process: ProcessId::ANY, uid, jid: ANY, portal: ANY });
        Self(entries)
    }

    pub(crate) fn set(&mut self, index: u32, entry: AccessEntry, limits: Limits) -> Result<(), Error> {
        if entry.portal != ANY && entry.portal > limits.max_pt_index {
            return Err(Error::PortalIndex);
        }
        *self.0.get_mut(index as usize).ok_or(Error::AccessIndex)? = Some(entry);
        Ok(())
    }

    pub(crate) fn lets_in(&self, wanted: &Wanted) -> bool {
        let is = |own: u32, other: u32| own == ANY || own == other;
        self.0.get(wanted.access as usize).copied().flatten().is_some_and(|entry| {
            entry.process.matches(wanted.initiator)
                && is(entry.uid, wanted.uid)
                && is(entry.jid, wanted.jid)
                && is(entry.portal, wanted.portal)
        })
    }
}
