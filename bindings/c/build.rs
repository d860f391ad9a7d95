//! Gives the shared library the name that programs are linked against, and keeps it mapped for its
//! threads.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcci.so.2");
    // A thread that looks a host's name up may outlive the last endpoint: dlclose must not unmap
    // its code.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
