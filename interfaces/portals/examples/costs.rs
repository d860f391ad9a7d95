//! What puts cost on shared memory: `cargo run --release -p cci-portals --example costs`. One
//! thread drives both ends, so that a half round trip is all that both do for it, and nothing
//! waits. Medians of 31 blocks. With a way (`message`, `put`, `told`, `long`) and a number of round
//! trips it makes these and prints nothing: `ci/instructions --portals` counts their instructions.
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
/// The shortest put that is offered and read, bytes.
const LONG: usize = 16 << 10;

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

/// Messages of 8 bytes, whose sends are not reported, as those of puts are not.
fn messages((ends, links): &([Endpoint; 2], [Connection; 2]), count: u32) {
    for round in 0..count as usize {
        let from = round % 2;
        ends[from].send(links[from], &[1; 8], Notify::OnFailure(0)).expect("room");
        receive(&ends[1 - from]);
    }
}

struct Side {
    ni: Interface,
    queue: Handle,
    source: Handle,
    /// The same, with the event of the end of a send.
    told: Handle,
    /// Of a long put, with the events of its end.
    long: Handle,
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
    let memory = |len| cci::SharedMemory::new(len).expect("memory").memory();
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
        let told = Descriptor::new(&buffer(vec![0; 8])).options(options::EVENT_START_DISABLE).events(queue);
        let told = ni.bind(told, Unlink::Retain).expect("room");
        let entry = ni.attach(5, anything, Unlink::Retain, Position::After).expect("room");
        let target = Descriptor::new(&memory(LONG)).options(options::OP_PUT | quiet);
        ni.attach_memory(entry, target, Unlink::Retain).expect("room");
        let long = Descriptor::new(&memory(LONG)).options(options::EVENT_START_DISABLE).events(queue);
        let long = ni.bind(long, Unlink::Retain).expect("room");
        Side { ni, queue, source, told, long }
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

/// Puts of 8 bytes from the memory descriptor that `of` names.
fn puts(sides: &[Side], of: impl Fn(&Side) -> Handle, count: u32) {
    for round in 0..count {
        let (from, other) = (&sides[(round % 2) as usize], &sides[1 - (round % 2) as usize]);
        from.ni.put(of(from), None, false, &to(1 - round % 2)).expect("room");
        until(other, EventKind::PutEnd);
    }
}

/// Puts of 16 KiB with ack, which the target reads: both ends at once, until the ack is there.
fn long_puts(sides: &[Side], count: u32) {
    for round in 0..count {
        let (from, other) = (&sides[(round % 2) as usize], &sides[1 - (round % 2) as usize]);
        let to = Target { portal: 5, ..to(1 - round % 2) };
        from.ni.put(from.long, None, true, &to).expect("room");
        while !matches!(from.ni.event(from.queue), Ok((event, _)) if event.kind == EventKind::Ack) {
            let _ = other.ni.event(other.queue);
        }
    }
}

fn main() {
    let context = Context::new().expect("devices");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [way, count] = &arguments[..] {
        let count = 2 * count.parse::<u32>().expect("a number of round trips");
        return match way.as_str() {
            "message" => messages(&bare(&context), count),
            "put" => puts(&linked(&context, 0), |side| side.source, count),
            "told" => puts(&linked(&context, 0), |side| side.told, count),
            "long" => long_puts(&linked(&context, 0), count),
            _ => panic!("{way} is no way; give message, put, told or long"),
        };
    }
    let ends = bare(&context);
    let message = median(|| messages(&ends, ROUNDS));
    let behind = |depth| {
        let sides = linked(&context, depth);
        median(|| puts(&sides, |side| side.source, ROUNDS))
    };
    let none = behind(0);
    let sides = linked(&context, 0);
    let told = median(|| puts(&sides, |side| side.told, ROUNDS));
    let long = median(|| long_puts(&sides, ROUNDS));
    println!("8 bytes, half round trip, both ends in one thread, ns");
    println!("  message of CCI         {message:8.0}");
    println!("  put                    {none:8.0}   {:+.0}", none - message);
    println!("  put with its SEND_END  {told:8.0}   {:+.0}", told - message);
    println!("  put of 16 KiB, its ack {long:8.0}");
    for depth in [32, 1_024, 2_048] {
        let walked = behind(depth);
        println!(
            "  put behind {depth:5} that refuse {walked:8.0}   {:.1} an entry",
            (walked - none) / f64::from(depth)
        );
    }
}
