use super::*;

fn both(kind: ProbeKind, size: u64, count: u64) -> Duration {
    let memory = Shared::create(shared::LEN).unwrap();
    let other = memory.second_mapping().unwrap();
    let wake = WakePair::create().unwrap();
    let other_wake = wake.duplicate().unwrap();
    let server = std::thread::spawn(move || {
        let mut probe = Probe::new(other, other_wake, Side::Server);
        probe.run(kind, size, count).unwrap();
        probe.run(kind, size, count).unwrap();
    });
    let mut probe = Probe::new(memory, wake, Side::Client);
    let first = probe.run(kind, size, count).unwrap();
    let second = probe.run(kind, size, count).unwrap();
    server.join().unwrap();
    first.min(second)
}

#[test]
fn every_two_sided_probe_ends_on_both_sides_and_takes_time() {
    for (kind, size) in [
        (ProbeKind::Line, 8),
        (ProbeKind::Copy, 4096),
        (ProbeKind::Copy, 5),
        (ProbeKind::Ring, 8),
        (ProbeKind::Ring, 100),
        (ProbeKind::LockedRing, 8),
        (ProbeKind::Pipe, 3),
        (ProbeKind::Pipe, 1_000_001),
        (ProbeKind::Wake, 1),
        (ProbeKind::Udp, 0),
        (ProbeKind::Udp, 65_507),
        (ProbeKind::UdpWake, 8),
        (ProbeKind::UdpMessages, 1),
        (ProbeKind::UdpMessages, 20_000),
        (ProbeKind::UdpStream, 3),
        (ProbeKind::UdpStream, 1_000_001),
        (ProbeKind::Tcp, 3),
        (ProbeKind::Tcp, 1_000_001),
        (ProbeKind::TcpPing, 0),
        (ProbeKind::TcpPing, 100_000),
        (ProbeKind::TcpWake, 8),
        (ProbeKind::TcpMessages, 0),
        (ProbeKind::TcpMessages, 8),
        (ProbeKind::TcpStream, 3),
        (ProbeKind::TcpStream, 3_000_001),
    ] {
        assert!(both(kind, size, 50) > Duration::ZERO, "{kind:?} of {size} bytes");
    }
}

/// The port that the server has left, by the place of its word.
fn port_of_server(memory: &Shared, place: network::Place) -> u16 {
    let word = network::port(memory, place, Side::Server).load(std::sync::atomic::Ordering::Acquire);
    u16::try_from(word).expect("a port")
}

#[test]
fn strangers_that_come_first_disturb_no_probe_of_the_network() {
    use network::Place;
    for (kind, place) in [
        (ProbeKind::Tcp, Place::Tcp),
        (ProbeKind::TcpPing, Place::TcpPolled),
        (ProbeKind::TcpStream, Place::TcpPolled),
        (ProbeKind::Udp, Place::Exchange),
        (ProbeKind::UdpStream, Place::Stream),
    ] {
        let memory = Shared::create(shared::LEN).unwrap();
        let other = memory.second_mapping().unwrap();
        let wake = WakePair::create().unwrap();
        let mut server = Probe::new(other, wake.duplicate().unwrap(), Side::Server);
        server.prepare(kind, 3000).unwrap();
        let at = (std::net::Ipv4Addr::LOCALHOST, port_of_server(&memory, place));
        let mut strangers = Vec::new();
        for number in 0..100 {
            if matches!(kind, ProbeKind::Udp | ProbeKind::UdpStream) {
                let stranger = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
                stranger.send_to(&[7; 3000], at).unwrap();
                continue;
            }
            let mut stranger = std::net::TcpStream::connect(at).unwrap();
            if number % 2 == 0 {
                std::io::Write::write_all(&mut stranger, &[7; 3000]).unwrap();
            }
            strangers.push(stranger);
        }
        let serving = std::thread::spawn(move || server.run(kind, 3000, 50).unwrap());
        let mut client = Probe::new(memory, wake, Side::Client);
        assert!(client.run(kind, 3000, 50).unwrap() > Duration::ZERO, "{kind:?}");
        assert!(serving.join().unwrap() > Duration::ZERO, "{kind:?}");
    }
}

#[test]
fn each_exchange_of_futexes_wakes_both_sides() {
    let memory = Shared::create(shared::LEN).unwrap();
    let other = memory.second_mapping().unwrap();
    let server = std::thread::spawn(move || {
        let probe = Probe::new(other, WakePair::create().unwrap(), Side::Server);
        [3, 2].map(|count| probe.wake_by_futexes(count, Duration::ZERO).unwrap().len())
    });
    let probe = Probe::new(memory, WakePair::create().unwrap(), Side::Client);
    for count in [3, 2] {
        let times = probe.wake_by_futexes(count, Duration::from_millis(1)).unwrap();
        assert!(times.len() == count && times.iter().all(|time| *time > Duration::ZERO));
    }
    assert_eq!(server.join().unwrap(), [0, 0]);
}

#[test]
fn a_block_of_lines_goes_to_many_places() {
    let memory = Shared::create(shared::LEN).unwrap();
    let (seen, other) = (memory.second_mapping().unwrap(), memory.second_mapping().unwrap());
    let (mut to, mut from) = (lines::Turn::default(), lines::Turn::default());
    let server = std::thread::spawn(move || lines::ping(&other, Side::Server, &mut from, 1000));
    lines::ping(&memory, Side::Client, &mut to, 1000);
    server.join().unwrap();
    let visited = |place: &usize| lines::lines(&seen, *place)[0].load(std::sync::atomic::Ordering::Relaxed) != 0;
    assert_eq!((0..shared::PLACES).filter(visited).count(), 16);
}

#[test]
fn a_ring_that_wraps_around_many_times_ends() {
    assert!(both(ProbeKind::Ring, 8, 10_000) > Duration::ZERO);
}

#[test]
fn a_copy_within_the_process_moves_the_bytes() {
    let memory = Shared::create(shared::LEN).unwrap();
    let mut probe = Probe::new(memory, WakePair::create().unwrap(), Side::Client);
    probe.prepare(ProbeKind::Memcpy, 10_000).unwrap();
    probe.run(ProbeKind::Memcpy, 10_000, 3).unwrap();
    let [source, target] = probe.mapped.as_ref().unwrap();
    source.word(8).store(77, std::sync::atomic::Ordering::Relaxed);
    assert_ne!(target.read(0, 10_000), source.read(0, 10_000));
    probe.run(ProbeKind::Memcpy, 10_000, 1).unwrap();
    let [source, target] = probe.mapped.as_ref().unwrap();
    assert_eq!(target.read(0, 10_000), source.read(0, 10_000));
}

#[test]
fn process_vm_writes_into_and_reads_from_memory_of_any_origin() {
    let target = Buffer::new(5000).unwrap();
    target.write(0, &[7; 5000]);
    let pid = i32::try_from(std::process::id()).unwrap();
    let mut probe = Probe::new(Shared::create(shared::LEN).unwrap(), WakePair::create().unwrap(), Side::Client);
    probe.prepare(ProbeKind::ProcessVm, 5000).unwrap();
    probe.remote = Some(Remote { pid, address: target.address(), read: true });
    probe.run(ProbeKind::ProcessVm, 5000, 1).unwrap();
    assert_eq!(probe.private.read(0, 5000), vec![7; 5000]);
    probe.private.write(0, &[9; 5000]);
    probe.remote = Some(Remote { pid, address: target.address(), read: false });
    probe.run(ProbeKind::ProcessVm, 5000, 2).unwrap();
    assert_eq!(target.read(0, 5000), vec![9; 5000]);
}

#[test]
fn process_vm_without_a_target_and_copies_beyond_the_area_are_errors() {
    let mut probe = Probe::new(Shared::create(shared::LEN).unwrap(), WakePair::create().unwrap(), Side::Client);
    assert!(probe.run(ProbeKind::ProcessVm, 8, 1).is_err());
    let error = probe.prepare(ProbeKind::Copy, shared::LARGEST_COPY as u64 + 1).unwrap_err();
    assert!(error.to_string().contains("at most"), "{error}");
}

#[test]
fn probes_of_the_network_take_turns_with_each_other() {
    let memory = Shared::create(shared::LEN).unwrap();
    let other = memory.second_mapping().unwrap();
    let blocks = [
        (ProbeKind::UdpStream, 100_000),
        (ProbeKind::UdpMessages, 8),
        (ProbeKind::Tcp, 70_000),
        (ProbeKind::UdpStream, 1 << 20),
        (ProbeKind::Tcp, 1),
        (ProbeKind::TcpStream, 2 << 20),
        (ProbeKind::TcpPing, 8),
        (ProbeKind::Tcp, 70_000),
        (ProbeKind::TcpMessages, 8),
        (ProbeKind::UdpMessages, 8),
    ];
    let play = move |memory, side| {
        let mut probe = Probe::new(memory, WakePair::create().unwrap(), side);
        blocks.iter().for_each(|(kind, size)| assert!(probe.run(*kind, *size, 9).unwrap() > Duration::ZERO));
    };
    let server = std::thread::spawn(move || play(other, Side::Server));
    play(memory, Side::Client);
    server.join().unwrap();
}

#[test]
fn a_datagram_that_is_too_large_is_told_with_the_largest() {
    for kind in [ProbeKind::Udp, ProbeKind::UdpWake, ProbeKind::UdpMessages] {
        let mut probe = Probe::new(Shared::create(shared::LEN).unwrap(), WakePair::create().unwrap(), Side::Client);
        let error = probe.prepare(kind, 65_508).unwrap_err();
        assert!(error.to_string().contains("at most 65507 bytes, not 65508"), "{kind:?}: {error}");
    }
}

#[test]
fn the_sum_looks_at_every_byte() {
    let mut bytes = vec![0_u8; 77];
    for at in 0..bytes.len() {
        bytes[at] = 1;
        assert_ne!(sum(&bytes), 0, "byte {at}");
        bytes[at] = 0;
    }
}
