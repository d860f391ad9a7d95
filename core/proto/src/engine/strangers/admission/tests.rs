use super::*;
use crate::engine::random::Random;
use alloc::vec::Vec;
use proptest::prelude::*;

/// What is known, without any structure: key, network, when it was answered, in the order of the
/// answers.
#[derive(Default)]
struct Model {
    known: Vec<(Key, u64, Option<Time>)>,
    answers: Vec<Key>,
}

impl Model {
    fn remove(&mut self, key: Key) {
        self.known.retain(|known| known.0 != key);
        self.answers.retain(|answered| *answered != key);
    }

    /// The request that was answered first, of a network or of all.
    fn oldest(&self, network: Option<u64>) -> Option<(Key, Time)> {
        let of = |key: &Key| self.known.iter().find(|known| known.0 == *key && network.is_none_or(|of| of == known.1));
        self.answers.iter().find_map(|key| of(key).and_then(|known| Some((known.0, known.2?))))
    }

    fn forget(&mut self, now: Time, network: Option<u64>) -> bool {
        let oldest = self.oldest(network).filter(|(_, at)| is_old(now, *at));
        oldest.inspect(|(key, _)| self.remove(*key)).is_some()
    }
}

/// The keys of a list, from its oldest on; backwards it has the same.
fn listed(admission: &Admission, answered: &Answered, of: fn(&Request) -> Neighbours) -> Vec<Key> {
    let walk = |first: u32, next: fn(Neighbours) -> u32| {
        let after = |at: &u32| admission.requests.get(*at).map(|request| next(of(request)));
        let places = core::iter::successors(Some(first), after);
        places.map_while(|at| admission.requests.get(at)).map(|request| request.key).collect::<Vec<_>>()
    };
    let keys = walk(answered.oldest, |neighbours| neighbours.newer);
    let back = walk(answered.newest, |neighbours| neighbours.older);
    assert!(keys.iter().eq(back.iter().rev()), "{keys:?} and {back:?}");
    keys
}

fn check(admission: &Admission, model: &Model) {
    for (key, network, answered) in &model.known {
        assert!(admission.get(*key).is_some());
        assert_eq!(admission.answered(*key), *answered);
        assert!(admission.networks.contains_key(network));
    }
    assert_eq!(admission.requests.len(), model.known.len());
    assert_eq!(admission.pending as usize, model.known.len() - model.answers.len());
    assert_eq!(listed(admission, &admission.answered, |request| request.of_all), model.answers);
    for (network, of) in &admission.networks {
        let known: Vec<_> = model.known.iter().filter(|known| known.1 == *network).collect();
        let is_here = |key: &&Key| known.iter().any(|known| known.0 == **key);
        let answers: Vec<_> = model.answers.iter().filter(is_here).copied().collect();
        assert_eq!((of.known, of.pending as usize), (known.len(), known.len() - answers.len()));
        assert_eq!(listed(admission, &of.answered, |request| request.of_network), answers);
    }
}

proptest! {
    #[test]
    fn it_knows_and_forgets_in_the_order_of_the_answers(
        steps in proptest::collection::vec((0..10_u8, 0..24_u64, 0..4_u64, 0..600_000_u64), 0..300),
    ) {
        let (mut admission, mut model, mut now) = (Admission::default(), Model::default(), Time(1_000_000_000));
        for (choice, key, network, passed) in steps {
            let key = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            now = now.plus_micros(passed);
            match choice {
                0..4 => {
                    prop_assert!(admission.insert(key, network, 1, key));
                    model.remove(key);
                    model.known.push((key, network, None));
                }
                4..7 => {
                    admission.answer(now, key, None);
                    if let Some(known) = model.known.iter_mut().find(|known| known.0 == key && known.2.is_none()) {
                        known.2 = Some(now);
                        model.answers.push(key);
                    }
                }
                7 => {
                    admission.remove(key);
                    model.remove(key);
                }
                8 => prop_assert_eq!(admission.forget_oldest_of(now, network), model.forget(now, Some(network))),
                _ => prop_assert_eq!(admission.forget_oldest(now), model.forget(now, None)),
            }
            check(&admission, &model);
        }
        now = now.plus_micros(COOKIE_LIFE + 1);
        prop_assert_eq!(admission.is_due(now), !model.answers.is_empty());
        admission.expire(now);
        model.answers.clear();
        model.known.retain(|known| known.2.is_none());
        check(&admission, &model);
    }
}

#[test]
fn what_a_flood_took_is_given_back() {
    let (mut admission, mut random) = (Admission::default(), Random::new([1, 2]));
    let now = Time(1_000_000_000);
    for _ in 0..1000 {
        let key = random.next();
        assert!(admission.insert(key, 7, 0, key));
        admission.answer(now, key, None);
    }
    assert_eq!((admission.requests.used(), admission.len()), (1000, 1000));
    admission.expire(now.plus_micros(COOKIE_LIFE + 1));
    assert_eq!((admission.requests.used(), admission.len()), (0, 0));
}
