//! Connects, keys, sessions and disconnects.

use crate::world::{KEY, NIC, TRANSPORTS, close, connect, device, end, post, refused, side, two, until, zeroes};
use cci_conformance::{LIMIT, sm_device};
use cci_mx::{Address, Code, Error, Options, Place, endpoint_options};
use cci_peers::{Directory, Found, Name, Table};
use std::time::{Duration, Instant};

fn ends() -> [cci::Endpoint; 2] {
    [(); 2].map(|()| cci::Endpoint::open(&sm_device(), &endpoint_options()).expect("an endpoint"))
}

#[test]
fn another_key_is_refused_and_the_right_one_connects() {
    for transport in TRANSPORTS {
        let sides = two(transport);
        let wrong = sides[0].start_connect((NIC, 1), KEY + 1, 3, 4).expect("room");
        let status = end(&sides, 0, wrong);
        assert_eq!((status.code, status.bits, status.context), (Code::BadKey, 3, 4), "{transport}");
        connect(&sides, 0, 1);
        connect(&sides, 1, 0);
        let own = sides[0].start_connect((NIC, 0), KEY + 1, 0, 0).expect("room");
        assert_eq!(end(&sides, 0, own).code, Code::BadKey);
        close(sides);
    }
}

#[test]
fn a_connect_waits_for_an_endpoint_that_comes_later() {
    let [first, second] = ends();
    let mut table = Table::new();
    table.insert(Name::Number(NIC << 32), first.uri());
    table.insert(Name::Number(NIC << 32 | 1), second.uri());
    let mut sides = vec![side(first, 0, &table, &Options::new())];
    let asked = sides[0].start_connect((NIC, 1), KEY, 0, 0).expect("room");
    for _ in 0..100 {
        assert_eq!(sides[0].test(asked), Ok(None));
    }
    sides.push(side(second, 1, &table, &Options::new()));
    assert_eq!(end(&sides, 0, asked).source, sides[1].address());
}

/// An endpoint that is there and slow is not taken for one that nobody has.
#[test]
fn a_connect_that_is_refused_ends_soon_where_that_is_asked_for() {
    let [first, second] = ends();
    let mut table = Table::new();
    table.insert(Name::Number(NIC << 32), first.uri());
    table.insert(Name::Number(NIC << 32 | 1), second.uri());
    let side = side(first, 0, &table, &Options::new().absent_limit(Duration::from_millis(50)));
    let slow = side.connect((NIC, 1), KEY, Some(Duration::from_millis(400)));
    assert_eq!(refused(slow), Error::Timeout, "it is there");
    second.close().expect("a close");
    let begun = Instant::now();
    let asked = side.start_connect((NIC, 1), KEY, 0, 0).expect("room");
    let status = side.wait(asked, Some(LIMIT)).expect("a request").expect("an end");
    assert_eq!(status.code, Code::EndpointUnreachable);
    let waited = begun.elapsed();
    assert!((Duration::from_millis(50)..LIMIT / 3).contains(&waited), "{waited:?}");
}

#[test]
fn a_connect_to_nobody_ends_by_its_time() {
    let [first, _] = ends();
    let sides = [side(first, 0, &Table::new(), &Options::new())];
    assert_eq!(refused(sides[0].connect((NIC, 1), KEY, Some(Duration::from_millis(30)))), Error::Timeout);
    // Sends too, and receives.
    let nobody = Address::new(NIC, 1, 5);
    let requests = [
        sides[0].send(zeroes(8), nobody, 0, 0).expect("room"),
        sides[0].send_sync(zeroes(100_000), nobody, 0, 0).expect("room"),
        sides[0].receive(zeroes(8), cci_mx::Match::ANY, 0).expect("room"),
    ];
    for request in requests {
        sides[0].set_timeout(request, Duration::from_millis(1)).expect("a request");
    }
    for request in requests {
        assert_eq!(sides[0].wait(request, None).expect("a request").map(|status| status.code), Some(Code::Timeout));
    }
    assert_eq!(sides[0].pending(), (0, 0));
}

#[test]
fn a_name_that_the_directory_does_not_know_is_unknown() {
    struct Nobody;
    impl Directory for Nobody {
        fn find(&mut self, _: &Name) -> Found {
            Found::Unknown
        }
    }
    let [first, _] = ends();
    let place = Place::of(first, NIC, 0, Box::new(Nobody));
    let sides = [cci_mx::Endpoint::open(place, KEY, &Options::new()).expect("an endpoint")];
    assert_eq!(refused(sides[0].connect((NIC, 1), KEY, None)), Error::NicNotFound);
    let send = sides[0].send(zeroes(8), Address::new(NIC, 1, 0), 0, 0).expect("room");
    assert_eq!(end(&sides, 0, send).code, Code::EndpointUnknown);
}

/// An address is of one session: who comes back by the same name is another endpoint.
#[test]
fn an_endpoint_that_has_come_back_is_another_session() {
    let device = sm_device();
    let [first, second] = ends();
    let mut table = Table::new();
    table.insert(Name::Number(NIC << 32), first.uri());
    let mut sides = vec![side(first, 0, &Table::new(), &Options::new()), side(second, 1, &table, &Options::new())];
    connect(&sides, 1, 0);
    let old = sides[1].address();
    assert_eq!(
        sides[0].start_connect((NIC, 0), KEY, 0, 0).map(|own| end(&sides, 0, own).source),
        Ok(sides[0].address())
    );
    drop(sides.pop());
    let again = cci::Endpoint::open(&device, &endpoint_options()).expect("an endpoint");
    sides.push(side(again, 1, &table, &Options::new()));
    connect(&sides, 1, 0);
    let new = sides[1].address();
    assert_ne!(old.session(), new.session());
    for size in [8, 100_000] {
        let send = sides[0].send(zeroes(size), old, 0, 0).expect("room");
        assert_eq!(end(&sides, 0, send).code, Code::BadSession);
        let (receive, _) = post(&sides[1], size, 0);
        let send = sides[0].send(zeroes(size), new, 0, 0).expect("room");
        assert_eq!((end(&sides, 1, receive).code, end(&sides, 0, send).code), (Code::Success, Code::Success));
    }
    // The same of one's own address.
    let own = Address::new(NIC, 0, sides[0].address().session().wrapping_add(1));
    let send = sides[0].send(zeroes(1), own, 0, 0).expect("room");
    assert_eq!(end(&sides, 0, send).code, Code::BadSession);
}

#[test]
fn a_disconnect_ends_what_is_under_way_and_a_later_send_connects_again() {
    for transport in ["sm", "sim", "tcp"] {
        let sides = two(transport);
        let to = connect(&sides, 0, 1);
        let kept = sides[0].send(zeroes(8), to, 1, 0).expect("room");
        let offered = sides[0].send(zeroes(100_000), to, 2, 0).expect("room");
        let sync = sides[0].send_sync(zeroes(8), to, 3, 0).expect("room");
        until(&sides, "messages", || (sides[1].pending().1 == 3).then_some(()));
        sides[0].disconnect(to).expect("usable");
        assert_eq!(end(&sides, 0, kept).code, Code::Success);
        assert_eq!(end(&sides, 0, offered).code, Code::EndpointClosed);
        assert_eq!(end(&sides, 0, sync).code, Code::EndpointClosed);
        // What has come stays; what was only offered is gone.
        until(&sides, "the end", || (sides[1].pending().1 == 2).then_some(()));
        for bits in [1, 3] {
            let (receive, _) = post(&sides[1], 8, bits);
            assert_eq!(end(&sides, 1, receive).code, Code::Success);
        }
        let send = sides[0].send_sync(zeroes(100_000), to, 4, 0).expect("room");
        let (receive, _) = post(&sides[1], 100_000, 4);
        assert_eq!((end(&sides, 1, receive).code, end(&sides, 0, send).code), (Code::Success, Code::Success));
        close(sides);
    }
}

#[test]
fn endpoints_are_opened_by_rule_and_an_id_is_taken_once() {
    for transport in ["sm", "tcp"] {
        let device = device(transport);
        let place = Place::by_rule(&device, None).expect("a free id");
        let (nic, id) = (place.nic(), place.id());
        assert_eq!(Place::by_rule(&device, Some(id)).expect_err("taken").code(), Error::Busy);
        assert_eq!(Place::by_rule(&device, Some(2_048)).expect_err("too large").code(), Error::BadEndpointId);
        let other = Place::by_rule(&device, None).expect("a free id");
        let open = |place| cci_mx::Endpoint::open(place, KEY, &Options::new()).expect("an endpoint");
        let sides = [open(place), open(other)];
        assert_eq!(nic, 0x7f00_0001);
        let asked = sides[1].start_connect((nic, id), KEY, 0, 0).expect("room");
        assert_eq!(end(&sides, 1, asked).source, sides[0].address());
    }
}
