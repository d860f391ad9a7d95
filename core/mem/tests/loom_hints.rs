//! Models of the ready bitmap: what a producer has published is found by its hint, or the producer
//! rings.
#![cfg(loom)]

use cci_mem::barrier::{Pairing, leave};
use cci_mem::hints::{Hints, set};
use cci_mem::ring::{Consumer, Entry, Header, Producer};
use cci_mem::sleep::{AWAKE, doze, must_wake};
use cci_mem::sync::{AtomicU32, AtomicU64, Ordering};
use loom::thread;
use std::sync::Arc;

const ENTRIES: usize = 4;
/// The first word of bits.
const FIRST: usize = 8;
/// Words that the bits of these models touch: the line of the summary and one line of bits.
const WORDS: usize = 16;

fn page() -> Arc<Vec<AtomicU64>> {
    Arc::new((0..WORDS).map(|_| AtomicU64::new(0)).collect())
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

/// Two producers set bits of one word while the consumer takes: none is lost, and with the bit
/// comes what was published before it.
#[test]
fn no_bit_is_lost() {
    model(|| {
        let (page, published) = (page(), Arc::new([AtomicU32::new(0), AtomicU32::new(0)]));
        let producers = [0u32, 1].map(|bit| {
            let (page, published) = (Arc::clone(&page), Arc::clone(&published));
            thread::spawn(move || {
                published[bit as usize].store(1, Ordering::Relaxed);
                set(&page, bit);
            })
        });
        let mut hints = Hints::new();
        let mut taken = 0;
        let take = |hints: &mut Hints, taken: &mut u32| {
            while let Some(bit) = hints.next(&page) {
                assert_eq!(published[bit as usize].load(Ordering::Relaxed), 1, "a hint before its frame");
                *taken |= 1 << bit;
            }
        };
        take(&mut hints, &mut taken);
        for producer in producers {
            producer.join().expect("the producer ends");
        }
        take(&mut hints, &mut taken);
        assert_eq!(taken, 3);
        assert_eq!(page[FIRST].load(Ordering::Relaxed), 0);
    });
}

/// A lane goes cold while its producer publishes: the consumer's last look finds the frame, or the
/// producer sets the hint.
fn going_cold(awake: bool, pairing: Pairing) {
    model(move || {
        let page = page();
        let lane: Arc<([Entry; ENTRIES], AtomicU32)> =
            Arc::new((std::array::from_fn(|_| Entry::default()), AtomicU32::new(AWAKE)));
        let (there, its) = (Arc::clone(&lane), Arc::clone(&page));
        let producer = thread::spawn(move || {
            let mut producer = Producer::<ENTRIES>::new();
            pairing.light();
            producer.push_words(&there.0, Header { kind: 1, len: 0, word: 7 }, []);
            if must_wake(&there.1, pairing) {
                set(&its, 0);
            }
            leave();
        });
        let consumer = Consumer::<ENTRIES>::new();
        doze(&lane.1, awake, pairing);
        let found = consumer.peek(&lane.0).is_some();
        leave();
        producer.join().expect("the producer ends");
        assert!(found || Hints::new().next(&page) == Some(0), "a frame that nobody is told of");
    });
}

#[test]
fn a_lane_goes_cold_with_full_fences() {
    going_cold(true, Pairing::Symmetric);
}

#[test]
fn a_lane_goes_cold_with_the_consumer_paying() {
    going_cold(true, Pairing::Asymmetric);
}

/// The mutant: without the heavy fence the producer's look can pass its own frame.
#[test]
#[should_panic(expected = "a frame that nobody is told of")]
fn going_cold_without_the_heavy_fence_is_caught() {
    going_cold(false, Pairing::Asymmetric);
}
