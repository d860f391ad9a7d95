//! What goes wrong on a link.

use crate::Random;

/// What happens to a frame on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It goes through.
    Pass,
    /// It goes through, so many nanoseconds later than it would.
    Deliver(u64),
    /// It is lost.
    Drop,
    /// It goes through twice.
    Duplicate,
    /// It goes through with other content.
    Corrupt,
}

/// What goes wrong on a link: first by script, then by chance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Of a million frames, so many are lost.
    pub loss: u32,
    /// Of a million frames, so many come twice.
    pub duplicate: u32,
    /// Of a million frames, so many are corrupted.
    pub corrupt: u32,
    /// What happens to the n-th frame of the link, counted from 0; in ascending order.
    pub script: Vec<(u64, Rule)>,
}

impl Faults {
    /// Whether nothing goes wrong.
    pub(super) fn is_none(&self) -> bool {
        self.loss == 0 && self.duplicate == 0 && self.corrupt == 0 && self.script.is_empty()
    }

    /// What happens to the `number`-th frame.
    pub(super) fn rule(&self, number: u64, random: &mut Random) -> Rule {
        if !self.script.is_empty()
            && let Ok(at) = self.script.binary_search_by_key(&number, |(frame, _)| *frame)
        {
            return self.script[at].1;
        }
        if random.chance(self.loss) {
            Rule::Drop
        } else if random.chance(self.duplicate) {
            Rule::Duplicate
        } else if random.chance(self.corrupt) {
            Rule::Corrupt
        } else {
            Rule::Pass
        }
    }
}

/// Changes a frame: bits flip, or its end is missing.
pub(super) fn corrupt(bytes: &mut Vec<u8>, random: &mut Random) {
    let Ok(len) = u64::try_from(bytes.len()) else { return };
    if len == 0 {
        return;
    }
    if random.below(8) == 0 {
        bytes.truncate(usize::try_from(random.below(len)).unwrap_or(0));
        return;
    }
    // Three bits at different places: one of them alone could be undone by another.
    for flip in 0..random.between(1, 3.min(len)) {
        let part = len / 3.min(len);
        let at = flip * part + random.below(part);
        bytes[usize::try_from(at).unwrap_or(0)] ^= 1 << random.below(8);
    }
}
