//! Which C library a program finds first.

use super::finding::{Finding, Verdict};
use super::host::Host;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const SUBJECT: &str = "C library";
const NAME: &str = "libcci.so.2";
/// Stands in the library before its release: see `ccix_release`.
const MARK: &[u8] = b"cci release ";
/// Where the loader looks after the folders of `LD_LIBRARY_PATH`, with those of Debian's kind.
const FOLDERS: [&str; 4] = ["usr/local/lib", "lib", "usr/lib", "usr/lib64"];

/// None where no library is installed.
pub(super) fn findings(host: &Host, search: Option<&OsStr>) -> Vec<Finding> {
    let named = search.into_iter().flat_map(std::env::split_paths).filter(|folder| !folder.as_os_str().is_empty());
    let named = named.map(|folder| host.path(folder.strip_prefix("/").map(Path::to_owned).unwrap_or(folder)));
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let usual = FOLDERS.iter().flat_map(|folder| [host.path(folder).join(&triplet), host.path(folder)]);
    let mut found: Vec<PathBuf> = Vec::new();
    for path in named.chain(usual).map(|folder| folder.join(NAME)) {
        let Ok(path) = path.canonicalize() else { continue };
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found.split_first().map(|(first, others)| judge(first, others)).into_iter().collect()
}

fn judge(first: &Path, others: &[PathBuf]) -> Finding {
    let shown = first.display();
    let own = env!("CARGO_PKG_VERSION");
    let found = match release(&std::fs::read(first).unwrap_or_default()) {
        Some(release) if release == own => {
            return Finding::ok(SUBJECT, format!("{shown}, release {release}"));
        }
        Some(release) => format!("{shown} is of release {release}, this command of {own}"),
        None => format!("{shown} is found first, and is not of this project"),
    };
    let others: Vec<_> = others.iter().map(|path| path.display().to_string()).collect();
    let found = if others.is_empty() { found } else { format!("{found}; there is also {}", others.join(", ")) };
    let remedy = format!("name the folder of the library of release {own} first in LD_LIBRARY_PATH, or remove {shown}");
    Finding::with_remedy(SUBJECT, Verdict::Hint, found, remedy)
}

/// The release that a library of this project contains.
fn release(library: &[u8]) -> Option<&str> {
    let at = library.windows(MARK.len()).position(|window| window == MARK)? + MARK.len();
    let text = library[at..].split(|byte| *byte == 0).next()?;
    std::str::from_utf8(text).ok().filter(|text| text.len() < 32)
}

#[cfg(test)]
mod tests {
    use super::super::host::tests::FakeHost;
    use super::*;

    fn library(release: &str) -> String {
        format!("\u{7f}ELF\0cci release {release}\0more")
    }

    #[test]
    fn an_older_library_that_is_found_first_is_named() {
        let own = library(env!("CARGO_PKG_VERSION"));
        let fake = FakeHost::new(&[("usr/lib/libcci.so.2", &*own), ("opt/old/libcci.so.2", &library("0.0.1"))]);
        let found = findings(&fake.host(), None);
        assert_eq!(found[0].verdict, Verdict::Ok);
        let found = findings(&fake.host(), Some(OsStr::new("/opt/old:/none")));
        assert_eq!(found[0].verdict, Verdict::Hint);
        assert!(
            found[0].found.contains("release 0.0.1") && found[0].found.contains("usr/lib/libcci.so.2"),
            "{found:?}"
        );
    }

    #[test]
    fn a_library_of_another_project_is_told() {
        let fake = FakeHost::new(&[("usr/local/lib/libcci.so.2", "\u{7f}ELF")]);
        let found = findings(&fake.host(), None);
        assert!(found[0].found.contains("not of this project"), "{found:?}");
        assert_eq!(findings(&FakeHost::new(&[]).host(), None), []);
    }
}
