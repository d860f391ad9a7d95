//! Counting nodes without going beyond what counts exactly.

use crate::error::MOST_NODES;

/// The product, unless more nodes come of it than there may be.
pub(crate) fn product(factors: impl IntoIterator<Item = u64>) -> Option<u64> {
    factors.into_iter().try_fold(1u64, u64::checked_mul).filter(|nodes| *nodes <= MOST_NODES)
}
