//! The writable statics of the program, moved into memory that peers can map.

use super::windows::alias;
use cci::SharedMemory;
use std::ffi::{c_int, c_void};
use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// Statics of the program that lie in shared memory.
pub(crate) struct Statics {
    pub(crate) memory: Arc<SharedMemory>,
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl Statics {
    /// Moves the program's writable statics to shared memory, at the same addresses. None: it has
    /// none, or the loader does not tell.
    ///
    /// # Errors
    ///
    /// No memory.
    ///
    /// # Safety
    ///
    /// This process has one thread.
    pub(crate) unsafe fn move_all() -> io::Result<Option<Self>> {
        let page = rustix::param::page_size();
        let Some(range) = writable(page) else { return Ok(None) };
        let memory = Arc::new(SharedMemory::new(range.len())?);
        let copy = ptr::with_exposed_provenance_mut::<u8>(memory.memory().start());
        // SAFETY: the range is mapped, as the loader says, and is as long as the fresh memory. This
        // is the only thread, and it writes no static of the program before the alias below.
        unsafe { ptr::copy_nonoverlapping(ptr::with_exposed_provenance::<u8>(range.start), copy, range.len()) };
        // SAFETY: the same bytes take the place of the range.
        unsafe { alias(copy, range.len(), range.start as u64)? };
        // The program has them as long as it runs, whatever becomes of the registration.
        std::mem::forget(Arc::clone(&memory));
        Ok(Some(Self { memory, start: range.start as u64, len: range.len() as u64 }))
    }
}

/// The pages of the program's writable statics, but those that are read-only since relocation.
fn writable(page: usize) -> Option<Range<usize>> {
    let mut found = Found { page, data: None, read_only: 0 };
    // SAFETY: the callback gets the pointer that is passed here, while it is valid.
    unsafe { libc::dl_iterate_phdr(Some(of_object), ptr::from_mut(&mut found).cast()) };
    let data = found.data?;
    let start = data.start.max(found.read_only) / page * page;
    let end = data.end.next_multiple_of(page);
    (start < end).then_some(start..end)
}

struct Found {
    page: usize,
    data: Option<Range<usize>>,
    /// Where read-only pages end.
    read_only: usize,
}

/// Looks at the first object, which is the program, and ends the iteration.
unsafe extern "C" fn of_object(info: *mut libc::dl_phdr_info, _: libc::size_t, found: *mut c_void) -> c_int {
    // SAFETY: the loader's record, and the value of `writable`, for this call.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Found>()) };
    // SAFETY: so many headers lie there.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let range = |header: &libc::Elf64_Phdr| {
        let start = (info.dlpi_addr + header.p_vaddr) as usize;
        start..start + header.p_memsz as usize
    };
    for header in headers {
        if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0 {
            found.data = Some(range(header));
        } else if header.p_type == libc::PT_GNU_RELRO {
            found.read_only = range(header).end / found.page * found.page;
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci_mem::sync::{AtomicU64, Ordering};

    static WORD: AtomicU64 = AtomicU64::new(3);

    #[test]
    fn writable_statics_lie_in_the_range_and_constants_do_not() {
        static CONSTANT: u64 = 5;
        let range = writable(rustix::param::page_size()).expect("a program has statics");
        assert!(range.contains(&ptr::from_ref(&WORD).addr()) && WORD.load(Ordering::Relaxed) == 3);
        assert!(!range.contains(&ptr::from_ref(&CONSTANT).addr()));
    }
}
