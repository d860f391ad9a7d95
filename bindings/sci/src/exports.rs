//! The calls of the header, each under two names: for programs of one thread and of several.

use crate::answer::Code;
use crate::callbacks::{CodeCallback, DataCallback, Function, LocalCallback, RemoteCallback};
use crate::registry::Handle;
use crate::{answer, devices, interrupts, maps, queues, segments};
use cci_mem::arguments::{Out, Text};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// Declares calls: those for programs of one thread, and those for programs of several.
macro_rules! calls {
    ($(fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $call:expr;)+) => {
        calls! { single "_SISCI_PUBLIC_FUNC_ST_" $(fn $name($($arg: $type),*) $(-> $result)? = $call;)+ }
        calls! { several "_SISCI_PUBLIC_FUNC_MT_" $(fn $name($($arg: $type),*) $(-> $result)? = $call;)+ }
    };
    ($module:ident $prefix:literal
        $(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $call:expr;)+
    ) => {
        #[expect(non_snake_case, reason = "the names are those of SISCI")]
        mod $module {
            use super::*;
            $(
                #[unsafe(export_name = concat!($prefix, stringify!($name)))]
                unsafe extern "C-unwind" fn $name($($arg: $type),*) $(-> $result)? {
                    let held = answer::hold_cancellation();
                    let result = answer::guarded(|| $call);
                    // A thread that was cancelled meanwhile ends here: nothing of this frame is to
                    // be dropped.
                    answer::release_cancellation(held);
                    result
                }
            )+
        }
    };
}

calls! {
    fn SCIInitialize(flags: c_uint, error: Code<'_>) = devices::initialize(flags, error);
    fn SCITerminate() = devices::terminate();
    fn SCIOpen(sd: Out<'_, Handle>, flags: c_uint, error: Code<'_>) = devices::open(sd, flags, error);
    fn SCIClose(sd: Handle, flags: c_uint, error: Code<'_>) = devices::close(sd, flags, error);
    fn SCIGetErrorString(code: c_uint) -> *const c_char = answer::error_string(code);
    fn SCIGetLocalNodeId(adapter: c_uint, node: Out<'_, c_uint>, flags: c_uint, error: Code<'_>) =
        devices::local_node(adapter, node, flags, error);
    fn SCIProbeNode(sd: Handle, adapter: c_uint, node: c_uint, flags: c_uint, error: Code<'_>) -> c_int =
        devices::probe(sd, adapter, node, flags, error);
    fn SCIGetNodeIdByAdapterName(
        name: Text<'_>, nodes: Out<'_, devices::CNodes>, kind: Out<'_, c_uint>, flags: c_uint, error: Code<'_>,
    ) = devices::nodes_of_name(name, (nodes, kind), flags, error);
    fn SCIQuery(command: c_uint, data: *mut c_void, flags: c_uint, error: Code<'_>) = {
        // SAFETY: `data` is NULL or leads to the structure of the command, whose pointer is NULL or
        // leads to room for the answer.
        unsafe { devices::query(command, data, flags, error) }
    };

    fn SCICreateSegment(
        sd: Handle, segment: Out<'_, Handle>, id: c_uint, size: usize, callback: Function<LocalCallback>,
        arg: *mut c_void, flags: c_uint, error: Code<'_>,
    ) = segments::create(sd, segment, (id, size), (callback, arg), flags, error);
    fn SCIPrepareSegment(segment: Handle, adapter: c_uint, flags: c_uint, error: Code<'_>) =
        segments::prepare(segment, adapter, flags, error);
    fn SCISetSegmentAvailable(segment: Handle, adapter: c_uint, flags: c_uint, error: Code<'_>) =
        segments::publish(segment, adapter, flags, error);
    fn SCISetSegmentUnavailable(segment: Handle, adapter: c_uint, flags: c_uint, error: Code<'_>) =
        segments::withdraw(segment, adapter, flags, error);
    fn SCIRemoveSegment(segment: Handle, flags: c_uint, error: Code<'_>) = segments::remove(segment, flags, error);
    fn SCIRegisterSegmentMemory(address: *mut c_void, size: usize, segment: Handle, flags: c_uint, error: Code<'_>) =
        segments::register(address, size, segment, flags, error);
    fn SCIAttachPhysicalMemory(
        _io: u64, _address: *mut c_void, _bus: c_uint, size: usize, segment: Handle, _flags: c_uint, error: Code<'_>,
    ) = segments::attach_physical(size, segment, error);
    fn SCIGetLocalSegmentSize(segment: Handle) -> usize = segments::local_size(segment);
    fn SCIGetLocalSegmentId(segment: Handle) -> c_uint = segments::local_id(segment);
    fn SCIWaitForLocalSegmentEvent(
        segment: Handle, node: Out<'_, c_uint>, adapter: Out<'_, c_uint>, timeout: c_uint,
        flags: c_uint, error: Code<'_>,
    ) -> c_uint = segments::wait_local(segment, (node, adapter), timeout, flags, error);

    fn SCIConnectSegment(
        sd: Handle, segment: Out<'_, Handle>, node: c_uint, id: c_uint, adapter: c_uint,
        callback: Function<RemoteCallback>, arg: *mut c_void, timeout: c_uint, flags: c_uint, error: Code<'_>,
    ) = segments::connect(sd, segment, (node, id), adapter, (callback, arg), timeout, flags, error);
    fn SCIDisconnectSegment(segment: Handle, flags: c_uint, error: Code<'_>) =
        segments::disconnect(segment, flags, error);
    fn SCIGetRemoteSegmentSize(segment: Handle) -> usize = segments::remote_size(segment);
    fn SCIGetRemoteSegmentId(segment: Handle) -> c_uint = segments::remote_id(segment);
    fn SCIWaitForRemoteSegmentEvent(
        segment: Handle, status: Out<'_, c_uint>, timeout: c_uint, flags: c_uint, error: Code<'_>,
    ) -> c_uint = segments::wait_remote(segment, status, timeout, flags, error);

    fn SCIMapLocalSegment(
        segment: Handle, map: Out<'_, Handle>, offset: usize, size: usize, _addr: *mut c_void,
        flags: c_uint, error: Code<'_>,
    ) -> *mut c_void = maps::map_local(segment, map, (offset, size), flags, error);
    fn SCIMapRemoteSegment(
        segment: Handle, map: Out<'_, Handle>, offset: usize, size: usize, _addr: *mut c_void,
        flags: c_uint, error: Code<'_>,
    ) -> *mut c_void = maps::map_remote(segment, map, (offset, size), flags, error);
    fn SCIUnmapSegment(map: Handle, flags: c_uint, error: Code<'_>) = maps::unmap(map, flags, error);

    fn SCICreateMapSequence(map: Handle, sequence: Out<'_, Handle>, flags: c_uint, error: Code<'_>) =
        maps::create_sequence(map, sequence, flags, error);
    fn SCIRemoveSequence(sequence: Handle, flags: c_uint, error: Code<'_>) =
        maps::remove_sequence(sequence, flags, error);
    fn SCIStartSequence(sequence: Handle, flags: c_uint, error: Code<'_>) -> c_uint =
        maps::start_sequence(sequence, flags, error);
    fn SCICheckSequence(sequence: Handle, flags: c_uint, error: Code<'_>) -> c_uint =
        maps::check_sequence(sequence, flags, error);
    fn SCIStoreBarrier(sequence: Handle, _flags: c_uint) = maps::store_barrier(sequence);
    fn SCIFlush(sequence: Handle, _flags: c_uint) = maps::flush(sequence);
    fn SCIFlushReadBuffers(sequence: Handle) = maps::flush_read_buffers(sequence);

    fn SCIMemCpy(
        sequence: Handle, memory: *mut c_void, map: Handle, offset: usize, size: usize, flags: c_uint, error: Code<'_>,
    ) = {
        // SAFETY: `memory` is NULL or leads to `size` bytes, which the call may read, or write for
        // a read.
        unsafe { maps::copy(Some(sequence), memory, map, (offset, size), flags, error) }
    };
    fn SCIMemCopy(
        memory: *mut c_void, map: Handle, offset: usize, size: usize, flags: c_uint, error: Code<'_>,
    ) = {
        // SAFETY: as for `SCIMemCpy`.
        unsafe { maps::copy(None, memory, map, (offset, size), flags, error) }
    };
    fn SCITransferBlock(
        source: Handle, from: usize, target: Handle, to: usize, size: usize, flags: c_uint, error: Code<'_>,
    ) = maps::transfer((source, from), (target, to), size, flags, error);
    fn SCICacheSync(map: Handle, address: *mut c_void, len: usize, flags: c_uint, error: Code<'_>) =
        maps::cache_sync(map, address, len, flags, error);

    fn SCICreateDMAQueue(
        sd: Handle, queue: Out<'_, Handle>, adapter: c_uint, most: c_uint, flags: c_uint, error: Code<'_>,
    ) = queues::create(sd, queue, (adapter, most), flags, error);
    fn SCIRemoveDMAQueue(queue: Handle, flags: c_uint, error: Code<'_>) = queues::remove(queue, flags, error);
    fn SCIEnqueueDMATransfer(
        queue: Handle, local: Handle, remote: Handle, from: usize, to: usize, size: usize,
        flags: c_uint, error: Code<'_>,
    ) = queues::enqueue(queue, ((local, from), (remote, to)), size, flags, error);
    fn SCIPostDMAQueue(
        queue: Handle, callback: Function<CodeCallback>, arg: *mut c_void, flags: c_uint, error: Code<'_>,
    ) = queues::post(queue, (callback, arg), flags, error);
    fn SCIStartDmaTransfer(
        queue: Handle, local: Handle, remote: Handle, from: usize, size: usize, to: usize,
        callback: Function<CodeCallback>, arg: *mut c_void, flags: c_uint, error: Code<'_>,
    ) = queues::start_transfer(queue, ((local, from), (remote, to)), size, (callback, arg), flags, error);
    fn SCIStartDmaTransferVec(
        queue: Handle, local: Handle, remote: Handle, count: usize, parts: *const queues::CPart,
        callback: Function<CodeCallback>, arg: *mut c_void, flags: c_uint, error: Code<'_>,
    ) = {
        // SAFETY: `parts` is NULL or leads to `count` parts.
        unsafe { queues::start_vector(queue, (local, remote), (parts, count), (callback, arg), flags, error) }
    };
    fn SCIAbortDMAQueue(queue: Handle, flags: c_uint, error: Code<'_>) = queues::abort(queue, flags, error);
    fn SCIResetDMAQueue(queue: Handle, flags: c_uint, error: Code<'_>) = queues::reset(queue, flags, error);
    fn SCIDMAQueueState(queue: Handle) -> c_uint = queues::state(queue);
    fn SCIWaitForDMAQueue(queue: Handle, timeout: c_uint, flags: c_uint, error: Code<'_>) -> c_uint =
        queues::wait(queue, timeout, flags, error);

    fn SCICreateInterrupt(
        sd: Handle, interrupt: Out<'_, Handle>, adapter: c_uint, number: Out<'_, c_uint>,
        callback: Function<CodeCallback>, arg: *mut c_void, flags: c_uint, error: Code<'_>,
    ) = {
        // SAFETY: `number` is NULL or leads to a variable, which has the number with the flag for a
        // fixed one.
        unsafe { interrupts::create(sd, interrupt, (adapter, number), (callback, arg), flags, error) }
    };
    fn SCIRemoveInterrupt(interrupt: Handle, flags: c_uint, error: Code<'_>) =
        interrupts::remove(interrupt, flags, error);
    fn SCIWaitForInterrupt(interrupt: Handle, timeout: c_uint, flags: c_uint, error: Code<'_>) =
        interrupts::wait(interrupt, timeout, flags, error);
    fn SCIConnectInterrupt(
        sd: Handle, interrupt: Out<'_, Handle>, node: c_uint, adapter: c_uint, number: c_uint, timeout: c_uint,
        flags: c_uint, error: Code<'_>,
    ) = interrupts::connect(sd, interrupt, (node, adapter, number), timeout, flags, error);
    fn SCIDisconnectInterrupt(interrupt: Handle, flags: c_uint, error: Code<'_>) =
        interrupts::disconnect(interrupt, flags, error);
    fn SCITriggerInterrupt(interrupt: Handle, flags: c_uint, error: Code<'_>) =
        interrupts::trigger(interrupt, flags, error);

    fn SCICreateDataInterrupt(
        sd: Handle, interrupt: Out<'_, Handle>, adapter: c_uint, number: Out<'_, c_uint>,
        callback: Function<DataCallback>, arg: *mut c_void, flags: c_uint, error: Code<'_>,
    ) = {
        // SAFETY: as for `SCICreateInterrupt`.
        unsafe { interrupts::create_data(sd, interrupt, (adapter, number), (callback, arg), flags, error) }
    };
    fn SCIRemoveDataInterrupt(interrupt: Handle, flags: c_uint, error: Code<'_>) =
        interrupts::remove_data(interrupt, flags, error);
    fn SCIWaitForDataInterrupt(
        interrupt: Handle, data: *mut c_void, length: Out<'_, c_uint>, timeout: c_uint, flags: c_uint, error: Code<'_>,
    ) = {
        // SAFETY: `length` is NULL or leads to the size of the room to which `data` leads, unless
        // that is NULL.
        unsafe { interrupts::wait_data(interrupt, (data, length), timeout, flags, error) }
    };
    fn SCIConnectDataInterrupt(
        sd: Handle, interrupt: Out<'_, Handle>, node: c_uint, adapter: c_uint, number: c_uint, timeout: c_uint,
        flags: c_uint, error: Code<'_>,
    ) = interrupts::connect_data(sd, interrupt, (node, adapter, number), timeout, flags, error);
    fn SCIDisconnectDataInterrupt(interrupt: Handle, flags: c_uint, error: Code<'_>) =
        interrupts::disconnect_data(interrupt, flags, error);
    fn SCITriggerDataInterrupt(
        interrupt: Handle, data: *mut c_void, length: c_uint, flags: c_uint, error: Code<'_>,
    ) = {
        // SAFETY: `data` is NULL or leads to `length` bytes, which nobody writes during the call.
        unsafe { interrupts::trigger_data(interrupt, (data, length), flags, error) }
    };
}
