//! What a program has changed: words compared with a twin, and how the changes are sent
//! (`docs/design/sci-mirror.md`, A pass). No memory and no message is known here.

/// Bytes of a word.
pub(crate) const WORD: usize = 8;
/// Words of a line.
const LINE: u64 = 8;
/// Words that have changed as a whole, in a row, from which on an RMA sends them.
const BULK: usize = 64;

/// A word in which bytes have changed. Places count words of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) place: u64,
    /// Bit i: byte i, in the order of memory.
    pub(crate) mask: u8,
    pub(crate) value: u64,
}

/// Which bytes differ.
pub(crate) fn differing(old: u64, new: u64) -> u8 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const ONES: u64 = 0x0101_0101_0101_0101;
    // The first byte of memory is the lowest one here.
    let bits = (old ^ new).to_le();
    // The top bit of each byte that is not zero, as its lowest one.
    let bits = ((((bits & LOW) + LOW) | bits) >> 7) & ONES;
    // Moves the bit of byte i to bit i of the top byte; no two meet.
    (bits.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// A word of ones where the mask has bits.
fn spread(mask: u8) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|at| if mask >> at & 1 == 1 { 0xff } else { 0 }))
}

/// `old`, with the bytes of `new` that the mask names.
pub(crate) fn merge(old: u64, new: u64, mask: u8) -> u64 {
    let bits = spread(mask);
    old & !bits | new & bits
}

/// Bytes of a word from `from` on that lie before `end`.
pub(crate) fn mask_before(from: usize, end: usize) -> u8 {
    match end.saturating_sub(from) {
        0 => 0,
        left @ 1..WORD => (1 << left) - 1,
        _ => u8::MAX,
    }
}

/// Compares words with their twins, from the last to the first, and brings the twins up to date.
/// `load` loads a word whole, with acquire order. `first` is the place of the first one. Changes
/// are added in falling order.
pub(crate) fn compare(load: impl Fn(usize) -> u64, twin: &mut [u64], first: u64, found: &mut Vec<Change>) {
    let mut end = twin.len();
    while end > 0 {
        let begin = (end - 1) & !(LINE as usize - 1);
        let line = &mut twin[begin..end];
        let mut words = [0; LINE as usize];
        let mut all = 0;
        for at in (0..line.len()).rev() {
            words[at] = load(begin + at);
            all |= words[at] ^ line[at];
        }
        if all != 0 {
            for at in (0..line.len()).rev() {
                let mask = differing(line[at], words[at]);
                if mask != 0 {
                    found.push(Change { place: first + (begin + at) as u64, mask, value: words[at] });
                    line[at] = words[at];
                }
            }
        }
        end = begin;
    }
}

/// Takes the changes of the last changed line out, of changes in rising order.
pub(crate) fn take_last_line(found: &mut Vec<Change>) -> Vec<Change> {
    let Some(last) = found.last().map(|change| change.place / LINE) else { return Vec::new() };
    let count = found.iter().rev().take_while(|change| change.place / LINE == last).count();
    found.split_off(found.len() - count)
}

/// Splits changes in rising order: long runs of whole words, as ranges of indices, and all others.
pub(crate) fn plan(changes: &[Change]) -> (Vec<std::ops::Range<usize>>, Vec<Change>) {
    let (mut runs, mut others) = (Vec::new(), Vec::new());
    let mut begin = 0;
    while begin < changes.len() {
        let run = &changes[begin..];
        let is_next =
            |(at, change): (usize, &Change)| change.mask == u8::MAX && change.place == run[0].place + at as u64;
        let count = run.iter().enumerate().take_while(|(at, change)| is_next((*at, change))).count();
        if count >= BULK {
            runs.push(begin..begin + count);
        } else {
            others.extend(&run[..count.max(1)]);
        }
        begin += count.max(1);
    }
    (runs, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(words: &[u64], twin: &mut [u64]) -> Vec<Change> {
        let mut found = Vec::new();
        compare(|at| words[at], twin, 0, &mut found);
        found
    }

    #[test]
    fn bytes_that_differ_are_found_from_the_top() {
        let mut words = [0_u64; 20];
        words[3] = u64::from_ne_bytes([0, 1, 0, 2, 0, 0, 0, 0]);
        words[19] = u64::MAX;
        let mut twin = [0; 20];
        let found = compared(&words, &mut twin);
        let expected = [(19, 0xff, words[19]), (3, 0b1010, words[3])];
        assert_eq!(found, expected.map(|(place, mask, value)| Change { place, mask, value }));
        assert_eq!((twin, compared(&words, &mut twin.clone()).len()), (words, 0));
    }

    /// A store that comes while words are compared is not sent without those before it.
    #[test]
    fn the_last_word_never_comes_without_what_was_stored_before() {
        use std::cell::Cell;
        for moment in 0..24 {
            let words: [Cell<u64>; 16] = std::array::from_fn(|_| Cell::new(0));
            let looks = Cell::new(0);
            let load = |at: usize| {
                // The program stores a word, and then the flag at the end.
                match looks.replace(looks.get() + 1) {
                    look if look == moment => words[5].set(7),
                    look if look == moment + 1 => words[15].set(1),
                    _ => {}
                }
                words[at].get()
            };
            let mut found = Vec::new();
            compare(load, &mut [0; 16], 0, &mut found);
            let has = |place| found.iter().any(|change| change.place == place);
            assert!(!has(15) || has(5), "at look {moment}: {found:?}");
        }
    }

    #[test]
    fn the_last_line_is_taken_and_long_runs_are_told_apart() {
        let whole = |place| Change { place, mask: u8::MAX, value: place };
        let mut changes: Vec<_> = (0..200).map(whole).collect();
        changes[70].mask = 1;
        let mut rest = changes.clone();
        let last = take_last_line(&mut rest);
        assert_eq!((last, rest), (changes[192..].to_vec(), changes[..192].to_vec()));
        assert!(take_last_line(&mut Vec::new()).is_empty());
        let (runs, others) = plan(&changes[..192]);
        assert_eq!((runs, others), (vec![0..70, 71..192], vec![changes[70]]));
        let apart = [whole(1), whole(3), whole(4)];
        assert_eq!(plan(&apart), (Vec::new(), apart.to_vec()));
    }

    #[test]
    fn masks_name_bytes_in_the_order_of_memory() {
        let [old, new] = [[1; 8], [2, 3, 4, 5, 6, 7, 8, 9]].map(u64::from_ne_bytes);
        assert_eq!(merge(old, new, 0b1000_0101).to_ne_bytes(), [2, 1, 4, 1, 1, 1, 1, 9]);
        assert_eq!([0, 1, 7, 8, 9].map(|end| mask_before(0, end)), [0, 1, 0x7f, 0xff, 0xff]);
        assert_eq!(mask_before(8, 3), 0);
        for mask in 0..=u8::MAX {
            let bytes: [u8; WORD] = std::array::from_fn(|at| (mask >> at & 1) << (at * 3 % 8));
            assert_eq!(differing(old, old ^ u64::from_ne_bytes(bytes)), mask);
            assert_eq!(merge(0, u64::MAX, mask), spread(mask));
        }
    }

    /// Writers of random bytes of one segment: both see their own, and the segment has the bytes
    /// of a model.
    #[test]
    fn random_programs_agree_with_a_model_of_bytes() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let len = 1 + random.usize(..300);
            let words = len.div_ceil(WORD);
            let mut segment = vec![0_u8; words * WORD];
            let mut mirrors = [(); 2].map(|()| (vec![0_u8; words * WORD], vec![0_u64; words]));
            let mut model = segment.clone();
            for _ in 0..100 {
                let writer = random.usize(..2);
                let (memory, twin) = &mut mirrors[writer];
                if random.bool() {
                    // Bytes of its own: those whose number has its parity.
                    let at = random.usize(..len);
                    if at % 2 == writer {
                        memory[at] = random.u8(..);
                        model[at] = memory[at];
                    }
                    continue;
                }
                let word =
                    |bytes: &[u8], at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at * WORD + byte]));
                let mut found = Vec::new();
                compare(|at| word(memory, at), twin, 0, &mut found);
                found.reverse();
                let last = take_last_line(&mut found);
                for change in found.iter().chain(&last) {
                    let at = change.place as usize;
                    let merged = merge(word(&segment, at), change.value, change.mask);
                    segment[at * WORD..][..WORD].copy_from_slice(&merged.to_ne_bytes());
                }
                let mine = |at: &usize| at % 2 == writer;
                assert!((0..len).filter(mine).all(|at| segment[at] == model[at]), "seed {seed}");
            }
        }
    }
}
