//! The headers, held against the facts, in C99 and C++17.

use crate::prefix::{INSTALLED, STRICT, compiler, here, pkg_config, scratch, succeed};

fn compile(language: &str, standard: &str, source: &str) {
    let dir = scratch();
    let mut cc = compiler(language);
    cc.args(["-x", language, standard]).args(STRICT).args(["-c", "-o"]).arg(dir.path().join("out.o"));
    cc.arg(here().join("tests/c").join(source));
    succeed(cc.args(pkg_config(&["--cflags"])));
}

/// Each assertion of the program is one of the compiler: sizes, offsets, constants, and the types
/// of the functions.
#[test]
fn every_structure_and_constant_is_as_agreed_in_c99() {
    compile("c", "-std=c99", "layout.c");
}

#[test]
fn every_structure_and_constant_is_as_agreed_in_c11() {
    compile("c", "-std=c11", "layout.c");
}

#[test]
fn every_structure_and_constant_is_as_agreed_in_cxx17() {
    compile("c++", "-std=c++17", "layout.c");
}

/// What the user would see if `cci.h` leaned on something that it does not include.
#[test]
fn each_header_stands_alone() {
    ["cci.h", "ccix.h"].iter().for_each(|header| INSTALLED.stands_alone("cci", header, &[]));
}
