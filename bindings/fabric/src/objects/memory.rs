//! Memory regions (fi_mr(3)).

use super::kinds::{Domain, OfDomain};
use super::object::{Object, answered, front, operations};
use cci_fabric::{Code, Region};
use cci_fabric_sys::*;
use cci_mem::arguments::Out;
use libc::iovec;
use std::ffi::{c_int, c_void};

type Memory = Object<fid_mr, Region>;

static OPERATIONS: fi_ops = fi_ops { bind: Some(bind), ..operations(close) };
pub(super) static TABLE: fi_ops_mr = fi_ops_mr {
    size: size_of::<fi_ops_mr>(),
    reg: Some(register),
    regv: Some(register_pieces),
    regattr: Some(register_as),
};

/// What the program registers.
struct Wanted {
    at: *const c_void,
    len: usize,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    context: *mut c_void,
}

/// # Safety
///
/// As fi_mr_reg(3) states: the memory is the peers' until the region is closed.
unsafe extern "C" fn register(
    domain: *mut fid,
    at: *const c_void,
    len: usize,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    region: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    answered(|| unsafe { give(domain, Wanted { at, len, access, offset, key, flags, context }, region) })
}

/// # Safety
///
/// As [`register`]; `pieces` leads to `count` pieces.
unsafe extern "C" fn register_pieces(
    domain: *mut fid,
    pieces: *const iovec,
    count: usize,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    region: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    answered(|| {
        if count != 1 || pieces.is_null() {
            return Err(Code::Invalid);
        }
        // SAFETY: the caller's promise.
        let piece = unsafe { pieces.read() };
        let (at, len) = (piece.iov_base.cast_const(), piece.iov_len);
        // SAFETY: likewise.
        unsafe { give(domain, Wanted { at, len, access, offset, key, flags, context }, region) }
    })
}

/// # Safety
///
/// As [`register`]; `attr` leads to attributes as the program's version has them.
unsafe extern "C" fn register_as(
    domain: *mut fid,
    attr: *const fi_mr_attr,
    flags: u64,
    region: *mut *mut fid_mr,
) -> c_int {
    answered(|| {
        // SAFETY: the caller's promise.
        let version = unsafe { Domain::own(domain) as &OfDomain }.version;
        // SAFETY: likewise.
        let attr: fi_mr_attr = unsafe { crate::hints::read(attr, version) };
        if attr.iface != FI_HMEM_SYSTEM || flags & FI_MR_DMABUF != 0 {
            return Err(Code::NoSystemCall);
        }
        if attr.iov_count != 1 || attr.mr_iov.is_null() {
            return Err(Code::Invalid);
        }
        // SAFETY: the caller's promise.
        let piece = unsafe { attr.mr_iov.read() };
        let wanted = Wanted {
            at: piece.iov_base,
            len: piece.iov_len,
            access: attr.access,
            offset: attr.offset,
            key: attr.requested_key,
            flags,
            context: attr.context,
        };
        // SAFETY: likewise.
        unsafe { give(domain, wanted, region) }
    })
}

/// # Safety
///
/// As [`register`].
unsafe fn give(domain: *mut fid, wanted: Wanted, region: *mut *mut fid_mr) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    let (domain, region) = unsafe { (&(Domain::own(domain) as &OfDomain).domain, Out::new(region)) };
    let region = region.variable(Code::Invalid)?;
    let Wanted { at, len, access, offset, key, flags, context } = wanted;
    // Nothing of it is asked for by what is offered.
    if offset != 0 || flags & !(FI_COMPLETION | FI_RMA_EVENT) != 0 {
        return Err(Code::Invalid);
    }
    check_mapped(at.addr(), len)?;
    let memory = match len {
        0 => cci::Memory::none(),
        // SAFETY: the caller's promise.
        _ => unsafe { cci::Memory::new(at.cast_mut().cast(), len as u64) },
    };
    let registered = domain.register(memory, key, access)?;
    let c = fid_mr { fid: front(FI_CLASS_MR, context, &OPERATIONS), mem_desc: std::ptr::null_mut(), key };
    region.put(Memory::give(c, registered));
    Ok(())
}

/// Memory that is none is refused: programs register all of it to learn whether that can be done.
///
/// # Errors
///
/// [`Code::Invalid`].
fn check_mapped(at: usize, len: usize) -> Result<(), Code> {
    if len == 0 {
        return Ok(());
    }
    let end = at.checked_add(len).filter(|_| at != 0).ok_or(Code::Invalid)?;
    let Ok(text) = std::fs::read_to_string("/proc/self/maps") else { return Ok(()) };
    let mut reached = at;
    for line in text.lines() {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let Some((first, last)) = range else { continue };
        let (Ok(first), Ok(last)) = (usize::from_str_radix(first, 16), usize::from_str_radix(last, 16)) else {
            continue;
        };
        if (first..last).contains(&reached) {
            reached = last;
        }
        if reached >= end {
            return Ok(());
        }
    }
    Err(Code::Invalid)
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    answered(|| {
        // SAFETY: libfabric calls it for regions alone, and the program lets go of it.
        unsafe { Memory::take(fid) };
        Ok(())
    })
}

/// Regions belong to the domain, and an endpoint needs no more of them.
unsafe extern "C" fn bind(_: *mut fid, _: *mut fid, _: u64) -> c_int {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_none_is_refused() {
        let bytes = vec![0_u8; 1 << 20];
        let at = bytes.as_ptr().addr();
        assert_eq!((check_mapped(at, bytes.len()), check_mapped(0, 0)), (Ok(()), Ok(())));
        for (at, len) in [(0, 1), (0, usize::MAX), (at, usize::MAX), (at, 1 << 46), (1 << 12, 8)] {
            assert_eq!(check_mapped(at, len), Err(Code::Invalid), "{at:#x}, {len}");
        }
    }
}
