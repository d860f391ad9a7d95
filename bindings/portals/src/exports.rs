//! The symbols.

use crate::answer::answer;
use crate::layout::{CDescriptor, CEvent, CLimits, CProcess};
use crate::objects::Pair;
use crate::registry::Handler;
use crate::runtime::Map;
use crate::transfers::To;
use crate::{objects, queues, runtime, transfers};
use cci_mem::arguments::{In, Out};
use cci_mem::boundary::uncancelled;
use std::ffi::{c_int, c_uint, c_ulong};

/// Exports calls: the symbol, its signature and what it does. After `uncancelled:` stand those that
/// open, close or look up: no thread is cancelled in them.
macro_rules! export {
    (uncancelled: $($symbol:ident $arguments:tt => $body:expr;)*) => {
        export! { $($symbol $arguments => uncancelled(|| $body);)* }
    };
    ($($symbol:ident ($($argument:ident: $type:ty),*) => $body:expr;)*) => {
        $(
            /// # Safety
            ///
            /// What the header states of the pointers.
            #[unsafe(no_mangle)]
            #[allow(clippy::too_many_arguments)]
            unsafe extern "C" fn $symbol($($argument: $type),*) -> c_int {
                answer(|| $body)
            }
        )*
    };
}

export! {
    uncancelled:
    PtlInit(most: Out<'_, c_int>) => objects::init(most, false);
    PtlInitCray(most: Out<'_, c_int>) => objects::init(most, true);
    PtlNIInit(interface: u32, pid: u32, desired: In<'_, CLimits>, actual: Out<'_, CLimits>, ni: Out<'_, u32>) => objects::ni_init(interface, pid, desired, actual, ni);
    PtlNIFini(ni: u32) => objects::ni_fini(ni);
    PtlNIDist(ni: u32, process: CProcess, distance: Out<'_, c_ulong>) => objects::distance(ni, process, distance);
    PtlEQAlloc(ni: u32, count: u64, handler: Option<Handler>, eq: Out<'_, u32>) => queues::allocate(ni, count, handler, eq);
    PtlEQFree(eq: u32) => queues::free(eq);
    PtlSetRank(ni: u32, rank: c_int, size: c_int) => runtime::set_rank(ni, rank, size);
    PtlGetRankId(ni: u32, rank: u32, id: Out<'_, CProcess>) => runtime::rank_id(ni, rank, id);
    PtlSetNIDMap(ni: u32, map: *const u32, count: c_int) => {
        // SAFETY: `map` is NULL or leads to `count` numbers.
        unsafe { runtime::set_map(ni, Map::Nids, map, count) }
    };
    PtlSetPIDMap(ni: u32, map: *const u32, count: c_int) => {
        // SAFETY: as for `PtlSetNIDMap`.
        unsafe { runtime::set_map(ni, Map::Pids, map, count) }
    };
    PtlSetJID(ni: u32, jid: u32) => runtime::set_jid(ni, jid);
}

export! {
    PtlNIStatus(ni: u32, register: u32, value: Out<'_, u64>) => objects::status(ni, register, value);
    PtlNIHandle(any: u32, ni: Out<'_, u32>) => objects::handle_of(any, ni);
    PtlGetUid(ni: u32, uid: Out<'_, u32>) => objects::uid(ni, uid);
    PtlGetId(ni: u32, id: Out<'_, CProcess>) => objects::id(ni, id);
    PtlGetJid(ni: u32, jid: Out<'_, u32>) => objects::jid(ni, jid);
    PtlMEAttach(ni: u32, portal: u32, source: CProcess, bits: u64, ignore: u64, unlink: c_uint, at: c_uint, me: Out<'_, u32>) => objects::attach(ni, portal, (source, bits, ignore, unlink), at, me).map(drop);
    PtlMEAttachAny(ni: u32, portal: Out<'_, u32>, source: CProcess, bits: u64, ignore: u64, unlink: c_uint, me: Out<'_, u32>) => objects::attach_any(ni, portal, (source, bits, ignore, unlink), me);
    PtlMEInsert(base: u32, source: CProcess, bits: u64, ignore: u64, unlink: c_uint, at: c_uint, me: Out<'_, u32>) => objects::insert(base, (source, bits, ignore, unlink), at, me);
    PtlMEUnlink(me: u32) => objects::unlink_entry(me);
    PtlMDAttach(me: u32, md: CDescriptor, unlink: c_uint, handle: Out<'_, u32>) => {
        // SAFETY: the memory that the descriptor states stays mapped as long as the memory
        // descriptor lives, and so many parts are there where it states parts.
        unsafe { objects::attach_memory(me, md, unlink, handle) }
    };
    PtlMDBind(ni: u32, md: CDescriptor, unlink: c_uint, handle: Out<'_, u32>) => {
        // SAFETY: as for `PtlMDAttach`.
        unsafe { objects::bind(ni, md, unlink, handle) }
    };
    PtlMDUnlink(md: u32) => objects::unlink_memory(md);
    PtlMDUpdate(md: u32, old: Out<'_, CDescriptor>, new: In<'_, CDescriptor>, test: u32) => {
        // SAFETY: what the new descriptor states, as for `PtlMDAttach`.
        unsafe { objects::update(md, old, new, test) }
    };
    PtlMEMDAttach(ni: u32, portal: u32, source: CProcess, bits: u64, ignore: u64, me_unlink: c_uint, at: c_uint, md: CDescriptor, md_unlink: c_uint, me: Out<'_, u32>, handle: Out<'_, u32>) => {
        let of = (source, bits, ignore, me_unlink);
        let pair = Pair { of, at, descriptor: md, goes: md_unlink, entry: me, memory: handle };
        // SAFETY: as for `PtlMDAttach`.
        unsafe { objects::attach_both(ni, portal, pair) }
    };
    PtlMEMDPost(ni: u32, base: u32, source: CProcess, bits: u64, ignore: u64, me_unlink: c_uint, at: c_uint, md: CDescriptor, md_unlink: c_uint, me: Out<'_, u32>, handle: Out<'_, u32>, test: u32) => {
        let of = (source, bits, ignore, me_unlink);
        let pair = Pair { of, at, descriptor: md, goes: md_unlink, entry: me, memory: handle };
        // SAFETY: as for `PtlMDAttach`.
        unsafe { objects::post(ni, base, pair, test) }
    };
    PtlEQGet(eq: u32, event: Out<'_, CEvent>) => queues::get(eq, event);
    PtlEQWait(eq: u32, event: Out<'_, CEvent>) => queues::wait(eq, event);
    PtlEQPoll(eqs: *const u32, count: c_int, limit: u32, event: Out<'_, CEvent>, which: Out<'_, c_int>) => {
        // SAFETY: `eqs` is NULL or leads to `count` handles.
        unsafe { queues::poll(eqs, count, limit, event, which) }
    };
    PtlACEntry(ni: u32, index: u32, process: CProcess, uid: u32, jid: u32, portal: u32) => objects::access(ni, index, process, uid, jid, portal);
    PtlPut(md: u32, ack: c_uint, process: CProcess, portal: u32, access: u32, bits: u64, offset: u64, header: u64) => transfers::put(md, None, ack, To { process, portal, access, bits, offset, header });
    PtlPutRegion(md: u32, local: u64, length: u64, ack: c_uint, process: CProcess, portal: u32, access: u32, bits: u64, offset: u64, header: u64) => transfers::put(md, Some((local, length)), ack, To { process, portal, access, bits, offset, header });
    PtlGet(md: u32, process: CProcess, portal: u32, access: u32, bits: u64, offset: u64) => transfers::get(md, None, To { process, portal, access, bits, offset, header: 0 });
    PtlGetRegion(md: u32, local: u64, length: u64, process: CProcess, portal: u32, access: u32, bits: u64, offset: u64) => transfers::get(md, Some((local, length)), To { process, portal, access, bits, offset, header: 0 });
    PtlGetPut(get_md: u32, put_md: u32, process: CProcess, portal: u32, access: u32, bits: u64, offset: u64, header: u64) => transfers::get_put(get_md, put_md, To { process, portal, access, bits, offset, header });
    PtlProgress(any: u32, limit: u32) => queues::progress(any, limit);
    PtlGetRank(ni: u32, rank: Out<'_, u32>, size: Out<'_, u32>) => runtime::get_rank(ni, rank, size);
    PtlGetNIDMap(ni: u32, map: *mut u32, count: c_int) => {
        // SAFETY: `map` is NULL or leads to room for `count` numbers.
        unsafe { runtime::get_map(ni, Map::Nids, map, count) }
    };
    PtlGetPIDMap(ni: u32, map: *mut u32, count: c_int) => {
        // SAFETY: as for `PtlGetNIDMap`.
        unsafe { runtime::get_map(ni, Map::Pids, map, count) }
    };
}

#[unsafe(no_mangle)]
extern "C" fn PtlFini() {
    answer(|| uncancelled(objects::fini));
}
