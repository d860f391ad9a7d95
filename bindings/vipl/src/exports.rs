//! The symbols.

use crate::answer::answer;
use crate::handles::Handle;
use crate::layout::{CViAttributes, MemAttributes, NetAddress, NetRoom, NicAttributes};
use crate::nic::ErrorHandler;
use crate::orders::{DescriptorHandler, QueueHandler};
use crate::{connections, memory, names, nics, notify, queues, vis};
use cci_mem::arguments::{In, Out, Text};
use cci_mem::boundary::uncancelled;
use std::ffi::{c_char, c_int, c_ulong, c_void};

/// Exports calls: the symbol, its signature and what it does. After `uncancelled:` stand those that
/// open, close, register, connect or look up: no thread is cancelled in them.
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
            unsafe extern "C" fn $symbol($($argument: $type),*) -> c_int {
                answer(|| $body)
            }
        )*
    };
}

type Descriptor = *mut c_void;

export! {
    uncancelled:
    VipOpenNic(name: Text<'_>, nic: Out<'_, Handle>) => nics::open(name, nic);
    VipCloseNic(nic: Handle) => nics::close(nic);
    VipCreateVi(nic: Handle, attributes: In<'_, CViAttributes>, send: Handle, receive: Handle, vi: Out<'_, Handle>) => vis::create(nic, attributes, send, receive, vi);
    VipDestroyVi(vi: Handle) => vis::destroy(vi);
    VipConnectWait(nic: Handle, local: NetAddress<'_>, timeout: c_ulong, remote: NetRoom<'_>, attributes: Out<'_, CViAttributes>, connection: Out<'_, Handle>) => connections::wait(nic, local, timeout, remote, attributes, connection);
    VipConnectAccept(connection: Handle, vi: Handle) => connections::accept(connection, vi);
    VipConnectReject(connection: Handle) => connections::reject(connection);
    VipConnectRequest(vi: Handle, local: NetAddress<'_>, remote: NetAddress<'_>, timeout: c_ulong, attributes: Out<'_, CViAttributes>) => connections::request(vi, local, remote, timeout, attributes);
    VipDisconnect(vi: Handle) => vis::disconnect(vi);
    VipConnectPeerRequest(vi: Handle, local: NetAddress<'_>, remote: NetAddress<'_>, timeout: c_ulong) => connections::peer_request(vi, local, remote, timeout);
    VipConnectPeerDone(vi: Handle, attributes: Out<'_, CViAttributes>) => connections::peer_done(vi, attributes);
    VipConnectPeerWait(vi: Handle, attributes: Out<'_, CViAttributes>) => connections::peer_wait(vi, attributes);
    VipRegisterMem(nic: Handle, start: *mut c_void, length: c_ulong, attributes: In<'_, MemAttributes>, handle: Out<'_, u32>) => {
        // SAFETY: the program keeps the memory mapped until it deregisters it.
        unsafe { memory::register(nic, start, length, attributes, handle) }
    };
    VipDeregisterMem(nic: Handle, start: *mut c_void, handle: u32) => memory::deregister(nic, start, handle);
    VipSendNotify(vi: Handle, context: *mut c_void, handler: Option<DescriptorHandler>) => notify::descriptor(vi, context, handler, false);
    VipRecvNotify(vi: Handle, context: *mut c_void, handler: Option<DescriptorHandler>) => notify::descriptor(vi, context, handler, true);
    VipCreateCQ(nic: Handle, entries: c_ulong, queue: Out<'_, Handle>) => queues::create(nic, entries, queue);
    VipDestroyCQ(queue: Handle) => queues::destroy(queue);
    VipCQNotify(queue: Handle, context: *mut c_void, handler: Option<QueueHandler>) => notify::entry(queue, context, handler);
    VipErrorCallback(nic: Handle, context: *mut c_void, handler: Option<ErrorHandler>) => nics::error_callback(nic, context, handler);
    VipNSInit(nic: Handle, _init: *mut c_void) => names::start(nic, true);
    VipNSGetHostByName(nic: Handle, name: Text<'_>, address: NetRoom<'_>, index: c_ulong) => names::by_name(nic, name, address, index);
    VipNSGetHostByAddr(nic: Handle, address: NetAddress<'_>, name: *mut c_char, length: Out<'_, c_ulong>) => {
        // SAFETY: `length` is NULL or leads to the size of the room to which `name` leads, unless
        // that is NULL.
        unsafe { names::by_address(nic, address, name, length) }
    };
    VipNSShutdown(nic: Handle) => names::start(nic, false);
}

export! {
    VipQueryNic(nic: Handle, attributes: Out<'_, NicAttributes>) => nics::query(nic, attributes);
    VipQueryVi(vi: Handle, state: Out<'_, c_int>, attributes: Out<'_, CViAttributes>, send: Out<'_, c_int>, receive: Out<'_, c_int>) => vis::query(vi, state, attributes, send, receive);
    VipSetViAttributes(vi: Handle, attributes: In<'_, CViAttributes>) => vis::set_attributes(vi, attributes);
    VipCreatePtag(nic: Handle, tag: Out<'_, Handle>) => memory::create_tag(nic, tag);
    VipDestroyPtag(nic: Handle, tag: Handle) => memory::destroy_tag(nic, tag);
    VipQueryMem(nic: Handle, start: *mut c_void, handle: u32, attributes: Out<'_, MemAttributes>) => memory::query(nic, start, handle, attributes);
    VipSetMemAttributes(nic: Handle, start: *mut c_void, handle: u32, attributes: In<'_, MemAttributes>) => memory::set(nic, start, handle, attributes);
    VipPostSend(vi: Handle, descriptor: Descriptor, handle: u32) => vis::post(vi, descriptor, handle, false);
    VipSendDone(vi: Handle, descriptor: Out<'_, Descriptor>) => vis::done(vi, descriptor, false);
    VipSendWait(vi: Handle, timeout: c_ulong, descriptor: Out<'_, Descriptor>) => vis::wait(vi, timeout, descriptor, false);
    VipPostRecv(vi: Handle, descriptor: Descriptor, handle: u32) => vis::post(vi, descriptor, handle, true);
    VipRecvDone(vi: Handle, descriptor: Out<'_, Descriptor>) => vis::done(vi, descriptor, true);
    VipRecvWait(vi: Handle, timeout: c_ulong, descriptor: Out<'_, Descriptor>) => vis::wait(vi, timeout, descriptor, true);
    VipResizeCQ(queue: Handle, entries: c_ulong) => queues::resize(queue, entries);
    VipCQDone(queue: Handle, vi: Out<'_, Handle>, is_receive: Out<'_, c_int>) => queues::done(queue, vi, is_receive);
    VipCQWait(queue: Handle, timeout: c_ulong, vi: Out<'_, Handle>, is_receive: Out<'_, c_int>) => queues::wait(queue, timeout, vi, is_receive);
    VipQuerySystemManagementInfo(nic: Handle, _kind: c_ulong, _found: *mut c_void) => nics::query_system_management(nic);
}
