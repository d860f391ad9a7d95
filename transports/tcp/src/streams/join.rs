//! How further streams begin and end.

use super::FURTHER;
use crate::endpoint::Tcp;
use crate::frame::{HELLO, Hello, MOST_STREAMS};
use crate::lane::further::{Further, Stream, StreamPhase};
use crate::lane::shared::{Cause, Shared};
use crate::lane::{Lane, Phase};
use crate::seal::Asked;
use crate::setup::{configure, open, own_hello, pause_after};
use crate::sys;
use cci_mem::cancellation::Uncancelled;
use cci_proto::Time;
use cci_transport::{Core, random};
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{connect, getpeername};
use std::time::Duration;

/// How long a stream may take to connect, and the peer to say HELLO.
const LIMIT: Duration = Duration::from_secs(5);
/// First and longest pause after a dial that failed, and how often dialing may fail.
const ATTEMPTS: u32 = 8;
/// How long the first stream is read after a further one has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The byte of an offer that is the number of streams.
const COUNT: u64 = 0xff;

impl Lane {
    /// What a listener offers in its HELLO.
    pub(crate) fn make_offer(&mut self, s: &Shared) -> [u64; 2] {
        let streams = u64::from(s.settings.streams);
        if self.dialed || streams < 2 {
            return [0; 2];
        }
        let Ok([first, second]) = random() else { return [0; 2] };
        let offer = [first & !COUNT | streams, second];
        self.further = Some(Box::new(Further::new(offer, streams)));
        offer
    }

    /// What the listener offers. Further streams are dialed once there is a connection.
    pub(crate) fn take_offer(&mut self, s: &Shared, offer: [u64; 2]) {
        let streams = u64::from(s.settings.streams).min(offer[0] & COUNT);
        if self.dialed && streams > 1 {
            self.further = Some(Box::new(Further::new(offer, streams)));
        }
    }

    /// A connection is open: further streams are dialed, if they are not.
    pub(crate) fn open_streams(&mut self, s: &mut Shared) {
        let now = s.now;
        let Some(further) = self.further.as_mut().filter(|further| self.dialed && further.ends_at.is_none()) else {
            return;
        };
        for stream in further.streams.iter_mut().filter(|stream| stream.is_none()) {
            *stream = Some(Box::new(Stream::new(StreamPhase::Paused(now), None)));
        }
        s.check_by(now);
    }

    /// Does what is due for further streams, and returns when to look again.
    pub(crate) fn check_streams(&mut self, s: &mut Shared, now: Time) -> Option<Time> {
        let further = self.further.as_ref().filter(|_| self.phase == Phase::Open)?;
        if further.ends_at.is_some_and(|at| at <= now) {
            self.end(s, Cause::Gone);
            return None;
        }
        let mut next = further.ends_at;
        for index in 0..further.streams.len() {
            match self.stream(index).map(|stream| stream.phase) {
                Some(StreamPhase::Paused(at)) if at <= now => self.dial_stream(s, index, now),
                Some(StreamPhase::Dialing(since) | StreamPhase::Greeting(since)) if since + LIMIT <= now => {
                    self.on_stream_failed(s, index, "the peer does not answer to it");
                }
                _ => {}
            }
            let at = match self.stream(index).map(|stream| stream.phase) {
                Some(StreamPhase::Paused(at)) => Some(at),
                Some(StreamPhase::Dialing(since) | StreamPhase::Greeting(since)) => Some(since + LIMIT),
                _ => None,
            };
            next = [next, at].into_iter().flatten().min();
        }
        next
    }

    fn dial_stream(&mut self, s: &mut Shared, index: usize, now: Time) {
        let (peer, key) = (self.peer, self.stream_key(index));
        let begun = open(peer).and_then(|socket| {
            configure(s, &socket, peer);
            match connect(&socket, &peer) {
                Ok(()) | Err(Errno::INPROGRESS) => {}
                Err(error) => return Err(error),
            }
            s.set.watch(&socket, key, EventFlags::IN | EventFlags::OUT)?;
            Ok(socket)
        });
        match begun {
            Ok(socket) => {
                if let Some(stream) = self.stream(index) {
                    (stream.socket, stream.phase) = (Some(socket), StreamPhase::Dialing(now));
                }
            }
            Err(error @ (Errno::MFILE | Errno::NFILE)) => {
                let error = std::io::Error::from(error);
                let reason = format!("no descriptor is left for more ({error}); raise the limit (ulimit -n)");
                self.on_stream_failed(s, index, &reason);
            }
            Err(error) => self.on_stream_failed(s, index, &std::io::Error::from(error).to_string()),
        }
    }

    /// Dialing a further stream has failed: it is dialed again after a while, some times.
    pub(super) fn on_stream_failed(&mut self, s: &mut Shared, index: usize, reason: &str) {
        self.drop_stream_socket(s, index);
        let now = s.now;
        let Some(stream) = self.stream(index) else { return };
        let at = now + pause_after(stream.attempts);
        stream.attempts += 1;
        stream.begin_again(if stream.attempts < ATTEMPTS { StreamPhase::Paused(at) } else { StreamPhase::GivenUp });
        if stream.phase == StreamPhase::Paused(at) {
            s.check_by(at);
        }
        if let Some(further) = &mut self.further {
            further.shortage = Some(reason.to_owned());
        }
    }

    /// Something has happened to a dial.
    fn on_stream_dialed(&mut self, s: &mut Shared, index: usize) {
        let hello = Hello { sealed: self.is_sealed(), ..own_hello(s, true, None) };
        let offer = self.further.as_ref().map_or([0; 2], |further| further.offer);
        let hello = Hello { offer, stream: index as u64 + 1, ..hello };
        let asked = hello.sealed.then(|| s.sealing.as_ref()?.ask(&hello.emit()).ok()).flatten();
        if hello.sealed && asked.is_none() {
            return self.on_stream_failed(s, index, "there is no memory for its keys");
        }
        let now = s.now;
        let Some(stream) = self.stream(index) else { return };
        let Some(socket) = &stream.socket else { return };
        let (seal, share) = asked.unzip();
        stream.seal = seal.map(Box::new);
        let said = [&hello.emit()[..], share.as_ref().map_or(&[], |share| &share[..])].concat();
        let outcome = match socket_error(socket) {
            Ok(Ok(())) => match getpeername(socket) {
                Err(Errno::NOTCONN) => return,
                Err(error) => Err(error),
                Ok(_) => sys::send(socket, &said),
            },
            Ok(Err(error)) | Err(error) => Err(error),
        };
        match outcome {
            Ok(count) if count == said.len() => {
                stream.phase = StreamPhase::Greeting(now);
                self.watch_stream(s, index);
            }
            Ok(_) => self.on_stream_failed(s, index, "the peer takes no bytes"),
            Err(error) => self.on_stream_failed(s, index, &std::io::Error::from(error).to_string()),
        }
    }

    /// Reads the peer's HELLO.
    fn greet_stream(&mut self, s: &mut Shared, index: usize) {
        let Some(stream) = self.stream(index) else { return };
        if stream.seal.is_some() && stream.head_len == HELLO {
            return self.finish_stream(s, index);
        }
        let Some(socket) = &stream.socket else { return };
        match sys::receive(socket, &mut stream.head[stream.head_len..HELLO]) {
            Ok(count @ 1..) => stream.head_len += count,
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok(0) => return self.on_stream_failed(s, index, "the peer closes it"),
            Err(error) => return self.on_stream_failed(s, index, &std::io::Error::from(error).to_string()),
        }
        if stream.head_len < HELLO {
            return;
        }
        let hello = stream.head.first_chunk().map(Hello::parse);
        let is_sealed = stream.seal.is_some();
        let is_right = |hello: &Hello| {
            let is_answer = !hello.dialed && hello.refusal.is_none() && hello.sealed == is_sealed;
            is_answer && hello.stream == index as u64 + 1
        };
        if !hello.and_then(Result::ok).is_some_and(|hello| is_right(&hello)) {
            self.on_stream_failed(s, index, "the peer has no room for it");
        } else if is_sealed {
            self.finish_stream(s, index);
        } else {
            (stream.phase, stream.head_len) = (StreamPhase::Open, 0);
            self.activate(s);
        }
    }

    /// A further stream has ended, or broke: what was on it is lost, and so the lane. What the peer
    /// has published on the first stream arrives first.
    pub(super) fn on_stream_ended(&mut self, s: &mut Shared, index: usize) {
        self.drop_stream_socket(s, index);
        let at = s.now + LAST_WORDS;
        if let Some(further) = &mut self.further {
            further.ends_at.get_or_insert(at);
            further.streams[index] = None;
        }
        s.check_by(at);
    }

    fn drop_stream_socket(&mut self, s: &mut Shared, index: usize) {
        if let Some(seal) = self.stream(index).and_then(|stream| stream.seal.take()) {
            s.end_seal(*seal);
        }
        if let Some(socket) = self.stream(index).and_then(|stream| stream.socket.take()) {
            let _uncancelled = Uncancelled::new();
            let _ = s.set.unwatch(&socket);
            drop(socket);
        }
    }

    /// Closes all further streams.
    pub(crate) fn drop_streams(&mut self, s: &mut Shared) {
        for index in 0..self.further.as_ref().map_or(0, |further| further.streams.len()) {
            self.drop_stream_socket(s, index);
        }
        self.further = None;
    }

    /// Watches a stream for what it waits for now.
    pub(super) fn watch_stream(&mut self, s: &mut Shared, index: usize) {
        let key = self.stream_key(index);
        let Some(stream) = self.stream(index) else { return };
        let room = if stream.is_blocked { EventFlags::OUT } else { EventFlags::empty() };
        let Some(socket) = &stream.socket else { return };
        if let Err(error) = s.set.rewatch(socket, key, EventFlags::IN | room) {
            self.end_refused(s, "epoll_ctl", error);
        }
    }

    /// Has a stream join that has shown the offer. Returns the socket if it must not.
    fn add_stream(&mut self, s: &mut Shared, number: usize, asked: Option<&Asked>, socket: OwnedFd) -> Option<OwnedFd> {
        let hello = Hello { stream: number as u64, sealed: asked.is_some(), ..own_hello(s, false, None) };
        let Some(index) = number.checked_sub(1) else { return Some(socket) };
        let (key, peer, now) = (self.stream_key(index), self.peer.ip(), s.now);
        let is_alike = self.is_sealed() == asked.is_some();
        let place = self.further.as_mut().and_then(|further| further.streams.get_mut(index));
        let Some(place @ None) = place.filter(|_| is_alike) else { return Some(socket) };
        let hello = hello.emit();
        let (mut said, mut seal) = (hello.to_vec(), None);
        if let Some(Asked { hello: theirs, share }) = asked {
            let sealing = s.sealing.as_mut();
            let answered = sealing.and_then(|sealing| sealing.answer((now, peer), (theirs, share), &hello).ok()?);
            let Some((answer, keys)) = answered else { return Some(socket) };
            (said, seal) = (answer.to_vec(), Some(keys));
        }
        let is_watched = s.set.rewatch(&socket, key, EventFlags::IN).is_ok();
        if !is_watched || sys::send(&socket, &said) != Ok(said.len()) {
            if let Some(seal) = seal {
                s.end_seal(seal);
            }
            return Some(socket);
        }
        let seal = seal.map(Box::new);
        *place = Some(Box::new(Stream { seal, ..Stream::new(StreamPhase::Open, Some(socket)) }));
        self.activate(s);
        None
    }
}

impl Tcp {
    /// Gives the stream of a lane that is none to the one that has made this offer.
    #[cold]
    pub(crate) fn join_stream(&mut self, number: u32, (offer, stream): ([u64; 2], usize), asked: Option<&Asked>) {
        let Some(mut joining) = self.remove_lane(number) else { return };
        self.forget_lane(number);
        let Some(socket) = joining.socket.take() else { return };
        let has_offered = |lane: &Lane| {
            let is_its = lane.further.as_ref().is_some_and(|further| further.offer == offer);
            // A lane without a connection is a stranger, which has one descriptor.
            is_its && !lane.dialed && lane.phase == Phase::Open && !lane.table.is_empty()
        };
        let found = self.lanes.iter().flatten().find(|lane| has_offered(lane)).map(|lane| lane.number);
        let refused = match found.and_then(|lane| self.lane(lane)) {
            Some((lane, shared)) => lane.add_stream(shared, stream, asked, socket),
            None => Some(socket),
        };
        if let Some(socket) = refused {
            let _uncancelled = Uncancelled::new();
            let _ = self.shared.set.unwatch(&socket);
            drop(socket);
        }
    }

    /// Something has happened to a further stream. Returns whether bytes have come.
    #[cold]
    pub(crate) fn on_stream_ready(&mut self, core: &mut Core, key: u64, flags: EventFlags) -> bool {
        if key & FURTHER == 0 {
            return false;
        }
        let number = u32::try_from(key & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        let Some((lane, shared)) = self.lane(number) else { return false };
        let Some(index) = lane.index_of(key) else { return false };
        match lane.stream(index).map(|stream| stream.phase) {
            Some(StreamPhase::Dialing(_)) => lane.on_stream_dialed(shared, index),
            Some(StreamPhase::Greeting(_)) => lane.greet_stream(shared, index),
            Some(StreamPhase::Open) => {
                if flags.contains(EventFlags::OUT) {
                    lane.on_stream_room(shared, core, index);
                }
                let is_readable = flags.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP);
                return is_readable && lane.receive_parts(shared, core, index) > 0;
            }
            _ => return false,
        }
        true
    }
}

const _: () = assert!(MOST_STREAMS <= COUNT);
