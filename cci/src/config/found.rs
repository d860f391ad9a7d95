//! What this host has.

use crate::device::Device;
use cci_proto::Status;
use cci_reliable::Link;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};

/// A device of the transport `sm`, up if this system can run it.
pub(super) fn shared_memory(name: &str) -> Device {
    let refusal = probe();
    Device {
        name: name.to_owned(),
        transport: "sm".into(),
        up: refusal.is_none(),
        reason: refusal.unwrap_or_else(|| "shared memory between processes of this user on this host".into()),
        arguments: Vec::new(),
        max_send_size: cci_sm::MAX_SEND_SIZE,
        rate: 0,
        pci: None,
        priority: super::known::transport("sm").map_or(0, |known| known.priority),
        is_default: false,
    }
}

/// Largest message of endpoints over a link, bytes: it is cut into frames as the path needs.
const RELIABLE_SEND_SIZE: u32 = 8192;

/// A device of a transport over a link.
fn over_link(name: &str, transport: &str, refusal: Option<String>, reason: &str) -> Device {
    Device {
        name: name.to_owned(),
        transport: transport.into(),
        up: refusal.is_none(),
        reason: refusal.unwrap_or_else(|| reason.to_owned()),
        arguments: Vec::new(),
        max_send_size: RELIABLE_SEND_SIZE,
        rate: 0,
        pci: None,
        priority: super::known::transport(transport).map_or(0, |known| known.priority),
        is_default: false,
    }
}

/// A device of the transport `sock`, up if an endpoint with these keys can be opened.
pub(super) fn udp(name: &str, arguments: &[(String, String)]) -> Device {
    let (refusal, uri) = match cci_sock::Sock::open(&without_port(arguments), None) {
        Ok(link) => (None, link.uri().to_owned()),
        // A shortage that may pass is no refusal: opening an endpoint says so itself.
        Err(error) if error.status == Status::NoMem => (None, String::new()),
        Err(error) => (Some(error.to_string()), String::new()),
    };
    let host = uri.rsplit_once(':').map_or("", |(host, _)| host).trim_start_matches("sock://");
    let mut device = over_link(name, "sock", refusal, &format!("UDP from {host}"));
    device.arguments = arguments.to_vec();
    device
}

/// The keys of a trial: the port may be in use by the endpoint that it is meant for.
fn without_port(arguments: &[(String, String)]) -> Vec<(String, String)> {
    arguments.iter().filter(|(key, _)| key != "port").cloned().collect()
}

/// A device of the transport `sim`.
pub(super) fn simulated(name: &str) -> Device {
    over_link(name, "sim", None, "a network in the memory of this process, in virtual time")
}

/// Makes one thing that every endpoint makes.
type Step = fn() -> Result<(), Errno>;

/// Why `sm` cannot run here.
fn probe() -> Option<String> {
    first_refusal(&[("sealed memory files (memfd_create)", segment), ("abstract Unix sockets", socket)])
}

/// A sentence about the first step that the system refuses. A shortage that may pass is no refusal: opening an endpoint says
/// so itself.
fn first_refusal(steps: &[(&str, Step)]) -> Option<String> {
    steps.iter().find_map(|(what, step)| match step() {
        Ok(()) | Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => None,
        Err(why) => Some(format!(
            "the system refuses {what}: {why}; sm needs Linux 5.3 or newer, and a sandbox that allows them"
        )),
    })
}

fn segment() -> Result<(), Errno> {
    let segment = memfd_create("cci-probe", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    fcntl_add_seals(&segment, SealFlags::FUTURE_WRITE)
}

fn socket() -> Result<(), Errno> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
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
