//! Gives the shared library its name, and keeps it mapped for its threads.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcci-fi.so");
    // libfabric closes its providers as the program ends, when threads may still run their code.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
