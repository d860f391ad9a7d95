//! What puts cost on shared memory: `cargo run --release -p cci-portals --example costs`. One
//! thread drives both ends, so that a half round trip is all that both do for it, and nothing
//! waits. Medians of 31 blocks. With a way (`message`, `put`) and a number of round trips it makes
//! these and prints nothing: `ci/instructions --portals` counts their instructions.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use cci::{Connect, Connection, Context, Endpoint, Event, Notify};
use cci_peers::{Name, Table};
use cci_portals::{
    Descriptor, EventKind, Handle, Interface, Limits, Match, Place, Position, ProcessId, Target, Unlink, buffer,
    endpoint_options, options,
};
use std::time::Instant;

const BLOCKS: usize = 31;
const ROUNDS: u32 = 2_000;

fn median(mut block: impl FnMut()) -> f64 {
    let mut times: Vec<_> = (0..BLOCKS)
        .map(|_| {
            let begin = Instant::now();
            block();
            begin.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[BLOCKS / 2]
}

fn open(context: &Context) -> Endpoint {
    let device = context.devices().iter().find(|device| device.transport == "sm").expect("shared memory");
    Endpoint::open(device, &endpoint_options()).expect("an endpoint")
}

fn receive(end: &Endpoint) {
    loop {
        match end.get_event().expect("usable") {
            Some(Event::Received(message)) => return assert!(!message.is_empty()),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Two bare endpoints, and their connection.
fn bare(context: &Context) -> ([Endpoint; 2], [Connection; 2]) {
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
    (ends, links.map(|link| link.expect("open")))
}

/// Messages of 8 bytes, whose sends are reported.
fn messages((ends, links): &([Endpoint; 2], [Connection; 2]), count: u32) {
    for round in 0..count as usize {
        let from = round % 2;
        ends[from].send(links[from], &[1; 8], Notify::Always(1)).expect("room");
        receive(&ends[1 - from]);
    }
}

struct Side {
    ni: Interface,
    queue: Handle,
    source: Handle,
}

fn until(side: &Side, kind: EventKind) {
    loop {
        match side.ni.event(side.queue) {
            Ok((event, _)) if event.kind == kind => return,
            _ => std::hint::spin_loop(),
        }
    }
}

/// Two interfaces; the second entry of each list takes 8 bytes, behind `depth` that refuse.
fn sides(context: &Context, depth: u32) -> Vec<Side> {
    let ends = [open(context), open(context)];
    let mut table = Table::new();
    (0..).zip(&ends).for_each(|(pid, end)| table.insert(Name::Number(9 << 32 | pid), end.uri()));
    let anything = Match { source: ProcessId::ANY, bits: 0, ignore: !0 };
    let side = |(pid, end)| {
        let place = Place::of(end, ProcessId { nid: 9, pid }, Box::new(table.clone()));
        let limits = Limits { max_mes: 4_096, max_me_list: 4_096, max_mds: 8_192, ..Limits::default() };
        let ni = Interface::new(place, 0, limits).expect("an interface");
        let queue = ni.queue(64, false).expect("room");
        let quiet = options::EVENT_START_DISABLE | options::MANAGE_REMOTE;
        let post = |bits, queue| {
            let entry = ni.attach(4, anything, Unlink::Retain, Position::After).expect("room");
            let descriptor = Descriptor::new(&buffer(vec![0; 8])).options(bits | quiet).events(queue);
            ni.attach_memory(entry, descriptor, Unlink::Retain).expect("room")
        };
        for _ in 0..depth {
            post(options::OP_GET, Handle::NO_QUEUE);
        }
        post(options::OP_PUT, queue);
        let source = ni.bind(Descriptor::new(&buffer(vec![0; 8])), Unlink::Retain).expect("room");
        Side { ni, queue, source }
    };
    (0..).zip(ends).map(side).collect()
}

fn to(pid: u32) -> Target {
    Target::at(ProcessId { nid: 9, pid }, 4)
}

fn linked(context: &Context, depth: u32) -> Vec<Side> {
    let sides = sides(context, depth);
    // The link.
    sides[0].ni.put(sides[0].source, None, false, &to(1)).expect("room");
    while sides[1].ni.event(sides[1].queue).is_err() {
        assert!(sides[0].ni.status(0).is_ok());
    }
    sides
}

fn puts(sides: &[Side], count: u32) {
    for round in 0..count {
        let (from, other) = (&sides[(round % 2) as usize], &sides[1 - (round % 2) as usize]);
        from.ni.put(from.source, None, false, &to(1 - round % 2)).expect("room");
        until(other, EventKind::PutEnd);
    }
}

fn main() {
    let context = Context::new().expect("devices");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [way, count] = &arguments[..] {
        let count = 2 * count.parse::<u32>().expect("a number of round trips");
        return match way.as_str() {
            "message" => messages(&bare(&context), count),
            "put" => puts(&linked(&context, 0), count),
            _ => panic!("{way} is no way; give message or put"),
        };
    }
    let ends = bare(&context);
    let message = median(|| messages(&ends, ROUNDS));
    let behind = |depth| {
        let sides = linked(&context, depth);
        median(|| puts(&sides, ROUNDS))
    };
    let none = behind(0);
    println!("8 bytes, half round trip, both ends in one thread, ns");
    println!("  message of CCI         {message:8.0}");
    println!("  put                    {none:8.0}   {:+.0}", none - message);
    for depth in [32, 1_024, 2_048] {
        let walked = behind(depth);
        println!(
            "  put behind {depth:5} that refuse {walked:8.0}   {:.1} an entry",
            (walked - none) / f64::from(depth)
        );
    }
}
