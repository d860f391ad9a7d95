//! What a core dump of another process would hold.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that are read at a time, and how many more of those behind them.
const PIECE: usize = 1 << 20;
const BEYOND: usize = 7;

/// A mapping of a process.
#[derive(Debug)]
pub struct Mapping {
    /// Its first byte.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// As `rw-p`, of proc(5).
    pub rights: String,
    /// The file behind it, or what the system calls it; empty otherwise.
    pub name: String,
    /// Whether a dump may hold it.
    pub is_dumped: bool,
}

/// The memory of another process of this user, which should wait meanwhile.
#[derive(Debug)]
pub struct Dump {
    memory: File,
    mappings: Vec<Mapping>,
}

impl Dump {
    /// Looks at a process.
    ///
    /// # Errors
    ///
    /// It has ended, or this process may not read its memory.
    ///
    /// # Panics
    ///
    /// The list of its mappings is not that of proc(5).
    pub fn of(process: u32) -> io::Result<Self> {
        let mappings = mappings(&std::fs::read_to_string(format!("/proc/{process}/smaps"))?);
        Ok(Self { memory: File::open(format!("/proc/{process}/mem"))?, mappings })
    }

    /// Returns its readable mappings.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Calls with the pieces of a mapping and where each begins. Each goes 7 bytes into the next
    /// one, so that words of 8 bytes are whole. What lies behind the end of a mapped file, or
    /// guards a stack, cannot be read, nor dumped.
    pub fn pieces(&self, mapping: &Mapping, mut each: impl FnMut(u64, &[u8])) {
        let mut piece = vec![0; PIECE + BEYOND];
        let end = mapping.start + mapping.len;
        for start in (mapping.start..end).step_by(PIECE) {
            let len = usize::try_from(end - start).unwrap_or(usize::MAX).min(piece.len());
            if self.memory.read_exact_at(&mut piece[..len], start).is_ok() {
                each(start, &piece[..len]);
            }
        }
    }
}

fn mappings(smaps: &str) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags: ") {
            found.last_mut().expect("a mapping").is_dumped = !flags.split(' ').any(|flag| flag == "dd");
        } else if let Some((range, rest)) = line.split_once(' ').filter(|(range, _)| range.contains('-')) {
            let (start, end) = range.split_once('-').expect("a range");
            let [start, end] = [start, end].map(|digits| u64::from_str_radix(digits, 16).expect("an address"));
            let mut words = rest.split_whitespace();
            let rights = words.next().unwrap_or_default().to_owned();
            let name = words.nth(3).unwrap_or_default().to_owned();
            found.push(Mapping { start, len: end - start, rights, name, is_dumped: true });
        }
    }
    found.retain(|mapping| mapping.rights.starts_with('r') && !mapping.name.starts_with("[v"));
    found
}
