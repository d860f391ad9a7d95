//! VIs and their queues.

use crate::answer::{Answer, DESCRIPTOR_ERROR, NOT_DONE, PARAMETER, code};
use crate::descriptor::{ALIGNMENT, CONTROL, Descriptor};
use crate::handles::{Handle, Kind, make, of_nic};
use crate::layout::CViAttributes;
use crate::nic::Nic;
use crate::table::{self, nic};
use cci_mem::arguments::{In, Out, Variable};
use cci_via::engine::Taken;
use cci_via::{Error, Segment, Task};
use std::ffi::{c_int, c_ulong, c_void};
use std::sync::Arc;
use std::time::Duration;

/// The VI of a handle.
#[inline]
pub(crate) fn vi(handle: Handle) -> Result<(Arc<Nic>, u32), c_int> {
    table::open(Kind::Vi, handle)
}

/// A time limit in milliseconds.
pub(crate) fn limit(timeout: c_ulong) -> Option<Duration> {
    (timeout != c_ulong::MAX).then(|| Duration::from_millis(timeout))
}

pub(crate) fn create(
    handle: Handle,
    attributes: In<'_, CViAttributes>,
    send: Handle,
    receive: Handle,
    vi: Out<'_, Handle>,
) -> Answer {
    let nic = nic(handle)?;
    attributes.check(PARAMETER)?;
    let vi = vi.variable(PARAMETER)?;
    let queue = |handle: Handle| match handle.is_null() {
        true => Ok(None),
        false => of_nic(Kind::Queue, nic.number, handle).map(Some).ok_or(PARAMETER),
    };
    let (send, receive) = (queue(send)?, queue(receive)?);
    let attributes = attributes.get().ok_or(PARAMETER)?.read(nic.number).map_err(code)?;
    let number = nic.core.create_vi(&attributes, send, receive).map_err(code)?;
    vi.put(make(Kind::Vi, nic.number, number));
    Ok(())
}

pub(crate) fn destroy(handle: Handle) -> Answer {
    let (nic, number) = vi(handle)?;
    nic.core.destroy_vi(number).map_err(|why| nic.refused(why))
}

pub(crate) fn query(
    handle: Handle,
    state: Out<'_, c_int>,
    attributes: Out<'_, CViAttributes>,
    is_send_empty: Out<'_, c_int>,
    is_receive_empty: Out<'_, c_int>,
) -> Answer {
    let (nic, number) = vi(handle)?;
    let (found, own, send, receive) = nic.core.query_vi(number).map_err(|why| nic.refused(why))?;
    nic.tell_faults();
    state.offer(found as c_int);
    attributes.offer(CViAttributes::of(&own, Some(nic.number)));
    is_send_empty.offer(send.into());
    is_receive_empty.offer(receive.into());
    Ok(())
}

pub(crate) fn set_attributes(handle: Handle, attributes: In<'_, CViAttributes>) -> Answer {
    let (nic, number) = vi(handle)?;
    let attributes = attributes.get().ok_or(PARAMETER)?.read(nic.number).map_err(code)?;
    nic.core.set_attributes(number, &attributes).map_err(code)
}

pub(crate) fn disconnect(handle: Handle) -> Answer {
    let (nic, number) = vi(handle)?;
    nic.core.disconnect(number).map_err(|why| nic.refused(why))?;
    nic.tell_faults();
    Ok(())
}

#[inline]
pub(crate) fn post(handle: Handle, descriptor: *mut c_void, memory: u32, is_receive: bool) -> Answer {
    let (nic, number) = vi(handle)?;
    let address = descriptor.expose_provenance();
    if address == 0 || !address.is_multiple_of(ALIGNMENT) {
        return Err(PARAMETER);
    }
    let home = Some(Segment { address: address as u64, handle: memory, length: CONTROL });
    let token = Descriptor(address);
    // SAFETY: the engine calls it after it has found the control segment in registered memory.
    let read = |token: &Descriptor, covers: &dyn Fn(u32) -> bool, task: &mut Task| unsafe {
        token.read_into(is_receive, covers, task);
    };
    let posted = match is_receive {
        true => nic.core.post_receive(number, home, token, read),
        false => nic.core.post_send(number, home, token, read),
    };
    posted.map_err(|(_, why)| nic.refused(why))
}

/// Hands a taken descriptor over.
#[inline]
fn hand(nic: &Nic, taken: Result<Taken<Descriptor>, Error>, target: &Variable<'_, *mut c_void>) -> Answer {
    let (address, answer) = match taken {
        Ok(Taken::Done(end, token)) => (token.0, if end.status.is_error() { Err(DESCRIPTOR_ERROR) } else { Ok(()) }),
        Ok(Taken::NotDone) => (0, Err(NOT_DONE)),
        Ok(Taken::Empty) => (0, Err(DESCRIPTOR_ERROR)),
        Err(why) => (0, Err(code(why))),
    };
    target.put(std::ptr::with_exposed_provenance_mut(address));
    if answer.is_err() {
        nic.tell_faults();
    }
    answer
}

#[inline]
pub(crate) fn done(handle: Handle, target: Out<'_, *mut c_void>, is_receive: bool) -> Answer {
    let (nic, number) = vi(handle)?;
    let target = target.variable(PARAMETER)?;
    let taken = nic.core.take(number, is_receive);
    hand(&nic, taken, &target)
}

pub(crate) fn wait(handle: Handle, timeout: c_ulong, target: Out<'_, *mut c_void>, is_receive: bool) -> Answer {
    let (nic, number) = vi(handle)?;
    let target = target.variable(PARAMETER)?;
    let taken = nic.core.wait_taken(number, is_receive, limit(timeout));
    hand(&nic, taken, &target)
}
