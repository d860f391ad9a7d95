//! Frames of the rendezvous, and what a listener answers.

use super::*;

#[test]
fn what_is_emitted_is_parsed() {
    let attributes = ViAttributes { max_transfer: 70_000, ..ViAttributes::default() };
    let accept = Answer::Accept(Accept { ticket: 7, attributes, uri: "scheme://host".to_owned() }).emit();
    let Some(Answer::Accept(accept)) = Answer::parse(&accept) else { panic!("an invitation") };
    assert_eq!((accept.ticket, accept.attributes, accept.uri.as_str()), (7, attributes, "scheme://host"));
}

/// The question of a client with this address of its own, for the discriminator `server`.
fn ask(host: &str, own: &[u8]) -> Vec<u8> {
    let own = Address::new(host.parse::<IpAddr>().expect("an address"), own);
    ask_frame(&Address::new(IpAddr::from([127, 0, 0, 1]), b"server"), &own, &ViAttributes::default(), false)
}

#[test]
fn a_client_has_an_address_for_which_programs_have_room() {
    assert!(parse_ask(&ask("::1", &[b'a'; MAX_DISCRIMINATOR])).is_some());
    for wrong in [0, MAX_DISCRIMINATOR + 1, 255] {
        assert!(parse_ask(&ask("::1", &vec![b'a'; wrong])).is_none(), "{wrong} bytes");
    }
}

/// The first question that comes to a listener.
fn next_question(listener: &mut Listener) -> Asking {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < cci_conformance::LIMIT, "no question");
        if let Some(asking) = listener.poll() {
            return asking;
        }
    }
}

#[test]
fn a_client_has_a_host_of_the_family_of_the_nic() {
    let mut listener = Listener::bind(IpAddr::from([127, 0, 0, 1]), b"server").expect("a port");
    let mut client = TcpStream::connect(listener.socket.local_addr().expect("bound")).expect("a connection");
    write_frame(&mut client, &ask("2001:db8::7", b"client")).expect("sent");
    let asking = next_question(&mut listener);
    assert_eq!(asking.address(), &Address::new(IpAddr::from([127, 0, 0, 1]), b"client"));
}

/// Its end behind that would not be seen.
#[test]
fn a_client_that_says_more_than_its_question_is_gone() {
    let mut listener = Listener::bind(IpAddr::from([127, 0, 0, 1]), b"server").expect("a port");
    let mut client = TcpStream::connect(listener.socket.local_addr().expect("bound")).expect("a connection");
    write_frame(&mut client, &ask("::1", b"client")).expect("sent");
    let asking = next_question(&mut listener);
    assert!(!asking.is_gone());
    write_frame(&mut client, b"x").expect("sent");
    let begun = Instant::now();
    while !asking.is_gone() {
        assert!(begun.elapsed() < cci_conformance::LIMIT, "not gone");
        std::thread::yield_now();
    }
}

/// What a listener answers to a frame; none: it closes the stream without a word.
fn answer_to(discriminator: &[u8], frame: &[u8]) -> Option<Vec<u8>> {
    let mut listener = Listener::bind(IpAddr::from([127, 0, 0, 1]), discriminator).expect("a port");
    let mut client = TcpStream::connect(listener.socket.local_addr().expect("bound")).expect("a connection");
    write_frame(&mut client, frame).expect("sent");
    client.set_nonblocking(true).expect("a socket");
    let (begun, mut buffer) = (Instant::now(), Vec::new());
    loop {
        assert!(begun.elapsed() < cci_conformance::LIMIT, "no answer");
        assert!(listener.poll().is_none());
        match read_frame(&mut client, &mut buffer) {
            Ok(None) => {}
            answer => return answer.ok().flatten(),
        }
    }
}

/// An older client closes its stream early, and would seem gone.
#[test]
fn a_client_of_another_version_is_told_to_look_elsewhere() {
    for version in [1, 2, 4] {
        let mut frame = ask("::1", b"client");
        frame[FAMILY.len()] = version;
        let answer = answer_to(b"server", &frame).and_then(|answer| Answer::parse(&answer));
        assert!(matches!(answer, Some(Answer::Other)), "version {version}");
    }
    assert_eq!(answer_to(b"versions", b"GET / HTTP/1.0"), None);
}

#[test]
fn ports_stay_in_their_range() {
    for number in 0..1_000_u32 {
        assert!(ports(&number.to_le_bytes()).into_iter().all(|port| (16_384..32_768).contains(&port)));
    }
}

/// With a secret as without one: what crosses here is in clear.
#[test]
fn a_nic_listens_on_the_loop_back_interface_unless_its_device_is_open_to_the_network() {
    for (listen, may_be_open) in [("local", false), ("network", true)] {
        let device = cci_conformance::sealed_device_of("sock", &[("listen", listen)]);
        let nic = crate::Nic::open(&device).expect("a NIC");
        let listener = nic.0.listener(&Address::new(nic.host(), b"where it listens")).expect("a port");
        let on = listener.socket.local_addr().expect("bound").ip();
        // A host without a network has nothing else.
        assert_eq!(on.is_loopback(), !may_be_open || nic.host().is_loopback(), "{listen}: {on}");
    }
}
