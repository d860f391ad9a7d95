//! Address vectors (fi_av(3)).

use super::arguments::put_record;
use super::kinds::{Domain, Event, Events, OfVector, Vector};
use super::object::{answered, front, operations, table};
use super::refused::refused;
use cci_fabric::{AddressVector, Code, RECORD, Record};
use cci_fabric_sys::*;
use cci_mem::arguments::Out;
use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

static OPERATIONS: fi_ops = fi_ops { bind: Some(bind), ..operations(close) };
static TABLE: fi_ops_av = fi_ops_av {
    size: size_of::<fi_ops_av>(),
    insert: Some(insert),
    insertsvc: refused(),
    insertsym: refused(),
    remove: Some(remove),
    lookup: Some(lookup),
    straddr: Some(text),
    av_set: refused(),
    insert_auth_key: refused(),
    lookup_auth_key: refused(),
    set_user_id: refused(),
    lookup2: refused(),
};

/// # Safety
///
/// As fi_av(3) states.
pub(super) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_av_attr,
    av: *mut *mut fid_av,
    context: *mut c_void,
) -> c_int {
    answered(|| {
        // SAFETY: the caller's promise.
        let (domain, av) = unsafe { (&Domain::own(domain).domain, Out::new(av)) };
        let av = av.variable(Code::Invalid)?;
        let mut flags = 0;
        if !attr.is_null() {
            // SAFETY: the caller's promise; the structure has never grown.
            let attr = unsafe { &mut *attr };
            if !attr.name.is_null() || attr.flags & !(FI_COMPLETION | FI_SYMMETRIC) != 0 || attr.rx_ctx_bits != 0 {
                return Err(Code::NoSystemCall);
            }
            if attr.r#type > FI_AV_TABLE {
                return Err(Code::Invalid);
            }
            if attr.r#type == FI_AV_UNSPEC {
                attr.r#type = FI_AV_TABLE;
            }
            flags = attr.flags;
        }
        let c = fid_av { fid: front(FI_CLASS_AV, context, &OPERATIONS), ops: table(&TABLE) };
        let is_silent = flags & FI_COMPLETION == 0;
        av.put(Vector::give(c, OfVector { vector: AddressVector::open(domain), is_silent, events: OnceLock::new() }));
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    answered(|| {
        // SAFETY: libfabric calls it for vectors alone.
        if unsafe { Vector::own(fid) }.vector.is_bound() {
            return Err(Code::Busy);
        }
        // SAFETY: likewise, and the program lets go of it.
        unsafe { Vector::take(fid) };
        Ok(())
    })
}

/// # Safety
///
/// As fi_av_bind(3) states.
unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    answered(|| {
        // SAFETY: the caller's promise.
        if flags != 0 || unsafe { (*other).fclass } != FI_CLASS_EQ {
            return Err(Code::Invalid);
        }
        // SAFETY: its class is that of a queue of events.
        let queue = unsafe { Events::own(other) };
        // SAFETY: libfabric calls it for vectors alone.
        unsafe { Vector::own(fid) }.events.set(queue.clone()).map_err(|_| Code::Invalid)
    })
}

/// # Safety
///
/// As fi_av_insert(3) states: `from` leads to `count` records, `to` is NULL or leads to as many
/// numbers.
unsafe extern "C" fn insert(
    av: *mut fid_av,
    from: *const c_void,
    count: usize,
    to: *mut fi_addr_t,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    let mut inserted = 0;
    let answer = answered(|| {
        // SAFETY: the caller's promise.
        let own: &OfVector = unsafe { Vector::own(av) };
        if flags & !(FI_MORE | FI_SYNC_ERR) != 0 || count > 0 && from.is_null() {
            return Err(Code::Invalid);
        }
        for at in 0..count {
            // SAFETY: the caller's promise; a record has no alignment.
            let record = unsafe { from.cast::<[u8; RECORD]>().add(at).read_unaligned() };
            let result = own.vector.insert(&record);
            inserted += c_int::from(result.is_ok());
            if !to.is_null() {
                // SAFETY: the caller's promise.
                unsafe { to.add(at).write(result.unwrap_or(FI_ADDR_NOTAVAIL)) };
            }
            if flags & FI_SYNC_ERR != 0 && !context.is_null() {
                let code = result.err().map_or(0, |code| code as c_int);
                // SAFETY: with this flag it leads to as many numbers.
                unsafe { context.cast::<c_int>().add(at).write(code) };
            }
        }
        if !own.is_silent {
            let events = own.events.get().ok_or(Code::NoEventQueue)?;
            let entry = fi_eq_entry { fid: av.cast(), context, data: inserted as u64 };
            events.push(Event { kind: FI_AV_COMPLETE, entry });
        }
        Ok(())
    });
    // SAFETY: the caller's promise.
    if answer == 0 && unsafe { Vector::own(av) as &OfVector }.is_silent { inserted } else { answer }
}

/// # Safety
///
/// As fi_av_remove(3) states: `of` leads to `count` numbers.
unsafe extern "C" fn remove(av: *mut fid_av, of: *mut fi_addr_t, count: usize, flags: u64) -> c_int {
    answered(|| {
        if flags != 0 {
            return Err(Code::BadFlags);
        }
        for at in 0..count {
            // SAFETY: the caller's promise.
            let (own, address) = unsafe { (Vector::own(av) as &OfVector, of.add(at).read()) };
            own.vector.remove(address)?;
        }
        Ok(())
    })
}

/// # Safety
///
/// As fi_av_lookup(3) states.
unsafe extern "C" fn lookup(av: *mut fid_av, address: fi_addr_t, to: *mut c_void, len: *mut usize) -> c_int {
    answered(|| {
        // SAFETY: the caller's promise.
        let record = unsafe { Vector::own(av) as &OfVector }.vector.lookup(address).ok_or(Code::Invalid)?;
        // SAFETY: likewise.
        unsafe { put_record(&record, to, len) };
        Ok(())
    })
}

/// # Safety
///
/// As fi_av_straddr(3) states.
unsafe extern "C" fn text(_: *mut fid_av, of: *const c_void, to: *mut c_char, len: *mut usize) -> *const c_char {
    let written = answered(|| {
        // SAFETY: the caller's promise.
        let (record, room) = unsafe { (of.cast::<[u8; RECORD]>().read_unaligned(), len.read()) };
        let text = Record::from_bytes(&record).and_then(|record| record.uri());
        let text = text.unwrap_or_else(|| "no address of cci".to_owned());
        // SAFETY: the caller's promise, for the length and the text, which always has an end.
        unsafe {
            len.write(text.len() + 1);
            if room > 0 {
                let fits = text.len().min(room - 1);
                to.cast::<u8>().copy_from(text.as_ptr(), fits);
                to.add(fits).write(0);
            }
        }
        Ok(())
    });
    if written == 0 { to } else { std::ptr::null() }
}
