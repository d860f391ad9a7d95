//! Virtual devices, nodes and queries.

use crate::answer::{Answer, Code, ILLEGAL_QUERY, Refusal, WRONG, answer, check, guarded};
use crate::flags;
use crate::registry::{Device, Handle, check_adapter, registry};
use cci_mem::arguments::{Out, Text};
use cci_mem::quiet_thread;
use cci_sci::{Error, Nodes};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::mpsc::channel;
use std::sync::{Arc, Once};
use std::time::Duration;

/// What `SCI_Q_API` gives.
const VERSION: &[u8] = concat!("SISCI 5 over CCI ", env!("CARGO_PKG_VERSION"), "\0").as_bytes();

/// How long the end of a program waits for owners of segments, and a second.
const PATIENCE: Duration = Duration::from_secs(1);

// SAFETY: of the C library. It only notes the function, which stays as long as this library does:
// the note goes with it.
unsafe extern "C" {
    safe fn atexit(act: extern "C" fn()) -> c_int;
}

/// Has the end of the program wait for what it has stored last, as an adapter would send it.
fn confirm_at_exit() {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(|| {
        // Refused, the program ends without.
        let _ = atexit(at_exit);
    });
}

extern "C" fn at_exit() {
    guarded(|| {
        let Ok(registry) = registry() else { return };
        if !registry.has_host() {
            return;
        }
        // By another thread: this one may have been interrupted by a signal while it had a lock.
        let (done, is_done) = channel();
        let waiter = quiet_thread::spawn("cci-sci-exit", quiet_thread::STACK, move || {
            registry.confirm(PATIENCE);
            // Nobody waits any more.
            let _ = done.send(());
        });
        if waiter.is_ok() {
            // Later is too late.
            let _ = is_done.recv_timeout(2 * PATIENCE);
        }
    });
}

pub(crate) fn initialize(given: c_uint, error: Code<'_>) {
    let act = || {
        flags::check(given, &[], &[])?;
        registry()?.set_initialised(true);
        confirm_at_exit();
        Ok(())
    };
    answer(error, (), act)
}

pub(crate) fn terminate() {
    let act = || {
        registry()?.set_initialised(false);
        registry()?.confirm(PATIENCE);
        registry()?.let_go();
        Ok(())
    };
    answer(Out::NULL, (), act)
}

pub(crate) fn open(to: Out<'_, Handle>, given: c_uint, error: Code<'_>) {
    let act = || {
        flags::check(given, &[], &[])?;
        to.check(WRONG)?;
        let registry = registry()?;
        registry.check()?;
        let handle = registry.next();
        registry.devices.enter(handle, Device { host: registry.host()? });
        to.offer(handle);
        Ok(())
    };
    answer(error, (), act)
}

pub(crate) fn close(handle: Handle, given: c_uint, error: Code<'_>) {
    let act = || {
        flags::check(given, &[], &[])?;
        let registry = registry()?;
        let device = registry.devices.find(handle)?;
        // Objects that the program has left live on, as does the host: programs end so.
        drop((registry.devices.remove(handle), device));
        registry.let_go();
        Ok(())
    };
    answer(error, (), act)
}

fn own_node() -> Answer<u32> {
    registry()?.check()?;
    Ok(Nodes::from_environment().map_err(|why| Refusal::from(why.code()))?.own())
}

pub(crate) fn local_node(adapter: c_uint, to: Out<'_, c_uint>, given: c_uint, error: Code<'_>) {
    let act = || {
        flags::check(given, &[], &[])?;
        check_adapter(adapter)?;
        to.check(WRONG)?;
        let node = own_node()?;
        to.offer(node);
        Ok(())
    };
    answer(error, (), act)
}

pub(crate) fn probe(handle: Handle, adapter: c_uint, node: c_uint, given: c_uint, error: Code<'_>) -> c_int {
    let act = || {
        flags::check(given, &[], &[])?;
        check_adapter(adapter)?;
        registry()?.devices.find(handle)?.host.probe(node)?;
        Ok(1)
    };
    answer(error, 0, act)
}

/// `dis_nodeId_list_t`: nodes, then 0.
pub(crate) type CNodes = [c_uint; 8];

/// Gives the nodes of a host of the table by its name, as the table has it.
pub(crate) fn nodes_of_name(
    name: Text<'_>,
    (to, kind): (Out<'_, CNodes>, Out<'_, c_uint>),
    given: c_uint,
    error: Code<'_>,
) {
    let act = || {
        flags::check(given, &[], &[])?;
        name.check(WRONG)?;
        to.check(WRONG)?;
        registry()?.check()?;
        let name = name.get().ok_or(WRONG)?.to_str().map_err(|_| Error::NoSuchNode)?;
        let table = Nodes::from_environment().map_err(|why| Refusal::from(why.code()))?;
        let mut nodes: CNodes = [0; 8];
        // The last place ends the list.
        let places = nodes.iter_mut().rev().skip(1).rev();
        let count = places.zip(table.of_host(name)).map(|(place, node)| *place = node).count();
        to.offer(nodes);
        kind.offer(0);
        if count == 0 { Err(Error::NoSuchNode.into()) } else { Ok(()) }
    };
    answer(error, (), act)
}

/// `sci_query_string_t`.
#[repr(C)]
struct CText {
    text: *mut c_char,
    length: c_uint,
}

/// `sci_query_adapter_t`.
#[repr(C)]
struct CAdapter {
    adapter: c_uint,
    _port: c_uint,
    subcommand: c_uint,
    to: *mut c_void,
}

/// Answers a query.
///
/// # Safety
///
/// `to` is NULL or leads to the structure of the command. The pointer in that is NULL or leads to
/// room: of a text, as long as it says; of an adapter, for an `unsigned int`.
pub(crate) unsafe fn query(command: c_uint, to: *mut c_void, given: c_uint, error: Code<'_>) {
    let act = || {
        flags::check(given, &[], &[])?;
        check(to)?;
        registry()?.check()?;
        match command {
            1 => {
                // SAFETY: not NULL, so that it leads to the structure of this command.
                let CText { text, length } = unsafe { to.cast::<CText>().read_unaligned() };
                check(text)?;
                if (length as usize) < VERSION.len() {
                    return Err(Error::OutOfRange.into());
                }
                // SAFETY: not NULL, and there is room for so many bytes, as just checked.
                unsafe { std::ptr::copy_nonoverlapping(VERSION.as_ptr(), text.cast(), VERSION.len()) };
            }
            2 => {
                // SAFETY: not NULL, so that it leads to the structure of this command.
                let of = unsafe { to.cast::<CAdapter>().read_unaligned() };
                check_adapter(of.adapter)?;
                // Programs leave the port as it is: no query reads it.
                let found = match of.subcommand {
                    1 => own_node()?,
                    // The link of the only adapter works as long as there is a node.
                    2 => own_node().map(|_| 1)?,
                    _ => return Err(ILLEGAL_QUERY),
                };
                check(of.to)?;
                // SAFETY: not NULL, so that it leads to room for the value.
                unsafe { of.to.cast::<c_uint>().write_unaligned(found) };
            }
            _ => return Err(ILLEGAL_QUERY),
        }
        Ok(())
    };
    answer(error, (), act)
}

/// A device by its handle.
pub(crate) fn device(handle: Handle) -> Answer<Arc<Device>> {
    registry()?.devices.find(handle)
}
