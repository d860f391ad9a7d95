//! Whether the kernel cuts and puts together datagrams rightly: found out by doing, over the
//! loop-back interface.

use crate::address;
use crate::socket::datagram_socket;
use crate::sys::{self, Arrival, Choice, Naming, RecvBatch, Run, SendBatch};
use cci_proto::Address;
use cci_reliable::Outgoing;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{bind, getsockname};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of the frames that prove it, the last one shorter.
const LENGTHS: [usize; 3] = [100, 100, 50];
const TOTAL: usize = 250;
/// How long to wait for what was sent. It is there when the call returns, on an idle machine.
const LIMIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Why an offload is not used; `None`: it was proved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offloads {
    pub(crate) no_segmentation: Option<String>,
    pub(crate) no_coalescing: Option<String>,
}

/// Proves both.
pub(crate) fn prove(is_v4: bool) -> Offloads {
    let say = |outcome: Result<bool, Errno>, wrong: &str| match outcome {
        Ok(true) => None,
        Ok(false) => Some(wrong.to_owned()),
        Err(error) => Some(format!("the test at start failed ({})", std::io::Error::from(error))),
    };
    let no_segmentation = say(prove_segmentation(is_v4), "the test at start did not get back what it sent");
    let no_coalescing = match &no_segmentation {
        // What arrives in one piece was sent in one piece: the one cannot be proved without the
        // other.
        Some(_) => Some("without segmentation offload it cannot be tested".to_owned()),
        None => say(prove_coalescing(is_v4), "the test at start did not get back what it sent"),
    };
    Offloads { no_segmentation, no_coalescing }
}

/// One datagram to be cut, and a plain socket that is to get the pieces.
fn prove_segmentation(is_v4: bool) -> Result<bool, Errno> {
    let mut pair = Pair::new(is_v4)?;
    let bytes = pair.send()?;
    let mut at = 0;
    for len in LENGTHS {
        let Some(arrival) = pair.receive()? else { return Ok(false) };
        if arrival.segment != 0 || pair.batch.bytes(0)[..arrival.len] != bytes[at..at + len] {
            return Ok(false);
        }
        at += len;
    }
    Ok(true)
}

/// The same, and a socket that is to get them together, with the length of the pieces.
fn prove_coalescing(is_v4: bool) -> Result<bool, Errno> {
    let mut pair = Pair::new(is_v4)?;
    sys::choose(pair.receiver.as_fd(), is_v4, Choice::Coalesce, 1)?;
    let bytes = pair.send()?;
    let Some(arrival) = pair.receive()? else { return Ok(false) };
    Ok(arrival.segment == LENGTHS[0] && pair.batch.bytes(0)[..arrival.len] == bytes)
}

struct Pair {
    sender: OwnedFd,
    receiver: OwnedFd,
    from: Address,
    to: Address,
    batch: RecvBatch,
}

impl Pair {
    fn new(is_v4: bool) -> Result<Self, Errno> {
        let home = if is_v4 { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { IpAddr::V6(Ipv6Addr::LOCALHOST) };
        let make = || -> Result<(OwnedFd, Address), Errno> {
            let socket = datagram_socket(is_v4)?;
            bind(&socket, &SocketAddr::new(home, 0))?;
            let name = SocketAddr::try_from(getsockname(&socket)?)?;
            Ok((socket, address::of_socket(&name)))
        };
        let ((sender, from), (receiver, to)) = (make()?, make()?);
        Ok(Self { sender, receiver, from, to, batch: RecvBatch::new(1, 4096)? })
    }

    /// Sends the frames in one datagram to be cut.
    fn send(&self) -> Result<[u8; TOTAL], Errno> {
        let mut bytes = [0; TOTAL];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::try_from(at).unwrap_or(0);
        }
        let (first, rest) = bytes.split_at(LENGTHS[0]);
        let (second, third) = rest.split_at(LENGTHS[1]);
        let frames = [first, second, third].map(|head| Outgoing { to: self.to, head, piece: None, probe: false });
        let run = Run { first: 0, count: frames.len(), segment: 100 };
        SendBatch::new(sys::Home::default()).send(self.sender.as_fd(), &frames, &[run], Naming::Each)?;
        Ok(bytes)
    }

    /// The next datagram from the sender; `None`: it does not come. Whoever else sends to this port
    /// is not listened to.
    fn receive(&mut self) -> Result<Option<Arrival>, Errno> {
        for _ in 0..LENGTHS.len() + 1 {
            if poll(&mut [PollFd::new(&self.receiver, PollFlags::IN)], Some(&LIMIT))? == 0 {
                return Ok(None);
            }
            self.batch.receive(self.receiver.as_fd(), 1)?;
            let arrival = self.batch.arrival(0);
            if arrival.from == self.from {
                return Ok(Some(arrival));
            }
        }
        Ok(None)
    }
}
