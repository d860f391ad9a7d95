//! The library, its interface, match entries and memory descriptors.

use crate::answer::{Answer, Refusal};
use crate::layout::{CDescriptor, CLimits, CProcess};
use crate::registry::{Maps, Registry, registry};
use cci::{Context, Device};
use cci_job::Job;
use cci_mem::arguments::{In, Out};
use cci_mem::mutex::{lock, read, write};
use cci_peers::{NoDevice, device_beneath};
use cci_portals::{ANY, AccessEntry, Error, Handle, Interface, Limits, Match, Place, Position, Unlink};
use std::ffi::{c_int, c_uint, c_ulong};
use std::sync::Arc;

/// Interface ids: the default one, those of other implementations, ours, and Cray's.
const GENERIC: [u32; 6] = [0, 1, 2, 0x100, 0x200, 0x1_0002];
/// Ours, and Cray's over each bridge.
const ACCELERATED: [u32; 3] = [0x101, 0x1000, 0x1_1000];

/// A generic one and an accelerated one.
const INTERFACES: usize = 2;

/// Whether this interface id is that of an accelerated interface. `CCI_PORTALS_MODE` decides for
/// the default one.
fn is_accelerated(interface: u32) -> Result<bool, Error> {
    match interface {
        0 => Ok(std::env::var("CCI_PORTALS_MODE").is_ok_and(|mode| mode == "accelerated")),
        id if GENERIC.contains(&id) => Ok(false),
        id if ACCELERATED.contains(&id) => Ok(true),
        _ => Err(Error::Interface),
    }
}

pub(crate) fn init(most: Out<'_, c_int>, is_cray: bool) -> Answer {
    let most = most.variable(Error::Address)?;
    crate::names::set_stream();
    *write(&registry()?.initialised) = Some(is_cray);
    most.put(INTERFACES as c_int);
    Ok(())
}

pub(crate) fn fini() -> Answer {
    let registry = registry()?;
    let _alone = lock(&registry.opening);
    *write(&registry.initialised) = None;
    for number in 0..INTERFACES {
        registry.end(number);
    }
    Ok(())
}

pub(crate) fn ni_init(
    interface: u32,
    pid: u32,
    desired: In<'_, CLimits>,
    actual: Out<'_, CLimits>,
    handle: Out<'_, u32>,
) -> Answer {
    let registry = registry()?;
    let is_cray = registry.is_cray()?;
    let handle = handle.variable(Error::Address)?;
    let is_accelerated = is_accelerated(interface)?;
    let _alone = lock(&registry.opening);
    let number = usize::from(is_accelerated);
    let found = read(&registry.networks).clone();
    let is_there = found[number].is_some();
    let network = match &found[number] {
        Some(network) => Arc::clone(network),
        None => {
            let limits = desired.get().map_or_else(Limits::default, Limits::from);
            let other = found.iter().flatten().next().map(AsRef::as_ref);
            let pid = (pid != ANY).then_some(pid);
            let network = Arc::new(open(registry, (is_accelerated, other), pid, limits)?);
            write(&registry.networks)[number] = Some(Arc::clone(&network));
            network
        }
    };
    actual.offer(network.limits().into());
    handle.put(network.handle().bits());
    if is_there && is_cray { Err(Refusal::Duplicate) } else { Ok(()) }
}

/// The device of the interface.
fn device() -> Result<(Context, Device), Refusal> {
    device_beneath("CCI_PORTALS_DEVICE").map_err(|why| match why {
        NoDevice::Cycle => Refusal::Cycle,
        _ => Error::Failed.into(),
    })
}

/// Opens the interface, beside the other one if that is open: in the job of this process if there
/// is one, or by the rule for names. The first one has the number of the process that the map has
/// for its rank.
fn open(
    registry: &Registry,
    (is_accelerated, other): (bool, Option<&Interface>),
    pid: Option<u32>,
    limits: Limits,
) -> Result<Interface, Refusal> {
    let (context, device) = device()?;
    let number = usize::from(is_accelerated);
    let mut ranks = lock(&registry.ranks);
    let place = if Job::is_named() {
        let mut joined = lock(&registry.job);
        if joined.is_none() {
            *joined = Some(Arc::new(Job::join().map_err(|_| Error::Failed)?));
        }
        let job = joined.clone().ok_or(Error::Failed)?;
        match other {
            Some(other) => Place::beside(other, &context, pid),
            None => Place::of_job(job, &context, pid),
        }
    } else {
        let mapped = ranks.rank.and_then(|rank| ranks.maps[number].pids.get(rank as usize).copied());
        Place::by_rule(&device, pid.or(mapped.filter(|_| other.is_none())))
    };
    let place = place.map_err(|why| why.code())?;
    let open = if is_accelerated { Interface::accelerated } else { Interface::new };
    let network = open(place, number as u32, limits).map_err(|why| why.code())?;
    if let Some((rank, ids)) = network.ranks() {
        (ranks.rank, ranks.size) = (Some(rank), u32::try_from(ids.len()).unwrap_or(u32::MAX));
        let (nids, pids) = ids.iter().map(|id| (id.nid, id.pid)).unzip();
        ranks.maps[number] = Maps { nids, pids };
    }
    if other.is_none() {
        ranks.first = number;
    }
    if let Some(jid) = ranks.jid {
        network.set_job(jid);
    }
    Ok(network)
}

pub(crate) fn ni_fini(handle: u32) -> Answer {
    let registry = registry()?;
    let _alone = lock(&registry.opening);
    let number = registry.network(handle)?.handle().interface();
    if registry.end(number as usize) { Ok(()) } else { Err(Error::Network.into()) }
}

pub(crate) fn status(ni: u32, register: u32, value: Out<'_, u64>) -> Answer {
    let network = registry()?.network(ni)?;
    let found = network.status(register)?;
    registry()?.run_handlers(&network);
    value.give(found, Error::Address.into())
}

pub(crate) fn distance(ni: u32, process: CProcess, distance: Out<'_, c_ulong>) -> Answer {
    let found = registry()?.network(ni)?.distance(process.into())?;
    distance.give(found as c_ulong, Error::Address.into())
}

pub(crate) fn handle_of(any: u32, ni: Out<'_, u32>) -> Answer {
    let network = registry()?.open(any, Error::Handle)?;
    if !network.has(Handle::from_bits(any)) {
        return Err(Error::Handle.into());
    }
    ni.give(network.handle().bits(), Error::Address.into())
}

pub(crate) fn uid(ni: u32, uid: Out<'_, u32>) -> Answer {
    let found = registry()?.network(ni)?.identity().0;
    uid.give(found, Error::Address.into())
}

pub(crate) fn jid(ni: u32, jid: Out<'_, u32>) -> Answer {
    let found = registry()?.network(ni)?.identity().1;
    jid.give(found, Error::Address.into())
}

pub(crate) fn id(ni: u32, id: Out<'_, CProcess>) -> Answer {
    let found = registry()?.network(ni)?.id();
    id.give(found.into(), Error::Address.into())
}

fn unlink(of: c_uint) -> Unlink {
    if of == 0 { Unlink::Retain } else { Unlink::Unlink }
}

fn position(of: c_uint) -> Position {
    if of == 0 { Position::Before } else { Position::After }
}

/// What an entry asks for, as calls state it.
pub(crate) type Wanted = (CProcess, u64, u64, c_uint);

fn wanted((source, bits, ignore, goes): Wanted) -> (Match, Unlink) {
    (Match { source: source.into(), bits, ignore }, unlink(goes))
}

/// Attaches an entry. Returns the handle that it has written.
pub(crate) fn attach(ni: u32, portal: u32, of: Wanted, at: c_uint, handle: Out<'_, u32>) -> Result<u32, Refusal> {
    let network = registry()?.network(ni)?;
    let handle = handle.variable(Error::Address)?;
    let (wanted, goes) = wanted(of);
    let made = network.attach(portal, wanted, goes, position(at))?;
    handle.put(made.bits());
    Ok(made.bits())
}

pub(crate) fn attach_any(ni: u32, portal: Out<'_, u32>, of: Wanted, handle: Out<'_, u32>) -> Answer {
    let network = registry()?.network(ni)?;
    let (handle, portal) = (handle.variable(Error::Address)?, portal.variable(Error::Address)?);
    let (wanted, goes) = wanted(of);
    let (index, made) = network.attach_any(wanted, goes)?;
    portal.put(index);
    handle.put(made.bits());
    Ok(())
}

pub(crate) fn insert(base: u32, of: Wanted, at: c_uint, handle: Out<'_, u32>) -> Answer {
    let network = registry()?.open(base, Error::Entry)?;
    let handle = handle.variable(Error::Address)?;
    let (wanted, goes) = wanted(of);
    let made = network.insert(Handle::from_bits(base), wanted, goes, position(at))?;
    handle.put(made.bits());
    Ok(())
}

pub(crate) fn unlink_entry(entry: u32) -> Answer {
    Ok(registry()?.open(entry, Error::Entry)?.unlink_entry(Handle::from_bits(entry))?)
}

/// Attaches memory to an entry.
///
/// # Safety
///
/// As for [`CDescriptor::descriptor`].
pub(crate) unsafe fn attach_memory(entry: u32, of: CDescriptor, goes: c_uint, handle: Out<'_, u32>) -> Answer {
    let network = registry()?.open(entry, Error::Entry)?;
    let handle = handle.variable(Error::Address)?;
    // SAFETY: as for this function.
    let descriptor = unsafe { of.descriptor(registry()?.is_cray()?) }?;
    let made = network.attach_memory(Handle::from_bits(entry), descriptor, unlink(goes))?;
    handle.put(made.bits());
    Ok(())
}

/// Makes memory that operations of this process use.
///
/// # Safety
///
/// As for [`CDescriptor::descriptor`].
pub(crate) unsafe fn bind(ni: u32, of: CDescriptor, goes: c_uint, handle: Out<'_, u32>) -> Answer {
    let network = registry()?.network(ni)?;
    let handle = handle.variable(Error::Address)?;
    // SAFETY: as for this function.
    let descriptor = unsafe { of.descriptor(registry()?.is_cray()?) }?;
    let made = network.bind(descriptor, unlink(goes))?;
    handle.put(made.bits());
    Ok(())
}

pub(crate) fn unlink_memory(memory: u32) -> Answer {
    Ok(registry()?.open(memory, Error::Memory)?.unlink_memory(Handle::from_bits(memory))?)
}

/// Replaces what a memory descriptor states, if a queue is quiet.
///
/// # Safety
///
/// As for [`CDescriptor::descriptor`], of the new one.
pub(crate) unsafe fn update(memory: u32, old: Out<'_, CDescriptor>, new: In<'_, CDescriptor>, test: u32) -> Answer {
    let network = registry()?.open(memory, Error::Memory)?;
    let new = match new.get() {
        // SAFETY: as for this function.
        Some(stated) => Some(unsafe { stated.descriptor(registry()?.is_cray()?) }?),
        None => None,
    };
    let before = network.update(Handle::from_bits(memory), new, Handle::from_bits(test));
    registry()?.run_handlers(&network);
    old.offer(before?.into());
    Ok(())
}

/// What two calls make in one step: an entry, and its memory descriptor.
pub(crate) struct Pair<'call> {
    pub(crate) of: Wanted,
    pub(crate) at: c_uint,
    pub(crate) descriptor: CDescriptor,
    pub(crate) goes: c_uint,
    pub(crate) entry: Out<'call, u32>,
    pub(crate) memory: Out<'call, u32>,
}

/// At the end of the list of a portal index.
///
/// # Safety
///
/// As for [`CDescriptor::descriptor`].
pub(crate) unsafe fn attach_both(ni: u32, portal: u32, pair: Pair<'_>) -> Answer {
    if pair.memory.is_null() {
        return Err(Error::Address.into());
    }
    let entry = attach(ni, portal, pair.of, pair.at, pair.entry)?;
    // SAFETY: as for this function.
    let attached = unsafe { attach_memory(entry, pair.descriptor, pair.goes, pair.memory) };
    if attached.is_err() {
        unlink_entry(entry)?;
    }
    attached
}

/// Beside another entry, if a queue is quiet.
///
/// # Safety
///
/// As for [`CDescriptor::descriptor`].
pub(crate) unsafe fn post(ni: u32, base: u32, pair: Pair<'_>, test: u32) -> Answer {
    let network = registry()?.network(ni)?;
    let (entry_to, memory_to) = (pair.entry.variable(Error::Address)?, pair.memory.variable(Error::Address)?);
    // SAFETY: as for this function.
    let descriptor = unsafe { pair.descriptor.descriptor(registry()?.is_cray()?) }?;
    let (wanted, goes) = wanted(pair.of);
    let made = network.post(
        Handle::from_bits(base),
        (wanted, goes, position(pair.at)),
        (descriptor, unlink(pair.goes)),
        Handle::from_bits(test),
    );
    registry()?.run_handlers(&network);
    let (entry, memory) = made?;
    entry_to.put(entry.bits());
    memory_to.put(memory.bits());
    Ok(())
}

pub(crate) fn access(ni: u32, index: u32, process: CProcess, uid: u32, jid: u32, portal: u32) -> Answer {
    let entry = AccessEntry { process: process.into(), uid, jid, portal };
    Ok(registry()?.network(ni)?.access_entry(index, entry)?)
}
