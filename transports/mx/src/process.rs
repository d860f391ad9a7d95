//! The libraries that the endpoints of this process share.

use crate::sys::Library;
use cci_mem::fork::PerProcess;
use cci_proto::Status;
use cci_transport::{OpenError, lock};
use std::sync::{Arc, Mutex};

/// A library with the number of endpoints that use it.
struct Shared {
    name: String,
    library: Arc<Library>,
    endpoints: usize,
    /// The program has initialised it, and ends it too.
    is_the_programs: bool,
}

/// The libraries that this process has initialised. A forked child has none.
static LIBRARIES: PerProcess<Mutex<Vec<Shared>>> = PerProcess::new();

/// The part of an endpoint in a library. The last one to go ends what the library has.
pub(crate) struct Lease {
    pub(crate) library: Arc<Library>,
}

impl Lease {
    /// Takes part in a library, which is initialised unless it is.
    pub(crate) fn take(name: &str) -> Result<Self, OpenError> {
        let system = |source| OpenError::system("no memory for an endpoint over MX", source);
        let (_, libraries) = LIBRARIES.get(Mutex::default).map_err(system)?;
        let mut libraries = lock(libraries);
        if let Some(shared) = libraries.iter_mut().find(|shared| shared.name == name) {
            shared.endpoints += 1;
            return Ok(Self { library: Arc::clone(&shared.library) });
        }
        let library = Arc::new(Library::load(name).map_err(|why| OpenError::new(Status::NoDev, why))?);
        let is_ours = library.begin().map_err(|code| {
            let what =
                format!("mx_init of {name} fails: {}; name another one by the key library", library.text_of(code));
            OpenError::new(Status::NoDev, what)
        })?;
        let (name, lent) = (name.to_owned(), Arc::clone(&library));
        libraries.push(Shared { name, library: lent, endpoints: 1, is_the_programs: !is_ours });
        Ok(Self { library })
    }

    /// Whether this process has taken it: a forked child has not, and leaves all as it is.
    pub(crate) fn is_of_this_process(&self) -> bool {
        let Ok((_, libraries)) = LIBRARIES.get(Mutex::default) else { return false };
        lock(libraries).iter().any(|shared| Arc::ptr_eq(&shared.library, &self.library))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Ok((_, libraries)) = LIBRARIES.get(Mutex::default) else { return };
        lock(libraries).retain_mut(|shared| {
            if !Arc::ptr_eq(&shared.library, &self.library) {
                return true;
            }
            shared.endpoints -= 1;
            if shared.endpoints == 0 && !shared.is_the_programs {
                shared.library.finish();
            }
            shared.endpoints > 0
        });
    }
}
