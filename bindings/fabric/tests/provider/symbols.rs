//! The symbols of the library, its record, and what libfabric's own command makes of it.

use crate::library::{FOLDER, PROVIDER, file};
use cci_fabric_sys::fi_version;
use std::ffi::CStr;
use std::io::Write as _;
use std::process::{Command, Output};

fn symbols(kind: &str) -> Vec<String> {
    let listed = Command::new("nm").args(["-D", "--format=posix", kind]).arg(file()).output().expect("binutils");
    assert!(listed.status.success());
    let text = String::from_utf8(listed.stdout).expect("UTF-8");
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_entry_point_is_the_only_symbol_and_none_of_libfabric_is_missing() {
    assert_eq!(symbols("--defined-only"), [include_str!("../../exported.list").trim_end()]);
    let undefined = symbols("--undefined-only");
    assert!(undefined.len() > 10, "{undefined:?}");
    let missing: Vec<_> = undefined.iter().filter(|name| name.starts_with("fi_")).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_record_can_be_written_and_no_version_passes_over_it() {
    let record = PROVIDER.0;
    // SAFETY: nobody else touches the context, which libfabric writes.
    let (context, record) = unsafe {
        (*record).context.internal[3] = record.cast();
        ((*record).context.internal[3], &*record)
    };
    assert_eq!(context, PROVIDER.0.cast());
    assert_eq!((record.version, record.fi_version), (fi_version(0, 2), fi_version(2, 99)));
    // SAFETY: a text with its end.
    assert_eq!(unsafe { CStr::from_ptr(record.name) }, c"cci");
    assert!(record.getinfo.is_some() && record.fabric.is_some() && record.cleanup.is_some());
}

/// What `fi_info` answers that finds no provider but this one; `None`: it is not installed.
fn fi_info(arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new("fi_info");
    command.env("FI_PROVIDER_PATH", FOLDER.path()).env("CCI_LOG", "info").args(["-p", "cci"]).args(arguments);
    let done = command.output();
    if done.is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: fi_info is not installed (apt-get install libfabric-bin)");
    }
    done.ok()
}

#[test]
fn libfabric_lists_the_provider_and_its_log_names_what_is_missing() {
    let Some(listed) = fi_info(&[]) else { return };
    let text = String::from_utf8_lossy(&listed.stdout);
    let expected = ["provider: cci", "fabric: cci", "domain: cci", "type: FI_EP_RDM"];
    assert!(listed.status.success() && expected.iter().all(|line| text.contains(line)), "{listed:?}");
    assert_eq!(text.matches("provider:").count(), 1, "a utility lies over it: {text}");

    let refused = fi_info(&["-c", "FI_ATOMIC"]).expect("it was there before");
    let log = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && log.contains("caps has FI_ATOMIC, which cci does not offer"), "{log}");
}
