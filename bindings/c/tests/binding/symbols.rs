//! Nothing but the listed symbols leaves the library.

use crate::prefix::{build, command, compiler, here, pkg_config, prefix, run, scratch, succeed, succeeds};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn listed() -> BTreeSet<String> {
    let text = std::fs::read_to_string(here().join("exported.list")).expect("the list");
    let names: Vec<String> = text.lines().map(str::to_owned).collect();
    assert!(names.is_sorted(), "exported.list is not sorted");
    names.into_iter().collect()
}

/// Names in the last column of what `nm` says.
fn defined(arguments: &[&str], library: &Path) -> BTreeSet<String> {
    let output = succeed(Command::new("nm").args(arguments).arg("--defined-only").arg(library));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let symbols = text.lines().filter(|line| line.split_whitespace().count() == 3);
    symbols.filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

#[test]
fn the_shared_library_exports_the_list() {
    assert_eq!(defined(&["--dynamic"], &prefix().join("lib/libcci.so.2")), listed());
}

#[test]
fn the_static_library_exports_the_list() {
    assert_eq!(defined(&["--extern-only"], &prefix().join("lib/libcci.a")), listed());
}

/// As many sections for debuggers as the static library has below `prefix`.
fn debug_sections(prefix: &Path) -> usize {
    let output = succeed(Command::new("readelf").arg("-SW").arg(prefix.join("lib/libcci.a")));
    String::from_utf8_lossy(&output.stdout).matches(" .debug_").count()
}

/// A release is stripped, and its static library by the installer, since the compiler does not
/// strip archives.
#[test]
fn the_static_library_is_stripped_with_the_shared_one() {
    assert_ne!(debug_sections(prefix()), 0, "what this test was built with has debug sections");
    let dir = scratch();
    for library in ["libcci_c.so", "libcci_c.a"] {
        std::fs::copy(build().join(library), dir.path().join(library)).expect("the library is copied");
    }
    succeed(Command::new("strip").arg(dir.path().join("libcci_c.so")));
    let installed = dir.path().join("prefix");
    succeed(Command::new(here().join("install.sh")).arg(dir.path()).arg(&installed));
    assert_eq!(debug_sections(&installed), 0);
    assert_eq!(defined(&["--dynamic"], &installed.join("lib/libcci.so.2")), listed());
    assert_eq!(defined(&["--extern-only"], &installed.join("lib/libcci.a")), listed());
}

#[test]
fn the_shared_library_is_named_libcci_so_2() {
    let library = prefix().join("lib/libcci.so");
    assert_eq!(std::fs::read_link(&library).expect("a link"), Path::new("libcci.so.2"));
    let output = succeed(Command::new("objdump").arg("-p").arg(&library));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let name = text.lines().find_map(|line| line.trim().strip_prefix("SONAME")).map(str::trim);
    assert_eq!(name, Some("libcci.so.2"));
}

/// Threads of the library may outlive its last use, so that unloading it must leave their code
/// mapped.
#[test]
fn dlclose_does_not_unmap_the_library() {
    let dir = scratch();
    let target = dir.path().join("unload");
    let mut cc = compiler("c");
    cc.args(["-std=c99", "-D_DEFAULT_SOURCE", "-o"]).arg(&target).arg(here().join("tests/c/unload.c")).arg("-ldl");
    succeed(cc.args(pkg_config(&["--cflags"])));
    succeeds(command(&target).env("CCI_CTP", "sock"), "unload");
    // Not by chance: DF_1_NODELETE says so.
    let output = succeed(Command::new("objdump").arg("-p").arg(prefix().join("lib/libcci.so")));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let flags = text.lines().find_map(|line| line.trim().strip_prefix("FLAGS_1")).map(str::trim);
    let flags = flags.and_then(|flags| u64::from_str_radix(flags.trim_start_matches("0x"), 16).ok());
    assert!(flags.is_some_and(|flags| flags & 8 != 0), "{flags:x?}");
}

#[test]
fn headers_declare_what_the_list_names() {
    let mut declared = BTreeSet::new();
    for header in ["cci.h", "ccix.h"] {
        let text = std::fs::read_to_string(prefix().join("include").join(header)).expect("a header");
        for declaration in text.split("CCI_DECLSPEC ").skip(1) {
            let name = declaration.split('(').next().and_then(|before| before.rsplit([' ', '*']).next());
            declared.extend(name.filter(|name| name.starts_with("cci")).map(str::to_owned));
        }
    }
    assert_eq!(declared, listed());
}

#[test]
fn a_program_links_with_the_static_library() {
    let dir = scratch();
    let target = dir.path().join("lifecycle");
    let mut cc = compiler("c");
    cc.args(["-std=c99", "-D_DEFAULT_SOURCE", "-o"]).arg(&target).arg(here().join("tests/c/lifecycle.c"));
    cc.args(pkg_config(&["--cflags"])).arg(prefix().join("lib/libcci.a"));
    let private = pkg_config(&["--static", "--libs"]).into_iter().filter(|flag| flag != "-lcci");
    succeed(cc.args(private));
    let libraries = succeed(command(Path::new("ldd")).arg(&target));
    assert!(!String::from_utf8_lossy(&libraries.stdout).contains("libcci"), "linked with the shared library after all");
    run(&target);
}
