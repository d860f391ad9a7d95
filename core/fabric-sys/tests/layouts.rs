//! The layouts are those of each set of libfabric's headers that is found: a C compiler is given
//! the size of each structure, the place and size of each field, and each number.
//!
//! Sets are looked for in `/usr/include` and `/usr/local/include`, and in the folders of
//! `CCI_FABRIC_HEADERS`, which `:` separates: `rdma/fabric.h` is below each.

#![forbid(unsafe_code)]

use cci_fabric_sys::{CONSTANTS, STRUCTURES, fi_version};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const HEADERS: [&str; 12] = [
    "fabric.h",
    "fi_errno.h",
    "fi_domain.h",
    "fi_endpoint.h",
    "fi_eq.h",
    "fi_cm.h",
    "fi_rma.h",
    "fi_tagged.h",
    "fi_atomic.h",
    "fi_collective.h",
    "fi_trigger.h",
    "providers/fi_prov.h",
];

/// Structures that only headers of providers have, which distributions do not install.
const OF_PROVIDERS: [&str; 1] = ["fi_provider"];

struct Headers {
    folder: PathBuf,
    version: u32,
}

impl Headers {
    fn below(folder: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(folder.join("rdma/fabric.h")).ok()?;
        let number = |name: &str| -> Option<u16> {
            let line = text.lines().find(|line| line.contains(&format!("#define {name}")))?;
            line.split_whitespace().nth(2)?.parse().ok()
        };
        let version = fi_version(number("FI_MAJOR_VERSION")?, number("FI_MINOR_VERSION")?);
        // What will be 2.7 still calls itself 2.6.
        let is_ahead = folder.join("rdma/fi_xpu.h").exists();
        let version = if is_ahead { version.max(fi_version(2, 7)) } else { version };
        Some(Self { folder: folder.to_owned(), version })
    }

    fn has(&self, header: &str) -> bool {
        self.folder.join("rdma").join(header).exists()
    }

    /// A program that compiles only if all is as here; `shift` is added to each offset.
    fn program(&self, shift: usize) -> String {
        let mut text = String::from("#include <stddef.h>\n#include <poll.h>\n");
        let mut line = |line: String| writeln!(text, "{line}").expect("a string grows");
        HEADERS.iter().filter(|header| self.has(header)).for_each(|header| line(format!("#include <rdma/{header}>")));
        let is_there = |since: u32| since <= self.version;
        for structure in STRUCTURES.iter().copied().flatten().filter(|structure| is_there(structure.since)) {
            let name = structure.name;
            if OF_PROVIDERS.contains(&name) && !self.has("providers/fi_prov.h") {
                continue;
            }
            let size = structure.size_at(self.version);
            line(format!("_Static_assert(sizeof(struct {name}) == {size}, \"size of {name}\");"));
            for field in structure.fields.iter().filter(|field| is_there(field.since)) {
                let (of, offset, size) = (field.name.trim_start_matches("r#"), field.offset + shift, field.size);
                line(format!("_Static_assert(offsetof(struct {name}, {of}) == {offset}, \"offset of {name}.{of}\");"));
                if size > 0 {
                    let place = format!("((struct {name} *) 0)->{of}");
                    line(format!("_Static_assert(sizeof({place}) == {size}, \"size of {name}.{of}\");"));
                }
            }
        }
        for constant in CONSTANTS.iter().copied().flatten().filter(|constant| is_there(constant.since)) {
            let (name, value) = (constant.name, constant.value);
            line(format!("_Static_assert((unsigned long long) ({name}) == {value}ULL, \"{name}\");"));
        }
        text
    }

    /// What a compiler states against a program; nothing if it compiles.
    fn faults(&self, program: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("layouts.c");
        std::fs::write(&source, program).expect("a source");
        let mut compiler = Command::new("cc");
        let compiler = compiler.args(["-std=c11", "-w", "-fsyntax-only", "-I"]).arg(&self.folder).arg(source);
        let done = compiler.output().expect("a compiler");
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.success(), text.is_empty(), "{text}");
        text
    }
}

/// The sets that are found. A folder that is named and has none is an error.
fn found() -> Vec<Headers> {
    let named = std::env::var_os("CCI_FABRIC_HEADERS").unwrap_or_default();
    let named = std::env::split_paths(&named).filter(|folder| !folder.as_os_str().is_empty());
    let named = named.map(|folder| {
        Headers::below(&folder).unwrap_or_else(|| panic!("{} has no rdma/fabric.h with a version", folder.display()))
    });
    let usual = ["/usr/include", "/usr/local/include"].into_iter().filter_map(|folder| Headers::below(folder.as_ref()));
    usual.chain(named).collect()
}

fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// The sets, if there are any and a compiler; else a line states what is missing.
fn checked() -> Vec<Headers> {
    let sets = found();
    if sets.is_empty() {
        skipped("there are no headers of libfabric (apt-get install libfabric-dev)");
    }
    if Command::new("cc").arg("--version").output().is_err() {
        skipped("there is no C compiler");
        return Vec::new();
    }
    sets
}

#[test]
fn layouts_are_those_of_each_set_of_headers() {
    for set in checked() {
        let faults = set.faults(&set.program(0));
        assert!(faults.is_empty(), "{}, version {:#x}:\n{faults}", set.folder.display(), set.version);
    }
}

#[test]
fn a_layout_that_differs_is_found() {
    for set in checked() {
        let faults = set.faults(&set.program(8));
        for structure in ["fi_info.caps", "fi_domain_attr.name", "fid_ep.msg", "fi_ops_cq.read"] {
            assert!(faults.contains(&format!("offset of {structure}")), "{structure}: {faults}");
        }
    }
}
