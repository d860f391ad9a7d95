//! Who measures what the mapping does.

use cci_via::Part;
use std::rc::Rc;

/// Told of each part of the work on a message: the time since the last call was spent on it.
pub(crate) type Watch = Rc<dyn Fn(Part)>;

/// Somebody, or nobody.
#[derive(Default)]
pub(super) struct Watched(pub(super) Option<Watch>);

impl Watched {
    #[inline]
    pub(super) fn spent(&self, part: Part) {
        if let Some(watch) = &self.0 {
            watch(part);
        }
    }
}
