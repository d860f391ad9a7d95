//! A forked child that ends what it has inherited. This is a program of one thread, because it
//! forks.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it counts itself among the tests")]

use cci_conformance::process::thread_time;
use cci_conformance::{LIMIT, local_device, sys};
use cci_via::{Address, Error, Nic, Vi, ViAttributes};
use rustix::process::{WaitOptions, waitpid};
use std::time::Duration;

fn main() {
    if a_childs_drop_does_not_wake_the_parent_that_listens() {
        println!("test result: ok. 1 passed; 0 failed;");
    }
}

/// The parent would be woken for ever, and turn until its limit. Returns whether this is the
/// parent.
fn a_childs_drop_does_not_wake_the_parent_that_listens() -> bool {
    const SHORT: Duration = Duration::from_secs(1);
    let nic = Nic::open(&local_device("sm")).expect("a NIC");
    let tag = nic.protection().expect("a tag");
    let vi = Vi::new(&nic, &ViAttributes { tag, ..ViAttributes::default() }, None, None).expect("a VI");
    let name = format!("a{}", std::process::id());
    let (local, remote) = (Address::new(nic.host(), name.as_bytes()), Address::new(nic.host(), b"z"));
    let pending = vi.peer(&local, &remote, SHORT).expect("a port");
    sys::alarm(u32::try_from(2 * LIMIT.as_secs()).expect("seconds"));
    let Some(child) = sys::fork() else {
        drop(pending);
        return false;
    };
    let ended = waitpid(Some(child), WaitOptions::empty()).expect("a child").expect("it has ended");
    assert_eq!(ended.1.exit_status(), Some(0), "{ended:?}");
    let before = thread_time();
    assert_eq!(pending.wait().err().map(|(_, why)| why), Some(Error::Timeout));
    let taken = thread_time().saturating_sub(before);
    assert!(taken < SHORT / 4, "{taken:?} of {SHORT:?}");
    true
}
