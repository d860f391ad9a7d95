//! Random programs on each structure and on a plain list, which must agree after every step.

use cci_matching::{Envelope, Offer, Ordered, Pattern, Posted, Ticket, Unexpected};
use fastrand::Rng;

const PROGRAMS: u64 = 300;
const STEPS: usize = 400;

fn message(random: &mut Rng) -> Envelope {
    Envelope { source: random.u64(0..3) << 32 | random.u64(0..2), bits: random.u64(0..4) }
}

/// A full pattern, or one with wildcards of some kinds.
fn pattern(random: &mut Rng, kinds: usize) -> Pattern {
    let kind = [(!0, !0), (0, !0), (!0, 0), (0, 0), (!0 << 32, !0), (!0, 1), (0, 2), (0xffff_ffff, 3), (1, 1)];
    let (source_mask, mask) = kind[random.usize(0..kinds.min(kind.len()))];
    let wanted = message(random);
    Pattern::new(wanted.source, source_mask, wanted.bits, mask)
}

/// A random number below a bound, mostly small, so that queues grow and shrink.
fn programs(run: impl Fn(&mut Rng, usize)) {
    for seed in 0..PROGRAMS {
        let mut random = Rng::with_seed(seed);
        let kinds = random.usize(1..=9);
        run(&mut random, kinds);
    }
}

#[test]
fn a_message_goes_to_the_oldest_posted_receive_that_matches() {
    programs(|random, kinds| {
        let (mut posted, mut list) = (Posted::new(), Vec::<(Pattern, usize, Ticket)>::new());
        let grows = random.u8(2..8);
        for step in 0..STEPS {
            match random.u8(0..10) {
                chance if chance < grows => {
                    let pattern = pattern(random, kinds);
                    list.push((pattern, step, posted.post(pattern, step).unwrap()));
                }
                9 if !list.is_empty() => {
                    let (_, item, ticket) = list.remove(random.usize(0..list.len()));
                    assert_eq!([posted.cancel(ticket), posted.cancel(ticket)], [Some(item), None]);
                }
                _ => {
                    let message = message(random);
                    let at = list.iter().position(|(pattern, ..)| pattern.matches(&message));
                    let expected = at.map(|at| list.remove(at));
                    assert_eq!(posted.take(&message), expected.map(|(_, item, _)| item));
                    assert!(expected.is_none_or(|(.., ticket)| posted.cancel(ticket).is_none()));
                }
            }
            assert_eq!((posted.len(), posted.is_empty()), (list.len(), list.is_empty()));
        }
    });
}

#[test]
fn a_receive_gets_the_oldest_unexpected_message_that_it_matches() {
    programs(|random, kinds| {
        let (mut queue, mut list) = (Unexpected::new(), Vec::<(Envelope, usize, Ticket)>::new());
        let grows = random.u8(2..9);
        for step in 0..STEPS {
            match random.u8(0..10) {
                chance if chance < grows => {
                    let message = message(random);
                    list.push((message, step, queue.insert(message, step).unwrap()));
                }
                9 if !list.is_empty() => {
                    let (message, item, ticket) = list.remove(random.usize(0..list.len()));
                    assert_eq!([queue.remove(ticket), queue.remove(ticket)], [Some((message, item)), None]);
                }
                _ => {
                    let pattern = pattern(random, kinds);
                    let at = list.iter().position(|(message, ..)| pattern.matches(message));
                    let expected = at.map(|at| list[at]).map(|(message, item, _)| (message, item));
                    assert_eq!(queue.peek(&pattern).map(|(message, item)| (*message, *item)), expected);
                    if random.bool() {
                        assert_eq!(queue.take(&pattern), expected);
                        at.map(|at| list.remove(at));
                    }
                }
            }
            assert_eq!((queue.len(), queue.is_empty()), (list.len(), list.is_empty()));
        }
        let left = queue.iter().map(|(ticket, message, item)| (*message, *item, ticket));
        assert!(left.eq(list), "in the order of arrival");
    });
}

#[test]
fn a_message_goes_to_the_first_entry_of_a_list_that_accepts_it() {
    programs(|random, kinds| {
        let (mut ordered, mut list) = (Ordered::new(), Vec::<(Pattern, usize, Ticket)>::new());
        for step in 0..STEPS {
            let place = random.usize(0..=list.len());
            match random.u8(0..8) {
                0 => {
                    let pattern = pattern(random, kinds);
                    list.insert(0, (pattern, step, ordered.push_front(pattern, step).unwrap()));
                }
                1 => {
                    let pattern = pattern(random, kinds);
                    list.push((pattern, step, ordered.push_back(pattern, step).unwrap()));
                }
                2 if place < list.len() => {
                    let pattern = pattern(random, kinds);
                    let ticket = ordered.insert_before(list[place].2, pattern, step).unwrap().expect("it is there");
                    list.insert(place, (pattern, step, ticket));
                }
                3 | 4 if place < list.len() => {
                    let pattern = pattern(random, kinds);
                    let ticket = ordered.insert_after(list[place].2, pattern, step).unwrap().expect("it is there");
                    list.insert(place + 1, (pattern, step, ticket));
                }
                5 if place < list.len() => {
                    let (_, item, ticket) = list.remove(place);
                    assert_eq!([ordered.remove(ticket), ordered.remove(ticket)], [Some(item), None]);
                    let gone = ordered.insert_after(ticket, Pattern::any(), step).unwrap();
                    assert_eq!((gone, ordered.get(ticket)), (None, None));
                }
                _ => {
                    let (message, refused) = (message(random), random.usize(1..4));
                    let matching = list.iter().filter(|(pattern, ..)| pattern.matches(&message));
                    let expected: Vec<_> = matching.map(|(_, item, _)| *item).collect();
                    let accepted = expected.iter().position(|item| item % refused == 0);
                    let mut asked = Vec::new();
                    let found = ordered.find(&message, |item| {
                        asked.push(*item);
                        *item % refused == 0
                    });
                    assert_eq!(found.and_then(|found| ordered.get(found)), accepted.map(|at| &expected[at]));
                    assert_eq!(asked, expected[..accepted.map_or(expected.len(), |at| at + 1)]);
                }
            }
            assert_eq!((ordered.len(), ordered.is_empty()), (list.len(), list.is_empty()));
        }
        assert!(ordered.iter().map(|(ticket, pattern, item)| (pattern, *item, ticket)).eq(list));
    });
}

/// Entries by their own numbers: what they offer is drawn anew now and then, and lowered by one
/// that refuses.
#[test]
fn entries_that_offer_less_than_is_needed_are_passed_over() {
    programs(|random, kinds| {
        let (mut ordered, mut list) = (Ordered::new(), Vec::<(Pattern, usize, Ticket, Offer)>::new());
        let offer = |random: &mut Rng| Offer { rights: random.u32(0..4), room: random.u32(0..4) };
        for step in 0..STEPS {
            let place = random.usize(0..=list.len());
            match random.u8(0..8) {
                0 | 1 => {
                    let (pattern, offer) = (pattern(random, kinds), offer(random));
                    let ticket = match list.get(place) {
                        Some(behind) => ordered.insert_before(behind.2, pattern, step).unwrap().expect("it is there"),
                        None => ordered.push_back(pattern, step).unwrap(),
                    };
                    let is_said = random.bool();
                    if is_said {
                        ordered.set_offer(ticket, offer);
                    }
                    list.insert(place, (pattern, step, ticket, if is_said { offer } else { Offer::ALL }));
                }
                2 if place < list.len() => {
                    let (.., ticket, _) = list.remove(place);
                    assert!(ordered.remove(ticket).is_some());
                    ordered.set_offer(ticket, Offer::ALL);
                }
                3 if place < list.len() => {
                    list[place].3 = offer(random);
                    ordered.set_offer(list[place].2, list[place].3);
                }
                _ => {
                    let (message, need, refused) = (message(random), offer(random), random.usize(1..4));
                    let mut expected = Vec::new();
                    let mut accepted = None;
                    for (pattern, item, ticket, offer) in &mut list {
                        if pattern.matches(&message) && offer.covers(need) {
                            expected.push(*item);
                            if *item % refused == 0 {
                                accepted = Some(*ticket);
                                break;
                            }
                            offer.room /= 2;
                        }
                    }
                    let mut asked = Vec::new();
                    let found = ordered.find_offer(&message, need, |item, offer| {
                        asked.push(*item);
                        let is_accepted = *item % refused == 0;
                        offer.room /= if is_accepted { 1 } else { 2 };
                        is_accepted
                    });
                    assert_eq!((found, asked), (accepted, expected));
                }
            }
        }
    });
}

#[test]
fn a_list_that_grows_at_one_place_keeps_its_order() {
    type Grow = fn(&mut Ordered<usize>, Ticket, usize) -> Ticket;
    let ways: [(&str, Grow, bool); 4] = [
        ("in front", |list, _, item| list.push_front(Pattern::any(), item).unwrap(), true),
        (
            "behind the first",
            |list, first, item| {
                list.insert_after(first, Pattern::exact(0, item as u64), item).unwrap().unwrap();
                first
            },
            true,
        ),
        (
            "before the last",
            |list, last, item| {
                list.insert_before(last, Pattern::exact(0, 1), item).unwrap().unwrap();
                last
            },
            false,
        ),
        (
            "behind the newest",
            |list, newest, item| list.insert_after(newest, Pattern::any(), item).unwrap().unwrap(),
            false,
        ),
    ];
    for (place, grow, is_reversed) in ways {
        let mut list = Ordered::new();
        let mut at = list.push_back(Pattern::any(), 0).unwrap();
        for item in 1..20_000 {
            at = grow(&mut list, at, item);
        }
        let mut items: Vec<_> = list.iter().map(|(.., item)| *item).filter(|item| *item > 0).collect();
        if is_reversed {
            items.reverse();
        }
        assert!(items.into_iter().eq(1..20_000), "{place}");
        let mut last = None;
        let every = list.find(&Envelope { source: 0, bits: 1 }, |item| {
            last = Some(*item);
            false
        });
        assert!(every.is_none() && last.is_some(), "{place}");
    }
}
