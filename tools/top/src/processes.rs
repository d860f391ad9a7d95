//! The endpoints of this host's processes, found through their descriptors. What is found is
//! believed to be nothing in particular: `docs/design/counters.md`, What a viewer may believe.

use cci::{Snapshot, Unreadable};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the kernel calls a memfd, before and after its name.
const MEMFD: &[u8] = b"/memfd:";
const DELETED: &[u8] = b" (deleted)";
/// Number of the kernel's own file system of memory, which memfds are on.
const TMPFS: i64 = 0x0102_1994;

/// An endpoint of a process.
#[derive(Clone, Debug)]
pub(crate) struct WatchedEndpoint {
    /// The process.
    pub(crate) pid: i32,
    /// Name of its program.
    pub(crate) command: String,
    /// What the kernel says it does: a letter as in `ps`.
    pub(crate) state: char,
    /// Device and number of the file: no other has them as long as it is there.
    pub(crate) file: (u64, u64),
    /// What stands in it.
    pub(crate) snapshot: Snapshot,
}

/// A file that has the name of a counters page but is not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidPage {
    /// The process that has it.
    pub(crate) pid: i32,
    /// Its program.
    pub(crate) command: String,
    /// Why it is not shown.
    pub(crate) why: String,
}

/// What one look at the host found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    /// When, by CLOCK_MONOTONIC.
    pub(crate) at: Duration,
    /// Endpoints, by process and URI.
    pub(crate) endpoints: Vec<WatchedEndpoint>,
    /// What is not shown, and why.
    pub(crate) refused: Vec<InvalidPage>,
    /// Processes of other users, which were not looked at.
    pub(crate) others: usize,
    /// Processes of this user that the kernel keeps closed.
    pub(crate) closed: usize,
}

/// Which processes are looked at.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// Where the kernel shows processes.
    pub(crate) proc: PathBuf,
    /// Those of this user.
    pub(crate) user: u32,
    /// These only, whoever has them; none: all of the user.
    pub(crate) pids: Vec<i32>,
}

impl Scope {
    /// Looks once.
    ///
    /// # Errors
    ///
    /// The kernel shows no processes.
    pub(crate) fn look(&self) -> std::io::Result<Look> {
        let mut look = Look { at: now(), ..Look::default() };
        for entry in std::fs::read_dir(&self.proc)? {
            let Ok(entry) = entry else { continue };
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            if !self.pids.is_empty() && !self.pids.contains(&pid) {
                continue;
            }
            let path = entry.path();
            // Who is gone meanwhile is nobody's.
            let Ok(metadata) = std::fs::metadata(&path) else { continue };
            if metadata.uid() != self.user && self.pids.is_empty() {
                look.others += 1;
                continue;
            }
            self.look_at(&path, pid, &mut look);
        }
        look.endpoints.sort_by(|a, b| (a.pid, &a.snapshot.uri).cmp(&(b.pid, &b.snapshot.uri)));
        Ok(look)
    }

    fn look_at(&self, path: &Path, pid: i32, look: &mut Look) {
        let descriptors = match std::fs::read_dir(path.join("fd")) {
            Ok(descriptors) => descriptors,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                look.closed += 1;
                return;
            }
            Err(_) => return,
        };
        for descriptor in descriptors.flatten() {
            let Ok(target) = std::fs::read_link(descriptor.path()) else { continue };
            let Some(name) = memfd_name(target.as_os_str()) else { continue };
            let Some(version) = name.strip_prefix(b"cci-counters/") else { continue };
            let what = if name == Snapshot::NAME.as_bytes() {
                read(&descriptor.path()).map_err(|why| why.to_string())
            } else {
                let version = String::from_utf8_lossy(version).chars().filter(char::is_ascii_digit).collect::<String>();
                Err(format!("its counters have the layout {version} of another version of cci"))
            };
            match what {
                // The page of another process, inherited or passed on, is that one's to show.
                Ok((_, snapshot)) if own_pid(path) != Some(snapshot.pid) => {}
                Ok((file, _)) if look.endpoints.iter().any(|endpoint| endpoint.pid == pid && endpoint.file == file) => {
                }
                Ok((file, snapshot)) => {
                    let (command, state) = described(path);
                    look.endpoints.push(WatchedEndpoint { pid, command, state, file, snapshot });
                }
                Err(why) => look.refused.push(InvalidPage { pid, command: described(path).0, why }),
            }
        }
    }
}

/// The name that a memfd was made with; none: it is something else.
fn memfd_name(target: &OsStr) -> Option<&[u8]> {
    target.as_bytes().strip_prefix(MEMFD)?.strip_suffix(DELETED)
}

/// Reads a page through a descriptor of another process. It is looked at before it is opened, since
/// opening may have effects, and opened through what was looked at, since the process may put
/// something else in its place.
fn read(path: &Path) -> Result<((u64, u64), Snapshot), Unreadable> {
    let system = |error: Errno| Unreadable::System(error.into());
    let found = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(system)?;
    let stat = rustix::fs::fstat(&found).map_err(system)?;
    let on = rustix::fs::fstatfs(&found).map_err(system)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || on.f_type as i64 != TMPFS {
        return Err(Unreadable::NotComplete);
    }
    let again = format!("/proc/self/fd/{}", found.as_fd().as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(again, flags, Mode::empty()).map_err(system)?);
    let snapshot = Snapshot::take(|bytes| file.read_at(bytes, 0))?;
    Ok(((stat.st_dev, stat.st_ino), snapshot))
}

/// The process's number in its own name space.
fn own_pid(path: &Path) -> Option<u32> {
    pid_of(&std::fs::read_to_string(path.join("status")).ok()?)
}

/// The process number in a `/proc/PID/status`, in the process's own name space.
pub(crate) fn pid_of(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

/// Name of the program, without what could move a terminal's cursor, and the state.
fn described(path: &Path) -> (String, char) {
    name_and_state(&std::fs::read(path.join("stat")).unwrap_or_default())
}

/// What `described` returns of a `/proc/PID/stat`.
pub(crate) fn name_and_state(stat: &[u8]) -> (String, char) {
    let stat = String::from_utf8_lossy(stat);
    // The name stands in brackets and may have brackets itself.
    let (Some(begin), Some(end)) = (stat.find('('), stat.rfind(')')) else { return ("?".into(), '?') };
    let name = stat.get(begin + 1..end).unwrap_or("?");
    let name = name.chars().map(|char| if char.is_control() { '?' } else { char }).collect();
    (name, stat[end..].chars().nth(2).unwrap_or('?'))
}

/// Now, as the endpoints' clocks say it.
fn now() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memfd_has_the_name_it_was_made_with() {
        let name = |text: &str| memfd_name(OsStr::new(text)).map(|name| String::from_utf8_lossy(name).into_owned());
        assert_eq!(name("/memfd:cci-counters/1 (deleted)").as_deref(), Some("cci-counters/1"));
        assert_eq!(name("/memfd:cci-counters/1"), None, "a file with that name");
        assert_eq!(name("/tmp/memfd:x (deleted)"), None);
        assert_eq!(name("socket:[12]"), None);
    }

    #[test]
    fn processes_of_others_are_counted_and_left_alone() {
        let user = rustix::process::geteuid().as_raw();
        let mut scope = Scope { proc: "/proc".into(), user: user.wrapping_add(1), pids: vec![] };
        let look = scope.look().unwrap();
        assert!(look.others > 0 && look.closed == 0, "{look:?}");
        scope.pids = vec![i32::try_from(std::process::id()).unwrap()];
        assert_eq!(scope.look().unwrap().others, 0, "one that is asked for is looked at");
    }

    #[test]
    fn without_processes_there_is_an_error() {
        let scope = Scope { proc: "/nowhere".into(), user: 0, pids: vec![] };
        assert!(scope.look().is_err());
    }
}
