//! Windows that nobody stores to, and the kernel's stores.

use crate::world::{connect, published, seen, two, until};
use cci_conformance::process::processor_time;
use std::io::Write;
use std::time::{Duration, Instant};

/// The system stores into a window whose pages are protected.
#[test]
#[expect(unsafe_code, reason = "the system is given an address")]
fn a_read_of_the_system_into_a_window_arrives() {
    for protect in [true, false] {
        let [owner, other] = two(protect);
        let segment = published(&owner, 100_000);
        let own = seen(&segment);
        let (_connection, window) = connect(&other, &owner, &segment);
        let (from, mut to) = std::io::pipe().expect("a pipe");
        for round in 1..4_u8 {
            // Until its pages are protected.
            std::thread::sleep(Duration::from_millis(5));
            to.write_all(&[round; 100]).expect("room");
            let descriptor = std::os::fd::AsRawFd::as_raw_fd(&from);
            // SAFETY: the window has so many bytes behind this one.
            let count = unsafe { libc::read(descriptor, window.as_ptr().add(65_500).cast(), 100) };
            assert_eq!(count, 100, "{}", std::io::Error::last_os_error());
            until("what the system has stored", || {
                let mut bytes = [0; 100];
                own.read(65_500, &mut bytes).expect("inside");
                bytes == [round; 100]
            });
        }
    }
}

/// A first store comes while the thread finds other mirrors quiet: about when it has protected the
/// first one, a millisecond after the store before.
#[test]
fn a_store_as_its_window_becomes_quiet_among_others_is_sent() {
    let [owner, other] = two(true);
    let segments: Vec<_> = (0..24).map(|_| published(&owner, 4096)).collect();
    let windows: Vec<_> = segments.iter().map(|segment| connect(&other, &owner, segment)).collect();
    let (own, window) = (seen(&segments[0]), &windows[0].1);
    let mut random = fastrand::Rng::with_seed(5);
    for round in 1..800_u64 {
        window.store(0, round).expect("inside");
        until("a store", || own.load(0) == Ok(round));
        let pause = Duration::from_micros(random.u64(900..1400));
        let begun = Instant::now();
        while begun.elapsed() < pause {
            std::hint::spin_loop();
        }
    }
}

/// Open, quiet windows: no processor time; without write-protection a small share.
#[test]
fn quiet_windows_use_little_processor_time() {
    if std::env::var_os("CCI_SCI_QUIET").is_none() {
        // Alone in a process: other tests take time too.
        let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "quiet::quiet_windows_use_little_processor_time", "--nocapture"]);
        let ended = command.env("CCI_SCI_QUIET", "1").status().expect("a child");
        assert!(ended.success());
        return;
    }
    for (protect, share) in [(true, 100), (false, 20)] {
        let [owner, other] = two(protect);
        let segment = published(&owner, 64 << 10);
        let own = seen(&segment);
        let (_connection, window) = connect(&other, &owner, &segment);
        window.store(0, 1_u64).expect("inside");
        until("a store", || own.load(0) == Ok(1_u64));
        // Polling ends a while after the last message, and a mirror is quiet after 18 s. The share
        // without write-protection has room for the reads before.
        std::thread::sleep(Duration::from_millis(if protect { 18_500 } else { 500 }));
        let time = processor_time();
        let pause = Duration::from_secs(1);
        std::thread::sleep(pause);
        let time = processor_time() - time;
        assert!(time < pause / share, "protect {protect}: {time:?} of processor time");
        window.store(0, 2_u64).expect("inside");
        until("a store after a pause", || own.load(0) == Ok(2_u64));
    }
}
