//! Nothing is allocated once a structure has been as full as it is used.

#![forbid(unsafe_code)]

use cci_instruments::{CountingAllocator, allocations_off_main};
use cci_matching::{Envelope, Ordered, Pattern, Posted, Unexpected};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const DEPTH: u64 = 100;

fn message(bits: u64) -> Envelope {
    Envelope { source: 1, bits }
}

#[test]
fn none_in_100_000_operations_of_each() {
    let (mut posted, mut unexpected, mut list) = (Posted::new(), Unexpected::new(), Ordered::new());
    let any_source = |bits| Pattern::new(0, 0, bits, !0);
    let mut run = |rounds: u64| {
        for round in 0..rounds {
            let bits = round % DEPTH;
            posted.post(Pattern::exact(1, bits), bits).expect("memory");
            posted.post(any_source(bits), bits).expect("memory");
            unexpected.insert(message(bits), bits).expect("memory");
            list.push_front(any_source(bits), bits).expect("memory");
            if round < DEPTH {
                continue;
            }
            assert!(posted.take(&message(bits)).is_some() && posted.take(&message(bits)).is_some());
            assert!(unexpected.take(&any_source(bits)).is_some());
            let found = list.find(&message(bits), |_| true).expect("one of the same bits");
            assert!(list.remove(found).is_some());
        }
        for bits in 0..DEPTH {
            assert!(posted.take(&message(bits)).is_some() && posted.take(&message(bits)).is_some());
            let found = list.find(&message(bits), |_| true).expect("one of the same bits");
            assert!(list.remove(found).is_some());
            // The last stays, since an empty queue gives back what its wildcards needed.
            assert!(bits == 0 || unexpected.take(&any_source(bits)).is_some());
        }
        assert_eq!((posted.len(), unexpected.take(&Pattern::exact(1, 1)), list.len()), (0, None, 0));
    };
    // The hash tables settle: they are rehashed in place, or grow once more.
    (0..10).for_each(|_| run(3 * DEPTH));
    let before = allocations_off_main();
    run(100_000);
    assert_eq!(allocations_off_main() - before, 0);
}
