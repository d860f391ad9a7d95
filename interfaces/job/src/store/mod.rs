//! The values and exchanges of a job, without I/O and without a clock: `now` is the time since the
//! store began.

mod exchanges;
#[cfg(test)]
mod tests;

use crate::wire::{Frame, Malformed, Refusal, Reply, Request};
use exchanges::Exchanges;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The most bytes that one rank may publish, keys included.
const MOST_PUBLISHED: usize = 16 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Awaited,
    Joined,
    Gone,
}

struct Rank {
    presence: Presence,
    /// A request of it waits.
    is_waiting: bool,
    published: usize,
}

struct LookUp {
    from: u32,
    rank: u32,
    key: Vec<u8>,
    deadline: Duration,
}

/// The store. Inputs are `join` and `handle_*`, outputs `poll_*`.
pub(crate) struct Store {
    ranks: Vec<Rank>,
    values: BTreeMap<(u32, Vec<u8>), Vec<u8>>,
    look_ups: Vec<LookUp>,
    exchanges: Exchanges,
    replies: VecDeque<(u32, Frame)>,
}

impl Store {
    pub(crate) fn new(size: u32) -> Self {
        let rank = || Rank { presence: Presence::Awaited, is_waiting: false, published: 0 };
        Self {
            ranks: (0..size).map(|_| rank()).collect(),
            values: BTreeMap::new(),
            look_ups: Vec::new(),
            exchanges: Exchanges::new(size),
            replies: VecDeque::new(),
        }
    }

    pub(crate) fn size(&self) -> u32 {
        u32::try_from(self.ranks.len()).expect("made of a u32")
    }

    /// Takes a rank in, which comes once.
    pub(crate) fn join(&mut self, rank: u32) -> Result<(), Malformed> {
        let joining = self.ranks.get_mut(rank as usize).ok_or(Malformed("a rank beyond the size of the job"))?;
        if joining.presence != Presence::Awaited {
            return Err(Malformed("this rank has come before"));
        }
        joining.presence = Presence::Joined;
        Ok(())
    }

    /// Takes a request of a rank that has joined.
    pub(crate) fn handle_request(&mut self, now: Duration, rank: u32, request: Request) -> Result<(), Malformed> {
        if self.ranks[rank as usize].is_waiting {
            return Err(Malformed("a second request while the first one waits"));
        }
        match request {
            Request::Hello(_) => Err(Malformed("a second HELLO")),
            // The server has taken it.
            Request::End { .. } => Ok(()),
            Request::Publish { key, value } => {
                self.publish(rank, key, value);
                Ok(())
            }
            Request::LookUp { limit, rank: of, key } => {
                self.look_up(LookUp { from: rank, rank: of, key, deadline: now.saturating_add(limit) })
            }
            Request::Exchange { limit, value } => self.exchange(rank, value, now.saturating_add(limit)),
        }
    }

    fn publish(&mut self, rank: u32, key: Vec<u8>, value: Vec<u8>) {
        let published = self.ranks[rank as usize].published + key.len() + value.len();
        if published > MOST_PUBLISHED {
            return self.reply(rank, &Reply::Refused(Refusal::Full, vec![]));
        }
        if self.values.contains_key(&(rank, key.clone())) {
            return self.reply(rank, &Reply::Refused(Refusal::Published, vec![]));
        }
        self.ranks[rank as usize].published = published;
        let (found, waiting) =
            std::mem::take(&mut self.look_ups).into_iter().partition(|open| open.rank == rank && open.key == key);
        self.look_ups = waiting;
        for LookUp { from, .. } in found {
            self.end(from, &Reply::Value(value.clone()));
        }
        self.values.insert((rank, key), value);
        self.reply(rank, &Reply::Done);
    }

    fn look_up(&mut self, asked: LookUp) -> Result<(), Malformed> {
        let of = self.ranks.get(asked.rank as usize).ok_or(Malformed("a look-up beyond the size of the job"))?;
        let is_gone = of.presence == Presence::Gone;
        match self.values.get(&(asked.rank, asked.key.clone())) {
            Some(value) => self.reply(asked.from, &Reply::Value(value.clone())),
            None if is_gone => self.reply(asked.from, &Reply::Refused(Refusal::Gone, vec![asked.rank])),
            None => {
                self.ranks[asked.from as usize].is_waiting = true;
                self.look_ups.push(asked);
            }
        }
        Ok(())
    }

    fn exchange(&mut self, rank: u32, value: Vec<u8>, deadline: Duration) -> Result<(), Malformed> {
        self.ranks[rank as usize].is_waiting = true;
        self.exchanges.handle(rank, value, deadline)?;
        self.take_ends();
        Ok(())
    }

    /// The connection of a rank has ended. What waits for the rank fails.
    pub(crate) fn handle_gone(&mut self, rank: u32) {
        self.ranks[rank as usize].presence = Presence::Gone;
        self.look_ups.retain(|open| open.from != rank);
        let refused = Reply::Refused(Refusal::Gone, vec![rank]);
        self.end_look_ups(|open| open.rank == rank, |_| refused.clone());
        self.exchanges.handle_gone(rank);
        self.take_ends();
    }

    /// Ends what has reached its limit.
    pub(crate) fn handle_timeout(&mut self, now: Duration) {
        self.end_look_ups(|open| open.deadline <= now, |open| Reply::Refused(Refusal::TimedOut, vec![open.rank]));
        self.exchanges.handle_timeout(now);
        self.take_ends();
    }

    fn end_look_ups(&mut self, ends: impl Fn(&LookUp) -> bool, reply: impl Fn(&LookUp) -> Reply) {
        let (ended, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.look_ups).into_iter().partition(ends);
        self.look_ups = waiting;
        for open in ended {
            self.end(open.from, &reply(&open));
        }
    }

    fn take_ends(&mut self) {
        while let Some((rank, frame)) = self.exchanges.poll_end() {
            self.ranks[rank as usize].is_waiting = false;
            self.replies.push_back((rank, frame));
        }
    }

    /// Answers a request that waited.
    fn end(&mut self, rank: u32, reply: &Reply) {
        self.ranks[rank as usize].is_waiting = false;
        self.reply(rank, reply);
    }

    fn reply(&mut self, rank: u32, reply: &Reply) {
        self.replies.push_back((rank, reply.emit().into()));
    }

    /// The next frame to send, and to which rank. That rank may have gone.
    pub(crate) fn poll_reply(&mut self) -> Option<(u32, Frame)> {
        self.replies.pop_front()
    }

    /// When `handle_timeout` is to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        self.look_ups.iter().map(|open| open.deadline).chain(self.exchanges.poll_timeout()).min()
    }
}
