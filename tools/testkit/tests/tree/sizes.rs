//! Files that nobody meant to commit, such as core dumps, are found by their size.

use crate::pages::{files, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// No page, source or input of a test comes near it, bytes.
const LARGEST: u64 = 256 * 1024;

/// What is committed; in an unpacked archive, where no repository is, all there is.
fn committed(root: &Path) -> Vec<PathBuf> {
    let listed = Command::new("git").current_dir(root).args(["ls-files", "-z"]).output();
    match listed {
        Ok(listed) if listed.status.success() && root.join(".git").exists() => {
            let names = String::from_utf8(listed.stdout).expect("names in UTF-8");
            names.split_terminator('\0').map(PathBuf::from).collect()
        }
        _ => files(&[""]),
    }
}

fn too_large(root: &Path, files: &[PathBuf]) -> Vec<String> {
    let size = |file: &PathBuf| std::fs::symlink_metadata(root.join(file)).map_or(0, |found| found.len());
    let sizes = files.iter().map(|file| (file, size(file)));
    sizes.filter(|(_, size)| *size > LARGEST).map(|(file, size)| format!("{}: {size} bytes", file.display())).collect()
}

#[test]
fn no_file_is_as_large_as_a_core_dump() {
    let root = root();
    let files = committed(&root);
    assert!(files.len() > 1000, "{} files", files.len());
    assert_eq!(too_large(&root, &files), [""; 0], "take them out of the commits that have them");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::File::create(folder.path().join("core")).and_then(|dump| dump.set_len(LARGEST + 1)).expect("a file");
    assert_eq!(too_large(folder.path(), &["core".into()]).len(), 1);
}
