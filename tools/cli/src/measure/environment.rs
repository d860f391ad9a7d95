//! What a run ran on.

use serde::{Deserialize, Serialize};
use std::fs;
use std::time::SystemTime;

/// What a run ran on, as far as its figures depend on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Environment {
    /// Version of this program.
    pub(crate) version: String,
    /// Model of the processor.
    pub(crate) processor: String,
    /// Processors that this run may use.
    pub(crate) cpus: u64,
    /// Name and release of the kernel.
    pub(crate) kernel: String,
    /// Load average over one minute when the run began; what else runs disturbs.
    pub(crate) load: f64,
    /// Processors that the ends were pinned to: client, server.
    pub(crate) pinned: Option<[usize; 2]>,
    /// Keys of the device, and their values.
    #[serde(default)]
    pub(crate) settings: Vec<(String, String)>,
    /// When the run began, seconds since 1970.
    #[serde(default)]
    pub(crate) began_s: u64,
    /// Load average over one minute when the run ended, this run included.
    #[serde(default)]
    pub(crate) load_after: f64,
    /// Times are those of a virtual network, and say nothing of this machine.
    #[serde(default, rename = "virtual")]
    pub(crate) is_virtual: bool,
    /// How the operations travelled; not known of a run that has not begun, or that went through the C library.
    #[serde(default)]
    pub(crate) path: Option<Path>,
}

/// The path of the measured connection, as the library tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Path {
    /// How messages travel.
    pub(crate) messages: String,
    /// How RMA travels.
    pub(crate) rma: String,
    /// Why these and no others: which offloads are off, and for what reason.
    pub(crate) why: String,
}

impl Environment {
    /// Looks.
    pub(crate) fn new(pinned: Option<[usize; 2]>) -> Self {
        let uname = rustix::system::uname();
        let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
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

    /// The line that ends a table.
    pub(crate) fn line(&self) -> String {
        let pinned = match self.pinned {
            None if self.is_virtual => "in virtual time".into(),
            Some([client, server]) if client == server => format!("both ends on processor {client}"),
            Some([client, server]) => format!("ends pinned to processors {client} and {server}"),
            None => "ends not pinned".into(),
        };
        let plural = if self.cpus == 1 { "" } else { "s" };
        let keys: Vec<_> = self.settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let keys = if keys.is_empty() { String::new() } else { format!(", {}", keys.join(" ")) };
        let path = self.path.as_ref().map_or_else(String::new, |path| {
            format!("\nMessages: {}. RMA: {}. Why: {}.", path.messages, path.rma, path.why)
        });
        format!(
            "On {} ({} processor{plural}), {}, load {:.2}, {pinned}{keys}; cci {}.{path}",
            self.processor, self.cpus, self.kernel, self.load, self.version
        )
    }
}

/// Load average over one minute.
pub(crate) fn load() -> f64 {
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
pub(crate) fn allowed() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_else(|_| rustix::thread::CpuSet::new());
    let found: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
    if found.is_empty() { vec![0] } else { found }
}

/// Two processors for the two ends: of different cores where there are any, of different threads of one core otherwise, the
/// same one where there is no other.
pub(crate) fn two_processors() -> [usize; 2] {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_go_to_different_cores_then_different_threads_then_the_same() {
        let siblings = |cpu: usize| vec![cpu & !1, cpu | 1];
        assert_eq!(choose(&[0, 1, 2, 3], siblings), [0, 2]);
        assert_eq!(choose(&[2, 3], siblings), [2, 3]);
        assert_eq!(choose(&[5], siblings), [5, 5]);
        assert_eq!(choose(&[0, 1], |_| vec![]), [0, 1]);
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
    fn the_line_says_everything() {
        let environment = Environment {
            version: "1.2.3".into(),
            processor: "A 1".into(),
            cpus: 2,
            kernel: "Linux 6.1".into(),
            load: 0.5,
            pinned: Some([0, 1]),
            ..Environment::default()
        };
        assert_eq!(
            environment.line(),
            "On A 1 (2 processors), Linux 6.1, load 0.50, ends pinned to processors 0 and 1; cci 1.2.3."
        );
        let path = Path { messages: "by post".into(), rma: "by rail".into(), why: "it rains".into() };
        let settings = vec![("mss".into(), "64".into()), ("priority".into(), "9".into())];
        let environment = Environment { path: Some(path), settings, ..environment };
        assert!(environment.line().contains("processors 0 and 1, mss=64 priority=9; cci"));
        assert!(environment.line().ends_with("\nMessages: by post. RMA: by rail. Why: it rains."));
    }
}
