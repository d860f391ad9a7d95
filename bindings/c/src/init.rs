//! Initialization: counted, repeatable, and afresh in a forked child.

use crate::arguments::MISSING;
use crate::library::{Opened, with_library};
use crate::status::Refusal;
use crate::table::Table;
use crate::{endpoint, guard};
use cci::__binding::{Out, begin_log};
use cci::{Context, OpenError, Status};
use std::ffi::c_int;
use std::io::Write;
use std::time::{Duration, Instant};

/// How long `cci_finalize` waits for peers that copy.
const COPY_LIMIT: Duration = Duration::from_millis(100);

/// `CCI_ABI_VERSION`.
const ABI_VERSION: u32 = 2;

#[unsafe(no_mangle)]
extern "C" fn cci_init(abi_ver: u32, _flags: u32, caps: Out<'_, u32>) -> c_int {
    guard::call(|| {
        if abi_ver != ABI_VERSION {
            return Err(Refusal::Argument("this library has ABI version 2; compile the program with its cci.h"));
        }
        let caps = caps.variable(MISSING)?;
        with_library(|library| {
            match library {
                Some(opened) => opened.count += 1,
                None => *library = Some(open()?),
            }
            Ok(())
        })?;
        caps.put(0);
        Ok(())
    })
}

fn open() -> Result<Opened, Refusal> {
    begin_log();
    // The library never prints uninvited. The hook is this library's own: it has its own copy of
    // Rust's runtime.
    if !is_talkative() {
        std::panic::set_hook(Box::new(|_| ()));
    }
    let context = Context::new().map_err(|error| {
        report(&error);
        // Whatever is wrong with the configuration, the program sees the status of a wrong
        // argument.
        let status = if error.status == Status::NoMem { Status::NoMem } else { Status::Inval };
        OpenError { status, ..error }
    })?;
    let table = Table::new(&context);
    Ok(Opened { context, table, job: None, endpoints: Vec::new(), count: 1 })
}

/// A mistake in the configuration, for whoever has asked to hear of such things.
fn report(error: &OpenError) {
    if is_talkative() {
        // There is nowhere else to complain when standard error is closed.
        let _ = writeln!(std::io::stderr(), "cci: {error}");
    }
}

#[unsafe(no_mangle)]
extern "C" fn cci_finalize() -> c_int {
    guard::call(|| {
        let begun = Instant::now();
        let last = with_library(|library| {
            let opened = library.as_mut().ok_or(Refusal::NotInitialized)?;
            opened.count -= 1;
            Ok(if opened.count == 0 { library.take() } else { None })
        })?;
        // Without the library's lock: closing waits for acknowledgements.
        for (cell, generation) in last.iter().flat_map(|opened| &opened.endpoints) {
            endpoint::close_left_open(cell, *generation);
        }
        let Some(opened) = last else { return Ok(()) };
        let waited = cci::wait_for_copies(COPY_LIMIT.saturating_sub(begun.elapsed()));
        if waited.is_err() {
            stay_initialized(opened)?;
        }
        Ok(waited?)
    })
}

/// A peer still copies: the program calls `cci_finalize` again.
fn stay_initialized(mut opened: Opened) -> Result<(), Refusal> {
    opened.endpoints.clear();
    opened.count = 1;
    with_library(|library| {
        match library {
            // Another thread has called `cci_init` meanwhile.
            Some(other) => other.count += 1,
            None => *library = Some(opened),
        }
        Ok(())
    })
}

/// Whether `CCI_DEBUG` asks for words on stderr.
fn is_talkative() -> bool {
    std::env::var_os("CCI_DEBUG").is_some_and(|words| !words.is_empty())
}
