//! How the end of an operation is reported.

use super::sleeping;
use crate::errors::BlockingError;
use cci_proto::{Flags, Unusable};
use cci_transport::{Endpoint, Posted, Slot};

pub(super) fn posted(flags: Flags, context: u64) -> Posted {
    if flags.has(Flags::SILENT) { Posted::Silent(context) } else { Posted::Event(context) }
}

/// Waits for the end of an operation of [`Posted::Waited`], if it is still open.
pub(super) fn wait_for_end<E: From<Unusable>>(
    endpoint: &Endpoint,
    open: Option<&'static Slot>,
) -> Result<(), BlockingError<E>> {
    let Some(slot) = open else { return Ok(()) };
    sleeping::wait(endpoint, slot).map_err(|why| BlockingError::Refused(why.into()))?.map_err(BlockingError::Failed)
}
