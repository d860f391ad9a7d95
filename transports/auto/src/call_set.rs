//! What blocking calls sleep on.

use crate::way::MOST_WAYS;
use cci_mem::descriptors;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What blocking calls sleep on: an epoll descriptor, made when it is first needed, over a
/// descriptor of each way.
#[derive(Default)]
pub(crate) struct CallSet {
    pub(crate) epoll: Option<Arc<OwnedFd>>,
    /// By the way's number. Held, so that none leaves the set by a close.
    own: [Option<Arc<OwnedFd>>; MOST_WAYS],
}

impl CallSet {
    /// Has this descriptor of a way in the set, in place of another one.
    pub(crate) fn put(&mut self, way: u8, own: Arc<OwnedFd>) -> rustix::io::Result<()> {
        let epoll = match &mut self.epoll {
            Some(epoll) => epoll,
            none => none.insert(Arc::new(descriptors::epoll()?)),
        };
        let Some(place) = self.own.get_mut(usize::from(way)) else { return Ok(()) };
        if place.as_ref().is_some_and(|before| Arc::ptr_eq(before, &own)) {
            return Ok(());
        }
        if let Some(before) = place.take() {
            epoll::delete(&**epoll, &*before)?;
        }
        epoll::add(&**epoll, &*own, EventData::new_u64(way.into()), EventFlags::IN)?;
        *place = Some(own);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

    fn event(value: u32) -> Arc<OwnedFd> {
        Arc::new(eventfd(value, EventfdFlags::CLOEXEC).expect("a descriptor"))
    }

    #[test]
    fn a_set_for_calls_is_made_once_and_has_one_descriptor_of_each_way() {
        let mut set = CallSet::default();
        let is_readable = |set: &CallSet| {
            let epoll = set.epoll.clone().expect("made");
            poll(&mut [PollFd::new(&*epoll, PollFlags::IN)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(1)
        };
        let (first, second, ready) = (event(0), event(0), event(1));
        for _ in 0..3 {
            set.put(0, Arc::clone(&first)).expect("watched");
            set.put(1, Arc::clone(&second)).expect("watched");
            assert!(!is_readable(&set));
        }
        let epoll = set.epoll.clone().expect("made");
        set.put(0, Arc::clone(&ready)).expect("watched in place of the first");
        assert!(is_readable(&set));
        set.put(0, first).expect("watched again");
        assert!(!is_readable(&set), "what was replaced is still watched");
        assert!(set.epoll.is_some_and(|now| Arc::ptr_eq(&now, &epoll)));
    }
}
