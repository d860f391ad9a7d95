//! Ranks and maps.

use crate::answer::Answer;
use crate::layout::CProcess;
use crate::registry::{Maps, Ranks, registry};
use cci_job::Job;
use cci_mem::arguments::Out;
use cci_mem::mutex::{lock, read};
use cci_portals::{Error, Handle, ProcessId};
use std::ffi::c_int;
use std::net::Ipv4Addr;

/// `PTL_INVALID_HANDLE`: before `PtlNIInit`.
const NONE: u32 = u32::MAX;
/// Entries of a map.
const MOST: usize = 1 << 20;

/// The maps of this interface, or without one those of the first.
fn maps_of(ranks: &mut Ranks, ni: u32) -> &mut Maps {
    let number = if ni == NONE { ranks.first } else { Handle::from_bits(ni).interface() as usize };
    // `ranks` has found the interface.
    &mut ranks.maps[number % 2]
}

fn ranks<R>(ni: u32, act: impl FnOnce(&mut Ranks) -> Result<R, Error>) -> Result<R, Error> {
    let registry = registry()?;
    if ni != NONE {
        registry.network(ni)?;
    }
    act(&mut lock(&registry.ranks))
}

/// A number, or an IPv4 address.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().or_else(|| text.parse().map(Ipv4Addr::to_bits).ok())
}

/// A variable with numbers, and colons between them.
fn list(name: &str) -> Option<Vec<u32>> {
    std::env::var(name).ok()?.split(':').map(number).collect()
}

pub(crate) fn set_rank(ni: u32, rank: c_int, size: c_int) -> Answer {
    Ok(ranks(ni, |ranks| {
        if (rank, size) == (-1, -1) {
            // What a job has filled in stays; before `PtlNIInit` it is to come.
            if ranks.rank.is_some() || Job::is_named() {
                return Ok(());
            }
            let rank = list("PTL_MY_RID").and_then(|rank| rank.first().copied()).ok_or(Error::Failed)?;
            let (nids, pids) = (list("PTL_NIDMAP"), list("PTL_PIDMAP"));
            let (nids, pids) = (nids.ok_or(Error::Failed)?, pids.ok_or(Error::Failed)?);
            if nids.len() != pids.len() || rank as usize >= nids.len() {
                return Err(Error::Failed);
            }
            let jid = list("PTL_MY_JID").and_then(|jid| jid.first().copied());
            (ranks.rank, ranks.size, ranks.jid) = (Some(rank), nids.len() as u32, jid);
            ranks.maps = [(); 2].map(|()| Maps { nids: nids.clone(), pids: pids.clone() });
            return Ok(());
        }
        let (rank, size) = (u32::try_from(rank), u32::try_from(size));
        let (Ok(rank), Ok(size)) = (rank, size) else { return Err(Error::Process) };
        if rank >= size {
            return Err(Error::Process);
        }
        (ranks.rank, ranks.size) = (Some(rank), size);
        Ok(())
    })?)
}

pub(crate) fn get_rank(ni: u32, rank: Out<'_, u32>, size: Out<'_, u32>) -> Answer {
    let (own, all) = ranks(ni, |ranks| Ok((ranks.rank.ok_or(Error::Failed)?, ranks.size)))?;
    rank.offer(own);
    size.offer(all);
    Ok(())
}

pub(crate) fn rank_id(ni: u32, rank: u32, id: Out<'_, CProcess>) -> Answer {
    let found = ranks(ni, |ranks| {
        let of = |map: &[u32]| map.get(rank as usize).copied().ok_or(Error::Process);
        let Maps { nids, pids } = maps_of(ranks, ni);
        Ok(ProcessId { nid: of(nids)?, pid: of(pids)? })
    })?;
    id.give(found.into(), Error::Address.into())
}

/// Which of the maps.
#[derive(Clone, Copy)]
pub(crate) enum Map {
    Nids,
    Pids,
}

fn map_of(maps: &mut Maps, map: Map) -> &mut Vec<u32> {
    match map {
        Map::Nids => &mut maps.nids,
        Map::Pids => &mut maps.pids,
    }
}

/// Sets a map.
///
/// # Safety
///
/// `from` is NULL or leads to `count` numbers.
pub(crate) unsafe fn set_map(ni: u32, map: Map, from: *const u32, count: c_int) -> Answer {
    let count = usize::try_from(count).ok().filter(|count| *count <= MOST).ok_or(Error::Process)?;
    if from.is_null() {
        return Err(Error::Address.into());
    }
    // SAFETY: not NULL, and one of `count` numbers; of any alignment.
    let values: Vec<u32> = (0..count).map(|at| unsafe { from.add(at).read_unaligned() }).collect();
    Ok(ranks(ni, |ranks| {
        if ni == NONE {
            // For interfaces that are opened later.
            ranks.maps.iter_mut().for_each(|maps| map_of(maps, map).clone_from(&values));
        } else {
            *map_of(maps_of(ranks, ni), map) = values;
        }
        Ok(())
    })?)
}

/// Gives a map.
///
/// # Safety
///
/// `to` is NULL or leads to room for `count` numbers.
pub(crate) unsafe fn get_map(ni: u32, map: Map, to: *mut u32, count: c_int) -> Answer {
    if to.is_null() {
        return Err(Error::Address.into());
    }
    let values = ranks(ni, |ranks| Ok(map_of(maps_of(ranks, ni), map).clone()))?;
    let count = usize::try_from(count).unwrap_or(0);
    if values.len() > count {
        return Err(Error::NoSpace.into());
    }
    for (at, value) in values.into_iter().enumerate() {
        // SAFETY: not NULL, and inside of the room, which has no fewer places than there are
        // values.
        unsafe { to.add(at).write_unaligned(value) };
    }
    Ok(())
}

pub(crate) fn set_jid(ni: u32, jid: u32) -> Answer {
    ranks(ni, |ranks| {
        ranks.jid = Some(jid);
        Ok(())
    })?;
    let networks = read(&registry()?.networks).clone();
    networks.iter().flatten().for_each(|network| network.set_job(jid));
    Ok(())
}
