//! Unexpected messages are bounded, and senders stall until they are received.

use crate::world::{bytes, close, connect, device, end, post, some_with, two_with, until, zeroes};
use cci_mx::{Code, Endpoint, Match, Options, buffer};

/// Makes progress until nothing changes any more.
fn settle(sides: &[Endpoint]) {
    let state = || sides.iter().map(|side| (side.pending(), side.counts())).collect::<Vec<_>>();
    let mut last = state();
    let mut same = 0;
    while same < 200 {
        sides.iter().for_each(|side| side.progress().expect("usable"));
        let now = state();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
}

#[test]
fn a_sender_stalls_when_its_window_is_used_and_goes_on_when_it_is_received() {
    for transport in ["sm", "sim", "tcp"] {
        let sides = two_with(&device(transport), &Options::new().unexpected_max(512 << 10));
        let to = connect(&sides, 0, 1);
        // A granule is 64 bytes: 3 for each of these, of 4,096.
        let sends: Vec<_> = (0..3_000_u32)
            .map(|at| sides[0].send(buffer(at.to_le_bytes().to_vec()), to, 1, 0).expect("room"))
            .collect();
        settle(&sides);
        assert_eq!(sides[1].pending().1, 1_365, "{transport}");
        assert!(sides[0].counts().stalled > 0);
        // Another message overtakes none of them.
        let last = sides[0].send(zeroes(0), to, 2, 0).expect("room");
        settle(&sides);
        assert_eq!((sides[0].test(last), sides[1].pending().1), (Ok(None), 1_365));
        for at in 0..3_000_u32 {
            let (receive, memory) = post(&sides[1], 4, 1);
            assert_eq!(end(&sides, 1, receive).code, Code::Success);
            assert_eq!(bytes(&memory), at.to_le_bytes());
        }
        let (receive, _) = post(&sides[1], 0, 2);
        end(&sides, 1, receive);
        for send in sends.into_iter().chain([last]) {
            assert_eq!(end(&sides, 0, send).code, Code::Success);
        }
        assert_eq!(sides[1].pending(), (0, 0));
        close(sides);
    }
}

/// Two sides that flood each other: both stall, and answers pass all the same.
#[test]
fn two_sides_that_flood_each_other_go_on() {
    let sides = two_with(&device("sm"), &Options::new().unexpected_max(512 << 10));
    let to = [connect(&sides, 1, 0), connect(&sides, 0, 1)];
    for at in 0..4_000 {
        let of = at % 2;
        let request = sides[of].send(zeroes(if at % 7 == 0 { 30_000 } else { 100 }), to[1 - of], 1, 0).expect("room");
        sides[of].forget(request).expect("a request");
    }
    settle(&sides);
    assert!(sides.iter().all(|side| side.counts().stalled > 0 && side.pending().1 < 1_400));
    for _ in 0..2_000 {
        let receives = [0, 1].map(|of| post(&sides[of], 30_000, 1).0);
        for (of, receive) in receives.into_iter().enumerate() {
            assert_eq!(end(&sides, of, receive).code, Code::Success);
        }
    }
    until(&sides, "all sends", || (sides[0].pending().0 + sides[1].pending().0 == 0).then_some(()));
}

/// The bound is that of the endpoint, and not of each link.
#[test]
fn many_senders_share_the_bound() {
    let options = Options::new().unexpected_max(512 << 10);
    let sides = some_with(&device("sm"), 7, &options);
    for from in 1..7 {
        let to = connect(&sides, from, 0);
        for _ in 0..60 {
            let send = sides[from].send(zeroes(8_000), to, 1, 0).expect("room");
            sides[from].forget(send).expect("a request");
        }
    }
    settle(&sides);
    // Windows of 4,096 granules, then always half as many; a message costs 127. The last of 128
    // granules takes no message as long as this, but offers of 3.
    assert_eq!(sides[0].pending().1, 32 + 16 + 8 + 4 + 2 + 42);
    for _ in 0..360 {
        let (receive, _) = post(&sides[0], 8_000, 1);
        assert_eq!(end(&sides, 0, receive).code, Code::Success);
    }
    until(&sides, "all sends", || sides.iter().all(|side| side.pending().0 == 0).then_some(()));
}

/// Who comes again and again leaves messages each time, but no more than twice the bound.
#[test]
fn an_endpoint_whose_windows_are_held_refuses_links() {
    let options = Options::new().unexpected_max(64 << 10);
    let sides = two_with(&device("sm"), &options);
    let to = connect(&sides, 1, 0);
    let mut kept = 0;
    for _ in 0..300 {
        let send = sides[1].send(zeroes(1_000), to, 1, 0).expect("room");
        let ended = until(&sides, "its end", || {
            let ended = sides[1].test(send).expect("a request");
            ended.or_else(|| {
                let full = sides[0].counts().broken > 0;
                full.then(|| sides[1].disconnect(to).expect("usable"));
                None
            })
        });
        if ended.code != Code::Success {
            break;
        }
        kept += 1;
        until(&sides, "the message", || (sides[0].pending().1 == kept).then_some(()));
        sides[1].disconnect(to).expect("usable");
    }
    assert!(kept < 300 && kept * 18 * 64 <= 3 * (64 << 10), "{kept} messages are kept");
    // Room is there again once they are received.
    for _ in 0..kept {
        let (receive, _) = post(&sides[0], 1_000, 1);
        end(&sides, 0, receive);
    }
    let receive = sides[0].receive(zeroes(8), Match::ANY, 0).expect("room");
    let send = sides[1].send(zeroes(8), to, 2, 0).expect("room");
    assert_eq!((end(&sides, 1, send).code, end(&sides, 0, receive).code), (Code::Success, Code::Success));
}
