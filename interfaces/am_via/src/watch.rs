//! What a mapping does for a message, told part by part to whoever measures it.

use cci_via::Part;

/// Sees what a [`crate::ViaMapping`] does with messages that fit in one buffer. The time since the
/// call before was spent on that part. Bulk data and what opens a channel are not told.
///
/// # Example
///
/// ```
/// use cci_am_via::Watch;
/// use cci_via::Part;
/// use std::cell::Cell;
///
/// /// Counts posts.
/// struct Posts(Cell<u64>);
/// impl Watch for Posts {
///     fn spent(&self, part: Part) {
///         self.0.set(self.0.get() + u64::from(part == Part::PostSend));
///     }
/// }
/// ```
pub trait Watch: 'static {
    /// The time since the last call was spent on this part.
    fn spent(&self, part: Part);
}

/// Nobody: costs nothing.
///
/// # Example
///
/// ```
/// let mapping: fn(cci_am_via::ViaMapping<cci_am_via::Unwatched>) -> cci_am_via::ViaMapping = |mapping| mapping;
/// # let _ = mapping;
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing in it")]
pub struct Unwatched;

impl Watch for Unwatched {
    #[inline(always)]
    fn spent(&self, _: Part) {}
}
