//! What this process uses: descriptors, mappings, threads, processor time.

use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};
use std::process::Child;
use std::time::Duration;

/// A process that is ended when this is dropped.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Open descriptors of this process, without the one that this look needs.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("/proc").count() - 1
}

/// What the descriptors of this process are, for the message of a failed assertion.
pub fn describe_descriptors() -> Vec<String> {
    let entries = std::fs::read_dir("/proc/self/fd").expect("/proc");
    entries
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .map(|target| target.display().to_string())
        .collect()
}

/// Mappings of this process that are shared segments.
pub fn segments() -> usize {
    mappings().lines().filter(|line| line.contains("/memfd:")).count()
}

/// All mappings of this process, one a line.
pub fn mappings() -> String {
    std::fs::read_to_string("/proc/self/maps").expect("/proc")
}

/// Physical memory of its own that a process uses (this one, unless another is named), bytes.
pub fn resident_bytes(process: Option<Pid>) -> usize {
    let process = process.map_or("self".to_owned(), |pid| pid.as_raw_pid().to_string());
    let pages = std::fs::read_to_string(format!("/proc/{process}/statm")).expect("/proc");
    let pages: usize = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * rustix::param::page_size()
}

/// Threads of this process.
pub fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("/proc").count()
}

/// Processor time that this process has used.
pub fn processor_time() -> Duration {
    duration(ClockId::ProcessCPUTime)
}

/// Processor time that this thread has used.
pub fn thread_time() -> Duration {
    duration(ClockId::ThreadCPUTime)
}

fn duration(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Context switches of all threads of this process, voluntary or not.
pub fn context_switches() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc");
    tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok()).map(|s| switches(&s)).sum()
}

fn switches(status: &str) -> u64 {
    let lines = status.lines().filter_map(|line| line.split_once("ctxt_switches:"));
    lines.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}
