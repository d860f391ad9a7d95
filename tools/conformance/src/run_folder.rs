//! Folders that tests share, and that a static holds.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Makes a folder for what the tests of one program share. A static is never dropped, so that a
/// `TempDir` in one stays for ever; this one is removed by the next program of tests that makes
/// one, once its own has ended. It lies in `tmp`, which is `CARGO_TARGET_TMPDIR` of that program.
///
/// # Panics
///
/// It cannot be made.
#[must_use]
pub fn run_folder(tmp: &Path) -> PathBuf {
    std::fs::create_dir_all(tmp).expect("cargo's folder for tests");
    remove_ended(tmp);
    let of_this = format!("{MADE}{}.", std::process::id());
    tempfile::Builder::new().prefix(&of_this).tempdir_in(tmp).expect("a folder").keep()
}

const MADE: &str = "run-";

/// Removes what programs made that have ended. Who has their number now keeps it longer.
fn remove_ended(tmp: &Path) {
    for entry in std::fs::read_dir(tmp).expect("a folder").flatten() {
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(MADE)?.split_once('.')).map(|(process, _)| process);
        if process.is_some_and(|process| !Path::new("/proc").join(OsStr::new(process)).exists()) {
            // Another program may remove it at the same time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_programs_have_made_is_removed() {
        let tmp = tempfile::tempdir().expect("a folder");
        let mut ended = std::process::Command::new("true").spawn().expect("a program");
        let left = tmp.path().join(format!("{MADE}{}.x", ended.id()));
        ended.wait().expect("it ends");
        std::fs::create_dir(&left).expect("a folder");
        std::fs::create_dir(tmp.path().join("other")).expect("a folder");
        let [first, second] = [(); 2].map(|()| run_folder(tmp.path()));
        assert!(!left.exists() && first.is_dir() && second.is_dir() && first != second);
        assert!(tmp.path().join("other").is_dir());
    }
}
