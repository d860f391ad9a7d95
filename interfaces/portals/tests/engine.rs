//! An engine with nothing to do, alone in this process, whose processor time is measured.

use cci::Endpoint;
use cci_conformance::sm_device;
use cci_peers::Table;
use cci_portals::{Interface, Limits, Place, ProcessId, endpoint_options};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("below a second"))
}

#[test]
fn an_idle_engine_takes_no_processor_time() {
    let endpoint = Endpoint::open(&sm_device(), &endpoint_options()).expect("an endpoint");
    let place = Place::of(endpoint, ProcessId { nid: 9, pid: 0 }, Box::new(Table::new()));
    let ni = Interface::accelerated(place, 0, Limits::default()).expect("an interface");
    // It has looked for a while.
    std::thread::sleep(Duration::from_millis(20));
    let before = processor_time();
    std::thread::sleep(Duration::from_secs(2));
    let used = processor_time().saturating_sub(before);
    assert!(used < Duration::from_millis(2), "{used:?} of 2 s");
    // It sleeps through calls that leave it nothing to do.
    let before = sleeps_of_engines();
    for _ in 0..100 {
        ni.free_queue(ni.queue(2, false).expect("room")).expect("it is there");
        // So that it would be asleep again.
        std::thread::sleep(Duration::from_micros(100));
    }
    let woken = sleeps_of_engines() - before;
    assert!(ni.is_accelerated() && woken < 20, "woken {woken} times");
}

/// How often the engines of this process have gone to sleep.
fn sleeps_of_engines() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc").filter_map(|task| Some(task.ok()?.path()));
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    let engines = tasks.filter(|task| text(task.join("comm")).trim() == "portals engine");
    let sleeps = engines.filter_map(|engine| {
        let status = text(engine.join("status"));
        status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse::<u64>().ok()
    });
    sleeps.sum()
}
