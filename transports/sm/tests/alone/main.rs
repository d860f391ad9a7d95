//! The transport `sm`: tests of which one runs at a time ([`cci_conformance::alone`]), since they
//! count descriptors, measure processor time, or have other processes killed.

#![forbid(unsafe_code)]

mod announcements;
mod blocking;
mod copies;
mod exhaustion;
mod fork;
mod given_up;
mod handshake;
mod hostile;
mod idle;
mod kill;
mod large;
mod lifetimes;
mod limits;
mod many_large;
mod processes;
mod registrations;
mod scale;
mod shares;

use std::path::Path;
use std::sync::LazyLock;

/// The program whose roles other processes play.
fn program() -> &'static str {
    static PROGRAM: LazyLock<String> = LazyLock::new(|| {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = cci_conformance::build_example("cci-sm", "sm-peer", tmp);
        path.into_os_string().into_string().expect("the path of a program")
    });
    &PROGRAM
}
