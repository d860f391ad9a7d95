//! Rings against an oracle, from cursors below every wrap, and against peers that write what they
//! like.
#![cfg(not(loom))]

use cci_mem::ring::{BODY, BODY_WORDS, Consumer, Entry, GrantReader, GrantWriter, Header, Producer, Violation};
use cci_mem::segment::Segment;
use cci_mem::source::Source;
use cci_mem::sync::{AtomicU32, Ordering};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Of a test at most. Miri takes a thousand times as long, and longer still to invent them.
const STEPS: usize = if cfg!(miri) { 30 } else { 300 };

fn entries<const N: usize>() -> [Entry; N] {
    std::array::from_fn(|_| Entry::default())
}

/// Runs something for the size of a ring, which is a constant there.
macro_rules! for_size {
    ($shift:expr, $function:ident($($argument:expr),*)) => {
        match $shift {
            2 => $function::<4>($($argument),*),
            3 => $function::<8>($($argument),*),
            4 => $function::<16>($($argument),*),
            5 => $function::<32>($($argument),*),
            6 => $function::<64>($($argument),*),
            other => unreachable!("no test asks for a ring of 1 << {other}"),
        }
    };
}

fn words(shift: u32) -> Vec<AtomicU32> {
    (0..1 << shift).map(|_| AtomicU32::new(0)).collect()
}

/// Cursors at which a ring of zeroes reads as empty: at the beginning, in the midst of a lap, just
/// below the wrap of the lap at 16 bits, and just below that of the cursor at 32.
fn cursors(shift: u32) -> impl Strategy<Value = u32> {
    let size = 1u32 << shift;
    let laps = 0xffff_u32 << shift;
    prop_oneof![
        Just(0),
        0..10 * size,
        laps - size..=laps - size,
        laps - 2 * size..laps - size,
        Just(0u32.wrapping_sub(2 * size)),
        0u32.wrapping_sub(3 * size)..=0u32.wrapping_sub(2 * size),
    ]
}

fn shift_and_cursor(shifts: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = (u32, u32)> {
    shifts.prop_flat_map(|shift| (Just(shift), cursors(shift)))
}

#[derive(Clone, Debug)]
enum Step {
    Push(u8, u32, Vec<u8>),
    PushWords(u8, u32, [u64; 3]),
    Take,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (any::<u8>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..=BODY)).prop_map(|(k, w, b)| Step::Push(k, w, b)),
        1 => (any::<u8>(), any::<u32>(), any::<[u64; 3]>()).prop_map(|(k, w, b)| Step::PushWords(k, w, b)),
        3 => Just(Step::Take),
    ];
    prop::collection::vec(step, 0..STEPS)
}

/// A producer, a consumer, and what lies between them.
struct Lane<const N: usize> {
    entries: [Entry; N],
    head: AtomicU32,
    producer: Producer<N>,
    consumer: Consumer<N>,
    oracle: VecDeque<(Header, Vec<u8>)>,
}

impl<const N: usize> Lane<N> {
    fn push(
        &mut self,
        header: Header,
        body: Vec<u8>,
        push: impl FnOnce(&mut Producer<N>, &[Entry; N]),
    ) -> Result<(), TestCaseError> {
        if self.producer.has_room(&self.head).expect("an honest consumer") {
            prop_assert!(self.oracle.len() < N, "room in a full ring");
            push(&mut self.producer, &self.entries);
            self.oracle.push_back((header, body));
        } else {
            prop_assert!(self.oracle.len() > N - N / 4, "no room although a quarter was given back");
        }
        Ok(())
    }

    fn take(&mut self) -> Result<(), TestCaseError> {
        let Some((header, body)) = self.oracle.pop_front() else {
            prop_assert_eq!(self.consumer.peek(&self.entries), None);
            return Ok(());
        };
        prop_assert_eq!(self.consumer.peek(&self.entries), Some(header));
        let seen: Vec<u8> =
            self.consumer.shown(&self.entries).body().iter().flat_map(|word| word.to_ne_bytes()).collect();
        prop_assert_eq!(&seen[..body.len()], &body[..]);
        self.consumer.advance(&self.head);
        Ok(())
    }
}

#[test]
fn a_stream_is_many_frames_without_a_gap() {
    let head = AtomicU32::new(0);
    let mut consumer = Consumer::<16>::new();
    for _ in 0..1000 {
        consumer.advance(&head);
        assert!(!consumer.is_streaming(), "after a lone frame");
        consumer.on_gap();
    }
    let begins = (1..=16).find(|_| {
        consumer.advance(&head);
        consumer.is_streaming()
    });
    assert_eq!(begins, Some(8));
    (0..100).for_each(|_| _ = consumer.advance(&head));
    let ends = (1..=16).find(|_| {
        consumer.on_gap();
        !consumer.is_streaming()
    });
    assert_eq!(ends, Some(3), "however long it was");
}

fn frames_through<const N: usize>(start: u32, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut lane = Lane {
        entries: entries::<N>(),
        head: AtomicU32::new(start),
        producer: Producer::starting_at(start),
        consumer: Consumer::starting_at(start),
        oracle: VecDeque::new(),
    };
    for step in steps {
        match step {
            Step::Push(kind, word, body) => {
                let header = Header { kind, len: u8::try_from(body.len()).expect("at most 56"), word };
                lane.push(header, body.clone(), |producer, entries| {
                    producer.push(entries, header, Source::from(&body[..]))
                })?;
            }
            Step::PushWords(kind, word, body) => {
                let header = Header { kind, len: 0, word };
                let bytes = body.iter().flat_map(|word| word.to_ne_bytes()).collect();
                lane.push(header, bytes, |producer, entries| producer.push_words(entries, header, body))?;
            }
            Step::Take => lane.take()?,
        }
    }
    while !lane.oracle.is_empty() {
        lane.take()?;
    }
    lane.take()?;
    Ok(())
}

fn scribble<const N: usize>(start: u32, scribbles: Vec<(prop::sample::Index, u64)>) -> Result<(), TestCaseError> {
    let shift = N.trailing_zeros();
    let segment = Segment::create("cci-test", 4096).expect("a segment");
    let (entries, raw) = (segment.entries(0), segment.words64(0, 8 * N));
    let head = AtomicU32::new(start);
    let mut consumer = Consumer::<N>::starting_at(start);
    let mut taken = start;
    for (at, word) in scribbles {
        raw[at.index(raw.len())].store(word, Ordering::Relaxed);
        let here = taken as usize & (N - 1);
        let lap = u64::from((taken >> shift).wrapping_add(1) & 0xffff);
        let shown = consumer.peek(entries);
        prop_assert_eq!(shown.is_some(), raw[8 * here].load(Ordering::Relaxed) >> 48 == lap);
        let body = consumer.shown(entries).body();
        for (at, word) in body.iter().enumerate() {
            prop_assert_eq!(*word, raw[8 * here + 1 + at].load(Ordering::Relaxed));
        }
        if shown.is_some() {
            consumer.advance(&head);
            taken = taken.wrapping_add(1);
        }
    }
    Ok(())
}

fn claim_heads<const N: usize>(start: u32, claims: Vec<u32>) -> Result<(), TestCaseError> {
    let size = u32::try_from(N).expect("small");
    let entries = entries();
    let head = AtomicU32::new(start);
    let mut producer = Producer::<N>::starting_at(start);
    let (mut sent, mut believed) = (start, start);
    for claim in claims {
        let claimed = if claim <= 20 { sent.wrapping_sub(claim) } else { claim };
        head.store(claimed, Ordering::Relaxed);
        let looks = sent.wrapping_sub(believed) >= size / 2;
        let used = if looks { sent.wrapping_sub(claimed) } else { sent.wrapping_sub(believed) };
        let expected = if used > size { Err(Violation) } else { Ok(used < size) };
        let answer = producer.has_room(&head);
        prop_assert_eq!(answer, expected);
        match answer {
            Err(Violation) => return Ok(()),
            Ok(room) => {
                believed = if looks { claimed } else { believed };
                if room {
                    producer.push_words(&entries, Header { kind: 0, len: 0, word: 0 }, []);
                    sent = sent.wrapping_add(1);
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn frames_come_out_as_they_went_in((shift, start) in shift_and_cursor(2..=6), steps in steps()) {
        for_size!(shift, frames_through(start, steps))?;
    }

    #[test]
    fn grants_come_out_as_they_went_in(
        (shift, start) in shift_and_cursor(1..=7),
        steps in prop::collection::vec(prop::option::of(any::<u16>()), 0..2 * STEPS),
    ) {
        let words = words(shift);
        let mut writer = GrantWriter::starting_at(shift, start);
        let mut reader = GrantReader::starting_at(shift, start);
        let mut oracle = VecDeque::new();
        for step in steps {
            match step {
                // The granter owns as many slots as the ring has words, so it never grants more.
                Some(index) if oracle.len() < words.len() => {
                    writer.grant(&words, index);
                    oracle.push_back(index);
                }
                _ => prop_assert_eq!(reader.take(&words), oracle.pop_front()),
            }
        }
        while let Some(index) = oracle.pop_front() {
            prop_assert_eq!(reader.take(&words), Some(index));
        }
        prop_assert_eq!(reader.take(&words), None);
    }

    /// Whatever stands in an entry, the consumer sees a frame of its lap or none, and goes on.
    #[test]
    fn a_consumer_survives_any_entry(
        (shift, start) in shift_and_cursor(2..=4),
        scribbles in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 1..STEPS),
    ) {
        for_size!(shift, scribble(start, scribbles))?;
    }

    /// A peer that forges every header of the right lap feeds the consumer, and nothing else
    /// happens.
    #[test]
    fn a_consumer_survives_forged_frames(forged in prop::collection::vec(any::<(u64, [u64; BODY_WORDS])>(), 1..100)) {
        let segment = Segment::create("cci-test", 4096).expect("a segment");
        let (entries, raw) = (segment.entries(0), segment.words64(0, 64));
        let head = AtomicU32::new(0);
        let mut consumer = Consumer::<8>::new();
        for (number, (word, body)) in (0u64..).zip(forged) {
            let at = 8 * (number as usize % 8);
            raw[at].store((number / 8 + 1) << 48 | word & 0xffff_ffff_ffff, Ordering::Relaxed);
            raw[at + 1..at + 8].iter().zip(body).for_each(|(raw, value)| raw.store(value, Ordering::Relaxed));
            let header = consumer.peek(entries).expect("the right lap");
            prop_assert_eq!(u64::from(header.kind) << 40 | u64::from(header.len) << 32 | u64::from(header.word), word & 0xffff_ffff_ffff);
            prop_assert_eq!(consumer.shown(entries).body(), body);
            consumer.advance(&head);
        }
    }

    /// Whatever the consumer claims to have taken, the producer believes it or calls it a
    /// violation; it never has more than a ring in flight by that claim.
    #[test]
    fn a_producer_checks_any_head(
        (shift, start) in shift_and_cursor(2..=4),
        claims in prop::collection::vec(prop_oneof![any::<u32>(), (0u32..20).prop_map(|back| 20 - back)], 1..100),
    ) {
        for_size!(shift, claim_heads(start, claims))?;
    }

    /// Any word is a grant of its lap or none; its index is for the caller to check.
    #[test]
    fn a_reader_survives_any_grant(scribbles in prop::collection::vec((0usize..8, any::<u32>(), any::<bool>()), 1..STEPS)) {
        const SHIFT: u32 = 3;
        let words = words(SHIFT);
        let mut reader = GrantReader::new(SHIFT);
        let mut taken = 0u32;
        for (at, word, forge) in scribbles {
            let lap = (taken >> SHIFT) + 1;
            let here = taken as usize % 8;
            let (at, word) = if forge { (here, lap << 16 | word & 0xffff) } else { (at, word) };
            words[at].store(word, Ordering::Relaxed);
            let found = words[here].load(Ordering::Relaxed);
            let expected = (found >> 16 == lap).then_some((found & 0xffff) as u16);
            prop_assert_eq!(reader.take(&words), expected);
            taken += u32::from(expected.is_some());
        }
    }
}

/// A ring of zeroes is empty wherever a test may begin, and in every lap of the first 2^17 after
/// the beginning.
#[test]
#[cfg_attr(miri, ignore = "half a million frames take Miri an hour")]
fn a_full_turn_of_laps_never_shows_an_old_frame() {
    let entries = entries::<4>();
    let head = AtomicU32::new(0);
    let (mut producer, mut consumer) = (Producer::new(), Consumer::new());
    for number in 0..(4 << 17) {
        assert_eq!(consumer.peek(&entries), None, "an old frame before frame {number}");
        assert_eq!(producer.has_room(&head), Ok(true));
        producer.push_words(&entries, Header { kind: 1, len: 0, word: number }, []);
        assert_eq!(consumer.peek(&entries).map(|header| header.word), Some(number));
        consumer.advance(&head);
    }
}

/// The head is told every quarter of a ring, and the caller learns when.
#[test]
fn the_head_is_told_every_quarter() {
    let entries = entries::<16>();
    let head = AtomicU32::new(0);
    let (mut producer, mut consumer) = (Producer::new(), Consumer::<16>::new());
    for number in 1..=64 {
        assert_eq!(producer.has_room(&head), Ok(true));
        producer.push_words(&entries, Header { kind: 1, len: 0, word: 0 }, []);
        assert_eq!(consumer.advance(&head), number % 4 == 0);
        assert_eq!(head.load(Ordering::Relaxed), number / 4 * 4);
    }
}
