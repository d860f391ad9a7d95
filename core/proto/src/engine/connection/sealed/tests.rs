use super::*;

const LIMIT: u32 = 8;

fn conns() -> SealedConns {
    let mut conns = SealedConns::default();
    assert!(conns.begin(3));
    conns
}

/// A frame of the present phase comes; whether it is used.
fn comes(conns: &mut SealedConns, number: u64) -> Seen {
    let (seen, phase) = conns.examine(3, number, false);
    assert_eq!(phase, Phase::Present);
    if seen != Seen::Before {
        conns.note(Time(0), 3, number, phase);
    }
    seen
}

#[test]
fn numbers_in_order_need_no_window() {
    let mut conns = conns();
    for number in 1_000_000..1_010_000 {
        assert_eq!(comes(&mut conns, number), Seen::New);
        assert_eq!(comes(&mut conns, number), Seen::Before);
    }
    assert_eq!(conns.windows(), 0);
}

#[test]
fn each_number_of_the_window_comes_once_in_any_order() {
    let mut conns = conns();
    // By threes: 0, 3, 6, ... leave gaps that are filled later.
    for round in [0, 2, 1] {
        for third in 0..300 {
            let number = 7 + 3 * third + round;
            assert_eq!(comes(&mut conns, number), Seen::New, "{number}");
            assert_eq!(comes(&mut conns, number), Seen::Before, "{number}");
        }
    }
    assert_eq!(conns.windows(), 1);
    comes(&mut conns, 5000);
    for number in 7..5000 - NUMBERS {
        assert_eq!(conns.examine(3, number, false).0, Seen::Unknown, "{number}");
    }
    for number in 5001 - NUMBERS..5000 {
        assert_eq!(conns.examine(3, number, false).0, Seen::New, "{number}");
    }
    comes(&mut conns, u64::MAX - 1);
    assert_eq!(comes(&mut conns, u64::MAX - 2), Seen::New);
    conns.forget(3);
    assert_eq!(conns.windows(), 0);
}

#[test]
fn a_connection_that_lost_its_window_takes_newer_numbers_only() {
    let mut conns = conns();
    assert!(conns.begin(4));
    comes(&mut conns, 1);
    comes(&mut conns, 3);
    let later = Time(10_000_000_000);
    conns.note(later, 4, 1, Phase::Present);
    conns.note(later, 4, 3, Phase::Present);
    assert_eq!(conns.windows(), 1, "one is idle");
    assert_eq!(comes(&mut conns, 2), Seen::Unknown);
    assert_eq!(comes(&mut conns, 4), Seen::New);
}

#[test]
fn a_new_key_needs_an_acknowledgement_of_the_present_one() {
    let mut conn = SealedConn::NEW;
    let mut low = u32::MAX - 3;
    let mut step = |conn: &mut SealedConn| {
        low = low.wrapping_add(1);
        (low, conn.next(Time(0), low, LIMIT))
    };
    let (first, next) = step(&mut conn);
    assert_eq!(next.map(|next| (next.number, next.phase)), Some((first.into(), false)));
    conn.on_ack(first.wrapping_sub(1));
    for _ in 1..LIMIT {
        let (_, next) = step(&mut conn);
        assert!(next.is_some_and(|next| !next.is_new_phase && !next.asks));
    }
    assert!(step(&mut conn).1.is_some_and(|next| !next.is_new_phase && next.asks && next.number > 1 << 32));
    conn.on_ack(first);
    assert!(step(&mut conn).1.is_some_and(|next| next.is_new_phase && next.phase));
    // An acknowledgement of a frame of the phase before does not count.
    conn.on_ack(first);
    for _ in 1..2 * LIMIT {
        assert!(step(&mut conn).1.is_some_and(|next| !next.is_new_phase));
    }
    assert!(step(&mut conn).1.is_none(), "nothing more under this key");
}

#[test]
fn a_key_lives_for_ten_minutes() {
    let mut conn = SealedConn::NEW;
    let next = |conn: &mut SealedConn, second: u64, low| conn.next(Time(second * 1_000_000_000), low, 1 << 22);
    assert!(next(&mut conn, 100, 1).is_some());
    conn.on_ack(1);
    assert!(next(&mut conn, 690, 2).is_some_and(|next| !next.is_new_phase));
    assert!(next(&mut conn, 710, 3).is_some_and(|next| next.is_new_phase));
}

#[test]
fn late_frames_of_the_previous_phase_are_opened_for_a_while() {
    let mut conns = conns();
    comes(&mut conns, 10);
    conns.note(Time(0), 3, 20, Phase::Next);
    assert_eq!(conns.examine(3, 15, false), (Seen::New, Phase::Previous));
    assert_eq!(conns.examine(3, 21, false), (Seen::New, Phase::Next), "the phase after it");
    assert_eq!(conns.examine(3, 19, true), (Seen::New, Phase::Present));
    assert_eq!(conns.examine(3, 20, true).0, Seen::Before);
    let conn = conns.get_mut(3).expect("begun");
    assert!(!conn.take_previous(Time(3_000_000_000)));
    assert!(conn.take_previous(Time(4_000_000_000)));
    assert_eq!(conns.examine(3, 15, false).0, Seen::Before);
}
