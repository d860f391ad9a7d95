//! Endpoints (fi_endpoint(3)).

use super::arguments::{number, put_record};
use super::kinds::{Counter, Domain, Endpoint, OfDomain, OfEndpoint, Queue, Vector, own};
use super::object::{answered, begun, front, operations, table};
use super::refused::refused;
use super::{message, remote, tagged};
use crate::attributes::{RECEIVE_FLAGS, TRANSMIT_FLAGS};
use cci_fabric::{Code, EndpointOptions};
use cci_fabric_sys::*;
use cci_mem::arguments::Out;
use cci_mem::sync::{AtomicU64, Ordering};
use std::ffi::{c_int, c_void};

static OPERATIONS: fi_ops = fi_ops { bind: Some(bind), control: Some(control), ..operations(close) };
static TABLE: fi_ops_ep = fi_ops_ep {
    size: size_of::<fi_ops_ep>(),
    cancel: Some(cancel),
    getopt: Some(option),
    setopt: Some(set_option),
    tx_ctx: refused(),
    rx_ctx: refused(),
    rx_size_left: refused(),
    tx_size_left: refused(),
    export_xpu: refused(),
};
static NAMES: fi_ops_cm = fi_ops_cm {
    size: size_of::<fi_ops_cm>(),
    setname: refused(),
    getname: Some(name),
    getpeer: refused(),
    connect: refused(),
    listen: refused(),
    accept: refused(),
    reject: refused(),
    shutdown: refused(),
    join: refused(),
};
static ATOMICS: fi_ops_atomic = fi_ops_atomic {
    size: size_of::<fi_ops_atomic>(),
    write: refused(),
    writev: refused(),
    writemsg: refused(),
    inject: refused(),
    readwrite: refused(),
    readwritev: refused(),
    readwritemsg: refused(),
    compwrite: refused(),
    compwritev: refused(),
    compwritemsg: refused(),
    writevalid: refused(),
    readwritevalid: refused(),
    compwritevalid: refused(),
};
static COLLECTIVES: fi_ops_collective = fi_ops_collective {
    size: size_of::<fi_ops_collective>(),
    barrier: refused(),
    broadcast: refused(),
    alltoall: refused(),
    allreduce: refused(),
    allgather: refused(),
    reduce_scatter: refused(),
    reduce: refused(),
    scatter: refused(),
    gather: refused(),
    msg: refused(),
    barrier2: refused(),
};

/// # Safety
///
/// As fi_endpoint(3) states.
pub(super) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    info: *mut fi_info,
    ep: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_with(domain, info, ep, 0, context) }
}

/// # Safety
///
/// As fi_endpoint(3) states.
pub(super) unsafe extern "C" fn open_with(
    domain: *mut fid_domain,
    info: *mut fi_info,
    ep: *mut *mut fid_ep,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    answered(|| {
        // SAFETY: the caller's promise.
        let (domain, ep) = unsafe { (Domain::own(domain) as &OfDomain, Out::new(ep)) };
        let ep = ep.variable(Code::Invalid)?;
        if flags != 0 {
            return Err(Code::NoSystemCall);
        }
        // SAFETY: the caller's promise: structures are as the program's version has them.
        let asked = unsafe { crate::hints::Hints::read(info, domain.version) }.ok_or(Code::Invalid)?;
        if asked.ep.r#type != FI_EP_RDM {
            return Err(Code::Invalid);
        }
        let options = EndpointOptions {
            context: number(context),
            directed: asked.info.caps & FI_DIRECTED_RECV != 0,
            source: asked.info.caps & FI_SOURCE != 0,
            place: asked.source.and_then(|bytes| cci_fabric::Record::place_of(&bytes)),
        };
        let endpoint = cci_fabric::Endpoint::new(&domain.domain, options);
        let (transmit, receive) = (asked.tx.op_flags & TRANSMIT_FLAGS, asked.rx.op_flags & RECEIVE_FLAGS);
        let (transmit, receive) = (AtomicU64::new(transmit), AtomicU64::new(receive));
        let c = fid_ep {
            fid: front(FI_CLASS_EP, context, &OPERATIONS),
            ops: table(&TABLE),
            cm: table(&NAMES),
            msg: table(&message::TABLE),
            rma: table(&remote::TABLE),
            tagged: table(&tagged::TABLE),
            atomic: table(&ATOMICS),
            collective: table(&COLLECTIVES),
        };
        ep.put(Endpoint::give(c, OfEndpoint { endpoint, transmit, receive }));
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    answered(|| {
        // SAFETY: libfabric calls it for endpoints alone, and the program lets go of it.
        unsafe { Endpoint::take(fid) };
        Ok(())
    })
}

/// # Safety
///
/// As fi_endpoint(3) states.
unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    answered(|| {
        // SAFETY: libfabric calls it for endpoints alone; and the caller's promise.
        let (own, class) = unsafe { (own(fid.cast()), (*other).fclass) };
        match class {
            // SAFETY: its class is that of a vector.
            FI_CLASS_AV => own.endpoint.bind_vector(&unsafe { Vector::own(other) }.vector),
            // SAFETY: its class is that of a queue.
            FI_CLASS_CQ => own.endpoint.bind_queue(&unsafe { Queue::own(other) }.queue, flags),
            // SAFETY: its class is that of a counter.
            FI_CLASS_CNTR => own.endpoint.bind_counter(unsafe { Counter::own(other) }, flags),
            // Nothing of an endpoint is reported there.
            FI_CLASS_EQ => Ok(()),
            _ => Err(Code::Invalid),
        }
    })
}

/// # Safety
///
/// As fi_control(3) states.
unsafe extern "C" fn control(fid: *mut fid, command: c_int, argument: *mut c_void) -> c_int {
    answered(|| {
        // SAFETY: libfabric calls it for endpoints alone.
        let own = unsafe { own(fid.cast()) };
        if command == FI_ENABLE {
            return own.endpoint.enable();
        }
        if !matches!(command, FI_GETOPSFLAG | FI_SETOPSFLAG) {
            return Err(Code::NoSystemCall);
        }
        if argument.is_null() {
            return Err(Code::Invalid);
        }
        // SAFETY: it leads to flags.
        let flags = unsafe { &mut *argument.cast::<u64>() };
        // Which side is meant stands among them.
        let (place, known) = match *flags & (FI_TRANSMIT | FI_RECV) {
            FI_TRANSMIT => (&own.transmit, TRANSMIT_FLAGS),
            FI_RECV => (&own.receive, RECEIVE_FLAGS),
            _ => return Err(Code::BadFlags),
        };
        if command == FI_SETOPSFLAG {
            place.store(*flags & known, Ordering::Relaxed);
        } else {
            *flags = place.load(Ordering::Relaxed);
        }
        Ok(())
    })
}

/// As libfabric calls it where a queue is bound.
const FI_TRANSMIT: u64 = FI_SEND;

unsafe extern "C" fn cancel(fid: *mut fid, context: *mut c_void) -> isize {
    // SAFETY: libfabric calls it for endpoints alone.
    begun(|| unsafe { own(fid.cast()) }.endpoint.cancel(number(context)))
}

/// # Safety
///
/// As fi_endpoint(3) states: `value` leads to as many bytes as `len` says.
unsafe extern "C" fn option(fid: *mut fid, level: c_int, name: c_int, value: *mut c_void, len: *mut usize) -> c_int {
    answered(|| {
        if level != FI_OPT_ENDPOINT || value.is_null() || len.is_null() {
            return Err(Code::Invalid);
        }
        let whole = usize::MAX >> 1;
        let found = match name {
            // SAFETY: libfabric calls it for endpoints alone.
            FI_OPT_MIN_MULTI_RECV => unsafe { own(fid.cast()) }.endpoint.min_multi_receive(),
            FI_OPT_CM_DATA_SIZE | FI_OPT_MAX_ATOMIC_SIZE | FI_OPT_INJECT_ATOMIC_SIZE => 0,
            FI_OPT_MAX_MSG_SIZE | FI_OPT_MAX_TAGGED_SIZE | FI_OPT_MAX_RMA_SIZE => whole,
            FI_OPT_INJECT_MSG_SIZE | FI_OPT_INJECT_TAGGED_SIZE | FI_OPT_INJECT_RMA_SIZE => cci_fabric::INJECT_SIZE,
            _ => return Err(Code::NoSuchOption),
        };
        // SAFETY: the caller's promise.
        unsafe {
            if len.read() < size_of::<usize>() {
                return Err(Code::TooSmall);
            }
            value.cast::<usize>().write_unaligned(found);
            len.write(size_of::<usize>());
        }
        Ok(())
    })
}

/// # Safety
///
/// As fi_endpoint(3) states: `value` leads to `len` bytes.
unsafe extern "C" fn set_option(fid: *mut fid, level: c_int, name: c_int, value: *const c_void, len: usize) -> c_int {
    answered(|| {
        if level != FI_OPT_ENDPOINT || value.is_null() {
            return Err(Code::Invalid);
        }
        match name {
            FI_OPT_MIN_MULTI_RECV if len == size_of::<usize>() => {
                // SAFETY: the caller's promise; and libfabric calls it for endpoints alone.
                let (least, own) = unsafe { (value.cast::<usize>().read_unaligned(), own(fid.cast())) };
                own.endpoint.set_min_multi_receive(least);
                Ok(())
            }
            FI_OPT_MIN_MULTI_RECV => Err(Code::Invalid),
            // What is asked for is so: no device is touched, and memory is shared where it can be.
            FI_OPT_CUDA_API_PERMITTED | FI_OPT_SHARED_MEMORY_PERMITTED => Ok(()),
            _ => Err(Code::NoSuchOption),
        }
    })
}

/// # Safety
///
/// As fi_cm(3) states: `to` leads to as many bytes as `len` says.
unsafe extern "C" fn name(fid: *mut fid, to: *mut c_void, len: *mut usize) -> c_int {
    answered(|| {
        if len.is_null() {
            return Err(Code::Invalid);
        }
        // SAFETY: libfabric calls it for endpoints alone.
        let record = unsafe { own(fid.cast()) }.endpoint.address()?;
        // SAFETY: the caller's promise.
        if unsafe { put_record(&record, to, len) } { Ok(()) } else { Err(Code::TooSmall) }
    })
}
