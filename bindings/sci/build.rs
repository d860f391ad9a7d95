//! Gives the shared library its name, and keeps it mapped for its threads.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsisci.so.2");
    // Its threads may outlive its last use: dlclose must not unmap their code.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
