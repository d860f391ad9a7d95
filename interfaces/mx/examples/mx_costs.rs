//! What messages cost on shared memory: `cargo run --release -p cci-mx --example mx_costs`. One
//! thread drives both ends, so that a half round trip is all that both do for it, and nothing
//! waits. Medians of 31 blocks, bare messages and those of MX in turn. With a way (`message`,
//! `empty`, `mx`) and a number of round trips it makes these and prints nothing, so that their
//! instructions can be counted.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use cci::{Connect, Connection, Context, Event, Memory, Notify};
use cci_mx::{Address, Buffer, Endpoint, Match, Options, Place, Request, Segments, endpoint_options};
use cci_peers::{Name, Table};
use std::cell::Cell;
use std::time::Instant;

const BLOCKS: usize = 31;
const ROUNDS: u32 = 2_000;

/// A segment of 8 bytes that is in the request itself.
#[derive(Clone)]
struct Word(Cell<u64>);

impl Buffer for Word {
    fn len(&self) -> usize {
        8
    }

    #[inline]
    fn copy_out(&self, offset: usize, target: &mut [u8]) -> bool {
        let word = self.0.get().to_ne_bytes();
        let bytes = word.get(offset..).and_then(|bytes| bytes.get(..target.len()));
        bytes.is_some_and(|bytes| {
            target.copy_from_slice(bytes);
            true
        })
    }

    #[inline]
    fn copy_in(&self, offset: usize, bytes: &[u8]) -> bool {
        let whole = <[u8; 8]>::try_from(bytes).ok().filter(|_| offset == 0);
        whole.is_some_and(|bytes| {
            self.0.set(u64::from_ne_bytes(bytes));
            true
        })
    }

    fn memory(&self) -> Memory {
        // A word is eager.
        Memory::none()
    }
}

fn open(context: &Context) -> cci::Endpoint {
    let device = context.devices().iter().find(|device| device.transport == "sm").expect("shared memory");
    cci::Endpoint::open(device, &endpoint_options()).expect("an endpoint")
}

/// Two bare endpoints, and their connection.
struct Bare {
    ends: [cci::Endpoint; 2],
    links: [Connection; 2],
}

impl Bare {
    fn new(context: &Context) -> Self {
        let ends = [open(context), open(context)];
        ends[0].connect(&Connect::to(ends[1].uri())).expect("a URI");
        let mut links: [Option<Connection>; 2] = [None; 2];
        while links.iter().any(Option::is_none) {
            for (end, link) in ends.iter().zip(&mut links) {
                match end.get_event().expect("usable") {
                    Some(Event::Request(request)) => request.accept(0).expect("room"),
                    Some(Event::Connected(open)) => *link = open.connection(),
                    Some(Event::Accepted(open)) => *link = open.connection(),
                    _ => {}
                }
            }
        }
        Self { ends, links: links.map(|link| link.expect("open")) }
    }

    /// Messages of 8 bytes, whose sends are not reported, as those of MX.
    fn run(&self, count: u32) {
        for round in 0..count as usize {
            let from = round % 2;
            self.ends[from].send(self.links[from], &[1; 8], Notify::OnFailure(0)).expect("room");
            loop {
                match self.ends[1 - from].get_event().expect("usable") {
                    Some(Event::Received(message)) => break assert!(!message.is_empty()),
                    _ => std::hint::spin_loop(),
                }
            }
        }
    }
}

/// Two endpoints of MX.
struct Pair {
    ends: [Endpoint<Word>; 2],
    peers: [Address; 2],
    /// Of the first one, by their bits.
    posted: Vec<Request>,
}

impl Pair {
    fn new(context: &Context) -> Self {
        let ends = [open(context), open(context)];
        let mut table = Table::new();
        (0..).zip(&ends).for_each(|(id, end)| table.insert(Name::Number(9 << 32 | id), end.uri()));
        let mut id = 0;
        let ends = ends.map(|end| {
            let place = Place::of(end, 9, id, Box::new(table.clone()));
            id += 1;
            Endpoint::open(place, 7, &Options::new()).expect("an endpoint")
        });
        let asked = ends[0].start_connect((9, 1), 7, 0, 0).expect("room");
        while ends[0].test(asked).expect("a request").is_none() {
            ends[1].progress().expect("usable");
        }
        let peers = [ends[1].address(), ends[0].address()];
        Self { ends, peers, posted: Vec::new() }
    }

    fn post(&self, at: usize, bits: u64) -> Request {
        self.ends[at].receive(Word(Cell::new(0)), Match::exact(bits), 0).expect("room")
    }

    fn send(&self, from: usize, bits: u64, is_empty: bool) {
        let segments = if is_empty { Segments::None } else { Segments::One(Word(Cell::new(1))) };
        let sent = self.ends[from].send(segments, self.peers[from], bits, 0).expect("room");
        assert!(self.ends[from].test(sent).expect("a request").is_some());
    }

    fn end(&self, at: usize, request: Request) {
        while self.ends[at].test(request).expect("a request").is_none() {
            std::hint::spin_loop();
        }
    }

    /// A receive is posted, a message is sent and received, and both requests are tested.
    fn run(&self, count: u32, is_empty: bool) {
        for round in 0..count as usize {
            let from = round % 2;
            let receive = self.post(1 - from, 5);
            self.send(from, 5, is_empty);
            self.end(1 - from, receive);
        }
    }

    /// Messages to the first one, each of which finds the receive of its bits, which is posted
    /// again.
    fn deep(&mut self, depth: u64, count: u32, bits: impl Fn(u64) -> u64) {
        while (self.posted.len() as u64) < depth {
            self.posted.push(self.post(0, self.posted.len() as u64));
        }
        for round in 0..count {
            let bits = bits(round.into()) % depth;
            self.send(1, bits, false);
            self.end(0, self.posted[bits as usize]);
            self.posted[bits as usize] = self.post(0, bits);
        }
    }
}

fn time(act: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    act();
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let context = Context::new().expect("a configuration");
    let (bare, mut pair) = (Bare::new(&context), Pair::new(&context));
    let mut arguments = std::env::args().skip(1);
    if let (Some(way), Some(count)) = (arguments.next(), arguments.next()) {
        let count = 2 * count.parse::<u32>().expect("a number");
        match way.as_str() {
            "message" => bare.run(count),
            "empty" => pair.run(count, true),
            _ => pair.run(count, false),
        }
        return;
    }
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..BLOCKS {
        times[0].push(time(|| bare.run(ROUNDS)));
        times[1].push(time(|| pair.run(ROUNDS, true)));
        times[2].push(time(|| pair.run(ROUNDS, false)));
    }
    let [message, empty, word] = times.map(median);
    println!("a message of CCI, 8 B              {message:7.1} ns");
    println!("a message of MX, 0 B               {empty:7.1} ns, {:.1} ns more", empty - message);
    println!("a message of MX, 8 B               {word:7.1} ns, {:.1} ns more", word - message);
    for depth in [1, 1_000, 100_000] {
        for (name, order) in [("again", 0_u64), ("order", 1), ("random", 7_919)] {
            pair.deep(depth, ROUNDS, |round| round * order);
            let times = (0..BLOCKS as u64).map(|block| {
                let first = block * u64::from(ROUNDS);
                time(|| pair.deep(depth, ROUNDS, |round| (first + round).wrapping_mul(order)))
            });
            println!("among {depth:6} posted, {name:6}         {:7.1} ns", median(times.collect()));
        }
    }
}
