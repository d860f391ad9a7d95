//! Memory of peers, mapped into this process (`ccix.h`).

use crate::status::Refusal;
use crate::{guard, handles};
use cci::__binding::{self as raw, ConnectionCell, Imported, Ordering, PerProcess};
use cci::{Failure, RmaHandle};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The imports of this process, by their numbers, which are never used again.
#[derive(Default)]
struct Imports {
    last: u64,
    held: HashMap<u64, Imported>,
}

static IMPORTS: PerProcess<Mutex<Imports>> = PerProcess::new();

fn imports() -> Result<MutexGuard<'static, Imports>, Refusal> {
    let (_, imports) = IMPORTS.get(Mutex::default).map_err(|_| Refusal::NoMemory)?;
    Ok(imports.lock().unwrap_or_else(PoisonError::into_inner))
}

const UNKNOWN: Refusal = Refusal::Argument("no such import; released already, or of the process before a fork?");

/// # Safety
///
/// `connection` is NULL or was a connection once; `remote_handle` is NULL or readable; the others
/// are NULL or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn ccix_import(
    connection: *const ConnectionCell,
    remote_handle: *const RmaHandle,
    ptr: *mut *mut c_void,
    length: *mut u64,
    flags: *mut c_int,
    import: *mut u64,
) -> c_int {
    // SAFETY: by the contract above.
    guard::on_connection(unsafe { handles::connection(connection) }, |named| {
        handles::present(ptr)?;
        handles::present(length)?;
        handles::present(flags)?;
        handles::present(import)?;
        // SAFETY: by the contract above.
        let handle = unsafe { crate::rma::handle(remote_handle) }?;
        let imported = raw::import(named.endpoint, || named.live(), &handle)?;
        let mut imports = imports()?;
        imports.last += 1;
        let start = std::ptr::with_exposed_provenance_mut(imported.memory.start());
        // SAFETY: writable by the contract above.
        unsafe {
            handles::store(ptr, start)?;
            handles::store(length, imported.memory.len())?;
            handles::store(flags, imported.rights.bits().cast_signed())?;
            handles::store(import, imports.last)?;
        }
        let number = imports.last;
        imports.held.insert(number, imported);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn ccix_check_import(import: u64) -> c_int {
    guard::call(|| {
        let imports = imports()?;
        let imported = imports.held.get(&import).ok_or(UNKNOWN)?;
        if imported.ended.load(Ordering::Acquire) { Err(Refusal::Failed(Failure::RemoteHandle)) } else { Ok(()) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn ccix_release_import(import: u64) -> c_int {
    guard::call(|| {
        // Unmapped without the lock.
        let released = imports()?.held.remove(&import);
        released.map(drop).ok_or(UNKNOWN)
    })
}
