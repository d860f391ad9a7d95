//! The store, driven step by step.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A store whose ranks have all joined.
fn store(size: u32) -> Store {
    let mut store = Store::new(size);
    (0..size).for_each(|rank| store.join(rank).expect("a rank that comes once"));
    store
}

fn exchange(store: &mut Store, now: Duration, rank: u32) {
    let value = vec![u8::try_from(rank).expect("small")];
    store.handle_request(now, rank, Request::Exchange { limit: SECOND, value }).expect("a right request");
}

fn look_up(store: &mut Store, from: u32, rank: u32) -> Result<(), Malformed> {
    store.handle_request(Duration::ZERO, from, Request::LookUp { limit: SECOND, rank, key: b"k".to_vec() })
}

fn publish(store: &mut Store, rank: u32, value: &[u8]) {
    let request = Request::Publish { key: b"k".to_vec(), value: value.to_vec() };
    store.handle_request(Duration::ZERO, rank, request).expect("a right request");
}

/// All answers so far, in the order of ranks.
fn answers(store: &mut Store) -> Vec<(u32, Reply)> {
    let mut answers = Vec::new();
    while let Some((rank, frame)) = store.poll_reply() {
        answers.push((rank, Reply::parse(&frame[4..]).expect("a right frame")));
    }
    answers.sort_by_key(|(rank, _)| *rank);
    answers
}

fn refused(why: Refusal, ranks: &[u32]) -> Reply {
    Reply::Refused(why, ranks.to_vec())
}

#[test]
fn an_exchange_ends_for_all_once_all_have_come() {
    let mut store = store(3);
    exchange(&mut store, Duration::ZERO, 2);
    exchange(&mut store, Duration::ZERO, 0);
    assert_eq!(answers(&mut store), [], "rank 1 is missing");
    exchange(&mut store, Duration::ZERO, 1);
    let values = Reply::Values(vec![vec![0], vec![1], vec![2]]);
    assert_eq!(answers(&mut store), [(0, values.clone()), (1, values.clone()), (2, values)]);
    assert_eq!(store.poll_timeout(), None);
}

#[test]
fn a_limit_names_who_is_missing_and_fails_the_exchange_for_all() {
    let mut store = store(4);
    exchange(&mut store, Duration::ZERO, 0);
    exchange(&mut store, SECOND / 2, 2);
    assert_eq!(store.poll_timeout(), Some(SECOND));
    store.handle_timeout(SECOND - Duration::from_nanos(1));
    assert_eq!(answers(&mut store), [], "not before the limit");
    store.handle_timeout(SECOND);
    let missing = [1, 3];
    let ends = [(0, refused(Refusal::TimedOut, &missing)), (2, refused(Refusal::GivenUp, &missing))];
    assert_eq!(answers(&mut store), ends);
    exchange(&mut store, SECOND, 1);
    exchange(&mut store, SECOND, 3);
    let late = [(1, refused(Refusal::GivenUp, &missing)), (3, refused(Refusal::GivenUp, &missing))];
    assert_eq!(answers(&mut store), late, "who comes later is told at once");
    (0..4).for_each(|rank| exchange(&mut store, SECOND, rank));
    assert!(answers(&mut store).iter().all(|(_, reply)| matches!(reply, Reply::Values(_))), "the next one works");
}

#[test]
fn a_rank_that_has_gone_fails_what_waits_for_it_and_what_would() {
    let mut store = store(3);
    exchange(&mut store, Duration::ZERO, 0);
    look_up(&mut store, 1, 2).expect("a right request");
    store.handle_gone(2);
    let gone = refused(Refusal::Gone, &[2]);
    assert_eq!(answers(&mut store), [(0, gone.clone()), (1, gone.clone())]);
    exchange(&mut store, Duration::ZERO, 1);
    exchange(&mut store, Duration::ZERO, 0);
    assert_eq!(answers(&mut store), [(0, gone.clone()), (1, gone)]);
    assert_eq!(store.join(2), Err(Malformed("this rank has come before")));
}

#[test]
fn who_has_given_its_value_may_be_gone_when_the_others_come() {
    let mut store = store(2);
    exchange(&mut store, Duration::ZERO, 0);
    store.handle_gone(0);
    exchange(&mut store, Duration::ZERO, 1);
    assert_eq!(answers(&mut store), [(1, Reply::Values(vec![vec![0], vec![1]]))]);
}

#[test]
fn a_value_is_found_before_and_after_it_is_published_and_when_its_rank_has_gone() {
    let mut store = store(2);
    look_up(&mut store, 0, 1).expect("a right request");
    assert_eq!(answers(&mut store), []);
    publish(&mut store, 1, b"v");
    let value = Reply::Value(b"v".to_vec());
    assert_eq!(answers(&mut store), [(0, value.clone()), (1, Reply::Done)]);
    publish(&mut store, 1, b"w");
    assert_eq!(answers(&mut store), [(1, refused(Refusal::Published, &[]))]);
    store.handle_gone(1);
    look_up(&mut store, 0, 1).expect("a right request");
    assert_eq!(answers(&mut store), [(0, value)]);
}

#[test]
fn a_look_up_has_a_limit_and_names_its_rank() {
    let mut store = store(2);
    look_up(&mut store, 0, 1).expect("a right request");
    assert_eq!(look_up(&mut store, 0, 1), Err(Malformed("a second request while the first one waits")));
    store.handle_timeout(SECOND);
    assert_eq!(answers(&mut store), [(0, refused(Refusal::TimedOut, &[1]))]);
    assert_eq!(look_up(&mut store, 0, 2), Err(Malformed("a look-up beyond the size of the job")));
}

#[test]
fn what_a_rank_publishes_is_bounded() {
    let mut store = store(1);
    let publish = |store: &mut Store, number: u32| {
        let request = Request::Publish { key: number.to_le_bytes().to_vec(), value: vec![0; 65_536] };
        store.handle_request(Duration::ZERO, 0, request).expect("a right request");
        answers(store).remove(0).1
    };
    // 256 values with their keys are more than 16 MiB.
    assert!((0..255).all(|number| publish(&mut store, number) == Reply::Done));
    assert_eq!(publish(&mut store, 255), refused(Refusal::Full, &[]));
}

#[test]
fn a_rank_that_repeats_failed_exchanges_fills_no_memory() {
    let mut store = store(3);
    store.handle_gone(2);
    for _ in 0..1024 {
        exchange(&mut store, Duration::ZERO, 0);
    }
    let more = store.handle_request(Duration::ZERO, 0, Request::Exchange { limit: SECOND, value: vec![] });
    assert_eq!(more, Err(Malformed("1024 exchanges ahead of another rank")));
    store.handle_gone(1);
    assert_eq!(store.exchanges.len(), 0, "nobody is left who would come");
}

/// What each call of a random job must end with, computed from the order of calls alone.
#[test]
fn random_jobs_agree_with_a_count_of_who_has_come() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let size = random.u32(2..6);
        let mut store = store(size);
        let (mut came, mut is_open, mut ended) = (vec![0; size as usize], vec![false; size as usize], 0);
        for _ in 0..200 {
            let rank = random.u32(..size) as usize;
            if is_open[rank] {
                continue;
            }
            exchange(&mut store, Duration::ZERO, u32::try_from(rank).expect("small"));
            (came[rank], is_open[rank]) = (came[rank] + 1, true);
            let answers = answers(&mut store);
            if came.iter().all(|count| *count > ended) {
                ended += 1;
                assert_eq!(answers.len(), size as usize, "seed {seed}");
                assert!(answers.iter().all(|(_, reply)| matches!(reply, Reply::Values(_))), "seed {seed}");
                is_open.fill(false);
            } else {
                assert_eq!(answers, [], "seed {seed}");
            }
        }
        assert!(ended > 10, "seed {seed}: {ended}");
    }
}
