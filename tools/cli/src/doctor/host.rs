//! The host that is examined: its files below a root, and its programs.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Where programs of administration lie.
const PROGRAMS: [&str; 4] = ["usr/sbin", "sbin", "usr/bin", "bin"];

/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A host, by the root of its file system: `/`, or one that a test has made.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    root: PathBuf,
}

impl Host {
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The place of a file; `path` begins without a slash.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// The text of a file without white space around it; `None`: it cannot be read.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = std::fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The number that a file consists of.
    pub(crate) fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// The names in a folder, sorted; none where it cannot be read.
    pub(crate) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A line of `/proc/self/status`, behind its key and colon.
    pub(crate) fn status(&self, key: &str) -> Option<String> {
        let text = self.text("proc/self/status")?;
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some(value.trim().to_owned())
    }

    /// Whether this process has a capability, by its number.
    pub(crate) fn is_capable(&self, capability: u32) -> bool {
        let set = self.status("CapEff").and_then(|set| u64::from_str_radix(&set, 16).ok());
        set.is_some_and(|set| set >> capability & 1 == 1)
    }

    /// What a program of the host prints; `None`: it is missing, ends with a status other than 0,
    /// or does not end: one that waits for a lock of the firewall is killed.
    pub(crate) fn output(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let path = PROGRAMS.iter().map(|folder| self.path(folder).join(program)).find(|path| path.is_file())?;
        let mut command = Command::new(path);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let ((end, ended), printed) = (channel(), child.stdout.take());
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = printed.map(|mut printed| printed.read_to_end(&mut bytes));
            // Nobody waits any more for one that took too long.
            let _ = end.send(read.is_some_and(|read| read.is_ok()).then_some(bytes));
        });
        let begun = Instant::now();
        let printed = ended.recv_timeout(PATIENCE).ok().flatten();
        // One may close its output and go on.
        while printed.is_some() && begun.elapsed() < PATIENCE && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // It fails only where the program has ended.
        let _ = child.kill();
        let is_done = child.wait().is_ok_and(|status| status.success());
        printed.filter(|_| is_done).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A host of files that a test names.
#[cfg(test)]
pub(super) mod tests {
    use super::Host;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;
    use tempfile::TempDir;

    pub(crate) struct FakeHost {
        folder: TempDir,
    }

    impl FakeHost {
        pub(crate) fn new(files: &[(&str, &str)]) -> Self {
            let host = Self { folder: TempDir::new().unwrap() };
            files.iter().fold(host, |host, (path, text)| host.with(path, text))
        }

        /// Adds a file, or writes it again.
        pub(crate) fn with(self, path: &str, text: &str) -> Self {
            let path = self.folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            self
        }

        /// Adds a program that prints a text for these arguments, and fails for others.
        pub(crate) fn with_program(self, name: &str, arguments: &str, text: &str) -> Self {
            let path = self.folder.path().join("usr/sbin").join(name);
            let before = std::fs::read_to_string(&path).unwrap_or_else(|_| "#!/bin/sh\n".into());
            let earlier = before.trim_end_matches("exit 1\n");
            let script = format!("{earlier}[ \"$*\" = '{arguments}' ] && cat <<'END' && exit 0\n{text}\nEND\nexit 1\n");
            let host = self.with(&format!("usr/sbin/{name}"), &script);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            host
        }

        pub(crate) fn host(&self) -> Host {
            Host::new(self.folder.path())
        }
    }

    #[test]
    fn files_below_the_root_are_read() {
        let fake =
            FakeHost::new(&[("proc/sys/a", "7\n"), ("proc/self/status", "CapEff:\t0000000000080000\nA:\tb c\n")]);
        let host = fake.host();
        assert_eq!((host.number("proc/sys/a"), host.number("proc/sys/b")), (Some(7), None));
        assert_eq!(host.status("A").as_deref(), Some("b c"));
        assert!(host.is_capable(19) && !host.is_capable(12));
        assert_eq!(host.names("proc"), ["self", "sys"]);
    }

    /// As one that waits for a lock of the firewall.
    #[test]
    fn a_program_that_does_not_end_prints_nothing() {
        let fake = FakeHost::new(&[("usr/sbin/tool", "#!/bin/sh\necho begun\nexec sleep 30\n")]);
        let path = fake.host().path("usr/sbin/tool");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let begin = std::time::Instant::now();
        assert_eq!(fake.host().output("tool", &[]), None);
        assert!(begin.elapsed() < Duration::from_secs(25), "{:?}", begin.elapsed());
    }

    #[test]
    fn a_program_that_fails_or_is_missing_prints_nothing() {
        let host = FakeHost::new(&[]).with_program("tool", "-k lo", "yes").with_program("tool", "-c lo", "no");
        assert_eq!(host.host().output("tool", &["-k", "lo"]).as_deref(), Some("yes\n"));
        assert_eq!(host.host().output("tool", &["-c", "lo"]).as_deref(), Some("no\n"));
        assert_eq!(host.host().output("tool", &["-x"]), None);
        assert_eq!(host.host().output("other", &[]), None);
    }
}
