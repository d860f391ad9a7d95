//! The library, loaded once for all tests.

use cci_fabric_sys::{fi_info, fi_provider};
use std::ffi::{CStr, CString, c_int};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::LazyLock;

/// A folder that has it by the name that libfabric looks for.
pub(crate) static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let built = cci_conformance::build("cci-fabric-c", Path::new(env!("CARGO_TARGET_TMPDIR")));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(built.join("libcci_fi.so"), folder.path().join("libcci-fi.so")).expect("the library is built");
    folder
});

pub(crate) fn file() -> PathBuf {
    FOLDER.path().join("libcci-fi.so")
}

/// The record of the provider.
pub(crate) struct Provider(pub(crate) *mut fi_provider);

// SAFETY: libfabric calls its functions from any thread, and tests write nothing but `context`.
unsafe impl Send for Provider {}
// SAFETY: as above.
unsafe impl Sync for Provider {}

pub(crate) static PROVIDER: LazyLock<Provider> = LazyLock::new(|| {
    let name = CString::new(file().to_str().expect("a name in UTF-8")).expect("a name");
    // SAFETY: a name with its end.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    // SAFETY: one follows an error.
    assert!(!library.is_null(), "{:?}", unsafe { CStr::from_ptr(libc::dlerror()) });
    // SAFETY: a library that stays loaded.
    let entry = unsafe { libc::dlsym(library, c"fi_prov_ini".as_ptr()) };
    assert!(!entry.is_null(), "no entry point");
    // SAFETY: the entry point of a provider has this type.
    let entry = unsafe { std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn() -> *mut fi_provider>(entry) };
    // SAFETY: it takes nothing.
    Provider(unsafe { entry() })
});

/// What a program has got of `fi_getinfo`; freed as `fi_freeinfo` does.
pub(crate) struct Infos(pub(crate) *mut fi_info);

impl Drop for Infos {
    fn drop(&mut self) {
        // SAFETY: an answer of the provider, whose parts are libc's memory.
        unsafe {
            let info = &*self.0;
            assert!(info.next.is_null(), "one answer");
            for part in [
                (*info.domain_attr).name.cast(),
                (*info.fabric_attr).name.cast(),
                info.tx_attr.cast(),
                info.rx_attr.cast(),
                info.ep_attr.cast(),
                info.domain_attr.cast(),
                info.fabric_attr.cast(),
                info.src_addr,
                info.dest_addr,
                self.0.cast(),
            ] {
                libc::free(part);
            }
        }
    }
}

/// `fi_getinfo`. `names`: node and service.
pub(crate) fn getinfo(
    version: u32,
    names: (Option<&CStr>, Option<&CStr>),
    flags: u64,
    hints: *const fi_info,
) -> Result<Infos, c_int> {
    // SAFETY: the record lives as long as the library.
    let call = unsafe { (*PROVIDER.0).getinfo }.expect("a provider answers");
    let text = |text: Option<&CStr>| text.map_or(null(), CStr::as_ptr);
    let mut infos = null_mut();
    // SAFETY: as fi_getinfo(3) states.
    let code = unsafe { call(version, text(names.0), text(names.1), flags, hints, &raw mut infos) };
    if code == 0 {
        assert!(!infos.is_null());
        return Ok(Infos(infos));
    }
    assert!(infos.is_null() && code < 0, "{code}");
    Err(-code)
}
