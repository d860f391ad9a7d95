//! This endpoint's own segment and tag.

use super::{Due, Turn};
use crate::mapping::Mapping;
use cci::{Memory, RegisterError, Rights};

/// Whether an endpoint with this tag accepts messages with that one.
#[inline]
pub(crate) fn accepts(own: u64, theirs: u64) -> bool {
    own == u64::MAX || (own == theirs && own != 0)
}

impl<S, M: Mapping> Turn<'_, S, M> {
    /// Sets another segment, or none. What peers write into the old one from now on comes back to
    /// them.
    pub(crate) fn set_segment(&mut self, memory: Option<Memory>) -> Result<(), RegisterError> {
        let new = match memory {
            Some(memory) => {
                let region = self.mapping.register(&memory, Rights::READ_WRITE)?;
                Some((memory, region))
            }
            None => None,
        };
        let old = std::mem::replace(&mut self.core.segment.now, new);
        if let Some((memory, region)) = old
            && let Err((region, why)) = self.mapping.deregister(region)
        {
            self.core.segment.now = Some((memory, region));
            return Err(why);
        }
        self.core.segment.epoch = self.core.segment.epoch.wrapping_add(1);
        self.announce();
        Ok(())
    }

    /// Sets another tag. The segment gets another handle, so that peers that are not accepted any
    /// more cannot write it.
    pub(crate) fn set_tag(&mut self, tag: u64) -> Result<(), RegisterError> {
        let memory = self.core.segment.now.as_ref().map(|(memory, _)| memory.clone());
        self.core.tag = tag;
        for index in self.core.sources.indices() {
            if let Some(source) = self.core.sources.at_mut(index) {
                source.is_accepted = accepts(tag, source.tag);
            }
        }
        self.set_segment(memory)
    }

    fn announce(&mut self) {
        for index in self.core.sources.indices() {
            if let Some(source) = self.core.sources.at_mut(index) {
                source.segment_is_due = true;
                self.core.due.push_back(Due::Source(index));
            }
        }
        for index in self.core.targets.indices() {
            if let Some(target) = self.core.targets.at_mut(index) {
                target.segment_is_due = true;
                self.core.due.push_back(Due::Target(index));
            }
        }
        self.flush_due();
    }
}

#[cfg(test)]
mod tests {
    use super::accepts;

    #[test]
    fn tags_are_compared_as_am_says() {
        assert!(accepts(u64::MAX, 5) && accepts(u64::MAX, 0) && accepts(7, 7));
        assert!(!accepts(0, 0) && !accepts(0, 5) && !accepts(7, 8));
    }
}
