//! Memory of peers, mapped into this process (`ccix.h`).

use crate::arguments::MISSING;
use crate::guard;
use crate::handles::Handle;
use crate::status::Refusal;
use cci::__binding::{self as raw, ConnectionCell, Imported, Ordering, PerProcess};
use cci::__binding::{In, Out};
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

#[unsafe(no_mangle)]
extern "C" fn ccix_import(
    connection: Handle<ConnectionCell>,
    remote_handle: In<'_, RmaHandle>,
    ptr: Out<'_, *mut c_void>,
    length: Out<'_, u64>,
    flags: Out<'_, c_int>,
    import: Out<'_, u64>,
) -> c_int {
    guard::on_connection(connection.get(), |named| {
        let (ptr, length, flags, import) =
            (ptr.variable(MISSING)?, length.variable(MISSING)?, flags.variable(MISSING)?, import.variable(MISSING)?);
        let handle = crate::rma::handle(remote_handle)?;
        let imported = raw::import(named.endpoint, || named.live(), &handle)?;
        let mut imports = imports()?;
        imports.last += 1;
        ptr.put(std::ptr::with_exposed_provenance_mut(imported.memory.start()));
        length.put(imported.memory.len());
        flags.put(imported.rights.bits().cast_signed());
        import.put(imports.last);
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
