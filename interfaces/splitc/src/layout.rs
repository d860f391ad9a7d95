//! Where memory lies: the same picture in every process of a job.

/// Where this rank's spread memory begins, in every process. Programs, heaps, stacks, libraries
/// and the shadows of sanitizers lie elsewhere.
pub(crate) const OWN: u64 = 0x1100_0000_0000;

/// Bytes between the windows of two ranks.
pub(crate) const STRIDE: u64 = 1 << 36;

/// Bytes of spread memory that a rank can have; the statics of its program lie behind them.
pub(crate) const MOST: u64 = STRIDE / 2;

/// The most ranks of a job.
///
/// # Example
///
/// ```
/// assert_eq!(cci_splitc::MOST_RANKS, 256);
/// ```
pub const MOST_RANKS: u32 = 256;

/// Bytes of a line of the cache.
pub(crate) const LINE: u64 = 64;

/// Words of 8 bytes in a line.
pub(crate) const LINE_WORDS: usize = 8;

/// Rounds of a barrier, at most.
const ROUNDS: u64 = 16;

/// The word that is 1 while this rank sleeps in a wait.
pub(crate) const SLEEPING: u64 = 0;

/// The word in which a rank that ends because of another one names that one, plus 1.
pub(crate) const BLAMED: u64 = 8;

/// The word that a rank sets after it has sent a request here.
pub(crate) const ASKED: u64 = 16;

/// Where the lines begin in which senders count the bytes that they have stored.
pub(crate) const STORES: u64 = 0x1000;

/// The word in which a partner announces that it has come to a round of a barrier.
pub(crate) fn flag(round: u32) -> u64 {
    debug_assert!(u64::from(round) < ROUNDS, "a job has few ranks");
    LINE * (1 + u64::from(round))
}

/// The line in which a sender counts the bytes that it has stored here.
pub(crate) fn stored(sender: u32) -> u64 {
    STORES + LINE * u64::from(sender)
}

/// The word of that line in which it counts those at an address. Stores to neighbours count in
/// different words, so that none waits for the count of the one before.
pub(crate) fn count_of(sender: u32, address: u64) -> u64 {
    stored(sender) + (address & (LINE - 8))
}

/// The word in which a rank announces that it needs nobody any more.
pub(crate) fn left(procs: u32, rank: u32) -> u64 {
    stored(procs) + 8 * u64::from(rank)
}

/// The line that a rank's contribution to a gathering comes to. Two follow each other in turn.
pub(crate) fn slot(procs: u32, turn: u64, rank: u32) -> u64 {
    let first = left(procs, procs).next_multiple_of(LINE);
    first + LINE * (turn % 2 * u64::from(procs) + u64::from(rank))
}

/// Bytes of the control area, with which spread memory begins.
pub(crate) fn control(procs: u32) -> u64 {
    slot(procs, 1, procs).next_multiple_of(0x1000)
}

/// Where the window of a rank begins in this process.
pub(crate) fn window(rank: u32) -> u64 {
    OWN + STRIDE * (1 + u64::from(rank))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_control_area_are_apart() {
        for procs in [1, 2, 3, 64, MOST_RANKS] {
            assert!(flag(15) < STORES);
            assert!(stored(procs - 1) < left(procs, 0) && left(procs, procs - 1) < slot(procs, 0, 0));
            assert!(slot(procs, 0, procs - 1) < slot(procs, 1, 0));
            assert!(slot(procs, 1, procs - 1) + LINE <= control(procs));
        }
        const { assert!(1 << (ROUNDS - 1) >= MOST_RANKS) }
        assert!(window(MOST_RANKS) <= 0x3000_0000_0000, "below the tags of address spaces");
    }
}
