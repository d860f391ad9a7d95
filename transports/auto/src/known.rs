//! The identities of requests that an endpoint has seen.

use std::collections::{BTreeSet, VecDeque};

/// Identities that are remembered. A request that its client has sent by a second way may wait
/// there for as long as the client's timeout, in a stream that loses much: so many others may come
/// meanwhile, and take 3 MiB together.
const MOST: usize = 1 << 16;

/// The last identities, each once.
#[derive(Default)]
pub(crate) struct KnownRequests {
    all: BTreeSet<[u64; 2]>,
    /// Oldest first.
    order: VecDeque<[u64; 2]>,
}

impl KnownRequests {
    /// Remembers the identity of a connect. False: it is known.
    pub(crate) fn remember(&mut self, connect: [u64; 2]) -> bool {
        let is_new = self.all.insert(connect);
        if is_new {
            if self.order.len() == MOST
                && let Some(oldest) = self.order.pop_front()
            {
                self.all.remove(&oldest);
            }
            self.order.push_back(connect);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connect_is_known_until_so_many_others_have_come() {
        let mut known = KnownRequests::default();
        assert!(known.remember([0, 1]) && !known.remember([0, 1]));
        for other in 1..MOST as u64 {
            assert!(known.remember([other, 1]));
        }
        assert!(!known.remember([0, 1]));
        assert!(known.remember([MOST as u64, 1]) && known.remember([0, 1]));
        assert_eq!([known.all.len(), known.order.len()], [MOST; 2]);
    }
}
