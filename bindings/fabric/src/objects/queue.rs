//! Completion queues (fi_cq(3)).

use super::arguments::{milliseconds, pointer};
use super::kinds::{Domain, OfDomain, OfQueue, Queue};
use super::object::{answered, counted, front, operations, table};
use super::refused::refused;
use cci_fabric::{Code, Entry, QueueOptions};
use cci_fabric_sys::*;
use cci_mem::arguments::Out;
use std::ffi::{CString, c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

static OPERATIONS: fi_ops = fi_ops { control: Some(control), ..operations(close) };
static TABLE: fi_ops_cq = fi_ops_cq {
    size: size_of::<fi_ops_cq>(),
    read: Some(read),
    readfrom: Some(read_from),
    readerr: Some(read_failed),
    sread: Some(wait),
    sreadfrom: Some(wait_from),
    signal: Some(signal),
    strerror: Some(text),
    export_xpu: refused(),
};

/// # Safety
///
/// As fi_cq(3) states.
pub(super) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_cq_attr,
    cq: *mut *mut fid_cq,
    context: *mut c_void,
) -> c_int {
    answered(|| {
        // SAFETY: the caller's promise.
        let (domain, cq) = unsafe { (Domain::own(domain) as &OfDomain, Out::new(cq)) };
        let cq = cq.variable(Code::Invalid)?;
        // SAFETY: the caller's promise.
        let asked = unsafe { crate::hints::read(attr, domain.version) };
        if asked.flags & !FI_AFFINITY != 0 {
            return Err(Code::NoSystemCall);
        }
        let format = match asked.format {
            FI_CQ_FORMAT_UNSPEC => FI_CQ_FORMAT_TAGGED,
            format if format <= FI_CQ_FORMAT_TAGGED => format,
            _ => return Err(Code::Invalid),
        };
        let wait = match asked.wait_obj {
            wait @ (FI_WAIT_NONE | FI_WAIT_UNSPEC | FI_WAIT_FD | FI_WAIT_YIELD) => wait,
            _ => return Err(Code::NoSystemCall),
        };
        let options = QueueOptions {
            descriptor: wait == FI_WAIT_FD,
            yields: wait == FI_WAIT_YIELD,
            waits: wait != FI_WAIT_NONE,
            size: asked.size,
        };
        let queue = cci_fabric::Queue::open(&domain.domain, options)?;
        if !attr.is_null() {
            // SAFETY: the caller's promise; each version has it.
            unsafe { (*attr).format = format };
        }
        let c = fid_cq { fid: front(FI_CLASS_CQ, context, &OPERATIONS), ops: table(&TABLE) };
        cq.put(Queue::give(c, OfQueue { queue, format, wait, version: domain.version }));
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    answered(|| {
        // SAFETY: libfabric calls it for queues alone.
        if unsafe { Queue::own(fid) }.queue.is_bound() {
            return Err(Code::Busy);
        }
        // SAFETY: likewise, and the program lets go of it.
        unsafe { Queue::take(fid) };
        Ok(())
    })
}

/// # Safety
///
/// As fi_control(3) states.
unsafe extern "C" fn control(fid: *mut fid, command: c_int, argument: *mut c_void) -> c_int {
    answered(|| {
        // SAFETY: libfabric calls it for queues alone.
        let own: &OfQueue = unsafe { Queue::own(fid) };
        if argument.is_null() {
            return Err(Code::Invalid);
        }
        match command {
            FI_GETWAIT => {
                let descriptor = own.queue.descriptor()?;
                // SAFETY: it leads to a descriptor.
                unsafe { argument.cast::<c_int>().write(descriptor.as_raw_fd()) };
            }
            // SAFETY: it leads to the kind.
            FI_GETWAITOBJ => unsafe { argument.cast::<fi_wait_obj>().write(own.wait) },
            _ => return Err(Code::NoSystemCall),
        }
        Ok(())
    })
}

/// Where entries are written, and sources if they are asked for.
struct Places {
    next: *mut c_void,
    sources: *mut fi_addr_t,
    format: fi_cq_format,
}

impl Places {
    /// Writes an entry, and goes on to the next place.
    ///
    /// # Safety
    ///
    /// There is room for another entry of the format.
    #[inline]
    unsafe fn write(&mut self, entry: &Entry) {
        let Entry { flags, len, data, tag, .. } = *entry;
        let (op_context, buf) = (pointer(entry.context), pointer(entry.buffer));
        // SAFETY: the caller's promise; a program may have its entries anywhere.
        unsafe {
            match self.format {
                FI_CQ_FORMAT_CONTEXT => self.put(fi_cq_entry { op_context }),
                FI_CQ_FORMAT_MSG => self.put(fi_cq_msg_entry { op_context, flags, len }),
                FI_CQ_FORMAT_DATA => self.put(fi_cq_data_entry { op_context, flags, len, buf, data }),
                _ => self.put(fi_cq_tagged_entry { op_context, flags, len, buf, data, tag }),
            }
            if !self.sources.is_null() {
                self.sources.write(entry.source);
                self.sources = self.sources.add(1);
            }
        }
    }

    /// # Safety
    ///
    /// There is room.
    #[inline]
    unsafe fn put<E>(&mut self, entry: E) {
        let at = self.next.cast::<E>();
        // SAFETY: the caller's promise.
        self.next = unsafe {
            at.write_unaligned(entry);
            at.add(1).cast()
        };
    }
}

/// # Safety
///
/// As fi_cq_read(3) states: `to` leads to room for `count` entries.
unsafe extern "C" fn read(cq: *mut fid_cq, to: *mut c_void, count: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { read_from(cq, to, count, std::ptr::null_mut()) }
}

/// # Safety
///
/// As [`read`]; `sources` is NULL or leads to room for as many.
unsafe extern "C" fn read_from(cq: *mut fid_cq, to: *mut c_void, count: usize, sources: *mut fi_addr_t) -> isize {
    counted(|| {
        // SAFETY: the caller's promise.
        let own: &OfQueue = unsafe { Queue::own(cq) };
        let mut places = Places { next: to, sources, format: own.format };
        // SAFETY: it is called for `count` entries at most.
        own.queue.read(count, |entry| unsafe { places.write(entry) })
    })
}

/// # Safety
///
/// As fi_cq_sread(3) states.
unsafe extern "C" fn wait(
    cq: *mut fid_cq,
    to: *mut c_void,
    count: usize,
    condition: *const c_void,
    limit: c_int,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe { wait_from(cq, to, count, std::ptr::null_mut(), condition, limit) }
}

/// # Safety
///
/// As [`wait`]; `sources` is NULL or leads to room for as many.
unsafe extern "C" fn wait_from(
    cq: *mut fid_cq,
    to: *mut c_void,
    count: usize,
    sources: *mut fi_addr_t,
    _: *const c_void,
    limit: c_int,
) -> isize {
    counted(|| {
        // SAFETY: the caller's promise.
        let own: &OfQueue = unsafe { Queue::own(cq) };
        let mut places = Places { next: to, sources, format: own.format };
        // SAFETY: it is called for `count` entries at most.
        let found = own.queue.wait(count, milliseconds(limit), |entry| unsafe { places.write(entry) });
        // A signal is told as the end of the time (fi_cq(3)).
        found.map_err(|code| if code == Code::Canceled { Code::Again } else { code })
    })
}

/// # Safety
///
/// As fi_cq_readerr(3) states: `to` leads to an entry as the program's version has it.
unsafe extern "C" fn read_failed(cq: *mut fid_cq, to: *mut fi_cq_err_entry, _: u64) -> isize {
    counted(|| {
        // SAFETY: the caller's promise.
        let own: &OfQueue = unsafe { Queue::own(cq) };
        if to.is_null() {
            return Err(Code::Invalid);
        }
        let failed = own.queue.read_failed()?;
        let Entry { context, flags, len, buffer, data, tag, source } = failed.entry;
        // From 1.5 on it leads to memory of the program's, where there is nothing to say.
        let err_data = if own.version < fi_version(1, 5) {
            std::ptr::null_mut()
        } else {
            // SAFETY: the caller's promise.
            unsafe { (*to).err_data }
        };
        let entry = fi_cq_err_entry {
            op_context: pointer(context),
            flags,
            len,
            buf: pointer(buffer),
            data,
            tag,
            olen: failed.dropped,
            err: failed.code as c_int,
            prov_errno: failed.detail,
            err_data,
            err_data_size: 0,
            src_addr: source,
        };
        let size = size_at::<fi_cq_err_entry>(own.version);
        // SAFETY: the program's version has this much.
        unsafe { to.cast::<u8>().copy_from_nonoverlapping(std::ptr::from_ref(&entry).cast(), size) };
        Ok(1)
    })
}

unsafe extern "C" fn signal(cq: *mut fid_cq) -> c_int {
    answered(|| {
        // SAFETY: libfabric calls it for queues alone.
        unsafe { Queue::own(cq) as &OfQueue }.queue.signal();
        Ok(())
    })
}

/// # Safety
///
/// As fi_cq_strerror(3) states: `to` is NULL or leads to `len` bytes.
unsafe extern "C" fn text(
    _: *mut fid_cq,
    number: c_int,
    _: *const c_void,
    to: *mut c_char,
    len: usize,
) -> *const c_char {
    static TEXTS: OnceLock<Vec<CString>> = OnceLock::new();
    let mut found = c"unknown".as_ptr();
    answered(|| {
        let all = TEXTS.get_or_init(|| {
            (0..300).map(|number| CString::new(cci_fabric::Queue::detail(number)).unwrap_or_default()).collect()
        });
        let Some(text) = usize::try_from(number).ok().and_then(|number| all.get(number)) else { return Ok(()) };
        found = text.as_ptr();
        if !to.is_null() && len > 0 {
            let bytes = text.as_bytes();
            let fits = bytes.len().min(len - 1);
            // SAFETY: the caller's promise.
            unsafe {
                to.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), fits);
                to.add(fits).write(0);
            }
        }
        Ok(())
    });
    found
}
