//! Probes that move bytes: copy-and-read, the two-copy pipe, memcpy, process_vm.

use super::buffer::Buffer;
use super::lines::{STAY, Turn, lines, wait};
use super::shared::{COPIES, LARGEST_COPY, PIPE, PIPE_FLAGS, PIPE_SLOTS, PIPE_STRIDE, PLACE_STRIDE, PLACES, Shared};
use super::side::Side;
use super::touch::sum;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// `size` bytes go to the other side, which reads each of them and sends as many back.
pub(super) fn ping(shared: &Shared, side: Side, turn: &mut Turn, private: &Buffer, size: usize, count: u64) {
    // As many of the places as leave room for a copy.
    let places = (LARGEST_COPY.saturating_sub(size) / PLACE_STRIDE).clamp(1, PLACES);
    let mut total = 0_u64;
    let mut left = count;
    while left > 0 {
        let [client, server] = lines(shared, turn.place);
        let [there, back] = COPIES.map(|offset| shared.bytes(offset + turn.place % places * PLACE_STRIDE, size));
        let (mine, theirs, out, into) =
            if side == Side::Client { (client, server, there, back) } else { (server, client, back, there) };
        let here = left.min(STAY);
        for _ in 0..here {
            turn.sequence += 1;
            if side == Side::Client {
                put(private, out, size, mine, turn.sequence);
            }
            wait(theirs, turn.sequence);
            // SAFETY: `size` bytes inside the shared memory (checked above); the other side has
            // published them and writes there again only after this side's answer.
            total = total.wrapping_add(sum(unsafe { std::slice::from_raw_parts(into, size) }));
            if side == Side::Server {
                put(private, out, size, mine, turn.sequence);
            }
        }
        left -= here;
        turn.place += 1;
    }
    std::hint::black_box(total);
}

#[inline(always)]
fn put(private: &Buffer, out: *mut u8, size: usize, flag: &AtomicU64, sequence: u64) {
    // SAFETY: both ranges have `size` bytes (`Probe::prepare` and `ping` see to that), lie in
    // different mappings, and the other side has finished with the target: its answer to the round
    // before has been seen.
    unsafe { std::ptr::copy_nonoverlapping(private.pointer(), out, size) };
    // Release: publishes the copy.
    flag.store(sequence, Ordering::Release);
}

/// Messages through slots: copied in by the client, copied out by the server. Ends when the last
/// has been copied out.
pub(super) fn pipe(shared: &Shared, side: Side, sequence: &mut u64, private: &Buffer, size: usize, count: u64) {
    for _ in 0..count {
        let mut at = 0;
        while at < size {
            let len = PIPE_STRIDE.min(size - at);
            let (flag, slot) = pipe_slot(shared, *sequence);
            // SAFETY: the private memory has `size` bytes (`Probe::prepare`) and `at` lies below.
            let mine = unsafe { private.pointer().add(at) };
            let (before, after) = if side == Side::Client { (0, 1) } else { (1, 0) };
            wait(flag, before);
            let (from, to) = if side == Side::Client { (mine.cast_const(), slot) } else { (slot.cast_const(), mine) };
            // SAFETY: `len` bytes of the private memory and of the slot, in different mappings; by
            // the flag the slot is this side's now.
            unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
            // Release: the copy comes before the flag.
            flag.store(after, Ordering::Release);
            *sequence += 1;
            at += len;
        }
    }
    if side == Side::Client {
        for slot in 0..PIPE_SLOTS as u64 {
            wait(pipe_slot(shared, slot).0, 0);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "less than the number of slots")]
fn pipe_slot(shared: &Shared, sequence: u64) -> (&AtomicU64, *mut u8) {
    let slot = (sequence % PIPE_SLOTS as u64) as usize;
    (shared.word(PIPE_FLAGS + 128 * slot), shared.bytes(PIPE + PIPE_STRIDE * slot, PIPE_STRIDE))
}

/// Copies within this process, between memories mapped like the library's.
pub(super) fn memcpy(source: &Shared, target: &Shared, size: usize, count: u64) {
    let (from, to) = (source.bytes(0, size), target.bytes(0, size));
    for _ in 0..count {
        // SAFETY: both have `size` bytes (`bytes` checks) and are different mappings, used by this
        // thread only.
        unsafe { std::ptr::copy_nonoverlapping(std::hint::black_box(from), to, size) };
        std::hint::black_box(to);
    }
}

/// What a probe that looks into the other process needs: the memory that its RMA goes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote {
    /// Process number of the server.
    pub(crate) pid: i32,
    /// Address in that process.
    pub(crate) address: u64,
    /// Read instead of write.
    pub(crate) read: bool,
}

/// Copies to or from the other process by the kernel's hand.
pub(super) fn process_vm(remote: Remote, private: &Buffer, size: usize, count: u64) -> io::Result<()> {
    let address = usize::try_from(remote.address).map_err(|_| io::ErrorKind::InvalidInput)?;
    for _ in 0..count {
        let mut at = 0;
        while at < size {
            // SAFETY: the private memory has `size` bytes (`Probe::prepare`) and `at` lies below.
            let local = libc::iovec { iov_base: unsafe { private.pointer().add(at) }.cast(), iov_len: size - at };
            let there = libc::iovec { iov_base: std::ptr::without_provenance_mut(address + at), iov_len: size - at };
            let call = if remote.read { libc::process_vm_readv } else { libc::process_vm_writev };
            // SAFETY: the local range is this probe's own memory; what lies at the remote range is
            // the kernel's to check.
            let moved = unsafe { call(remote.pid, &raw const local, 1, &raw const there, 1, 0) };
            at += usize::try_from(moved).map_err(|_| io::Error::last_os_error())?;
        }
    }
    Ok(())
}
