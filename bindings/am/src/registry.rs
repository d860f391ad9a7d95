//! All bundles and endpoints of the process. Cells that were freed are used again.

use crate::endpoint::{Bundle, Endpoint};
use crate::refusal::{Answer, IN_HANDLER, Refusal};
use cci_mem::fork::PerProcess;
use cci_mem::mutex::lock;
use std::sync::{Mutex, TryLockError};
use std::time::Duration;

/// The most bundles of a process.
const MOST_BUNDLES: usize = 255;

#[derive(Clone, Default)]
pub(crate) struct Registry {
    /// Calls of `AM_Init` without `AM_Terminate`, by dialect.
    pub(crate) inits: [u32; 3],
    bundles: Vec<&'static Bundle>,
    free_bundles: Vec<&'static Bundle>,
    endpoints: Vec<(u32, &'static Endpoint, Box<str>)>,
    free_endpoints: Vec<&'static Endpoint>,
    last: u32,
    timeout: Option<Duration>,
}

pub(crate) const NO_MEMORY: Refusal = Refusal::Resource("no memory for the objects of a process");

/// Runs a call on the registry of this process. A child of a fork gets a copy of its own, since the
/// lock of this one may be held for ever there: then the child begins with nothing.
fn with<T>(act: impl FnOnce(&mut Registry) -> T) -> Result<T, Refusal> {
    static REGISTRY: PerProcess<Mutex<Registry>> = PerProcess::new();
    let registry = REGISTRY.inherit(|parent| Mutex::new(parent.and_then(copy_of).unwrap_or_default()));
    let (_, registry) = registry.map_err(|_| NO_MEMORY)?;
    Ok(act(&mut lock(registry)))
}

fn copy_of(parent: &Mutex<Registry>) -> Option<Registry> {
    match parent.try_lock() {
        Ok(parent) => Some(parent.clone()),
        Err(TryLockError::Poisoned(parent)) => Some(parent.into_inner().clone()),
        Err(TryLockError::WouldBlock) => None,
    }
}

pub(crate) fn init(place: usize, is_once: bool) -> Answer {
    with(|registry| {
        if is_once && registry.inits[place] > 0 {
            return Err(Refusal::NotTerm);
        }
        registry.inits[place] += 1;
        Ok(())
    })?
}

pub(crate) fn is_init(place: usize) -> Answer {
    with(|registry| if registry.inits[place] > 0 { Ok(()) } else { Err(Refusal::NotInit) })?
}

/// Ends one `AM_Init`; whether it was the last of all dialects.
pub(crate) fn terminate(place: usize) -> Result<bool, Refusal> {
    with(|registry| {
        registry.inits[place] = registry.inits[place].checked_sub(1).ok_or(Refusal::NotInit)?;
        Ok(registry.inits == [0; 3])
    })?
}

pub(crate) fn bundles() -> Vec<&'static Bundle> {
    with(|registry| registry.bundles.clone()).unwrap_or_default()
}

pub(crate) fn new_bundle() -> Result<&'static Bundle, Refusal> {
    with(|registry| {
        if registry.bundles.len() >= MOST_BUNDLES {
            return Err(Refusal::Resource("255 bundles are there; free one"));
        }
        let free = registry.free_bundles.pop();
        let bundle = free.unwrap_or_else(|| Box::leak(Box::new(Bundle::fresh())));
        bundle.begin();
        registry.bundles.push(bundle);
        Ok(bundle)
    })?
}

fn free_bundle(bundle: &'static Bundle) {
    bundle.end();
    // Without memory in a child its cell is used by nobody again.
    let _ = with(|registry| {
        registry.bundles.retain(|other| !std::ptr::eq(*other, bundle));
        registry.free_bundles.push(bundle);
    });
}

/// A cell for an endpoint, and its number.
pub(crate) fn new_endpoint() -> Result<(&'static Endpoint, u32), Refusal> {
    with(|registry| {
        registry.last += 1;
        let free = registry.free_endpoints.pop();
        (free.unwrap_or_else(|| Box::leak(Box::new(Endpoint::fresh()))), registry.last)
    })
}

pub(crate) fn enter_endpoint(number: u32, endpoint: &'static Endpoint, uri: &str) -> Answer {
    with(|registry| registry.endpoints.push((number, endpoint, uri.into())))
}

pub(crate) fn free_endpoint(endpoint: &'static Endpoint) {
    endpoint.end();
    // As `free_bundle`.
    let _ = with(|registry| {
        registry.endpoints.retain(|(_, other, _)| !std::ptr::eq(*other, endpoint));
        registry.free_endpoints.push(endpoint);
    });
}

/// Closes the engine's endpoint.
pub(crate) fn take_out(endpoint: &'static Endpoint) -> Answer {
    let (bundle, member) = endpoint.bundle()?;
    let gone = bundle.enter()?.remove(member);
    if let Some(mut gone) = gone {
        gone.flush();
    }
    Ok(())
}

/// Closes the endpoints of a bundle, and frees it.
pub(crate) fn free_cell(bundle: &'static Bundle) -> Answer {
    bundle.check_entry()?;
    // Borrowed for ever in a child whose parent was in the midst of a call on the bundle.
    let members = bundle.members.try_borrow_mut().map(|mut members| std::mem::take(&mut *members));
    for endpoint in members.map_err(|_| IN_HANDLER)? {
        take_out(endpoint)?;
        free_endpoint(endpoint);
    }
    free_bundle(bundle);
    Ok(())
}

/// The URI of an endpoint of this process.
pub(crate) fn uri_of(number: u32) -> Option<Box<str>> {
    with(|registry| registry.endpoints.iter().find(|(at, ..)| *at == number).map(|(.., uri)| uri.clone())).ok()?
}

pub(crate) fn timeout() -> Duration {
    with(|registry| registry.timeout).ok().flatten().unwrap_or(Duration::from_secs(30))
}

pub(crate) fn set_timeout(timeout: Duration) -> Answer {
    with(|registry| registry.timeout = Some(timeout))
}
