//! Copies at addresses that a peer names: the kernel checks them, so that a wrong one is an answer
//! and no signal here.

use std::ptr;

/// Copies from or to an address of this process. False: not all bytes are mapped for that.
fn move_bytes(address: u64, own: *mut u8, len: usize, is_read: bool) -> bool {
    if len == 0 {
        return true;
    }
    let Ok(there) = usize::try_from(address) else { return false };
    let here = libc::iovec { iov_base: own.cast(), iov_len: len };
    let there = libc::iovec { iov_base: ptr::with_exposed_provenance_mut(there), iov_len: len };
    let call = if is_read { libc::process_vm_readv } else { libc::process_vm_writev };
    // SAFETY: `own` is a slice of the callers below. The kernel checks the other side, where no
    // Rust reference lies by the contract of the raw calls of `World`.
    let moved = unsafe { call(libc::getpid(), &here, 1, &there, 1, 0) };
    usize::try_from(moved) == Ok(len)
}

/// Copies out of this process. False, and the bytes are undefined: they are not all mapped.
pub(crate) fn copy_from(address: u64, bytes: &mut [u8]) -> bool {
    move_bytes(address, bytes.as_mut_ptr(), bytes.len(), true)
}

/// Copies into this process. False: not all of them are mapped; those before are written.
pub(crate) fn copy_to(address: u64, bytes: &[u8]) -> bool {
    move_bytes(address, bytes.as_ptr().cast_mut(), bytes.len(), false)
}

/// Whether the word at this address may be changed. It is written as it is.
pub(crate) fn can_change(address: u64, size: usize) -> bool {
    let mut word = [0; 8];
    let word = &mut word[..size.min(8)];
    copy_from(address, word) && copy_to(address, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_mapped_are_refused() {
        let value = Box::new(7_u64);
        let address = ptr::from_ref(&*value).expose_provenance() as u64;
        let mut bytes = [0; 8];
        assert!(copy_from(address, &mut bytes) && u64::from_ne_bytes(bytes) == 7);
        for wrong in [0, 8, 0x7fff_ffff_f000, u64::MAX - 4] {
            assert!(!copy_from(wrong, &mut bytes) && !copy_to(wrong, &bytes) && !can_change(wrong, 8), "{wrong:#x}");
        }
        assert!(!can_change((copy_from as *const ()).expose_provenance() as u64, 8), "the program's code");
    }
}
