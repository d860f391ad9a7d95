//! The progress thread: when there is one, what it does, and what it leaves alone.

use crate::memory_link::{Faults, Hub};
use crate::world::{End, How, LIMIT, join, message, next, outcome, two};
use cci_instruments::pattern;
use cci_mem::arena::SharedMemory;
use cci_mem::guarded::Threading;
use cci_proto::{Access, Attribute, EventKind, Rights, Status};
use cci_transport::{Connection, CoreOptions, Rma};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const RO: Attribute = Attribute::ReliableOrdered;

/// Sets the keepalive of a connection.
fn keep_alive(end: &End, connection: &'static Connection, silence: Duration) {
    let micros = u32::try_from(silence.as_micros()).expect("short");
    end.cell
        .with(|core, transport| {
            connection.keepalive.store(micros, cci_mem::sync::Ordering::Relaxed);
            transport.options_changed(core, connection);
        })
        .expect("usable");
}

/// The kernel's status of each progress thread of this process.
fn progress_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc");
    let statuses = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
    statuses.filter(|status| status.starts_with("Name:\tcci-progress\n")).collect()
}

/// Waits until there are `count`: a thread sets its own name.
fn await_progress_threads(count: usize, why: &str) {
    let begun = Instant::now();
    while progress_threads().len() != count {
        assert!(begun.elapsed() < LIMIT, "{} progress threads, not {count}: {why}", progress_threads().len());
    }
}

/// Tests of other modules run at the same time and have progress threads too, so these tests count
/// theirs in a process of their own.
static ALONE: Mutex<()> = Mutex::new(());

fn in_own_process(name: &str) -> bool {
    const CHILD: &str = "CCI_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let _alone = ALONE.lock();
    let output = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", name, "--test-threads=1", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("the child ran");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    false
}

#[test]
fn it_begins_when_needed_with_all_signals_blocked_and_ends_with_its_endpoint() {
    if !in_own_process("progress_thread::it_begins_when_needed_with_all_signals_blocked_and_ends_with_its_endpoint") {
        return;
    }
    let (hub, a, b) = two();
    (0..100).for_each(|_| {
        let _ = a.poll();
    });
    assert_eq!(progress_threads().len(), 0, "nothing needs one yet");
    let memory = SharedMemory::new(64).expect("memory");
    a.register(memory.memory(), Rights::NONE);
    assert_eq!(progress_threads().len(), 0, "no peer may touch anything");
    a.register(memory.memory(), Rights::READ);
    await_progress_threads(1, "peers may read");
    join(&[&a, &b], RO);
    await_progress_threads(1, "both have a connection, and share it");
    for status in progress_threads() {
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).expect("a mask");
        let mask = u64::from_str_radix(blocked, 16).expect("a number");
        // SIGKILL and SIGSTOP cannot be blocked. A fault of the thread itself goes to the program's
        // handler: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV and SIGSYS.
        let open = !mask & 0x7fff_ffff & !(1 << 8 | 1 << 18);
        assert_eq!(open, 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 30, "open signals: {open:#x}");
    }
    let one = End::open(&hub, How { threading: Threading::One, ..How::default() });
    one.register(memory.memory(), Rights::READ_WRITE);
    drop(a);
    assert_eq!(progress_threads().len(), 1);
    drop(b);
    assert_eq!(progress_threads().len(), 0, "an endpoint of one thread needs none");
}

#[test]
fn memory_is_written_while_its_owner_computes() {
    let (_, a, b) = two();
    let (to_b, _) = join(&[&a, &b], RO);
    let (source, target) = (SharedMemory::new(200_000).expect("memory"), SharedMemory::new(200_000).expect("memory"));
    source.write(0, &pattern(1, 200_000));
    let local = a.register(source.memory(), Rights::NONE);
    let remote = b.register(target.memory(), Rights::WRITE);
    for round in 0..5 {
        source.write(0, &pattern(round, 200_000));
        let rma = Rma {
            local: &local,
            local_offset: 0,
            remote: &remote,
            remote_offset: 0,
            len: 200_000,
            access: Access::Write,
            fence: false,
            message: None,
        };
        a.rma(to_b, &rma, round).expect("started");
        // `b` makes no call.
        assert_eq!(outcome(&[&a], 0, EventKind::Send), (Some(Status::Success), round));
        assert!(target.to_vec(0, 200_000) == pattern(round, 200_000));
    }
}

#[test]
fn what_was_sent_last_leaves_and_is_acknowledged_while_its_sender_computes() {
    let (_, a, b) = two();
    let ends = [&a, &b];
    let (to_b, _) = join(&ends, RO);
    for round in 0..3 {
        for number in 0..100 {
            a.send(to_b, &pattern(number, 20), number);
        }
        // `a` makes no call.
        for number in 0..100 {
            assert_eq!(message(&[&b], 0), pattern(number, 20), "round {round}");
        }
        let begun = Instant::now();
        while a.cell.with(|core, _| !core.has_event()).expect("usable") {
            assert!(begun.elapsed() < LIMIT, "nobody takes the acknowledgements");
            b.poll();
        }
        for number in 0..100 {
            assert_eq!(outcome(&ends, 0, EventKind::Send), (Some(Status::Success), number));
        }
    }
}

#[test]
fn what_is_sent_after_a_long_absence_is_repeated_without_another_call() {
    let (hub, a, b) = two();
    let (to_b, _) = join(&[&a, &b], RO);
    // Peers may read, so that its progress thread waits for frames. `a` computes, until nothing is
    // due any more.
    let memory = SharedMemory::new(64).expect("memory");
    a.register(memory.memory(), Rights::READ);
    std::thread::sleep(Duration::from_millis(1500));
    // Its message is lost, and no frame comes to wake the progress thread.
    hub.set_faults(Faults { lost: 1000, ..Faults::default() });
    a.send(to_b, &pattern(1, 20), 1);
    hub.set_faults(Faults::default());
    assert_eq!(message(&[&b], 0), pattern(1, 20));
}

#[test]
fn it_ends_where_nothing_is_due_and_no_frame_comes() {
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let end = End::open(&Hub::new(), How::default());
        let memory = SharedMemory::new(64).expect("memory");
        end.register(memory.memory(), Rights::READ);
        // The program computes, long enough for its progress thread to wait for frames.
        std::thread::sleep(Duration::from_millis(100));
        drop(end);
        let _ = ended.send(());
    });
    end.recv_timeout(LIMIT).expect("the progress thread has ended");
}

#[test]
fn an_endpoint_that_only_receives_is_silent_while_its_program_computes() {
    let (_, a, b) = two();
    let ends = [&a, &b];
    let (to_b, _) = join(&ends, RO);
    keep_alive(&a, to_b, Duration::from_millis(40));
    next(&[&a], 0, EventKind::KeepaliveTimedOut);
}

/// A present endpoint with 8 receive slots, whose program computes: `a` sends it more messages.
#[test]
fn a_present_endpoint_is_alive_while_its_program_computes_also_without_a_slot() {
    const SILENCE: Duration = Duration::from_millis(800);
    let hub = Hub::new();
    let few = CoreOptions { recv_count: 8, present: true, ..How::default().core };
    let (a, b) = (End::open(&hub, How::default()), End::open(&hub, How { core: few, ..How::default() }));
    let (to_b, _) = join(&[&a, &b], RO);
    keep_alive(&a, to_b, SILENCE);
    (0..20).for_each(|number| a.send(to_b, &pattern(number, 20), number));
    let begun = Instant::now();
    let mut acknowledged = 0;
    while acknowledged == 0 || begun.elapsed() < SILENCE * 3 {
        assert!(begun.elapsed() < LIMIT, "nothing is acknowledged without a call of the receiver");
        let Some(slot) = a.poll() else { continue };
        assert_eq!((slot.kind(), slot.words()[1]), (EventKind::Send as u32, acknowledged), "nobody is given up");
        a.give_back(slot);
        acknowledged += 1;
    }
    assert!(acknowledged <= 8, "the others wait for slots");
    (0..20).for_each(|number| assert_eq!(message(&[&a, &b], 1), pattern(number, 20)));
    (acknowledged..20).for_each(|number| assert_eq!(outcome(&[&a, &b], 0, EventKind::Send).1, number));
}

#[test]
fn it_survives_a_program_that_makes_calls_for_a_second_and_does_not_poll() {
    let (_, a, b) = two();
    join(&[&a, &b], RO);
    let memory = SharedMemory::new(64).expect("memory");
    let staying = a.register(memory.memory(), Rights::READ);
    let begun = Instant::now();
    // The program counts as absent 10 ms after its last poll, and makes calls all the time.
    while begun.elapsed() < Duration::from_secs(1) {
        let handle = a.register(memory.memory(), Rights::READ);
        a.deregister(&handle).expect("it ends");
    }
    a.deregister(&staying).expect("it ends");
}

#[test]
fn a_panic_in_one_endpoint_fails_that_endpoint_and_the_thread_goes_on_for_others() {
    let (broken, sound) = (Hub::new(), Hub::new());
    let failing = End::open(&broken, How::default());
    let (a, b) = (End::open(&sound, How::default()), End::open(&sound, How::default()));
    let (to_b, _) = join(&[&a, &b], RO);
    let waiting = failing.cell.waiting().expect("a descriptor");
    broken.set_panics();
    let memory = SharedMemory::new(64).expect("memory");
    failing.register(memory.memory(), Rights::READ);
    let mut asleep = [rustix::event::PollFd::new(&*waiting, rustix::event::PollFlags::IN)];
    let limit = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(rustix::event::poll(&mut asleep, Some(&limit)), Ok(1), "nothing wakes a sleeper");
    assert_eq!(failing.cell.with(|_, _| ()), Err(cci_proto::Unusable::Failed));
    // The sender makes no call: its lost message is repeated in the background.
    std::thread::sleep(Duration::from_millis(100));
    sound.set_faults(Faults { lost: 1000, ..Faults::default() });
    a.send(to_b, &pattern(1, 20), 1);
    sound.set_faults(Faults::default());
    assert_eq!(message(&[&b], 0), pattern(1, 20));
}
