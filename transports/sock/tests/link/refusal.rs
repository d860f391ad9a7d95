//! What the network says about frames that do not arrive.

use crate::ends::{self, Got, frame, open, take};
use crate::sys::no_children;
use cci_reliable::{Link, Wait};

#[test]
fn a_refusal_quotes_our_frame() {
    let _guard = no_children();
    for ip in ends::homes() {
        let mut a = open(ip, &[]);
        let nobody = a.resolve(open(ip, &[]).uri()).expect("a URI");
        let bytes: Vec<u8> = (0..200).collect();
        assert_eq!(a.send_burst(&[frame(nobody, &bytes)]), 1);
        let got = take(&mut a, 1);
        let Got::Refused { to, quoted, is_own } = &got[0] else { panic!("{got:?}") };
        assert_eq!((*to, &quoted[..64]), (nobody, &bytes[..64]));
        assert!(is_own, "{ip} is an address of this host");
        assert_eq!(a.counters().tx_lost, 0);
    }
}

#[test]
fn the_refusal_of_one_is_not_charged_to_another() {
    let _guard = no_children();
    for ip in ends::homes() {
        let (mut a, mut b) = (open(ip, &[]), open(ip, &[]));
        let nobody = a.resolve(open(ip, &[]).uri()).expect("a URI");
        let to = a.resolve(b.uri()).expect("a URI");
        for round in 0..20_u8 {
            assert_eq!(a.send_burst(&[frame(nobody, &[round]), frame(nobody, &[round, 1]), frame(to, &[round])]), 3);
            assert_eq!(take(&mut b, 1).remove(0).bytes(), [round]);
        }
        assert_eq!((a.counters().tx_lost, a.counters().tx_frames), (0, 60));
        let got = take(&mut a, 20);
        assert!(got.iter().all(|got| matches!(got, Got::Refused { to, .. } if *to == nobody)), "{got:?}");
        // Frames come through as well while refusals are pending.
        let from = b.resolve(a.uri()).expect("a URI");
        assert_eq!(a.send_burst(&[frame(nobody, b"x")]), 1);
        assert_eq!(b.send_burst(&[frame(from, b"through")]), 1);
        while !take(&mut a, 1).iter().any(|got| matches!(got, Got::Frame { bytes, .. } if bytes == b"through")) {}
    }
}

#[test]
fn a_refusal_makes_the_handle_readable_until_it_is_shown() {
    let _guard = no_children();
    let mut a = open("127.0.0.1", &[]);
    let nobody = a.resolve(open("127.0.0.1", &[]).uri()).expect("a URI");
    assert!(!ends::wait(&a, 0));
    assert_eq!(a.send_burst(&[frame(nobody, b"hello")]), 1);
    assert!(ends::wait(&a, 10));
    assert!(!a.arm(None, false), "something has arrived");
    a.disarm();
    assert!(matches!(take(&mut a, 1)[0], Got::Refused { .. }));
    assert!(a.arm(None, false));
    assert!(!ends::wait(&a, 0));
    a.disarm();
}

#[test]
fn many_refusals_do_not_pile_up() {
    let _guard = no_children();
    let mut a = open("127.0.0.1", &[]);
    let nobody = a.resolve(open("127.0.0.1", &[]).uri()).expect("a URI");
    for number in 0..200_u8 {
        assert_eq!(a.send_burst(&[frame(nobody, &[number, 1, 2])]), 1);
    }
    let mut shown = 0;
    while !a.arm(None, false) {
        shown += a.recv_burst(64, &mut |incoming| assert!(matches!(Got::from(incoming), Got::Refused { .. })));
        a.disarm();
    }
    a.disarm();
    assert!((16..=200).contains(&shown), "{shown}");
}
