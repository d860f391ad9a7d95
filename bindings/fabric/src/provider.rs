//! The one symbol of the library, and the record that it gives to libfabric.

use crate::answer::Answer;
use crate::attributes::offer;
use crate::boundary::guarded;
use crate::hints::Hints;
use crate::objects;
use crate::record::{self, Place};
use cci::__binding::begin_log;
use cci_fabric_sys::{
    FI_EINVAL, FI_ENODATA, FI_ENOMEM, FI_PROV_ATTR_ONLY, FI_SOURCE, fi_context, fi_info, fi_provider, fi_version,
};
use cci_mem::arguments::Out;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;
use std::sync::Once;

/// libfabric asks for providers beneath its utilities by this flag, which no header has.
const CORE_ONLY: u64 = 1 << 59;

/// No version of libfabric passes over a provider that states a newer one than its own.
const VERSION: u32 = fi_version(2, 99);

/// libfabric writes `context`, and nobody else writes or reads the record.
struct Provider(UnsafeCell<fi_provider>);

// SAFETY: the library only ever takes its address.
unsafe impl Sync for Provider {}

static PROVIDER: Provider = Provider(UnsafeCell::new(fi_provider {
    version: fi_version(0, 2),
    fi_version: VERSION,
    context: fi_context { internal: [null_mut(); 4] },
    name: c"cci".as_ptr(),
    getinfo: Some(getinfo),
    fabric: Some(objects::fabric),
    cleanup: Some(cleanup),
}));

/// Gives libfabric the record of this provider.
#[unsafe(no_mangle)]
extern "C" fn fi_prov_ini() -> *mut fi_provider {
    PROVIDER.0.get()
}

/// # Safety
///
/// As fi_getinfo(3) states: texts are NULL or have an end, `hints` is NULL or leads to structures
/// of this version, `info` leads to a pointer.
unsafe extern "C" fn getinfo(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const fi_info,
    info: *mut *mut fi_info,
) -> c_int {
    static LOG: Once = Once::new();
    guarded(|| {
        LOG.call_once(begin_log);
        // SAFETY: the caller's promise.
        let (place, hints, info) =
            unsafe { (place(node, service, flags), Hints::read(hints, version), Out::new(info)) };
        let info = info.variable(FI_EINVAL)?;
        info.put(null_mut());
        if flags & CORE_ONLY != 0 {
            tracing::info!("libfabric asks for a provider beneath its utilities, and cci needs none");
            return Err(FI_ENODATA);
        }
        let (place, hints) = if flags & FI_PROV_ATTR_ONLY != 0 { (Place::default(), None) } else { (place, hints) };
        let answer = found(version, &place, hints.as_ref()).inspect_err(|sentence| tracing::info!("{sentence}"));
        info.put(answer.map_err(|_| FI_ENODATA)?.into_libc().ok_or(FI_ENOMEM)?);
        Ok(())
    })
}

/// What the program's arguments name.
///
/// # Safety
///
/// Texts are NULL or have an end, and live as long as the result.
unsafe fn place<'a>(node: *const c_char, service: *const c_char, flags: u64) -> Place<'a> {
    // SAFETY: the caller's promise.
    let text = |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    Place { node: text(node), service: text(service), is_source: flags & FI_SOURCE != 0 }
}

/// The answer, or a sentence why there is none.
fn found(version: u32, place: &Place<'_>, hints: Option<&Hints>) -> Result<Answer, String> {
    let mut answer = offer(version, hints)?;
    let (source, destination) = record::of(place, hints)?;
    (answer.source, answer.destination) = (source, destination);
    Ok(answer)
}

/// Nothing is to be freed: objects are the program's, and the library stays.
unsafe extern "C" fn cleanup() {}
