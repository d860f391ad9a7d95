//! This machine, as far as figures depend on it: its processors, and what else they do.

use cci_report::environment::Environment;
use std::fs;
use std::time::SystemTime;

/// What this run runs on, with its ends pinned to these processors.
pub fn here(pinned: Option<[usize; 2]>) -> Environment {
    let uname = rustix::system::uname();
    let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Environment {
        version: env!("CARGO_PKG_VERSION").into(),
        processor: processor(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        cpus: allowed().len() as u64,
        kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
        load: load(),
        pinned,
        settings: Vec::new(),
        began_s: began.map_or(0, |since| since.as_secs()),
        load_after: 0.0,
        is_virtual: false,
        path: None,
    }
}

/// What is said to those whose ends have to share a processor.
pub const ONE_PROCESSOR: &str = "Only one processor: both ends share it, and every wait costs a change of context.";

/// Load average over one minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

fn processor(text: &str) -> String {
    let named = |key: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    };
    named("model name").or_else(|| named("Processor")).unwrap_or_else(|| std::env::consts::ARCH.into())
}

/// The processors that this process may use.
pub fn allowed() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_else(|_| rustix::thread::CpuSet::new());
    let found: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
    if found.is_empty() { vec![0] } else { found }
}

/// Two processors for the two ends: of different cores where there are any, of different threads of
/// one core otherwise, the same one where there is no other.
pub fn two_processors() -> [usize; 2] {
    choose(&allowed(), |cpu| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        cpu_list(fs::read_to_string(path).unwrap_or_default().trim())
    })
}

fn choose(allowed: &[usize], siblings: impl Fn(usize) -> Vec<usize>) -> [usize; 2] {
    let first = allowed.first().copied().unwrap_or(0);
    let near = siblings(first);
    let others = || allowed.iter().copied().filter(|cpu| *cpu != first);
    [first, others().find(|cpu| !near.contains(cpu)).or_else(|| others().next()).unwrap_or(first)]
}

/// Numbers of a list as the kernel writes it, such as `0-2,8`.
fn cpu_list(text: &str) -> Vec<usize> {
    text.split(',')
        .filter_map(|part| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            Some(from.parse().ok()?..=to.parse().ok()?)
        })
        .flatten()
        .collect()
}

/// Keeps this process on one processor.
pub(crate) fn pin(cpu: usize) -> std::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Does something while this thread may use all of these processors, for threads that it starts.
pub(crate) fn spread<R>(processors: &[usize], act: impl FnOnce() -> R) -> R {
    let before = rustix::thread::sched_getaffinity(None);
    let mut set = rustix::thread::CpuSet::new();
    processors.iter().for_each(|cpu| set.set(*cpu));
    // Where it fails, those threads stay where this one is.
    let _ = rustix::thread::sched_setaffinity(None, &set);
    let done = act();
    let _ = before.map(|before| rustix::thread::sched_setaffinity(None, &before));
    done
}

/// Does something while all threads of this process but this one may use all processors.
pub(crate) fn with_others_free<R>(act: impl FnOnce() -> R) -> R {
    let own = rustix::thread::gettid();
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let others = tasks.filter_map(|task| rustix::thread::Pid::from_raw(task.file_name().to_str()?.parse().ok()?));
    let others: Vec<_> = others.filter(|task| *task != own).collect();
    let before: Vec<_> = others.iter().map(|task| rustix::thread::sched_getaffinity(Some(*task))).collect();
    let mut all = rustix::thread::CpuSet::new();
    (0..rustix::thread::CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    for task in &others {
        // One that has ended needs none. The system leaves out what the process may not use.
        let _ = rustix::thread::sched_setaffinity(Some(*task), &all);
    }
    let done = act();
    for (task, before) in others.iter().zip(before) {
        let _ = before.map(|before| rustix::thread::sched_setaffinity(Some(*task), &before));
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    /// Whoever holds it decides where threads of this process may run: [`with_others_free`] changes
    /// other tests, too.
    static PLACES: Mutex<()> = Mutex::new(());

    #[test]
    fn ends_go_to_different_cores_then_different_threads_then_the_same() {
        let siblings = |cpu: usize| vec![cpu & !1, cpu | 1];
        assert_eq!(choose(&[0, 1, 2, 3], siblings), [0, 2]);
        assert_eq!(choose(&[2, 3], siblings), [2, 3]);
        assert_eq!(choose(&[5], siblings), [5, 5]);
        assert_eq!(choose(&[0, 1], |_| vec![]), [0, 1]);
    }

    #[test]
    fn a_thread_that_is_started_meanwhile_may_go_where_its_starter_may_not() {
        let _places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        let all = allowed();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pin(all[0]).unwrap();
                assert_eq!(spread(&all, || std::thread::spawn(allowed).join().unwrap()), all);
                assert_eq!(allowed(), all[..1]);
            });
        });
    }

    #[test]
    fn kernel_lists() {
        assert_eq!(cpu_list("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(cpu_list("3"), [3]);
        assert_eq!(cpu_list(""), Vec::<usize>::new());
    }

    #[test]
    fn the_processor_is_named_as_the_kernel_names_it() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: A 1 @ 2 GHz\n"), "A 1 @ 2 GHz");
        assert_eq!(processor(""), std::env::consts::ARCH);
    }

    #[test]
    fn other_threads_are_free_meanwhile() {
        let _places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        let all = allowed();
        let (out, asked) = std::sync::mpsc::channel();
        let (ask, questions) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                pin(allowed()[0]).unwrap();
                out.send(allowed()).unwrap();
                questions.iter().for_each(|()| out.send(allowed()).unwrap());
            });
            let other = || {
                ask.send(()).unwrap();
                asked.recv().unwrap()
            };
            assert_eq!(asked.recv().unwrap(), all[..1]);
            with_others_free(|| assert_eq!(other(), all));
            assert_eq!(other(), all[..1]);
            drop(ask);
        });
    }
}
