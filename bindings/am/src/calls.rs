//! The calls, but for messages. Each is generic over the dialect.

use crate::boundary::NULL;
use crate::dialect::Dialect;
use crate::endpoint::{After, Before, Bundle, Eb, Endpoint, Ep, Handle, Of, State, Token};
use crate::messages::{FORKED, LONGEST};
use crate::names::Name;
use crate::refusal::{Answer, Refusal};
use crate::spmd::{device, leave_if_asked, longest_sleep, lost, publish, rank};
use crate::statistics::Stats;
use crate::translations::{MOST, Record};
use crate::{handlers, registry};
use cci::Memory;
use cci_am::{Handlers, Options, Returned, TAG_NONE};
use cci_mem::arguments::Out;
use std::ffi::{c_int, c_void};
use std::time::Duration;

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

pub(crate) fn allocate_bundle<D: Dialect>(kind: c_int, bundle: Out<'_, Eb>) -> Answer {
    registry::is_init(D::PLACE)?;
    match kind {
        0 => {
            let place = bundle.variable(NULL)?;
            place.put(Handle::to(registry::new_bundle()?));
            Ok(())
        }
        1 => Err(Refusal::Resource("AM_PAR is not there; use AM_SEQ, with a bundle for each thread")),
        _ => Err(Refusal::BadArg("a bundle is AM_SEQ or AM_PAR")),
    }
}

pub(crate) fn free_bundle<D: Dialect>(bundle: Eb) -> Answer {
    registry::is_init(D::PLACE)?;
    registry::free_cell(bundle.get()?)
}

pub(crate) fn allocate_endpoint<D: Dialect>(bundle: Eb, endpoint: Out<'_, Ep>, name: Out<'_, D::Name>) -> Answer {
    registry::is_init(D::PLACE)?;
    let bundle = bundle.get()?;
    let (endpoint, name) = (endpoint.variable(NULL)?, name.variable(NULL)?);
    let (cell, emitted) = new_endpoint::<D>(bundle)?;
    endpoint.put(Handle::to(cell));
    name.put(emitted);
    Ok(())
}

/// A new endpoint, with its name for the program.
pub(crate) fn new_endpoint<D: Dialect>(bundle: &'static Bundle) -> Result<(&'static Endpoint, D::Name), Refusal> {
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
    Ok((cell, emitted))
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

pub(crate) fn free_endpoint<D: Dialect>(endpoint: Ep) -> Answer {
    let endpoint = endpoint.get()?;
    let (bundle, _) = endpoint.bundle()?;
    registry::take_out(endpoint)?;
    bundle.members.borrow_mut().retain(|other| !std::ptr::eq(*other, endpoint));
    registry::free_endpoint(endpoint);
    Ok(())
}

pub(crate) fn move_endpoint<D: Dialect>(endpoint: Ep, from: Eb, to: Eb) -> Answer {
    let (endpoint, from, to) = (endpoint.get()?, from.get()?, to.get()?);
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
/// The range stays mapped, and the program knows that peers write it, until another one is set or
/// the endpoint is freed.
pub(crate) unsafe fn set_seg<D: Dialect>(endpoint: Ep, start: *mut c_void, bytes: usize) -> Answer {
    let endpoint = endpoint.get()?;
    // Offsets are addresses then.
    let is_everything = start.is_null() && bytes == usize::MAX;
    if bytes > 0 && !is_everything && (start.is_null() || start.addr().checked_add(bytes).is_none()) {
        return Err(Refusal::BadArg("a segment begins at an address other than NULL and ends before the last one"));
    }
    // SAFETY: the range stays mapped, and the program knows that peers write it, as long as it is
    // the segment, by the contract above.
    let memory = (bytes > 0)
        .then(|| unsafe { if is_everything { Memory::everything() } else { Memory::new(start.cast(), bytes as u64) } });
    with_engine(endpoint, |engine| {
        engine.set_segment(memory).map_err(|_| Refusal::Resource("the segment cannot be registered now"))
    })?;
    endpoint.segment.set((start.expose_provenance(), bytes));
    Ok(())
}

pub(crate) fn get_seg<D: Dialect>(endpoint: Ep, start: Out<'_, *mut c_void>, bytes: Out<'_, usize>) -> Answer {
    let endpoint = endpoint.get()?;
    let (at, len) = endpoint.segment.get();
    start.give(std::ptr::with_exposed_provenance_mut(at), NULL)?;
    bytes.give(len, NULL)
}

pub(crate) fn max_seg_length<D: Dialect>(bytes: Out<'_, usize>) -> Answer {
    bytes.give(usize::MAX, NULL)
}

pub(crate) fn set_tag<D: Dialect>(endpoint: Ep, tag: u64) -> Answer {
    let endpoint = endpoint.get()?;
    let set = |engine: &mut cci_am::Endpoint<State>| {
        engine.set_tag(tag).map_err(|_| Refusal::Resource("the tag is set, but the segment cannot be registered now"))
    };
    with_engine(endpoint, set)?;
    endpoint.tag.set(tag);
    Ok(())
}

pub(crate) fn get_tag<D: Dialect>(endpoint: Ep, tag: Out<'_, u64>) -> Answer {
    tag.give(endpoint.get()?.tag.get(), NULL)
}

/// # Safety
///
/// As `Dialect::parse`.
pub(crate) unsafe fn map<D: Dialect>(endpoint: Ep, index: c_int, name: D::Name, tag: u64) -> Answer {
    let endpoint = endpoint.get()?;
    // SAFETY: a name by pointer is NULL or readable during the call, by the contract above.
    let sealed = unsafe { D::parse(name) }.ok_or(Refusal::BadArg("that is no name of an endpoint"))?;
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
/// As `map`.
pub(crate) unsafe fn map_any<D: Dialect>(endpoint: Ep, index: Out<'_, c_int>, name: D::Name, tag: u64) -> Answer {
    let cell = endpoint.get()?;
    let free = cell.translations.borrow().first_free();
    let free = free.ok_or(Refusal::Resource("no entry is free; see AM_SetNumTranslations"))? as c_int;
    let index = index.variable(NULL)?;
    // SAFETY: a name by pointer is NULL or readable during the call, by the contract above.
    unsafe { map::<D>(endpoint, free, name, tag) }?;
    index.put(free);
    Ok(())
}

pub(crate) fn unmap<D: Dialect>(endpoint: Ep, index: c_int) -> Answer {
    let endpoint = endpoint.get()?;
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
pub(crate) fn set_translation_tag<D: Dialect>(endpoint: Ep, index: c_int, tag: u64) -> Answer {
    let cell = endpoint.get()?;
    let at = usize::try_from(index).unwrap_or(usize::MAX);
    let name = cell.translations.borrow().mapped(at)?.name.clone();
    unmap::<D>(endpoint, index)?;
    enter(cell, at, name, tag)
}

pub(crate) fn is_translated<D: Dialect>(endpoint: Ep, index: c_int) -> Answer {
    let endpoint = endpoint.get()?;
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let is_mapped = endpoint.translations.borrow().get(index)?.is_some();
    if is_mapped { Ok(()) } else { Err(Refusal::No) }
}

pub(crate) fn translation_tag<D: Dialect>(endpoint: Ep, index: c_int, tag: Out<'_, u64>) -> Answer {
    let endpoint = endpoint.get()?;
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let found = endpoint.translations.borrow().mapped(index)?.tag;
    tag.give(found, NULL)
}

pub(crate) fn translation_name<D: Dialect>(endpoint: Ep, index: c_int, name: Out<'_, D::Name>) -> Answer {
    let endpoint = endpoint.get()?;
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let found = D::emit(&endpoint.translations.borrow().mapped(index)?.name, &endpoint.asked_name);
    name.give(found, NULL)
}

pub(crate) fn num_translations<D: Dialect>(endpoint: Ep, count: Out<'_, c_int>) -> Answer {
    count.give(endpoint.get()?.translations.borrow().len() as c_int, NULL)
}

pub(crate) fn set_num_translations<D: Dialect>(endpoint: Ep, count: c_int) -> Answer {
    let endpoint = endpoint.get()?;
    endpoint.bundle()?.0.check_entry()?;
    endpoint.translations.borrow_mut().resize(usize::try_from(count).unwrap_or(0))
}

pub(crate) fn max_num_translations<D: Dialect>(count: Out<'_, c_int>) -> Answer {
    count.give(MOST as c_int, NULL)
}

/// Credits adapt by themselves: only the arguments are checked.
pub(crate) fn set_expected_resources<D: Dialect>(endpoint: Ep, endpoints: c_int, outstanding: c_int) -> Answer {
    endpoint.get()?;
    let is_right = endpoints >= 0 && outstanding >= 0;
    if is_right { Ok(()) } else { Err(Refusal::BadArg("a number of resources is negative")) }
}

/// # Safety
///
/// `function` is NULL, or takes the messages that come for the handler, until another one is set or
/// the endpoint is freed. Handler 0 takes what comes back.
pub(crate) unsafe fn set_handler<D: Dialect>(endpoint: Ep, at: u8, function: *const c_void) -> Answer {
    let endpoint = endpoint.get()?;
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
/// As `set_handler`.
pub(crate) unsafe fn set_handler_any<D: Dialect>(endpoint: Ep, at: Out<'_, u8>, function: *const c_void) -> Answer {
    let cell = endpoint.get()?;
    let free = (1..cell.handler_count.get()).find(|at| cell.handlers[*at].get() == 0);
    let free = free.ok_or(Refusal::Resource("no handler is free"))? as u8;
    let at = at.variable(NULL)?;
    if function.is_null() {
        return Err(NULL);
    }
    // SAFETY: not NULL, so it takes the messages for the handler, by the contract above.
    unsafe { set_handler::<D>(endpoint, free, function) }?;
    at.put(free);
    Ok(())
}

pub(crate) fn num_handlers<D: Dialect>(endpoint: Ep, count: Out<'_, c_int>) -> Answer {
    count.give(endpoint.get()?.handler_count.get() as c_int, NULL)
}

pub(crate) fn set_num_handlers<D: Dialect>(endpoint: Ep, count: c_int) -> Answer {
    let endpoint = endpoint.get()?;
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
/// Each is NULL, or may be called as its type says until others are set or the endpoint is freed.
pub(crate) unsafe fn set_callbacks<D: Dialect>(endpoint: Ep, before: Option<Before>, after: Option<After>) -> Answer {
    let endpoint = endpoint.get()?;
    endpoint.callbacks.set((before, after));
    Ok(())
}

pub(crate) fn poll<D: Dialect>(bundle: Eb) -> Answer {
    let bundle = bundle.get()?;
    bundle.enter()?.poll().map_err(|_| FORKED)?;
    leave_if_asked();
    Ok(())
}

pub(crate) fn event_mask<D: Dialect>(bundle: Eb, mask: Out<'_, c_int>) -> Answer {
    mask.give(bundle.get()?.mask.get(), NULL)
}

pub(crate) fn set_event_mask<D: Dialect>(bundle: Eb, mask: c_int) -> Answer {
    let bundle = bundle.get()?;
    if mask & !1 != 0 {
        return Err(Refusal::BadArg("the mask is AM_NOEVENTS or AM_NOTEMPTY"));
    }
    bundle.mask.set(mask);
    Ok(())
}

/// Waits until a handler has run.
pub(crate) fn wait<D: Dialect>(bundle: Eb) -> Answer {
    let bundle = bundle.get()?;
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
    if token.of() == Of::Returned {
        return endpoint.name.borrow().clone().ok_or(NOBODY);
    }
    let translations = endpoint.translations.borrow();
    token.peer.get().and_then(|peer| translations.of_peer(peer)).map(|record| record.name.clone()).ok_or(NOBODY)
}

pub(crate) fn source_endpoint<D: Dialect>(token: Handle<Token>, name: Out<'_, D::Name>) -> Answer {
    let token = token.get()?;
    name.give(D::emit(&source_of(token)?, &token.name), NULL)
}

pub(crate) fn dest_endpoint<D: Dialect>(token: Handle<Token>, endpoint: Out<'_, Ep>) -> Answer {
    let token = token.get()?;
    let own = token.endpoint.get().ok_or(NULL)?;
    endpoint.give(Handle::to(own), NULL)
}

pub(crate) fn message_tag<D: Dialect>(token: Handle<Token>, tag: Out<'_, u64>) -> Answer {
    let token = token.get()?;
    let own = token.endpoint.get().ok_or(NULL)?;
    let mapped = token.peer.get().and_then(|peer| own.translations.borrow().of_peer(peer).map(|record| record.tag));
    tag.give(mapped.unwrap_or(token.tag.get()), NULL)
}

pub(crate) fn source_id<D: Dialect>(token: Handle<Token>, index: Out<'_, c_int>) -> Answer {
    let token = token.get()?;
    let own = token.endpoint.get().ok_or(NULL)?;
    let found = own.translations.borrow().index_of(&source_of(token)?);
    let found = found.ok_or(Refusal::Resource("the source is not mapped"))?;
    index.give(found as c_int, NULL)
}

pub(crate) fn token_info<D: Dialect>(
    token: Handle<Token>,
    handler: Out<'_, u8>,
    sort: Out<'_, c_int>,
    is_request: Out<'_, c_int>,
) -> Answer {
    let token = token.get()?;
    handler.give(token.handler.get(), NULL)?;
    sort.give(token.sort.get() as c_int, NULL)?;
    is_request.give(c_int::from(token.of() == Of::Request), NULL)
}

pub(crate) fn statistics<D: Dialect>(endpoint: Ep, stats: Out<'_, Stats>) -> Answer {
    stats.give(endpoint.get()?.statistics.get(), NULL)
}

pub(crate) fn reset_statistics<D: Dialect>(endpoint: Ep) -> Answer {
    endpoint.get()?.statistics.reset();
    Ok(())
}

/// # Safety
///
/// `sum` is NULL or readable and writable, and `more` is NULL or readable. They may be one
/// structure.
pub(crate) unsafe fn add_statistics<D: Dialect>(sum: *mut Stats, more: *const Stats) -> Answer {
    if sum.is_null() || more.is_null() {
        return Err(NULL);
    }
    // SAFETY: both are readable, and not NULL. Copies, since the two may overlap.
    let (mut total, more) = unsafe { (sum.read_unaligned(), more.read_unaligned()) };
    total.add(&more);
    // SAFETY: writable, and not NULL.
    unsafe { sum.write_unaligned(total) };
    Ok(())
}

pub(crate) fn set_send_timeout<D: Dialect>(milliseconds: u32) -> Answer {
    if milliseconds < 8 {
        return Err(Refusal::BadArg("the send timeout is at least 8 ms"));
    }
    registry::set_timeout(Duration::from_millis(milliseconds.into()))
}

const _: () = assert!(LONGEST <= 64 << 10, "as long as the engine's buffers");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Udp;

    #[test]
    fn statistics_may_be_added_to_themselves() {
        let mut stats = Stats { requests_sent: [1, 2, 3], returned: 4, ..Stats::default() };
        let at = &raw mut stats;
        // SAFETY: one structure, which is readable and writable.
        assert_eq!(unsafe { add_statistics::<Udp>(at, at) }, Ok(()));
        assert_eq!((stats.requests_sent, stats.returned), ([2, 4, 6], 8));
    }
}
