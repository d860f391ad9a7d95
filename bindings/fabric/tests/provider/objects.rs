//! Objects as a program of C opens, uses and closes them.

use crate::library::{Infos, PROVIDER, getinfo};
use cci_fabric_sys::*;
use std::ffi::{CString, c_int, c_void};
use std::mem::{MaybeUninit, zeroed};
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

const VERSION: u32 = fi_version(1, 17);
const LONG: Duration = Duration::from_secs(60);

/// Calls a function of a table, which must be there.
macro_rules! call {
    ($object:expr, $table:ident, $function:ident $(, $argument:expr)*) => {{
        let object = $object;
        // SAFETY: an open object, and arguments as libfabric's manual pages state them.
        unsafe { (*(*object).$table).$function.expect("a function")(object.cast() $(, $argument)*) }
    }};
}

/// Calls a function that every object has.
macro_rules! of_fid {
    ($object:expr, $function:ident $(, $argument:expr)*) => {{
        let object: *mut fid = $object.cast();
        // SAFETY: as above.
        unsafe { (*(*object).ops).$function.expect("a function")(object $(, $argument)*) }
    }};
}

fn close<T>(object: *mut T) -> c_int {
    of_fid!(object, close)
}

/// A fabric and a domain.
struct Opened {
    infos: Infos,
    fabric: *mut fid_fabric,
    domain: *mut fid_domain,
}

impl Opened {
    fn new(version: u32) -> Self {
        Self::with(version, |_| ())
    }

    /// `change`: the answer of the provider before a domain is opened with it.
    fn with(version: u32, change: impl FnOnce(*mut fi_info)) -> Self {
        let infos = getinfo(version, (None, None), 0, null()).expect("an answer");
        change(infos.0);
        Self::of(version, infos)
    }

    fn of(version: u32, infos: Infos) -> Self {
        // SAFETY: the record lives as long as the library; an answer has all parts.
        let (open, attr) = unsafe { ((*PROVIDER.0).fabric.expect("a function"), (*infos.0).fabric_attr) };
        // SAFETY: libfabric fills it in.
        unsafe { (*attr).api_version = version };
        let (mut fabric, mut domain) = (null_mut(), null_mut());
        // SAFETY: as fi_fabric(3) states.
        assert_eq!(unsafe { open(attr, &raw mut fabric, null_mut()) }, 0);
        assert_eq!(call!(fabric, ops, domain, infos.0, &raw mut domain, null_mut()), 0);
        Self { infos, fabric, domain }
    }

    fn queue(&self, format: fi_cq_format) -> *mut fid_cq {
        // SAFETY: 0 asks for nothing.
        let mut attr: fi_cq_attr = unsafe { zeroed() };
        (attr.format, attr.wait_obj) = (format, FI_WAIT_UNSPEC);
        let mut queue = null_mut();
        assert_eq!(call!(self.domain, ops, cq_open, &raw mut attr, &raw mut queue, null_mut()), 0);
        queue
    }

    fn vector(&self) -> *mut fid_av {
        let mut vector = null_mut();
        assert_eq!(call!(self.domain, ops, av_open, null_mut(), &raw mut vector, null_mut()), 0);
        vector
    }

    /// An endpoint that is enabled, and its address.
    fn endpoint(&self, queue: *mut fid_cq, vector: *mut fid_av) -> (*mut fid_ep, [u8; 64]) {
        let mut endpoint = null_mut();
        assert_eq!(call!(self.domain, ops, endpoint, self.infos.0, &raw mut endpoint, null_mut()), 0);
        assert_eq!(of_fid!(endpoint, bind, vector.cast(), 0), 0);
        assert_eq!(of_fid!(endpoint, bind, queue.cast(), FI_SEND | FI_RECV), 0);
        assert_eq!(of_fid!(endpoint, control, FI_ENABLE, null_mut()), 0);
        let (mut record, mut len) = ([0_u8; 64], 63);
        let name =
            |record: &mut [u8; 64], len: &mut usize| call!(endpoint, cm, getname, record.as_mut_ptr().cast(), len);
        assert_eq!((name(&mut record, &mut len), len), (-FI_ETOOSMALL, 64));
        assert_eq!((name(&mut record, &mut len), len), (0, 64));
        (endpoint, record)
    }
}

/// The next entry, of a queue of tagged entries.
fn next(queue: *mut fid_cq) -> Result<fi_cq_tagged_entry, isize> {
    let mut entry = MaybeUninit::<fi_cq_tagged_entry>::zeroed();
    let begun = Instant::now();
    loop {
        match call!(queue, ops, read, entry.as_mut_ptr().cast(), 1) {
            // SAFETY: 0 is an entry too.
            1 => return Ok(unsafe { entry.assume_init() }),
            code if code == -(FI_EAGAIN as isize) => assert!(begun.elapsed() < LONG, "nothing came"),
            code => return Err(code),
        }
    }
}

fn context(number: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(number)
}

#[test]
fn a_signal_ends_a_wait_as_its_time_does() {
    let opened = Opened::new(VERSION);
    let queue = opened.queue(FI_CQ_FORMAT_TAGGED);
    assert_eq!(call!(queue, ops, signal), 0);
    let mut entry = MaybeUninit::<fi_cq_tagged_entry>::zeroed();
    let ended = call!(queue, ops, sread, entry.as_mut_ptr().cast(), 1, null(), -1);
    assert_eq!(ended, -(FI_EAGAIN as isize));
    assert_eq!([close(queue), close(opened.domain), close(opened.fabric)], [0; 3]);
}

/// Peeks and the like are flags of one call, never of all.
#[test]
fn flags_of_all_operations_are_those_that_are_offered() {
    let opened = Opened::new(VERSION);
    let (queue, vector) = (opened.queue(FI_CQ_FORMAT_TAGGED), opened.vector());
    let (endpoint, _) = opened.endpoint(queue, vector);
    let mut flags = FI_RECV | FI_COMPLETION | FI_PEEK | FI_DISCARD;
    assert_eq!(of_fid!(endpoint, control, FI_SETOPSFLAG, (&raw mut flags).cast()), 0);
    flags = FI_RECV;
    assert_eq!(of_fid!(endpoint, control, FI_GETOPSFLAG, (&raw mut flags).cast()), 0);
    assert_eq!(flags, FI_COMPLETION);
    let closed = [close(endpoint), close(queue), close(vector), close(opened.domain), close(opened.fabric)];
    assert_eq!(closed, [0; 5]);
}

#[test]
fn an_endpoint_is_found_by_the_port_that_it_was_given() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    drop(listener);
    let service = CString::new(port.to_string()).expect("digits");
    let infos = getinfo(VERSION, (None, Some(&service)), FI_SOURCE, null()).expect("an answer");
    // SAFETY: an answer.
    assert_eq!(unsafe { (*infos.0).src_addrlen }, 64);
    // It is met as a hint too, and so is an address without a port.
    let of_host = getinfo(VERSION, (Some(c"127.0.0.1"), None), FI_SOURCE, null()).expect("an answer");
    for answer in [&infos, &of_host] {
        assert!(getinfo(VERSION, (None, None), 0, answer.0).is_ok());
    }
    let opened = Opened::of(VERSION, infos);
    let (queue, vector) = (opened.queue(FI_CQ_FORMAT_TAGGED), opened.vector());
    let (endpoint, record) = opened.endpoint(queue, vector);
    let client = std::thread::spawn(move || {
        let infos = getinfo(VERSION, (Some(c"127.0.0.1"), Some(&service)), 0, null()).expect("its address");
        // SAFETY: an answer.
        unsafe { ((*infos.0).dest_addrlen, *(*infos.0).dest_addr.cast::<[u8; 64]>()) }
    });
    while !client.is_finished() {
        let mut entry = MaybeUninit::<fi_cq_tagged_entry>::zeroed();
        assert_eq!(call!(queue, ops, read, entry.as_mut_ptr().cast(), 1), -(FI_EAGAIN as isize));
    }
    assert_eq!(client.join().expect("no panic"), (64, record));
    for (node, service) in [(None, c"no port"), (Some(c"127.0.0.1"), c"0")] {
        assert_eq!(getinfo(VERSION, (node, Some(service)), 0, null()).err(), Some(FI_ENODATA), "{service:?}");
    }
    let closed = [close(endpoint), close(queue), close(vector), close(opened.domain), close(opened.fabric)];
    assert_eq!(closed, [0; 5]);
}

#[test]
fn a_domain_of_automatic_progress_has_a_thread_until_it_is_closed() {
    let threads = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("threads").filter_map(Result::ok);
        let name = |task: &std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        tasks.filter(|task| name(task).is_ok_and(|name| name == "cci-fabric\n")).count()
    };
    // A thread has its name when it first runs.
    let wait_for = |count| {
        let begun = Instant::now();
        while threads() != count {
            assert!(begun.elapsed() < LONG, "{} threads, {count} are right", threads());
        }
    };
    for (progress, count) in [(FI_PROGRESS_MANUAL, 0), (FI_PROGRESS_AUTO, 1)] {
        // SAFETY: an answer has all parts.
        let opened = Opened::with(VERSION, |info| unsafe { (*(*info).domain_attr).data_progress = progress });
        wait_for(count);
        assert_eq!([close(opened.domain), close(opened.fabric)], [0, 0]);
        wait_for(0);
    }
}

#[test]
fn a_tagged_message_goes_from_one_endpoint_to_another_and_all_closes_in_order() {
    let opened = Opened::new(VERSION);
    let (queue, vector) = (opened.queue(FI_CQ_FORMAT_TAGGED), opened.vector());
    let ((here, _), (there, record)) = (opened.endpoint(queue, vector), opened.endpoint(queue, vector));
    let mut to = 7;
    let insert =
        |record: &[u8; 64], to: &mut u64| call!(vector, ops, insert, record.as_ptr().cast(), 1, to, 0, null_mut());
    assert_eq!((insert(&[0; 64], &mut to), to), (0, FI_ADDR_NOTAVAIL));
    assert_eq!((insert(&record, &mut to), to), (1, 0));

    let mut room = [0_u8; 100];
    let any = FI_ADDR_UNSPEC;
    let receive = |at: *mut u8, len, tag, number| {
        call!(there, tagged, recv, at.cast(), len, null_mut(), any, tag, 0, context(number))
    };
    assert_eq!(receive(room.as_mut_ptr(), 100, 0x77, 11), 0);
    assert_eq!(call!(here, tagged, senddata, b"hello".as_ptr().cast(), 5, null_mut(), 9, to, 0x77, context(12)), 0);
    let mut entries = [next(queue).expect("an entry"), next(queue).expect("an entry")];
    entries.sort_by_key(|entry| entry.op_context);
    let [received, sent] = entries;
    assert_eq!((received.op_context, received.len, received.data, received.tag), (context(11), 5, 9, 0x77));
    assert_eq!(received.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
    assert_eq!((sent.op_context, sent.flags, &room[..5]), (context(12), FI_SEND | FI_TAGGED, &b"hello"[..]));

    // What is open is not closed beneath it.
    for object in [queue.cast(), vector.cast(), opened.domain.cast(), opened.fabric.cast::<fid>()] {
        assert_eq!(close(object), -FI_EBUSY);
    }
    let objects: [*mut fid; 6] =
        [here.cast(), there.cast(), queue.cast(), vector.cast(), opened.domain.cast(), opened.fabric.cast()];
    for object in objects {
        assert_eq!(close(object), 0);
    }
}

#[test]
fn a_failure_is_written_as_far_as_the_version_has_it() {
    for (version, size) in [(fi_version(1, 4), 80), (fi_version(1, 19), 80), (fi_version(1, 20), 88)] {
        let opened = Opened::new(version);
        let (queue, vector) = (opened.queue(FI_CQ_FORMAT_TAGGED), opened.vector());
        let (endpoint, _) = opened.endpoint(queue, vector);
        assert_eq!(call!(endpoint, tagged, recv, null_mut(), 0, null_mut(), FI_ADDR_UNSPEC, 1, 0, context(5)), 0);
        assert_eq!(call!(endpoint, ops, cancel, context(5)), 0);
        assert_eq!(call!(endpoint, ops, cancel, context(5)), -(FI_ENOENT as isize));
        assert_eq!(next(queue).err(), Some(-(FI_EAVAIL as isize)));
        let mut bytes = [0xee_u8; 96];
        assert_eq!(call!(queue, ops, readerr, bytes.as_mut_ptr().cast(), 0), 1);
        assert!(bytes[size..].iter().all(|byte| *byte == 0xee), "{version:#x}");
        // SAFETY: an entry of this or an older version.
        let entry = unsafe { bytes.as_ptr().cast::<fi_cq_err_entry>().read_unaligned() };
        assert_eq!((entry.op_context, entry.err, entry.err_data_size), (context(5), FI_ECANCELED, 0));
        assert_eq!(call!(queue, ops, readerr, bytes.as_mut_ptr().cast(), 0), -(FI_EAGAIN as isize));
        let mut text = [0x7f; 5];
        call!(queue, ops, strerror, entry.prov_errno, null(), text.as_mut_ptr(), 5);
        assert_eq!(text, [b'i' as i8, b't' as i8, b' ' as i8, b'w' as i8, 0]);
        for object in [endpoint.cast(), queue.cast(), vector.cast(), opened.domain.cast(), opened.fabric.cast::<fid>()]
        {
            assert_eq!(close(object), 0);
        }
    }
}

#[test]
fn memory_of_a_key_is_written_and_read_and_memory_that_is_none_is_refused() {
    let opened = Opened::new(VERSION);
    let (queue, vector) = (opened.queue(FI_CQ_FORMAT_TAGGED), opened.vector());
    let ((here, _), (there, record)) = (opened.endpoint(queue, vector), opened.endpoint(queue, vector));
    assert_eq!(call!(vector, ops, insert, record.as_ptr().cast(), 1, null_mut(), 0, null_mut()), 1);
    let (mut target, access, mut region) = ([0_u8; 64], FI_REMOTE_READ | FI_REMOTE_WRITE, null_mut());
    let domain: *mut fid = opened.domain.cast();
    let mut register = |at: *const c_void, len: usize, key: u64| {
        let out = &raw mut region;
        // SAFETY: a domain that is open; the memory outlives the region.
        unsafe { (*(*opened.domain).mr).reg.expect("a function")(domain, at, len, access, 0, key, 0, out, null_mut()) }
    };
    assert_eq!(register(null(), usize::MAX, 5), -FI_EINVAL);
    assert_eq!(register(target.as_ptr().cast(), 1 << 46, 5), -FI_EINVAL);
    assert_eq!(register(target.as_mut_ptr().cast(), 64, 5), 0);
    assert_eq!(register(target.as_mut_ptr().cast(), 64, 5), -FI_ENOKEY);
    let mut back = [0_u8; 4];
    assert_eq!(call!(here, rma, write, b"data".as_ptr().cast(), 4, null_mut(), 0, 60, 5, context(1)), 0);
    assert_eq!(next(queue).expect("a write").flags, FI_RMA | FI_WRITE);
    assert_eq!(call!(here, rma, read, back.as_mut_ptr().cast(), 4, null_mut(), 0, 60, 5, context(2)), 0);
    assert_eq!(next(queue).expect("a read").op_context, context(2));
    assert_eq!((&back, &target[60..]), (b"data", &b"data"[..]));
    assert_eq!(call!(here, rma, write, b"data".as_ptr().cast(), 4, null_mut(), 0, 61, 5, context(3)), 0);
    assert_eq!(next(queue).err(), Some(-(FI_EAVAIL as isize)));
    for object in [region.cast(), here.cast(), there.cast(), queue.cast(), vector.cast::<fid>()] {
        assert_eq!(close(object), 0);
    }
    assert_eq!((close(opened.domain), close(opened.fabric)), (0, 0));
}

#[test]
fn what_is_not_offered_is_refused_and_tables_have_their_newest_size() {
    let opened = Opened::new(VERSION);
    let (queue, vector) = (opened.queue(FI_CQ_FORMAT_CONTEXT), opened.vector());
    let (endpoint, _) = opened.endpoint(queue, vector);
    // SAFETY: open objects.
    unsafe {
        let endpoint = &*endpoint;
        assert_eq!((*endpoint.ops).size, size_of::<fi_ops_ep>());
        assert_eq!((*endpoint.atomic).size, size_of::<fi_ops_atomic>());
        assert_eq!((*(*opened.domain).ops).size, size_of::<fi_ops_domain>());
    }
    assert_eq!(call!(endpoint, atomic, writevalid, FI_INT32, FI_SUM, null_mut()), -FI_ENOSYS);
    assert_eq!(call!(endpoint, collective, barrier, 0, null_mut()), -(FI_ENOSYS as isize));
    assert_eq!(call!(opened.domain, ops, poll_open, null_mut(), null_mut()), -FI_ENOSYS);
    let (mut value, mut len) = (0_usize, size_of::<usize>());
    let at: *mut c_void = (&raw mut value).cast();
    assert_eq!(of_ep(endpoint, FI_OPT_MIN_MULTI_RECV, at, &mut len), 0);
    assert!(value > 0);
    assert_eq!(of_ep(endpoint, FI_OPT_BUFFERED_MIN, at, &mut len), -FI_ENOPROTOOPT);
    for object in [endpoint.cast(), queue.cast(), vector.cast(), opened.domain.cast(), opened.fabric.cast::<fid>()] {
        assert_eq!(close(object), 0);
    }
}

fn of_ep(endpoint: *mut fid_ep, name: c_int, value: *mut c_void, len: &mut usize) -> c_int {
    call!(endpoint, ops, getopt, FI_OPT_ENDPOINT, name, value, len)
}
