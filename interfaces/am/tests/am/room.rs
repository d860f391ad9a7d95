//! Requests that find credits but no room, whose coming wakes nobody.

use crate::world::Seen;
use cci::{Memory, OpenError, PollError, RegisterError, Rights, RmaHandle};
use cci_am::{CciMapping, Endpoint, Handlers, Incoming, Mapping, Options, Peer, Refused, RequestError, Status};
use cci_am::{TAG_ALL, Transfer};
use cci_conformance::{LIMIT, sm_device};
use std::cell::Cell;
use std::io::IoSlice;
use std::time::{Duration, Instant};

/// What is short, and how long sleeps were asked for meanwhile.
#[derive(Default)]
struct Shortage {
    /// Sleeps until there is room again.
    sleeps: Cell<u32>,
    longest: Cell<Duration>,
}

/// The mapping over CCI, with room that is short.
struct Short<'s> {
    below: CciMapping,
    shortage: &'s Shortage,
}

impl Short<'_> {
    fn check(&self) -> Result<(), Refused> {
        if self.shortage.sleeps.get() > 0 { Err(Refused::NoRoom) } else { Ok(()) }
    }
}

type Channel = <CciMapping as Mapping>::Channel;

impl Mapping for Short<'_> {
    type Channel = Channel;
    type Region = <CciMapping as Mapping>::Region;
    type Room<'e>
        = <CciMapping as Mapping>::Room<'e>
    where
        Self: 'e;
    type Asking<'e>
        = <CciMapping as Mapping>::Asking<'e>
    where
        Self: 'e;

    fn name(&self) -> &str {
        self.below.name()
    }

    fn connect(&self, name: &str, hello: &[u8], context: u64) -> Result<(), String> {
        self.below.connect(name, hello, context)
    }

    fn close(&self, channel: Channel) {
        self.below.close(channel);
    }

    fn longest(&self, channel: Channel) -> usize {
        self.below.longest(channel)
    }

    fn send(&self, channel: Channel, message: &[u8], context: u64) -> Result<(), Refused> {
        self.check().and_then(|()| self.below.send(channel, message, context))
    }

    fn send_vectored(&self, channel: Channel, parts: &[IoSlice<'_>], context: u64) -> Result<(), Refused> {
        self.check().and_then(|()| self.below.send_vectored(channel, parts, context))
    }

    fn reply(&self, channel: Channel, message: &[u8], context: u64) -> Result<(), Refused> {
        self.below.reply(channel, message, context)
    }

    fn reserve(&self, channel: Channel, len: usize) -> Result<Self::Room<'_>, Refused> {
        self.check().and_then(|()| self.below.reserve(channel, len))
    }

    fn register(&self, memory: &Memory, rights: Rights) -> Result<Self::Region, RegisterError> {
        self.below.register(memory, rights)
    }

    fn handle(region: &Self::Region) -> &RmaHandle {
        CciMapping::handle(region)
    }

    fn deregister(&self, region: Self::Region) -> Result<(), (Self::Region, RegisterError)> {
        self.below.deregister(region)
    }

    fn write(&self, channel: Channel, transfer: &Transfer<'_>, bytes: &[u8], context: u64) -> Result<(), Refused> {
        self.check().and_then(|()| self.below.write(channel, transfer, bytes, context))
    }

    fn read(&self, channel: Channel, transfer: &Transfer<'_>, context: u64) -> Result<(), Refused> {
        self.check().and_then(|()| self.below.read(channel, transfer, context))
    }

    fn poll<'e>(
        &'e self,
        most: usize,
        take: impl FnMut(Incoming<'_, Channel, Self::Asking<'e>>),
    ) -> Result<usize, PollError> {
        self.below.poll(most, take)
    }

    /// While room is short it only notes for how long it would have slept.
    fn wait<'e>(
        &'e self,
        limit: Duration,
        take: impl FnMut(Incoming<'_, Channel, Self::Asking<'e>>),
    ) -> Result<usize, PollError> {
        match self.shortage.sleeps.get() {
            0 => self.below.wait(limit, take),
            left => {
                self.shortage.sleeps.set(left - 1);
                self.shortage.longest.set(self.shortage.longest.get().max(limit));
                Ok(0)
            }
        }
    }

    fn take_wake(&self) -> bool {
        self.below.take_wake()
    }

    fn wait_any<'e>(
        _: &[&'e Self],
        _: Duration,
        _: impl FnMut(usize, Incoming<'_, Channel, Self::Asking<'e>>),
    ) -> Result<usize, PollError> {
        unreachable!("no bundle here")
    }
}

const NOTE: u8 = 1;

fn handlers() -> Handlers<Seen> {
    let note = |seen: &mut Seen, request: cci_am::Request<'_>| {
        seen.requests.push((request.arguments().to_vec(), request.payload().to_vec()));
    };
    let returned = |seen: &mut Seen, back: cci_am::Returned<'_>| {
        seen.returned.push((back.status(), back.handler(), back.arguments().to_vec()));
    };
    Handlers::new().request(NOTE, note).returned(returned)
}

type Client<'s> = Endpoint<Seen, Short<'s>>;

/// A client that has credits, and its server.
fn pair<'s>(shortage: &'s Shortage, options: &Options) -> Result<(Client<'s>, Endpoint<Seen>, Peer), OpenError> {
    let below = CciMapping::open(&sm_device(), options.credits, options.send_timeout)?;
    let mut client = Endpoint::over(Short { below, shortage }, options, handlers(), Seen::default())?;
    let mut server = Endpoint::open(&sm_device(), options, handlers(), Seen::default())?;
    let peer = client.map(server.name(), TAG_ALL).expect("a URI");
    until("a credit", &mut client, &mut server, |client| client.now().request(peer, NOTE, &[]).is_ok());
    until("its end", &mut client, &mut server, |client| client.outstanding(peer) == 0);
    Ok((client, server, peer))
}

/// Polls both ends until something is so.
fn until<'s>(
    what: &str,
    client: &mut Client<'s>,
    server: &mut Endpoint<Seen>,
    mut done: impl FnMut(&mut Client<'s>) -> bool,
) {
    let begin = Instant::now();
    while !done(client) {
        client.poll().and(server.poll()).expect("usable");
        assert!(begin.elapsed() < LIMIT, "waited in vain for {what}");
    }
}

/// Each form of a request looks again after 5 ms at the latest, and goes once there is room.
#[test]
fn a_request_without_room_sleeps_no_longer_than_room_may_take() {
    type Send = fn(&mut Client<'_>, Peer) -> Result<(), RequestError>;
    let forms: [(&str, Send); 3] = [
        ("a short request", |client, peer| client.request(peer, NOTE, &[7])),
        ("a medium request", |client, peer| client.request_medium(peer, NOTE, &[7], &[1; 300])),
        ("a prepared request", |client, peer| {
            let mut draft = client.prepare(peer, NOTE, &[7], 300)?;
            assert!(draft.write_at(0, &[1; 300]));
            draft.commit()
        }),
    ];
    let shortage = Shortage::default();
    let (mut client, mut server, peer) = pair(&shortage, &Options::new()).expect("endpoints");
    for (what, send) in forms {
        server.state().requests.clear();
        shortage.sleeps.set(3);
        shortage.longest.set(Duration::ZERO);
        assert_eq!(send(&mut client, peer), Ok(()), "{what}");
        let longest = shortage.longest.get();
        assert!(longest <= Duration::from_millis(5), "{what} would have slept for {longest:?}");
        assert_eq!(shortage.sleeps.get(), 0, "{what} has slept");
        until(what, &mut client, &mut server, |client| client.outstanding(peer) == 0);
        assert_eq!(server.state().requests.len(), 1, "{what}");
    }
    assert!(client.state().returned.is_empty());
}

/// Room that never comes ends the wait too.
#[test]
fn a_request_that_never_gets_room_comes_back() {
    let shortage = Shortage::default();
    let options = Options::new().send_timeout(Duration::from_millis(50));
    let (mut client, _server, peer) = pair(&shortage, &options).expect("endpoints");
    shortage.sleeps.set(u32::MAX);
    assert_eq!(client.request(peer, NOTE, &[7]), Ok(()));
    assert_eq!(client.state().returned, [(Status::Congested, NOTE, vec![7])]);
}
