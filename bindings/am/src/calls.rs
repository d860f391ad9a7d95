//! The calls, but for messages. Each is generic over the dialect.

use crate::dialect::Dialect;
use crate::endpoint::{self as cells, Bundle, Endpoint, Of, State, Token};
use crate::messages::{FORKED, LONGEST};
use crate::names::Name;
use crate::refusal::{Answer, Refusal};
use crate::spmd::{device, leave_if_asked, longest_sleep, lost, publish, rank};
use crate::statistics::Stats;
use crate::translations::{MOST, Record};
use crate::{handlers, registry, token};
use cci::Memory;
use cci_am::{Handlers, Options, Returned, TAG_NONE};
use std::ffi::{c_int, c_void};
use std::time::Duration;

const NULL: Refusal = Refusal::BadArg("a pointer for the result is NULL");

/// Writes a result.
///
/// # Safety
///
/// NULL, or writable.
unsafe fn give<T>(target: *mut T, value: T) -> Answer {
    if target.is_null() {
        return Err(NULL);
    }
    // SAFETY: by the contract.
    unsafe { target.write(value) };
    Ok(())
}

pub(crate) fn init<D: Dialect>() -> Answer {
    registry::init(D::PLACE, D::PLACE == 2)
}

pub(crate) fn terminate<D: Dialect>() -> Answer {
    registry::is_init(D::PLACE)?;
    registry::bundles().iter().try_for_each(|bundle| bundle.check_entry())?;
    if registry::terminate(D::PLACE)? {
        registry::bundles().into_iter().try_for_each(registry::free_cell)?;
    }
    Ok(())
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn allocate_bundle<D: Dialect>(kind: c_int, bundle: *mut *const Bundle) -> Answer {
    registry::is_init(D::PLACE)?;
    match kind {
        0 if bundle.is_null() => Err(NULL),
        // SAFETY: by the contract of the header.
        0 => unsafe { give(bundle, registry::new_bundle()?) },
        1 => Err(Refusal::Resource("AM_PAR is not there; use AM_SEQ, with a bundle for each thread")),
        _ => Err(Refusal::BadArg("a bundle is AM_SEQ or AM_PAR")),
    }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn free_bundle<D: Dialect>(bundle: *const Bundle) -> Answer {
    registry::is_init(D::PLACE)?;
    // SAFETY: by the contract of the header.
    registry::free_cell(unsafe { cells::bundle(bundle) }?)
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn allocate_endpoint<D: Dialect>(
    bundle: *const Bundle,
    endpoint: *mut *const Endpoint,
    name: *mut D::Name,
) -> Answer {
    registry::is_init(D::PLACE)?;
    // SAFETY: by the contract of the header.
    let bundle = unsafe { cells::bundle(bundle) }?;
    if endpoint.is_null() || name.is_null() {
        return Err(NULL);
    }
    let mut engine = bundle.enter()?;
    let (cell, number) = registry::new_endpoint()?;
    let opened = open(cell, number);
    let (mut opened, own) = opened.inspect_err(|_| registry::free_endpoint(cell))?;
    // Nothing is accepted before the program has set a tag.
    if opened.set_tag(TAG_NONE).is_err() {
        registry::free_endpoint(cell);
        return Err(Refusal::Resource("no memory for an endpoint"));
    }
    registry::enter_endpoint(number, cell, own.uri())?;
    publish(number, own.uri()).inspect_err(|_| registry::free_endpoint(cell))?;
    let emitted = D::emit(&own, &cell.own_name);
    let member = engine.add(opened);
    cell.begin::<D>((bundle, member), own);
    bundle.members.borrow_mut().push(cell);
    // SAFETY: by the contract of the header; neither is NULL.
    unsafe { give(endpoint, cell) }?;
    // SAFETY: as above.
    unsafe { give(name, emitted) }
}

fn open(cell: &'static Endpoint, number: u32) -> Result<(cci_am::Endpoint<State>, Name), Refusal> {
    const NONE: Refusal = Refusal::Resource("an endpoint cannot be opened; `cci info` shows the devices");
    let own;
    let device = match device() {
        Some(device) => device,
        None => {
            own = cci::Context::new().map_err(|_| NONE)?;
            own.default_device().map_err(|_| NONE)?
        }
    };
    let options = Options::new().send_timeout(registry::timeout());
    let state = State { endpoint: cell, aligned: Vec::new() };
    let mut opened =
        cci_am::Endpoint::open(device, &options, Handlers::new().returned(on_returned), state).map_err(|_| NONE)?;
    let name = Name::give((rank().unwrap_or_else(std::process::id), number), opened.name())?;
    opened.introduce(&name.introduction());
    Ok((opened, name))
}

/// Takes what comes back: a message of the library's own, or of the program's.
fn on_returned(state: &mut State, returned: Returned<'_>) {
    if returned.handler() == 0 {
        return lost(state.endpoint, returned.peer());
    }
    handlers::on_returned(state, &returned);
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn free_endpoint<D: Dialect>(endpoint: *const Endpoint) -> Answer {
    // SAFETY: by the contract of the header.
    let endpoint = unsafe { cells::endpoint(endpoint) }?;
    let (bundle, _) = endpoint.bundle()?;
    registry::take_out(endpoint)?;
    bundle.members.borrow_mut().retain(|other| !std::ptr::eq(*other, endpoint));
    registry::free_endpoint(endpoint);
    Ok(())
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn move_endpoint<D: Dialect>(
    endpoint: *const Endpoint,
    from: *const Bundle,
    to: *const Bundle,
) -> Answer {
    // SAFETY: by the contract of the header.
    let (endpoint, from, to) = unsafe { (cells::endpoint(endpoint)?, cells::bundle(from)?, cells::bundle(to)?) };
    let (bundle, member) = endpoint.bundle()?;
    if !std::ptr::eq(bundle, from) {
        return Err(Refusal::BadArg("the endpoint is in another bundle"));
    }
    to.check_entry()?;
    let moved = from.enter()?.remove(member).ok_or(FORKED)?;
    let member = to.enter()?.add(moved);
    endpoint.place.set(Some((to, member)));
    from.members.borrow_mut().retain(|other| !std::ptr::eq(*other, endpoint));
    to.members.borrow_mut().push(endpoint);
    Ok(())
}

/// Runs something with the engine's endpoint, unless a handler runs.
fn with_engine<T>(
    endpoint: &Endpoint,
    act: impl FnOnce(&mut cci_am::Endpoint<State>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let (bundle, member) = endpoint.bundle()?;
    let mut engine = bundle.enter()?;
    act(engine.get(member).ok_or(FORKED)?)
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn set_seg<D: Dialect>(endpoint: *const Endpoint, start: *mut c_void, bytes: usize) -> Answer {
    // SAFETY: by the contract of the header.
    let endpoint = unsafe { cells::endpoint(endpoint) }?;
    // Offsets are addresses then.
    let is_everything = start.is_null() && bytes == usize::MAX;
    if bytes > 0 && !is_everything && (start.is_null() || start.addr().checked_add(bytes).is_none()) {
        return Err(Refusal::BadArg("a segment begins at an address other than NULL and ends before the last one"));
    }
    // SAFETY: the program keeps the segment mapped, and knows that peers write it.
    let memory = (bytes > 0)
        .then(|| unsafe { if is_everything { Memory::everything() } else { Memory::new(start.cast(), bytes as u64) } });
    with_engine(endpoint, |engine| {
        engine.set_segment(memory).map_err(|_| Refusal::Resource("the segment cannot be registered now"))
    })?;
    endpoint.segment.set((start.expose_provenance(), bytes));
    Ok(())
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn get_seg<D: Dialect>(
    endpoint: *const Endpoint,
    start: *mut *mut c_void,
    bytes: *mut usize,
) -> Answer {
    // SAFETY: by the contract of the header.
    let endpoint = unsafe { cells::endpoint(endpoint) }?;
    let (at, len) = endpoint.segment.get();
    // SAFETY: as above.
    unsafe { give(start, std::ptr::with_exposed_provenance_mut(at)) }?;
    // SAFETY: as above.
    unsafe { give(bytes, len) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn max_seg_length<D: Dialect>(bytes: *mut usize) -> Answer {
    // SAFETY: by the contract of the header.
    unsafe { give(bytes, usize::MAX) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn set_tag<D: Dialect>(endpoint: *const Endpoint, tag: u64) -> Answer {
    // SAFETY: by the contract of the header.
    let endpoint = unsafe { cells::endpoint(endpoint) }?;
    let set = |engine: &mut cci_am::Endpoint<State>| {
        engine.set_tag(tag).map_err(|_| Refusal::Resource("the tag is set, but the segment cannot be registered now"))
    };
    with_engine(endpoint, set)?;
    endpoint.tag.set(tag);
    Ok(())
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn get_tag<D: Dialect>(endpoint: *const Endpoint, tag: *mut u64) -> Answer {
    // SAFETY: by the contract of the header.
    unsafe { give(tag, cells::endpoint(endpoint)?.tag.get()) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn map<D: Dialect>(endpoint: *const Endpoint, index: c_int, name: D::Name, tag: u64) -> Answer {
    // SAFETY: by the contract of the header.
    let (endpoint, sealed) = unsafe { (cells::endpoint(endpoint)?, D::parse(name)) };
    let sealed = sealed.ok_or(Refusal::BadArg("that is no name of an endpoint"))?;
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    if endpoint.translations.borrow().get(index)?.is_some() {
        return Err(Refusal::Resource("the entry is mapped; unmap it first"));
    }
    enter(endpoint, index, Name::find(sealed), tag)
}

/// Maps a free entry.
pub(crate) fn enter(endpoint: &Endpoint, index: usize, name: Name, tag: u64) -> Answer {
    let peer = with_engine(endpoint, |engine| {
        let mut map = |uri: &str| engine.map(uri, tag).map_err(|_| Refusal::BadArg("the name leads nowhere from here"));
        (!name.uri().is_empty()).then(|| map(name.uri())).transpose()
    })?;
    endpoint.translations.borrow_mut().enter(Record { peer, name, tag, index });
    Ok(())
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn map_any<D: Dialect>(
    endpoint: *const Endpoint,
    index: *mut c_int,
    name: D::Name,
    tag: u64,
) -> Answer {
    // SAFETY: by the contract of the header.
    let cell = unsafe { cells::endpoint(endpoint) }?;
    let free = cell.translations.borrow().first_free();
    let free = free.ok_or(Refusal::Resource("no entry is free; see AM_SetNumTranslations"))? as c_int;
    if index.is_null() {
        return Err(NULL);
    }
    // SAFETY: by the contract of the header.
    unsafe { map::<D>(endpoint, free, name, tag) }?;
    // SAFETY: as above.
    unsafe { give(index, free) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn unmap<D: Dialect>(endpoint: *const Endpoint, index: c_int) -> Answer {
    // SAFETY: by the contract of the header.
    let endpoint = unsafe { cells::endpoint(endpoint) }?;
    endpoint.bundle()?.0.check_entry()?;
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let peer = endpoint.translations.borrow().mapped(index)?.peer;
    if let Some(peer) = peer {
        with_engine(endpoint, |engine| {
            engine.unmap(peer);
            Ok(())
        })?;
    }
    endpoint.translations.borrow_mut().remove(index).map(drop)
}

/// Maps the entry again. Requests that are open on the old mapping come back as unreachable.
///
/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn set_translation_tag<D: Dialect>(endpoint: *const Endpoint, index: c_int, tag: u64) -> Answer {
    // SAFETY: by the contract of the header.
    let cell = unsafe { cells::endpoint(endpoint) }?;
    let at = usize::try_from(index).unwrap_or(usize::MAX);
    let name = cell.translations.borrow().mapped(at)?.name.clone();
    // SAFETY: as above.
    unsafe { unmap::<D>(endpoint, index) }?;
    enter(cell, at, name, tag)
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn is_translated<D: Dialect>(endpoint: *const Endpoint, index: c_int) -> Answer {
    // SAFETY: by the contract of the header.
    let endpoint = unsafe { cells::endpoint(endpoint) }?;
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let is_mapped = endpoint.translations.borrow().get(index)?.is_some();
    if is_mapped { Ok(()) } else { Err(Refusal::No) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn translation_tag<D: Dialect>(endpoint: *const Endpoint, index: c_int, tag: *mut u64) -> Answer {
    // SAFETY: by the contract of the header.
    let endpoint = unsafe { cells::endpoint(endpoint) }?;
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let found = endpoint.translations.borrow().mapped(index)?.tag;
    // SAFETY: as above.
    unsafe { give(tag, found) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn translation_name<D: Dialect>(
    endpoint: *const Endpoint,
    index: c_int,
    name: *mut D::Name,
) -> Answer {
    // SAFETY: by the contract of the header.
    let endpoint = unsafe { cells::endpoint(endpoint) }?;
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let found = D::emit(&endpoint.translations.borrow().mapped(index)?.name, &endpoint.asked_name);
    // SAFETY: as above.
    unsafe { give(name, found) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn num_translations<D: Dialect>(endpoint: *const Endpoint, count: *mut c_int) -> Answer {
    // SAFETY: by the contract of the header.
    unsafe { give(count, cells::endpoint(endpoint)?.translations.borrow().len() as c_int) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn set_num_translations<D: Dialect>(endpoint: *const Endpoint, count: c_int) -> Answer {
    // SAFETY: by the contract of the header.
    let endpoint = unsafe { cells::endpoint(endpoint) }?;
    endpoint.bundle()?.0.check_entry()?;
    endpoint.translations.borrow_mut().resize(usize::try_from(count).unwrap_or(0))
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn max_num_translations<D: Dialect>(count: *mut c_int) -> Answer {
    // SAFETY: by the contract of the header.
    unsafe { give(count, MOST as c_int) }
}

/// Credits adapt by themselves: only the arguments are checked.
///
/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn set_expected_resources<D: Dialect>(
    endpoint: *const Endpoint,
    endpoints: c_int,
    outstanding: c_int,
) -> Answer {
    // SAFETY: by the contract of the header.
    unsafe { cells::endpoint(endpoint) }?;
    let is_right = endpoints >= 0 && outstanding >= 0;
    if is_right { Ok(()) } else { Err(Refusal::BadArg("a number of resources is negative")) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn set_handler<D: Dialect>(endpoint: *const Endpoint, at: u8, function: *const c_void) -> Answer {
    // SAFETY: by the contract of the header.
    let endpoint = unsafe { cells::endpoint(endpoint) }?;
    if usize::from(at) >= endpoint.handler_count.get() {
        return Err(Refusal::BadArg("no such handler; see AM_SetNumHandlers"));
    }
    with_engine(endpoint, |engine| {
        match (at, function.is_null()) {
            (0, _) => {}
            (_, true) => handlers::unset(engine.handlers(), at),
            (_, false) => handlers::set(engine.handlers(), at),
        }
        Ok(())
    })?;
    endpoint.handlers[usize::from(at)].set(function.expose_provenance());
    Ok(())
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn set_handler_any<D: Dialect>(
    endpoint: *const Endpoint,
    at: *mut u8,
    function: *const c_void,
) -> Answer {
    // SAFETY: by the contract of the header.
    let cell = unsafe { cells::endpoint(endpoint) }?;
    let free = (1..cell.handler_count.get()).find(|at| cell.handlers[*at].get() == 0);
    let free = free.ok_or(Refusal::Resource("no handler is free"))? as u8;
    if at.is_null() || function.is_null() {
        return Err(NULL);
    }
    // SAFETY: by the contract of the header.
    unsafe { set_handler::<D>(endpoint, free, function) }?;
    // SAFETY: as above.
    unsafe { give(at, free) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn num_handlers<D: Dialect>(endpoint: *const Endpoint, count: *mut c_int) -> Answer {
    // SAFETY: by the contract of the header.
    unsafe { give(count, cells::endpoint(endpoint)?.handler_count.get() as c_int) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn set_num_handlers<D: Dialect>(endpoint: *const Endpoint, count: c_int) -> Answer {
    // SAFETY: by the contract of the header.
    let endpoint = unsafe { cells::endpoint(endpoint) }?;
    let count = usize::try_from(count).ok().filter(|count| (1..=256).contains(count));
    let count = count.ok_or(Refusal::BadArg("an endpoint has 1 to 256 handlers"))?;
    if endpoint.handlers[count..].iter().any(|handler| handler.get() != 0) {
        return Err(Refusal::Resource("a handler that would go is set"));
    }
    endpoint.handler_count.set(count);
    Ok(())
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn set_callbacks<D: Dialect>(
    endpoint: *const Endpoint,
    before: *const c_void,
    after: *const c_void,
) -> Answer {
    // SAFETY: by the contract of the header.
    let endpoint = unsafe { cells::endpoint(endpoint) }?;
    endpoint.callbacks.set((before.expose_provenance(), after.expose_provenance()));
    Ok(())
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn poll<D: Dialect>(bundle: *const Bundle) -> Answer {
    // SAFETY: by the contract of the header.
    let bundle = unsafe { cells::bundle(bundle) }?;
    bundle.enter()?.poll().map_err(|_| FORKED)?;
    leave_if_asked();
    Ok(())
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn event_mask<D: Dialect>(bundle: *const Bundle, mask: *mut c_int) -> Answer {
    // SAFETY: by the contract of the header.
    unsafe { give(mask, cells::bundle(bundle)?.mask.get()) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn set_event_mask<D: Dialect>(bundle: *const Bundle, mask: c_int) -> Answer {
    // SAFETY: by the contract of the header.
    let bundle = unsafe { cells::bundle(bundle) }?;
    if mask & !1 != 0 {
        return Err(Refusal::BadArg("the mask is AM_NOEVENTS or AM_NOTEMPTY"));
    }
    bundle.mask.set(mask);
    Ok(())
}

/// Waits until a handler has run.
///
/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn wait<D: Dialect>(bundle: *const Bundle) -> Answer {
    // SAFETY: by the contract of the header.
    let bundle = unsafe { cells::bundle(bundle) }?;
    let mut engine = bundle.enter()?;
    if bundle.mask.get() == 0 || bundle.members.borrow().is_empty() {
        return Err(Refusal::BadArg("nothing would end the wait; set AM_NOTEMPTY, and allocate an endpoint"));
    }
    let ran = || bundle.members.borrow().iter().map(|endpoint| endpoint.ran.get()).sum::<u64>();
    let before = ran();
    while ran() == before {
        engine.wait(Some(longest_sleep())).map_err(|_| FORKED)?;
        leave_if_asked();
    }
    Ok(())
}

/// Whose message it is: what the source has introduced itself with, or the target of a reply.
fn source_of(token: &Token) -> Result<Name, Refusal> {
    const NOBODY: Refusal = Refusal::Resource("the source has no name here");
    if let Some(from) = token.from.get() {
        return Name::introduced(from).ok_or(NOBODY);
    }
    let endpoint = token.endpoint.get().ok_or(NOBODY)?;
    if token.of.get() == Of::Returned {
        return endpoint.name.borrow().clone().ok_or(NOBODY);
    }
    let translations = endpoint.translations.borrow();
    token.peer.get().and_then(|peer| translations.of_peer(peer)).map(|record| record.name.clone()).ok_or(NOBODY)
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn source_endpoint<D: Dialect>(token: *const Token, name: *mut D::Name) -> Answer {
    // SAFETY: by the contract of the header.
    let token = unsafe { token::token(token) }?;
    // SAFETY: as above.
    unsafe { give(name, D::emit(&source_of(token)?, &token.name)) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn dest_endpoint<D: Dialect>(token: *const Token, endpoint: *mut *const Endpoint) -> Answer {
    // SAFETY: by the contract of the header.
    let token = unsafe { token::token(token) }?;
    let own = token.endpoint.get().ok_or(NULL)?;
    // SAFETY: as above.
    unsafe { give(endpoint, own) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn message_tag<D: Dialect>(token: *const Token, tag: *mut u64) -> Answer {
    // SAFETY: by the contract of the header.
    let token = unsafe { token::token(token) }?;
    let own = token.endpoint.get().ok_or(NULL)?;
    let mapped = token.peer.get().and_then(|peer| own.translations.borrow().of_peer(peer).map(|record| record.tag));
    // SAFETY: as above.
    unsafe { give(tag, mapped.unwrap_or(token.tag.get())) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn source_id<D: Dialect>(token: *const Token, index: *mut c_int) -> Answer {
    // SAFETY: by the contract of the header.
    let token = unsafe { token::token(token) }?;
    let own = token.endpoint.get().ok_or(NULL)?;
    let found = own.translations.borrow().index_of(&source_of(token)?);
    let found = found.ok_or(Refusal::Resource("the source is not mapped"))?;
    // SAFETY: as above.
    unsafe { give(index, found as c_int) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn token_info<D: Dialect>(
    token: *const Token,
    handler: *mut u8,
    sort: *mut c_int,
    is_request: *mut c_int,
) -> Answer {
    // SAFETY: by the contract of the header.
    let token = unsafe { token::token(token) }?;
    // SAFETY: as above.
    unsafe { give(handler, token.handler.get()) }?;
    // SAFETY: as above.
    unsafe { give(sort, token.sort.get() as c_int) }?;
    // SAFETY: as above.
    unsafe { give(is_request, c_int::from(token.of.get() == Of::Request)) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn statistics<D: Dialect>(endpoint: *const Endpoint, stats: *mut Stats) -> Answer {
    // SAFETY: by the contract of the header.
    unsafe { give(stats, cells::endpoint(endpoint)?.statistics.get()) }
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn reset_statistics<D: Dialect>(endpoint: *const Endpoint) -> Answer {
    // SAFETY: by the contract of the header.
    unsafe { cells::endpoint(endpoint) }?.statistics.reset();
    Ok(())
}

/// # Safety
///
/// What the header states of the pointers.
pub(crate) unsafe fn add_statistics<D: Dialect>(sum: *mut Stats, more: *const Stats) -> Answer {
    // SAFETY: by the contract of the header: each is NULL, or a structure of its own.
    let (sum, more) = unsafe { (sum.as_mut().ok_or(NULL)?, more.as_ref().ok_or(NULL)?) };
    sum.add(more);
    Ok(())
}

pub(crate) fn set_send_timeout<D: Dialect>(milliseconds: u32) -> Answer {
    if milliseconds < 8 {
        return Err(Refusal::BadArg("the send timeout is at least 8 ms"));
    }
    registry::set_timeout(Duration::from_millis(milliseconds.into()))
}

const _: () = assert!(LONGEST <= 64 << 10, "as long as the engine's buffers");
