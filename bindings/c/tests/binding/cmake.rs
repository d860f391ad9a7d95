//! The installed library as projects of CMake find it.

use crate::prefix::{command, prefix, root, scratch, succeed};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const PROJECT: &str = "cmake_minimum_required(VERSION 3.13)
project(hello C)
find_package(cci 2.2 REQUIRED)
foreach(kind cci shared static)
    add_executable(${kind} echo_client.c)
    target_link_libraries(${kind} PRIVATE cci::${kind})
endforeach()
";

/// Configures a project in `dir`, and says what CMake printed, and whether it was content.
fn configure(dir: &Path, project: &str, more: &[&str]) -> (bool, String) {
    std::fs::write(dir.join("CMakeLists.txt"), project).expect("a file");
    for file in ["echo_client.c", "example.h"] {
        std::fs::copy(root().join("examples/c").join(file), dir.join(file)).expect("an example");
    }
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(dir).arg("-B").arg(dir.join("build")).args(more);
    let output = cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display())).output().expect("cmake runs");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

fn is_installed() -> bool {
    let is_there = Command::new("cmake").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_there {
        let _ = writeln!(std::io::stderr(), "skipped: cmake is not installed");
    }
    is_there
}

#[test]
fn a_project_of_cmake_links_the_shared_and_the_static_library() {
    if !is_installed() {
        return;
    }
    let dir = scratch();
    let (is_well, text) = configure(dir.path(), PROJECT, &[]);
    assert!(is_well, "{text}");
    let build = dir.path().join("build");
    succeed(Command::new("cmake").arg("--build").arg(&build));
    let needs = |name: &str| {
        let output = succeed(Command::new("readelf").arg("-d").arg(build.join(name)));
        String::from_utf8_lossy(&output.stdout).contains("libcci.so.2")
    };
    assert_eq!(["cci", "shared", "static"].map(needs), [true, true, false]);
    for name in ["cci", "static"] {
        // It starts, and says what it lacks.
        let output = command(&build.join(name)).output().expect("the program starts");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("usage:"), "{name}: {output:?}");
    }
}

#[test]
fn a_project_may_ask_for_the_static_library_and_for_a_version() {
    if !is_installed() {
        return;
    }
    let dir = scratch();
    let (is_well, text) = configure(dir.path(), PROJECT, &["-DCCI_USE_STATIC_LIBS=ON"]);
    assert!(is_well, "{text}");
    succeed(Command::new("cmake").arg("--build").arg(dir.path().join("build")).args(["--target", "cci"]));
    let output = succeed(Command::new("readelf").arg("-d").arg(dir.path().join("build/cci")));
    assert!(!String::from_utf8_lossy(&output.stdout).contains("libcci.so.2"));
    for version in ["2.3", "3.0", "1.0", "0.9", "0.2.0"] {
        let dir = scratch();
        let (is_well, text) = configure(dir.path(), &PROJECT.replace("cci 2.2", &format!("cci {version}")), &[]);
        assert!(!is_well && text.contains("version: 2.2.0"), "{version}: {text}");
    }
}
