//! The record of this transport: its keys, and whether the system can run it.

use crate::format::layout::{MAX_SEND_SIZE, SEND_SIZES};
use crate::shortcut::Sm;
use cci_mem::descriptors;
use cci_transport::{Check, Condition, Core, Discovered, Driver, Key, OpenError, Scope, Transport, TransportOptions};
use rustix::fs::{SealFlags, fcntl_add_seals};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind};

const NUMBER: Check = Check::Number(0, u32::MAX as u64);

/// Shared memory between processes of one user on one host.
pub static DRIVER: Driver = Driver {
    name: "sm",
    scope: Scope::Host,
    rank: 90,
    priority: 20,
    is_link: false,
    uses_library: false,
    example_uri: "sm://1234/0",
    keys: &[
        // The original kept its files there; ours have no name in a file system.
        Key { name: "path", check: Check::Text },
        Key { name: "mss", check: Check::Number(*SEND_SIZES.start() as u64, *SEND_SIZES.end() as u64) },
        Key { name: "pid", check: NUMBER },
        Key { name: "id", check: NUMBER },
        Key { name: "port", check: Check::Number(1, u16::MAX as u64) },
        Key { name: "rma", check: Check::OneOf(&["auto", "segment"]) },
    ],
    loopback: &[],
    discover: || vec![Discovered { name: "sm0".into(), arguments: Vec::new() }],
    inspect,
    open,
    over: None,
};

fn open(core: &Core, options: &TransportOptions<'_>) -> Result<Box<dyn Transport>, OpenError> {
    Ok(Box::new(Sm::open(options.arguments, options.service, core.is_present())?))
}

/// Up if this system can run it.
fn inspect(arguments: &[(String, String)]) -> Condition {
    let refusal = probe();
    let size = arguments.iter().rfind(|(key, _)| key == "mss").and_then(|(_, value)| value.parse().ok());
    Condition {
        up: refusal.is_none(),
        reason: refusal.unwrap_or_else(|| "shared memory between processes of this user on this host".into()),
        max_send_size: size.unwrap_or(MAX_SEND_SIZE),
    }
}

/// Makes one thing that every endpoint makes.
type Step = fn() -> Result<(), Errno>;

/// Why `sm` cannot run here.
fn probe() -> Option<String> {
    first_refusal(&[("sealed memory files (memfd_create)", segment), ("abstract Unix sockets (socket, bind)", socket)])
}

/// A sentence about the first step that the system refuses. A shortage that may pass is no refusal:
/// opening an endpoint says so itself.
fn first_refusal(steps: &[(&str, Step)]) -> Option<String> {
    steps.iter().find_map(|(what, step)| match step() {
        Ok(()) | Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => None,
        Err(why) => Some(format!(
            "the system refuses {what}: {why}; sm needs Linux 5.3 or newer, and a sandbox that allows them"
        )),
    })
}

fn segment() -> Result<(), Errno> {
    let segment = descriptors::memory_file("cci-probe")?;
    fcntl_add_seals(&segment, SealFlags::FUTURE_WRITE)
}

fn socket() -> Result<(), Errno> {
    let socket = descriptors::socket(AddressFamily::UNIX, SocketType::SEQPACKET)?;
    // Bound to no name, Linux chooses a free abstract one.
    bind(&socket, &SocketAddrUnix::new_unnamed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_sentence_and_a_shortage_is_none() {
        let fine: Step = || Ok(());
        assert_eq!(first_refusal(&[("a", fine), ("b", || Err(Errno::MFILE)), ("c", || Err(Errno::NOMEM))]), None);
        let sentence = first_refusal(&[("a", fine), ("abstract Unix sockets", || Err(Errno::PERM))]).expect("refused");
        assert!(sentence.starts_with("the system refuses abstract Unix sockets: "), "{sentence}");
    }
}
