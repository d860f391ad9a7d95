//! Windows to segments of other hosts: private memory that the library keeps equal by RMA
//! (`docs/design/sci-mirror.md`).

mod calls;
mod cast;
mod changes;
#[allow(unsafe_code)]
mod lines;
mod memory;
mod pass;
mod patch;
mod reads;
mod refresh;
mod reread;
mod staging;
mod state;
#[allow(unsafe_code)]
mod sys;
mod thread;

pub(crate) use calls::Looks;
pub(crate) use changes::{Change, WORD, mask_before};
pub(crate) use memory::{Mirror, Sent};
pub(crate) use pass::MOST_BYTES;
pub(crate) use patch::{Groups, apply, emit};
pub(crate) use state::Mirrors;

/// A host with a segment of 4 KiB, and another one that is connected to it by a network.
#[cfg(test)]
fn connected() -> (crate::Host, crate::LocalSegment, crate::Host, crate::RemoteSegment) {
    use crate::{Host, Nodes, Options};
    let device = cci_conformance::device_of("sock", &[("ip", "127.0.0.1")]);
    let open = || Host::open(&Options::new().nodes(Nodes::new()).device(device.clone())).expect("a host");
    let (owner, other) = (open(), open());
    let segment = owner.create(fastrand::u32(..), 4096).expect("memory");
    segment.prepare().and_then(|()| segment.publish()).expect("room");
    let far = other.connect(owner.node(), segment.id(), Some(cci_conformance::LIMIT)).expect("published");
    (owner, segment, other, far)
}
