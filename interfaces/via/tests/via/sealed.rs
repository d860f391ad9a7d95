//! Processes that have one secret, over a network.

use crate::world::{attributes, bytes, discriminator};
use cci::Device;
use cci_conformance::sealed::{PAUSE, Serving, check};
use cci_conformance::{LIMIT, pattern};
use cci_via::{
    Access, Address, Connected, Error, Idle, Nic, Region, Reliability, Remote, Status, Tag, Vi, ViAttributes, Work,
};
use std::time::{Duration, Instant};

/// Longer than a message, so that it goes in parts.
const LEN: usize = 100_000;

/// A NIC, a tag, and a VI that is not connected.
fn open(device: &Device) -> (Nic, Tag, Vi<Idle>) {
    let nic = Nic::open(device).expect("a NIC");
    let tag = nic.protection().expect("a tag");
    let vi = Vi::new(&nic, &ViAttributes { tag, ..attributes(Reliability::Reception) }, None, None).expect("a VI");
    (nic, tag, vi)
}

fn memory(nic: &Nic, tag: Tag, bytes: Vec<u8>) -> Region {
    nic.register(bytes, tag, Access { write: true, read: true }).expect("memory")
}

fn serve(device: &Device, serving: &Serving) -> usize {
    let (nic, tag, mut vi) = open(device);
    let name = discriminator("sealed");
    let at = Address::new(nic.host(), &name);
    assert!(at.host.is_loopback(), "nobody has asked for the network");
    serving.announce(str::from_utf8(&name).expect("letters"));
    let mut served = 0;
    while serving.goes_on(Duration::ZERO) {
        let mut incoming = match nic.listen(&at, Some(10 * PAUSE)) {
            Err(Error::Timeout) => continue,
            incoming => incoming.expect("a client"),
        };
        vi.post_receive(Work::of(memory(&nic, tag, vec![0; LEN]))).expect("room");
        match incoming.accept(vi) {
            Ok(connected) => {
                vi = answer(connected, &memory(&nic, tag, vec![0; LEN]));
                served += 1;
            }
            // It has gone: the connection was refused.
            Err((idle, why)) => {
                assert_eq!(why, Error::Timeout);
                vi = idle;
            }
        }
    }
    served
}

/// Sends back what comes, with the handle of a region that the client then writes to.
fn answer(mut vi: Vi<Connected>, target: &Region) -> Vi<Idle> {
    let done = vi.wait_received(Some(LIMIT)).expect("a message");
    assert_eq!(bytes(&done), pattern(3, LEN));
    vi.post_receive(Work::empty()).expect("room");
    vi.post_send(done.work.immediate(target.handle())).expect("room");
    assert!(!vi.wait_sent(Some(LIMIT)).expect("an end").status.is_error());
    let written = vi.wait_received(Some(LIMIT)).expect("a write");
    assert_eq!(written.status, Status::DONE | Status::OP_REMOTE_WRITE | Status::IMMEDIATE);
    assert_eq!(target.to_vec(0, LEN), Some(pattern(4, LEN)));
    // The client learns that it was written, and leaves.
    let begun = Instant::now();
    while vi.is_connected() {
        assert!(begun.elapsed() < LIMIT, "the client does not leave");
        std::thread::sleep(PAUSE);
    }
    vi.disconnect()
}

/// Asks until the server listens.
fn connect(nic: &Nic, mut vi: Vi<Idle>, server: &str, limit: Duration) -> Result<Vi<Connected>, Error> {
    let (from, to) = (Address::new(nic.host(), b"client"), Address::new(nic.host(), server.as_bytes()));
    let begun = Instant::now();
    loop {
        match vi.request(&from, &to, limit) {
            Ok(connected) => return Ok(connected),
            Err((idle, Error::NoMatch)) if begun.elapsed() < limit => vi = idle,
            Err((_, why)) => return Err(why),
        }
        std::thread::yield_now();
    }
}

fn call(device: &Device, server: &str, limit: Duration) -> Result<(), String> {
    let (nic, tag, mut vi) = open(device);
    vi.post_receive(Work::of(memory(&nic, tag, vec![0; LEN]))).expect("room");
    let mut vi = connect(&nic, vi, server, limit).map_err(|why| why.to_string())?;
    vi.post_send(Work::of(memory(&nic, tag, pattern(3, LEN)))).expect("room");
    assert!(!vi.wait_sent(Some(LIMIT)).expect("an end").status.is_error());
    let back = vi.wait_received(Some(LIMIT)).expect("an answer");
    assert_eq!(bytes(&back), pattern(3, LEN));
    let to = Remote { address: 0, handle: back.immediate.expect("a handle") };
    vi.post_write(Work::of(memory(&nic, tag, pattern(4, LEN))), to, Some(0)).expect("room");
    assert!(!vi.wait_sent(Some(LIMIT)).expect("an end").status.is_error());
    Ok(())
}

#[test]
fn members_of_a_group_exchange_sealed_messages_and_strangers_do_not() {
    check("sealed::members_of_a_group_exchange_sealed_messages_and_strangers_do_not", serve, call);
}
