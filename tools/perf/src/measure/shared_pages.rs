//! Memory that this process shares, as the system holds it: a page that only the peer has touched
//! yet is not in this process's page tables, and costs as much.

use cci_report::{UserError, while_doing};
use std::fs;
use std::ops::Range;

/// Bytes of shared memory that this process has mapped and that are there, whoever touched them.
///
/// # Errors
///
/// The kernel does not tell.
#[expect(clippy::cast_precision_loss, reason = "bytes of memory that there is")]
pub(crate) fn shared_bytes() -> Result<f64, UserError> {
    let failed = while_doing("cannot read what is mapped");
    let maps = fs::read_to_string("/proc/self/maps").map_err(&failed)?;
    let (mut there, mut pages) = (0, Vec::new());
    for range in maps.lines().filter_map(shared_range) {
        match resident(&range, &mut pages) {
            Ok(bytes) => there += bytes,
            // Unmapped since, by another thread.
            Err(why) if why.raw_os_error() == Some(libc::ENOMEM) => {}
            Err(why) => return Err(failed(why)),
        }
    }
    Ok(there as f64)
}

/// The addresses of a line that tells of shared memory.
fn shared_range(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_whitespace();
    let (range, rights) = (words.next()?, words.next()?);
    let (from, to) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    if rights.ends_with('s') { Some(address(from)?..address(to)?) } else { None }
}

/// Bytes of a mapping that the system holds.
#[expect(unsafe_code, reason = "no crate wraps the call")]
fn resident(range: &Range<usize>, pages: &mut Vec<u8>) -> std::io::Result<usize> {
    let page = rustix::param::page_size();
    pages.clear();
    pages.resize(range.len().div_ceil(page), 0);
    // SAFETY: the kernel writes a byte for each page, which `pages` has room for, and reads nothing
    // of the range; one that is not mapped is an error.
    if unsafe { libc::mincore(range.start as *mut _, range.len(), pages.as_mut_ptr()) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(page * pages.iter().filter(|state| **state & 1 == 1).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_page_counts_that_this_process_has_never_touched() {
        assert_eq!(shared_range("7f0000-7f2000 rw-p 00000000 00:01 7 /memfd:a (deleted)"), None);
        let range = shared_range("7f0000-7f2000 rw-s 00000000 00:01 7 /memfd:a (deleted)").unwrap();
        assert_eq!(range, 0x007f_0000..0x007f_2000);

        let page = rustix::param::page_size();
        let file = fs::File::from(memfd_create("cci-test", MemfdFlags::CLOEXEC).unwrap());
        ftruncate(&file, 4 * page as u64).unwrap();
        #[expect(unsafe_code, reason = "a mapping of the test's own")]
        // SAFETY: a fresh mapping, which nothing else uses and nothing touches.
        let at = unsafe { mmap(std::ptr::null_mut(), 4 * page, ProtFlags::READ, MapFlags::SHARED, &file, 0).unwrap() };
        let here = at as usize..at as usize + 4 * page;
        let bytes = || resident(&here, &mut Vec::new()).unwrap();
        assert_eq!(bytes(), 0);
        file.write_all_at(&[1], 2 * page as u64).unwrap();
        file.write_all_at(&[1], 3 * page as u64).unwrap();
        assert_eq!(bytes(), 2 * page);
        assert!(shared_bytes().unwrap() >= 2.0 * 4096.0);
        #[expect(unsafe_code, reason = "a mapping of the test's own")]
        // SAFETY: mapped above, and used no more.
        unsafe {
            munmap(at, 4 * page).unwrap();
        }
        assert!(resident(&here, &mut Vec::new()).is_err());
    }
}
