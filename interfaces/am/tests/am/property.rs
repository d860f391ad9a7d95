//! Random programs on 2 to 8 endpoints, against an oracle: at its requester each request ends
//! exactly once; at its target a handler runs at most once, and without a fault exactly once.

use crate::world::{FAULTS, World, segment, sim};
use cci::Device;
use cci_am::{Handlers, Options, Peer, Reply, Request, RequestError, Returned, Status, TAG_ALL};
use cci_conformance::{pattern, sm_device};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::collections::BTreeMap;

const SILENT: u8 = 1;
const SHORT: u8 = 2;
const MEDIUM: u8 = 3;
const BULK: u8 = 4;
const NOBODY: u8 = 9;
const DONE: u8 = 10;
/// The most requests of a program, each with a place in the segment for its bytes, and one for
/// those of its reply.
const MOST: u32 = 400;
const PLACE: u64 = 65_536;
const SEGMENT: usize = 2 * MOST as usize * PLACE as usize;

/// What an endpoint has seen: how often each request ran here, ended by a reply here, came back.
#[derive(Default)]
struct Ledger {
    ran: BTreeMap<u32, u32>,
    replied: BTreeMap<u32, u32>,
    returned: BTreeMap<u32, Vec<Status>>,
    wrong: Vec<String>,
}

/// The bytes of a request.
fn bytes_of(number: u32, len: u32) -> Vec<u8> {
    pattern(u64::from(number), len as usize)
}

impl Ledger {
    /// Every request has its number and its length before its other arguments.
    fn run(&mut self, request: &Request<'_>) -> (u32, u32) {
        let [number, len, ..] = *request.arguments() else { unreachable!("two arguments at least") };
        *self.ran.entry(number).or_default() += 1;
        if request.payload().to_vec() != bytes_of(number, len) {
            self.wrong.push(format!("request {number} has other bytes"));
        }
        (number, len)
    }
}

fn silent(ledger: &mut Ledger, request: Request<'_>) {
    ledger.run(&request);
}

fn short(ledger: &mut Ledger, request: Request<'_>) {
    let (number, _) = ledger.run(&request);
    request.reply(DONE, &[number, 0]).expect("two arguments");
}

fn medium(ledger: &mut Ledger, request: Request<'_>) {
    let (number, len) = ledger.run(&request);
    request.reply_medium(DONE, &[number, len], &bytes_of(number, len)).expect("as long as the request");
}

fn bulk(ledger: &mut Ledger, request: Request<'_>) {
    let (number, len) = ledger.run(&request);
    let replied = request.reply_bulk(DONE, &[number, len], &bytes_of(number, len), u64::from(MOST + number) * PLACE);
    replied.expect("the requester's segment");
}

fn done(ledger: &mut Ledger, reply: Reply<'_>) {
    let [number, len] = *reply.arguments() else { unreachable!("two arguments") };
    *ledger.replied.entry(number).or_default() += 1;
    if reply.payload().to_vec() != bytes_of(number, len) {
        ledger.wrong.push(format!("the reply to {number} has other bytes"));
    }
}

fn returned(ledger: &mut Ledger, returned: Returned<'_>) {
    ledger.returned.entry(returned.arguments()[0]).or_default().push(returned.status());
}

fn handlers() -> Handlers<Ledger> {
    let requests = Handlers::new().request(SILENT, silent).request(SHORT, short).request(MEDIUM, medium);
    requests.request(BULK, bulk).reply(DONE, done).returned(returned)
}

#[derive(Clone, Debug)]
enum Step {
    /// From, to, handler, length, and whether the bytes go into the segment.
    Send(usize, usize, u8, u32, bool),
    /// One endpoint polls.
    Poll(usize),
    /// One endpoint goes, and its state stays.
    Leave(usize),
}

fn step(leaves: bool) -> impl Strategy<Value = Step> {
    let handler =
        prop_oneof![4 => Just(SILENT), 4 => Just(SHORT), 2 => Just(MEDIUM), 1 => Just(BULK), 1 => Just(NOBODY)];
    let len = prop_oneof![4 => Just(0u32), 3 => 1u32..200, 1 => 200u32..60_000];
    let send = (0usize..8, 0usize..8, handler, len, prop::bool::weighted(0.2))
        .prop_map(|(from, to, at, len, bulk)| Step::Send(from, to, at, len, bulk));
    let leave = u32::from(leaves);
    prop_oneof![40 => send, 40 => (0usize..8).prop_map(Step::Poll), leave => (0usize..8).prop_map(Step::Leave)]
}

/// A request that was sent.
struct Sent {
    from: usize,
    to: usize,
    at: u8,
}

/// A program under way.
struct Program {
    world: World<Ledger>,
    /// States of endpoints by their first number; `places` leads to those that are left.
    gone: BTreeMap<usize, Ledger>,
    places: Vec<Option<usize>>,
    peers: BTreeMap<(usize, usize), Peer>,
    sent: Vec<Sent>,
}

impl Program {
    fn new(device: &Device, count: usize, credits: u32) -> Self {
        let mut world = World::new(device, &Options::new().credits(credits), count, handlers, Ledger::default);
        for endpoint in &mut world.endpoints {
            endpoint.set_segment(Some(segment(SEGMENT))).expect("a registration");
        }
        let mut peers = BTreeMap::new();
        for from in 0..count {
            for to in 0..count {
                peers.insert((from, to), world.map(from, to, TAG_ALL));
            }
        }
        Self { world, gone: BTreeMap::new(), places: (0..count).map(Some).collect(), peers, sent: Vec::new() }
    }

    fn act(&mut self, step: &Step) {
        let count = self.places.len();
        match *step {
            Step::Poll(at) => {
                if let Some(place) = self.places[at % count] {
                    self.world.endpoints[place].poll().expect("usable");
                }
            }
            Step::Leave(at) => self.leave(at % count),
            Step::Send(from, to, at, len, is_bulk) => self.send(from % count, to % count, at, len, is_bulk),
        }
    }

    fn send(&mut self, from: usize, to: usize, at: u8, len: u32, is_bulk: bool) {
        let Some(place) = self.places[from] else { return };
        let number = u32::try_from(self.sent.len()).expect("few");
        let (peer, bytes) = (self.peers[&(from, to)], bytes_of(number, len));
        let now = self.world.endpoints[place].now();
        let refused = if is_bulk {
            now.request_bulk(peer, at, &[number, len], &bytes, u64::from(number) * PLACE)
        } else {
            now.request_medium(peer, at, &[number, len], &bytes)
        };
        match refused {
            Ok(()) => self.sent.push(Sent { from, to, at }),
            Err(RequestError::WouldBlock) => {}
            Err(why) => panic!("{why}"),
        }
    }

    /// At least two stay.
    fn leave(&mut self, at: usize) {
        let left = self.places.iter().flatten().count();
        if let Some(place) = self.places[at].filter(|_| left > 2) {
            self.gone.insert(at, self.world.endpoints.remove(place).into_state());
            self.places[at] = None;
            self.places.iter_mut().flatten().filter(|other| **other > place).for_each(|other| *other -= 1);
        }
    }

    fn finish(&mut self) {
        let open: Vec<_> =
            self.peers.iter().filter_map(|((from, _), peer)| Some((self.places[*from]?, *peer))).collect();
        self.world.until("the end of all requests", |world| {
            open.iter().all(|(place, peer)| world.endpoints[*place].outstanding(*peer) == 0)
        });
    }

    fn ledger(&mut self, at: usize) -> &Ledger {
        match self.places[at] {
            Some(place) => self.world.endpoints[place].state(),
            None => &self.gone[&at],
        }
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        for at in 0..self.places.len() {
            prop_assert!(self.ledger(at).wrong.is_empty(), "{:?}", self.ledger(at).wrong);
        }
        for (number, sent) in std::mem::take(&mut self.sent).iter().enumerate() {
            self.check_request(u32::try_from(number).expect("few"), sent)?;
        }
        Ok(())
    }

    fn check_request(&mut self, number: u32, sent: &Sent) -> Result<(), TestCaseError> {
        let (from_stays, to_stays) = (self.places[sent.from].is_some(), self.places[sent.to].is_some());
        let ran = self.ledger(sent.to).ran.get(&number).copied().unwrap_or(0);
        let here = self.ledger(sent.from);
        let replied = here.replied.get(&number).copied().unwrap_or(0);
        let returned = here.returned.get(&number).cloned().unwrap_or_default();
        prop_assert!(ran <= 1, "request {} ran {} times", number, ran);
        prop_assert!(replied + u32::try_from(returned.len()).expect("few") <= 1, "request {} ended twice", number);
        if let [status] = returned[..] {
            prop_assert!(
                ran == 0 || status == Status::Unreachable,
                "request {} ran and came back {:?}",
                number,
                status
            );
        }
        if from_stays && to_stays {
            let (runs, replies, returns) = match sent.at {
                NOBODY => (0, 0, vec![Status::BadHandler]),
                SILENT => (1, 0, vec![]),
                _ => (1, 1, vec![]),
            };
            prop_assert_eq!((ran, replied, returned), (runs, replies, returns), "request {}", number);
        }
        Ok(())
    }
}

fn run(device: &Device, count: usize, credits: u32, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut program = Program::new(device, count, credits);
    steps.iter().for_each(|step| program.act(step));
    program.finish();
    program.check()
}

fn programs(most: usize, leaves: bool) -> impl Strategy<Value = (usize, u32, Vec<Step>)> {
    (2usize..=8, 1u32..40, prop::collection::vec(step(leaves), 0..most))
}

/// Programs over each network.
const CASES: u32 = 20;

/// Steps that make a failing program shorter: each may wait in vain for half a minute.
const SHRINKS: u32 = 8;

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: SHRINKS, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn over_a_bad_network((count, credits, steps) in programs(MOST as usize, false)) {
        run(&sim(&FAULTS), count, credits, &steps)?;
    }
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn over_shared_memory((count, credits, steps) in programs(MOST as usize, false)) {
        run(&sm_device(), count, credits, &steps)?;
    }

    #[test]
    fn over_shared_memory_with_peers_that_go((count, credits, steps) in programs(MOST as usize, true)) {
        run(&sm_device(), count, credits, &steps)?;
    }
}
