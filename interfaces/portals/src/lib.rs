//! Portals 3.3 over CCI, in the generic mode, where calls of the program make the progress, and
//! in the accelerated one, where an engine does.
//!
//! An [`Interface`] has a table of match lists. A put, get or swap of another process goes to the
//! first match entry that accepts it; the memory descriptor of that entry says where its bytes go.
//! `docs/design/portals.md` has the figure, the messages, and what can fail.
//!
//! ```
//! use cci_portals::{Descriptor, EventKind, Interface, Limits, Match, Place, Position, ProcessId, Target, Unlink};
//! use cci_portals::{buffer, options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let context = cci::Context::new()?;
//! let ni = Interface::new(Place::by_rule(context.default_device()?, None)?, 0, Limits::default())?;
//! let queue = ni.queue(8, false)?;
//! let anybody = Match { source: ProcessId::ANY, bits: 0, ignore: !0 };
//! let entry = ni.attach(4, anybody, Unlink::Retain, Position::After)?;
//! let memory = buffer(b"shared".to_vec());
//! ni.attach_memory(entry, Descriptor::new(&memory).options(options::OP_GET), Unlink::Retain)?;
//!
//! // A get from this process itself.
//! let copy = buffer(vec![0; 6]);
//! let own = ni.bind(Descriptor::new(&copy).events(queue), Unlink::Retain)?;
//! ni.get(own, None, &Target::at(ni.id(), 4))?;
//! while ni.wait(queue)?.0.kind != EventKind::ReplyEnd {}
//! let mut bytes = [0; 6];
//! assert!(copy.copy_out(0, &mut bytes) && bytes == *b"shared");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod access;
mod answers;
mod calls;
mod changes;
mod errors;
mod fast_path;
#[doc(hidden)]
pub mod fuzzing;
mod handles;
mod initiator;
mod interface;
#[cfg(test)]
mod liars;
mod memory;
mod objects;
mod operations;
pub mod options;
mod packed;
mod partner;
mod place;
mod queue;
pub mod shared;
mod state;
mod target;
mod transfer;
mod types;
mod waiting;
mod wanted;
mod wire;

pub use access::AccessEntry;
pub use errors::Error;
pub use handles::Handle;
pub use initiator::Target;
pub use interface::Interface;
pub use objects::{Match, Position, Unlink};
pub use place::{NotOpened, Place, endpoint_options};
pub use types::{ANY, Described, Descriptor, Event, EventKind, FOREVER, Limits, ProcessId, buffer};
