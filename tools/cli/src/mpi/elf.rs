//! What a program or a library needs: the dynamic section of an ELF file.

use std::path::{Path, PathBuf};

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;

const NEEDED: u64 = 1;
const STRINGS: u64 = 5;
const RPATH: u64 = 15;
const RUNPATH: u64 = 29;

/// The libraries that a file needs, and where it looks for them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) libraries: Vec<String>,
    pub(super) folders: Vec<PathBuf>,
}

/// A part of the file, and where it is in memory.
struct Part {
    kind: u32,
    offset: usize,
    address: u64,
    length: usize,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(N)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn place(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(number::<8>(bytes, at)?).ok()
}

/// What the file at this path needs, which has these bytes. `None`: it is no ELF file of 64 bits,
/// or a broken one.
pub(super) fn needs(path: &Path, bytes: &[u8]) -> Option<Needs> {
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let parts = parts(bytes)?;
    let Some(dynamic) = parts.iter().find(|part| part.kind == DYNAMIC) else { return Some(Needs::default()) };
    let table = bytes.get(dynamic.offset..dynamic.offset.checked_add(dynamic.length)?)?;
    let entries: Vec<(u64, u64)> = table
        .chunks_exact(16)
        .filter_map(|entry| Some((number::<8>(entry, 0)?, number::<8>(entry, 8)?)))
        .take_while(|(tag, _)| *tag != 0)
        .collect();
    let strings = entries.iter().find(|(tag, _)| *tag == STRINGS)?.1;
    let of = |part: &&Part| part.kind == LOAD && (part.address..part.address + part.length as u64).contains(&strings);
    let part = parts.iter().find(of)?;
    let strings = part.offset.checked_add(usize::try_from(strings - part.address).ok()?)?;
    let text = |at: u64| {
        let text = bytes.get(strings.checked_add(usize::try_from(at).ok()?)?..)?;
        let end = text.iter().position(|byte| *byte == 0)?;
        str::from_utf8(&text[..end]).ok()
    };
    let all =
        |tags: &'static [u64]| entries.iter().filter(|(tag, _)| tags.contains(tag)).filter_map(|(_, at)| text(*at));
    let origin = path.parent().unwrap_or(Path::new("/")).to_string_lossy();
    let folder = |text: &str| text.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin).into();
    Some(Needs {
        libraries: all(&[NEEDED]).map(str::to_owned).collect(),
        folders: all(&[RUNPATH, RPATH]).flat_map(|path| path.split(':')).map(folder).collect(),
    })
}

fn parts(bytes: &[u8]) -> Option<Vec<Part>> {
    let (table, size) = (place(bytes, 0x20)?, usize::try_from(number::<2>(bytes, 0x36)?).ok()?);
    let part = |index: usize| {
        let at = table.checked_add(index.checked_mul(size)?)?;
        let address = number::<8>(bytes, at.checked_add(16)?)?;
        let length = place(bytes, at.checked_add(32)?)?;
        // What wraps is broken.
        address.checked_add(length as u64)?;
        Some(Part { kind: number::<4>(bytes, at)? as u32, offset: place(bytes, at.checked_add(8)?)?, address, length })
    };
    (0..usize::try_from(number::<2>(bytes, 0x38)?).ok()?).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_needs_the_library_of_c() {
        let path = std::env::current_exe().expect("a path");
        let bytes = std::fs::read(&path).expect("a program");
        let needs = needs(&path, &bytes).expect("an ELF file");
        assert!(
            needs.libraries.iter().any(|name| name.starts_with("libc.so.") || name.starts_with("ld-")),
            "{needs:?}"
        );
    }

    /// A file with a dynamic section: one that needs two libraries.
    fn file() -> Vec<u8> {
        let strings = b"\0libmpi.so.12\0libfabric.so.1\0$ORIGIN:$ORIGIN/mpich:/opt\0";
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[0x20] = 64;
        bytes[0x36] = 56;
        bytes[0x38] = 2;
        let parts = 64 + 2 * 56;
        let dynamic = [(NEEDED, 1), (NEEDED, 14), (STRINGS, 0x1000 + 80), (RUNPATH, 29), (0, 0)];
        let length = 80 + strings.len() as u64;
        for (kind, address, length) in [(LOAD, 0x1000, length), (DYNAMIC, 0x1000, 80)] {
            bytes.extend(u64::from(kind).to_le_bytes());
            for field in [parts, address, address, length, length, 8] {
                bytes.extend(u64::to_le_bytes(field));
            }
        }
        dynamic.iter().for_each(|(tag, value)| bytes.extend([tag.to_le_bytes(), u64::to_le_bytes(*value)].concat()));
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn libraries_and_folders_are_read_and_no_broken_file_panics() {
        let (path, bytes) = (Path::new("/venv/lib/libmpi.so"), file());
        let expected = Needs {
            libraries: vec!["libmpi.so.12".into(), "libfabric.so.1".into()],
            folders: ["/venv/lib", "/venv/lib/mpich", "/opt"].map(PathBuf::from).into(),
        };
        assert_eq!(needs(path, &bytes), Some(expected));
        assert_eq!(needs(path, b"#!/bin/sh\n"), None);
        for end in 0..bytes.len() {
            let _ = needs(path, &bytes[..end]);
        }
        for at in 0..bytes.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut broken = bytes.clone();
                broken[at] = byte;
                let _ = needs(path, &broken);
            }
        }
    }
}
