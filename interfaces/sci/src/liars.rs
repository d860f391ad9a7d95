//! Peers that break the rules byte by byte lose their link, and nobody else does.

use crate::claims::{self, Named};
use crate::host::Host;
use crate::mirror::{Groups, apply};
use crate::options::Options;
use crate::types::{Access, Kind, Reason};
use crate::window::{SequenceStatus, Window};
use crate::wire::{Answer, MOST_DATA, Message};
use cci::{Endpoint, EndpointOptions, Event, Memory, Rights, RmaHandle, SharedMemory};
use cci_conformance::{LIMIT, device_of, sm_device};
use cci_peers::{Change, Deferred, Name, Peer, Peers, Table};
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

const NODE: u32 = 4;

fn numbers() -> [u32; 3] {
    [1, 2, 3].map(|at| fastrand::u32(..) << 2 | at)
}

/// A peer of a host that says what it likes.
pub(crate) struct Liar {
    endpoint: Endpoint,
    peers: Peers<Vec<u8>>,
    host: Peer,
    pub(crate) heard: Vec<Message>,
    is_up: bool,
}

impl Liar {
    pub(crate) fn new(segment: u32) -> Self {
        Self::over(&sm_device(), segment)
    }

    pub(crate) fn over(device: &cci::Device, segment: u32) -> Self {
        let endpoint = Endpoint::open(device, &EndpointOptions::new().disconnect_events(true)).expect("open");
        let owner = claims::find(NODE, Named::Segment(segment), &None.into()).expect("asked").expect("it is there");
        let mut table = Table::new();
        table.insert(Name::Number(owner.number), owner.uri);
        let own = Name::Number(fastrand::u64(..));
        let mut peers = Peers::new(own, Box::new(table), &cci_peers::Options::new()).expect("peers");
        let host = peers.peer(&Name::Number(owner.number)).expect("another one");
        let mut liar = Self { endpoint, peers, host, heard: Vec::new(), is_up: false };
        liar.peers.open(&liar.endpoint, host, Instant::now());
        liar.until("the link is up", |liar| liar.is_up);
        liar
    }

    pub(crate) fn progress(&mut self) {
        while let Some(event) = self.endpoint.get_event().expect("usable") {
            if let Some(Event::Received(message)) = self.peers.handle_event(&self.endpoint, event, Instant::now()) {
                self.heard.push(Message::parse(&message.to_vec()).expect("a host says no nonsense"));
            }
        }
        self.peers.handle_timeout(&self.endpoint, Instant::now());
        while let Some(change) = self.peers.poll_change() {
            self.is_up = matches!(change, Change::Up { .. });
        }
    }

    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < LIMIT, "waited in vain: {what}");
            self.progress();
        }
    }

    pub(crate) fn owner(&self) -> claims::Owner {
        let number = match self.peers.own_name() {
            Name::Number(number) => *number,
            _ => panic!("it has a number"),
        };
        claims::Owner { number, uri: self.endpoint.uri().to_owned() }
    }

    /// Claims the name of a segment; with what those are told who ask for it.
    fn claim(&self, segment: u32) -> (OwnedFd, Vec<u8>) {
        let socket = claims::claim(NODE, Named::Segment(segment)).expect("free");
        (socket, self.owner().emit())
    }

    /// The bytes have left.
    pub(crate) fn say(&mut self, bytes: Vec<u8>) {
        let begun = Instant::now();
        loop {
            self.progress();
            let Ok(Deferred::Now(connection, bytes)) =
                self.peers.defer(&self.endpoint, self.host, bytes.clone(), Instant::now())
            else {
                return;
            };
            match self.endpoint.send(connection, &bytes, 0) {
                Err(cci::SendError::NoBuffers) => assert!(begun.elapsed() < LIMIT, "no room"),
                _ => return,
            }
        }
    }
}

/// A changed word.
fn patch(token: u64, first: u64) -> Message {
    let bytes = [&[0, 0, 0, 0, 1, 0, 0, 0][..], &[7; 8]].concat();
    Message::Patch { token, number: 1, is_asking: true, groups: Groups { first, bytes } }
}

#[test]
fn a_peer_that_breaks_the_rules_loses_its_link_alone() {
    let owner = Host::open(&Options::new().device(sm_device())).expect("a host");
    let [id, number, bytes] = numbers();
    let segment = owner.create(id, 64).expect("memory");
    segment.prepare().and_then(|()| segment.publish()).expect("room");
    let plain = owner.interrupt(Some(number)).expect("free");
    let data = owner.data_interrupt(Some(bytes)).expect("free");
    let other = Host::open(&Options::new().device(sm_device())).expect("a host");
    let far = other.connect(NODE, id, Some(LIMIT)).expect("published");
    let sequence = far.map(0..64, Access::ReadWrite).expect("mapped").sequence();
    assert_eq!(segment.wait(Some(LIMIT)).map(|event| event.reason), Ok(Reason::Connect));

    let attach = |token, interrupt, has_bytes| Message::Attach { token, interrupt, has_bytes }.emit();
    let connect = Message::Connect { token: 1, segment: id, node: 8 }.emit();
    let patch = |token, first| patch(token, first).emit();
    // A token that stands for a connection already.
    let join =
        |token| Message::Join { token, group: id, len: 64, memory: 1, is_answer: false, is_published: true }.emit();
    let mut wrongs: Vec<Vec<Vec<u8>>> = vec![
        vec![Vec::new()],
        vec![vec![0; 23]],
        vec![vec![0; 24]],
        vec![vec![9; 24]],
        vec![[&connect[..], &[0]].concat()],
        vec![connect.clone(), join(1)],
        // A token twice.
        vec![connect.clone(), connect.clone()],
        // The wrong kind of interrupt.
        vec![attach(1, number, false), Message::Data { token: 1, bytes: vec![1] }.emit()],
        vec![attach(1, bytes, true), Message::Trigger { token: 1 }.emit()],
        // Changed bytes behind the end of the segment.
        vec![connect.clone(), patch(1, 8)],
        // A block that is none, and sums of other pages.
        vec![connect.clone(), Message::Watch { token: 1, block: 1, sums: vec![7] }.emit()],
        vec![connect.clone(), Message::Watch { token: 1, block: u32::MAX, sums: vec![7; 16] }.emit()],
        vec![connect.clone(), Message::Watch { token: 1, block: 0, sums: vec![7; 2] }.emit()],
    ];
    // One more than there is room for.
    let flood = std::iter::repeat_n(Message::Data { token: 1, bytes: vec![1] }.emit(), MOST_DATA as usize + 1);
    wrongs.push(std::iter::once(attach(1, bytes, true)).chain(flood).collect());
    for wrong in wrongs {
        let mut liar = Liar::new(id);
        let shown = format!("{:?}", wrong.last());
        wrong.into_iter().for_each(|bytes| liar.say(bytes));
        liar.until(&format!("the link ends after {shown}"), |liar| !liar.is_up);
    }
    // What a liar had connected to has been told; the bytes that were in order are there.
    assert_eq!(
        [(); 2].map(|()| segment.wait(Some(LIMIT)).map(|event| event.reason)),
        [Ok(Reason::Connect), Ok(Reason::Lost)]
    );
    for _ in 0..MOST_DATA {
        assert_eq!(data.wait(Some(LIMIT)), Ok(vec![1]));
    }
    assert_eq!(sequence.check(), SequenceStatus::Ok);
    other.connect_interrupt(NODE, plain.number(), Some(LIMIT)).and_then(|bell| bell.trigger()).expect("it lives");
    plain.wait(Some(LIMIT)).expect("triggered");
}

/// What names nothing is ignored: a time-out may have ended it. What was not asked is undone.
#[test]
fn what_is_late_is_ignored() {
    let owner = Host::open(&Options::new().device(sm_device())).expect("a host");
    let [id, ..] = numbers();
    let segment = owner.create(id, 64).expect("memory");
    segment.prepare().and_then(|()| segment.publish()).expect("room");
    let mut liar = Liar::new(id);
    let handle = RmaHandle::from_words([1, 2, 3, 4]);
    for message in [
        Message::Disconnect { token: 9 },
        Message::Notice { token: 9, reason: 5 },
        Message::Trigger { token: 9 },
        Message::Data { token: 9, bytes: vec![1] },
        Message::Taken { token: 9 },
        patch(9, 0),
        Message::Applied { token: 9, number: 1 },
        Message::Watch { token: 9, block: 0, sums: vec![7] },
        Message::Unwatch { token: 9, block: 0 },
        Message::Changed { token: 9, number: 1, groups: Groups { first: 0, bytes: Vec::new() } },
        Message::Watched { token: 9, block: 0 },
        Message::Answer { token: 9, answer: Answer::Refused(7) },
        Message::Answer { token: 9, answer: Answer::Interrupt },
        Message::Answer { token: 9, answer: Answer::Segment(handle, 64) },
        Message::Connect { token: 9, segment: id, node: 8 },
    ] {
        liar.say(message.emit());
    }
    liar.until("all are answered", |liar| liar.heard.len() == 3);
    assert_eq!(liar.heard[..2], [Message::Disconnect { token: 9 }, Message::Disconnect { token: 9 }]);
    assert!(matches!(liar.heard[2], Message::Answer { token: 9, answer: Answer::Segment(_, 64) }));
    // What is in order is stored and confirmed.
    liar.say(patch(9, 7).emit());
    liar.until("a patch is confirmed", |liar| liar.heard.last() == Some(&Message::Applied { token: 9, number: 1 }));
    assert_eq!(segment.map(56..64, Access::Read).and_then(|window| window.load::<u8>(7)), Ok(7));
    assert!(liar.is_up);
}

/// An owner that answers with a handle that is none is refused.
#[test]
fn an_answer_with_a_wrong_handle_is_an_error() {
    let owner = Host::open(&Options::new().device(sm_device())).expect("a host");
    let [id, ..] = numbers();
    let _segment = owner.create(id, 64).expect("memory");
    let mut liar = Liar::new(id);
    // The owner asks the liar: by a name that the liar has claimed.
    let name = id ^ 1;
    let (socket, introduction) = liar.claim(name);
    for (handle, len) in [([1, 2, 3, 4], 64), ([0, 0, 0, 0], 1)] {
        let refused = std::thread::scope(|scope| {
            let asking = scope.spawn(|| owner.connect(NODE, name, Some(LIMIT)).map(drop));
            while !asking.is_finished() {
                let _ = claims::introduce(&socket, &introduction);
                liar.progress();
                for message in std::mem::take(&mut liar.heard) {
                    if let Message::Connect { token, .. } = message {
                        let answer = Answer::Segment(RmaHandle::from_words(handle), len);
                        liar.say(Message::Answer { token, answer }.emit());
                    }
                }
            }
            asking.join().expect("no panic")
        });
        assert_eq!(refused, Err(crate::Error::NoSuchSegment));
    }
}

/// Runs a program on a window to a segment of a liar, whose memory has these rights and which is
/// asked what it answers.
fn store_to_liar<R: Send>(
    rights: Rights,
    program: impl FnOnce(&Window) -> R + Send,
    answer: impl Fn(&Memory, &Message) -> Vec<Message>,
) -> (R, Vec<u8>) {
    let device = device_of("sock", &[("ip", "127.0.0.1")]);
    let host = Host::open(&Options::new().device(device.clone())).expect("a host");
    let [id, ..] = numbers();
    let _segment = host.create(id, 64).expect("memory");
    let mut liar = Liar::over(&device, id);
    let (socket, introduction) = liar.claim(id ^ 1);
    let memory = Arc::new(SharedMemory::new(SIZE).expect("memory"));
    let registered = liar.endpoint.register(Arc::clone(&memory), rights).expect("room");
    let handle = *registered.handle();
    let result = std::thread::scope(|scope| {
        let storing = scope.spawn(|| {
            let far = host.connect(NODE, id ^ 1, Some(LIMIT)).expect("answered");
            let window = far.map(0..SIZE, Access::ReadWrite).expect("it may be read");
            assert_eq!(window.kind(), Kind::Mirror);
            program(&window)
        });
        while !storing.is_finished() {
            let _ = claims::introduce(&socket, &introduction);
            liar.progress();
            for message in std::mem::take(&mut liar.heard) {
                let answers = match &message {
                    Message::Connect { token, .. } => {
                        let answer = Answer::Segment(handle, SIZE as u64);
                        vec![Message::Answer { token: *token, answer }]
                    }
                    message => answer(&memory.memory(), message),
                };
                answers.into_iter().for_each(|answer| liar.say(answer.emit()));
            }
        }
        storing.join().expect("no panic")
    });
    (result, memory.to_vec(0, SIZE))
}

/// Bytes of a liar's segment.
const SIZE: usize = 64 << 10;

/// Stores patches, and confirms them.
fn take_patch(memory: &Memory, message: &Message) -> Vec<Message> {
    let Message::Patch { token, number, is_asking, groups } = message else { return Vec::new() };
    assert!(apply(memory, groups.first, &groups.bytes));
    is_asking.then_some(Message::Applied { token: *token, number: *number }).into_iter().collect()
}

/// The memory of an owner refuses RMA writes. Their bytes, and the line that was to follow them as
/// a message, are sent again as patches; the sequence says so, once.
#[test]
fn what_an_rma_cannot_write_is_sent_again() {
    let program = |window: &Window| {
        let sequence = window.sequence();
        let store = |byte: u8| {
            window.write(0, &vec![byte; SIZE]).expect("inside");
            [(); 2].map(|()| sequence.check())
        };
        [1, 2, 3].map(store)
    };
    let (statuses, stored) = store_to_liar(Rights::READ, program, |memory, message| match message {
        Message::Watch { token, block, .. } => vec![Message::Watched { token: *token, block: *block }],
        message => take_patch(memory, message),
    });
    assert_eq!(statuses, [[SequenceStatus::Retriable, SequenceStatus::Ok]; 3]);
    assert!(stored == [3; SIZE]);
}

/// An owner that never answers a WATCH has a first store wait for a while, and all arrives.
#[test]
fn a_first_store_goes_on_though_the_owner_never_answers() {
    let program = |window: &Window| {
        let (sequence, begun) = (window.sequence(), Instant::now());
        window.store(8, 7_u64).expect("inside");
        let waited = begun.elapsed();
        while sequence.check() != SequenceStatus::Ok {
            assert!(begun.elapsed() < LIMIT, "it was not sent");
        }
        waited
    };
    let (waited, stored) = store_to_liar(Rights::READ, program, take_patch);
    assert!(waited < LIMIT / 2, "{waited:?}");
    assert_eq!(stored[8..16], 7_u64.to_ne_bytes());
}

/// An owner that answers with what is none loses its link, and the store goes on.
#[test]
fn an_owner_that_answers_a_watch_wrongly_loses_its_link() {
    let wrongs = [
        // Outside, cut short, and what no owner sends.
        Groups { first: 8192, bytes: [&[0, 0, 0, 0, 1, 0, 0, 0][..], &[7; 8]].concat() },
        Groups { first: 0, bytes: vec![0; 3] },
        Groups { first: 0, bytes: vec![0, 0, 0, 0, 1, 0, 2, 0] },
    ];
    for wrong in wrongs {
        let program = |window: &Window| {
            window.store(8, 7_u64).expect("inside");
            let (sequence, begun) = (window.sequence(), Instant::now());
            while sequence.check() != SequenceStatus::NotRetriable {
                assert!(begun.elapsed() < LIMIT, "the link does not end");
            }
        };
        store_to_liar(Rights::READ, program, |memory, message| match message {
            Message::Watch { token, .. } => {
                vec![Message::Changed { token: *token, number: 0, groups: wrong.clone() }]
            }
            message => take_patch(memory, message),
        });
    }
}

/// Who claims a name, and leads nowhere or says nonsense, is refused.
#[test]
fn a_name_that_leads_nowhere_is_an_error() {
    let own = Host::open(&Options::new().device(sm_device())).expect("a host");
    let gone = {
        let endpoint = Endpoint::open(&sm_device(), &EndpointOptions::new()).expect("open");
        endpoint.uri().to_owned()
    };
    let owner = |uri: &str| claims::Owner { number: fastrand::u64(..), uri: uri.to_owned() }.emit();
    for (introduction, error) in [
        (owner(&gone), crate::Error::NodeNotResponding),
        (owner("nonsense"), crate::Error::NodeNotResponding),
        (b"nonsense".to_vec(), crate::Error::System),
        (vec![7; 8192], crate::Error::System),
        (Vec::new(), crate::Error::NoSuchSegment),
    ] {
        let [id, ..] = numbers();
        let socket = claims::claim(NODE, Named::Segment(id)).expect("free");
        let refused = std::thread::scope(|scope| {
            let asking = scope.spawn(|| own.connect(NODE, id, None).map(drop));
            while !asking.is_finished() {
                let _ = claims::introduce(&socket, &introduction);
                std::thread::yield_now();
            }
            asking.join().expect("no panic")
        });
        assert_eq!(refused, Err(error), "{:?}", introduction.get(..20));
    }
}
