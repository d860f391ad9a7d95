use super::*;

const A: NodeIndex = NodeIndex(0);
const B: NodeIndex = NodeIndex(1);
const END: Time = Time(u64::MAX);

fn link(delay: u64, bandwidth: u64) -> LinkSettings {
    LinkSettings { delay, bandwidth, ..LinkSettings::default() }
}

/// A network of two nodes; link 1 goes from B to A, link 2 from A to B.
fn pair(seed: u64, link: &LinkSettings) -> Network {
    Network::new(seed, Graph::mesh(2, link))
}

/// Everything that arrives: when, and what.
fn deliveries(network: &mut Network) -> Vec<(u64, Vec<u8>)> {
    let mut seen = Vec::new();
    while let Some(occurrence) = network.advance(END) {
        if let Occurrence::Frame(node) = occurrence {
            seen.push((network.now().0, network.take(node).unwrap().bytes));
        }
    }
    assert_eq!(network.in_flight(), 0);
    seen
}

fn times(network: &mut Network) -> Vec<u64> {
    deliveries(network).into_iter().map(|(at, _)| at).collect()
}

#[test]
fn a_frame_takes_its_length_by_the_bandwidth_and_the_delay() {
    let mut network = pair(1, &link(500, 1_000_000_000));
    network.send(A, B, 0, &[&[1; 60], &[2; 40]]);
    network.send(A, B, 0, &[&[3; 50]]);
    let seen = deliveries(&mut network);
    assert_eq!(seen[0].0, 600);
    assert_eq!(seen[0].1, [[1; 60].as_slice(), &[2; 40]].concat());
    // The second one waits until the first has left.
    assert_eq!(seen[1].0, 650);
}

#[test]
fn the_other_direction_is_another_link() {
    let mut network = pair(1, &link(500, 1_000_000_000));
    network.send(A, B, 0, &[&[1; 100]]);
    network.send(B, A, 0, &[&[1; 100]]);
    assert_eq!(times(&mut network), [600, 600]);
}

#[test]
fn a_full_queue_drops_what_comes_last_and_a_threshold_marks() {
    let settings = LinkSettings { queue: 250, mark: 150, ..link(0, 1_000_000_000) };
    let mut network = pair(1, &settings);
    for number in 0..5_u8 {
        network.send(A, B, 0, &[&[number; 100]]);
    }
    let mut seen = Vec::new();
    while let Some(Occurrence::Frame(node)) = network.advance(END) {
        let frame = network.take(node).unwrap();
        seen.push((frame.bytes[0], frame.congested));
        network.recycle(frame);
    }
    assert_eq!(seen, [(0, false), (1, false)], "100 of the first one and 100 of the second leave no room for a third");
    let settings = LinkSettings { queue: 450, ..settings };
    network.set_link(LinkIndex(2), &settings);
    for number in 0..5_u8 {
        network.send(A, B, 0, &[&[number; 100]]);
    }
    let mut seen = Vec::new();
    while let Some(Occurrence::Frame(node)) = network.advance(END) {
        seen.push(network.take(node).map(|frame| (frame.bytes[0], frame.congested)).unwrap());
    }
    assert_eq!(seen, [(0, false), (1, false), (2, true), (3, true)]);
    assert_eq!(network.link_stats(LinkIndex(2)).unwrap().overflowed, 4);
}

#[test]
fn a_script_says_what_happens_to_which_frame() {
    let script = vec![(1, Rule::Drop), (2, Rule::Duplicate), (3, Rule::Deliver(5000)), (4, Rule::Corrupt)];
    let settings = LinkSettings { faults: Faults { script, ..Faults::default() }, ..link(10, 0) };
    let mut network = pair(1, &settings);
    for number in 0..6_u8 {
        network.send(A, B, 0, &[&[number; 9]]);
    }
    let seen = deliveries(&mut network);
    let intact = |number: u8| seen.iter().filter(|(_, bytes)| *bytes == [number; 9]).count();
    assert_eq!([0, 1, 2, 3, 4, 5].map(intact), [1, 0, 2, 1, 0, 1]);
    assert_eq!(seen.len(), 6, "a corrupted frame arrives, with other content");
    assert_eq!(seen.last().unwrap(), &(5010, vec![3; 9]));
}

#[test]
fn probabilities_are_kept_and_links_do_not_disturb_each_other() {
    let faults = Faults { loss: 200_000, duplicate: 100_000, ..Faults::default() };
    let settings = LinkSettings { faults, jitter: 300, ..link(10, 0) };
    let run = |seed, others: usize| {
        let mut network = Network::new(seed, Graph::mesh(3, &settings));
        let mut seen = Vec::new();
        for number in 0..2000_u32 {
            for _ in 0..others {
                network.send(B, A, 0, &[&[9]]);
            }
            network.send(A, B, 0, &[&number.to_le_bytes()]);
        }
        while let Some(Occurrence::Frame(node)) = network.advance(END) {
            let frame = network.take(node).unwrap();
            if node == B {
                seen.push((network.now().0, frame.bytes));
            }
        }
        (seen, network.trace())
    };
    let (alone, trace) = run(5, 0);
    assert!((1650..1850).contains(&alone.len()), "2000 * 0.8 * 1.125 is 1760 or so, not {}", alone.len());
    assert!(alone.windows(2).any(|pair| pair[0].1 > pair[1].1), "jitter reorders");
    assert_eq!(run(5, 3).0, alone, "what happens on A -> B depends on no other link");
    assert_eq!(run(5, 0).1, trace);
    assert_ne!(run(6, 0).1, trace);
}

#[test]
fn overheads_and_gap_are_charged_as_in_logp() {
    let mut graph = Graph::new();
    let processor = Processor { send_overhead: 100, recv_overhead: 200, gap: 700, ..Processor::default() };
    let (a, b) = (graph.add_node(processor), graph.add_node(processor));
    let there = graph.add_link(a, b, &link(1000, 0));
    graph.set_route(a, b, &[there]);
    let mut network = Network::new(1, graph);
    for _ in 0..3 {
        network.send(a, b, 0, &[&[0]]);
    }
    // o_s + L + o_r, then one every g, since g > o.
    assert_eq!(times(&mut network), [1300, 2000, 2700]);
    // A busy receiver takes a frame later.
    network.send(a, b, 0, &[&[0]]);
    network.charge(b, 5000);
    assert_eq!(times(&mut network), [2700 + 5000 + 200]);
}

#[test]
fn a_processor_that_waits_for_the_gap_can_send_and_answers_before_it_takes_the_next() {
    let mut graph = Graph::new();
    let processor = Processor { send_overhead: 100, recv_overhead: 200, gap: 700, ..Processor::default() };
    let (a, b) = (graph.add_node(processor), graph.add_node(Processor::default()));
    for (from, to) in [(a, b), (b, a)] {
        let link = graph.add_link(from, to, &link(1000, 0));
        graph.set_route(from, to, &[link]);
    }
    let mut network = Network::new(1, graph);
    for _ in 0..3 {
        network.send(b, a, 0, &[&[0]]);
    }
    let mut seen = Vec::new();
    while let Some(occurrence) = network.advance(END) {
        let Occurrence::Frame(node) = occurrence else { continue };
        seen.push((node, network.now().0));
        let frame = network.take(node).unwrap();
        network.recycle(frame);
        if node == a {
            network.send(a, b, 0, &[&[0]]);
        }
    }
    // Each frame is taken a gap after the one before, and each answer leaves at once.
    let (taken, answered) = ([1200, 1900, 2600], [2300, 3000, 3700]);
    let of = |wanted: NodeIndex| seen.iter().filter(|(node, _)| *node == wanted).map(|(_, at)| *at).collect::<Vec<_>>();
    assert_eq!((of(a), of(b)), (taken.to_vec(), answered.to_vec()));
    // Without a gap the processor is what they wait for: one, its answer, the next.
    let mut graph = Graph::new();
    let (a, b) = (graph.add_node(Processor { gap: 0, ..processor }), graph.add_node(Processor::default()));
    let back = graph.add_link(b, a, &link(1000, 0));
    graph.set_route(b, a, &[back]);
    let mut network = Network::new(1, graph);
    network.send(b, a, 0, &[&[0]]);
    network.send(b, a, 0, &[&[0]]);
    assert_eq!(network.advance(END), Some(Occurrence::Frame(a)));
    network.send(a, b, 0, &[&[0]]);
    assert_eq!((network.now(), network.idle_at(a)), (Time(1200), Time(1300)));
    assert_eq!(network.advance(END), Some(Occurrence::Frame(a)));
    assert_eq!(network.now(), Time(1500));
}

#[test]
fn each_byte_adds_to_both_overheads_and_a_short_frame_takes_less() {
    let run = |len: usize| {
        let mut graph = Graph::new();
        let processor =
            Processor { send_overhead: 2085, recv_overhead: 2085, per_byte: 11_600, base: 64, ..Processor::default() };
        let (a, b) = (graph.add_node(processor), graph.add_node(processor));
        let there = graph.add_link(a, b, &link(7, 0));
        graph.set_route(a, b, &[there]);
        let mut network = Network::new(1, graph);
        network.send(a, b, 0, &[&vec![0; len]]);
        let sent = network.idle_at(a).0;
        (sent, times(&mut network))
    };
    assert_eq!(run(64), (2085, vec![2 * 2085 + 7]));
    assert_eq!(run(124), (2781, vec![2 * 2781 + 7]));
    // 11.6 * 63 is 730.8.
    assert_eq!(run(1), (1354, vec![2 * 1354 + 7]));
}

#[test]
fn a_frame_may_be_on_its_way_before_its_sender_is_free() {
    let mut graph = Graph::new();
    let processor = Processor { send_overhead: 100, recv_overhead: 100, overlap: 30, ..Processor::default() };
    let (a, b) = (graph.add_node(processor), graph.add_node(processor));
    let there = graph.add_link(a, b, &link(7, 1_000_000_000));
    graph.set_route(a, b, &[there]);
    let mut network = Network::new(1, graph);
    network.send(a, b, 0, &[&[0; 30]]);
    network.send(a, b, 0, &[&[0; 30]]);
    assert_eq!(network.idle_at(a), Time(200));
    assert_eq!(times(&mut network), [207, 307]);
}

#[test]
fn a_route_of_several_links_stores_or_cuts_through() {
    let run = |forward| {
        let mut graph = Graph::new();
        let nodes: Vec<_> = (0..3).map(|_| graph.add_node(Processor::default())).collect();
        let settings = LinkSettings { forward, ..link(10, 1_000_000_000) };
        let route: Vec<_> = nodes.windows(2).map(|ends| graph.add_link(ends[0], ends[1], &settings)).collect();
        graph.set_route(nodes[0], nodes[2], &route);
        let mut network = Network::new(1, graph);
        network.send(nodes[0], nodes[2], 0, &[&[0; 1000]]);
        times(&mut network)
    };
    assert_eq!(run(Forward::Store), [2020]);
    assert_eq!(run(Forward::CutThrough), [1020]);
}

#[test]
fn a_clear_link_between_others_delays_and_nothing_else() {
    let run = |forward| {
        let mut graph = Graph::new();
        let nodes: Vec<_> = (0..4).map(|_| graph.add_node(Processor::default())).collect();
        let slow = LinkSettings { forward, ..link(10, 1_000_000_000) };
        let clear = LinkSettings { forward, ..link(60, 0) };
        let route = [(0, &slow), (1, &clear), (2, &slow)].map(|(at, of)| graph.add_link(nodes[at], nodes[at + 1], of));
        graph.set_route(nodes[0], nodes[3], &route);
        let mut network = Network::new(1, graph);
        for _ in 0..2 {
            network.send(nodes[0], nodes[3], 0, &[&[0; 1000]]);
        }
        let times = times(&mut network);
        (times, network.link_stats(route[1]).map(|stats| (stats.frames, stats.bytes)))
    };
    assert_eq!(run(Forward::Store), (vec![2080, 3080], Some((2, 2000))));
    assert_eq!(run(Forward::CutThrough), (vec![1080, 2080], Some((2, 2000))));
}

#[test]
fn a_dumbbell_shares_its_bottleneck_only_between_its_sides() {
    let mut network =
        Network::new(1, Graph::dumbbell(2, 2, &link(0, 0), &LinkSettings { delay: 5, ..link(5, 1_000_000_000) }));
    network.send(NodeIndex(0), NodeIndex(2), 0, &[&[0; 100]]);
    network.send(NodeIndex(1), NodeIndex(3), 0, &[&[0; 100]]);
    network.send(NodeIndex(2), NodeIndex(3), 0, &[&[0; 100]]);
    network.send(NodeIndex(3), NodeIndex(0), 0, &[&[0; 100]]);
    assert_eq!(times(&mut network), [0, 105, 105, 205]);
}

#[test]
fn a_frame_longer_than_the_link_carries_is_lost() {
    let mut network = pair(1, &LinkSettings { mtu: 100, ..link(1, 0) });
    network.send(A, B, 0, &[&[0; 101]]);
    network.send(A, B, 0, &[&[0; 60], &[0; 40]]);
    assert_eq!(times(&mut network), [1]);
    assert_eq!(network.link_stats(LinkIndex(2)).unwrap().too_long, 1);
}

#[test]
fn a_node_without_a_route_is_not_reached() {
    let mut graph = Graph::mesh(2, &LinkSettings::default());
    let alone = graph.add_node(Processor::default());
    let mut network = Network::new(1, graph);
    network.send(A, alone, 0, &[&[0]]);
    network.send(A, NodeIndex(9), 0, &[&[0]]);
    network.send(NodeIndex(9), A, 0, &[&[0]]);
    assert_eq!(network.in_flight(), 0);
    assert_eq!(network.advance(END), None);
}

#[test]
fn a_wake_up_comes_once_at_the_last_time_that_was_asked_for() {
    let mut network = pair(1, &link(0, 0));
    network.wake_at(A, Some(Time(500)));
    network.wake_at(A, Some(Time(300)));
    network.wake_at(A, Some(Time(400)));
    network.wake_at(B, Some(Time(350)));
    network.wake_at(B, None);
    assert_eq!(network.advance(END), Some(Occurrence::Wake(A)));
    assert_eq!(network.now(), Time(400));
    assert_eq!(network.advance(Time(2000)), None);
    assert_eq!(network.now(), Time(2000));
    network.wake_at(A, Some(Time(10)));
    assert_eq!(network.advance(END), Some(Occurrence::Wake(A)), "a time that is past is now");
    assert_eq!(network.now(), Time(2000));
}
