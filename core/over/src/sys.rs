//! Libraries that are loaded at run time.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_void};
use std::fmt;

/// A library that is loaded for the life of the process. Its threads may outlive its last use, so
/// it is never unloaded.
pub struct Loaded {
    library: *mut c_void,
    name: String,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loaded({})", self.name)
    }
}

/// The loader's last words.
fn loader() -> String {
    // SAFETY: the string is this thread's until its next call of the loader.
    let words = unsafe { libc::dlerror().as_ref().map(|words| CStr::from_ptr(words)) };
    words.map_or_else(|| "the loader does not say why".into(), |words| words.to_string_lossy().into_owned())
}

impl Loaded {
    /// Loads a library by its name or path. `of` is the API that it is to have.
    ///
    /// # Errors
    ///
    /// A sentence: there is no such library.
    pub fn open(name: &str, of: &str) -> Result<Self, String> {
        let path = CString::new(name).map_err(|_| "the key library has a zero; name a library".to_owned())?;
        // SAFETY: the constructors of the library are its own matter.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(format!(
                "cannot load a library of {of}: {}; name one by the key library, or install it where the loader finds it",
                loader()
            ));
        }
        Ok(Self { library, name: name.to_owned() })
    }

    /// A function of the library.
    ///
    /// # Errors
    ///
    /// A sentence: it has no such function.
    ///
    /// # Safety
    ///
    /// `F` is the type of a pointer to the function.
    pub unsafe fn function<F>(&self, symbol: &CStr) -> Result<F, String> {
        // SAFETY: a library that is open.
        let found = unsafe { libc::dlsym(self.library, symbol.as_ptr()) };
        if found.is_null() {
            return Err(format!(
                "the library {} has no {}; name another one by the key library",
                self.name,
                symbol.to_string_lossy()
            ));
        }
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the pointer of a function of that type, by the contract.
        Ok(unsafe { std::mem::transmute_copy(&found) })
    }
}

/// Declares `struct Calls`, the calls of a C library that return an `int`, and how they are found.
#[macro_export]
macro_rules! calls {
    ($($field:ident: $symbol:literal, fn($($type:ty),*);)*) => {
        struct Calls { $($field: unsafe extern "C" fn($($type),*) -> ::std::ffi::c_int,)* }

        impl Calls {
            /// # Safety
            ///
            /// A library whose calls have these types.
            unsafe fn of(library: &$crate::Loaded) -> Result<Self, String> {
                Ok(Self { $(
                    // SAFETY: by the contract.
                    $field: unsafe {
                        library.function::<unsafe extern "C" fn($($type),*) -> ::std::ffi::c_int>($symbol)?
                    },
                )* })
            }
        }
    };
}
