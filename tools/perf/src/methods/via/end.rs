//! An end of native VIs: it posts descriptors itself.

use super::row::LONG;
use crate::methods::own_end::ARRIVAL;
use cci::Memory;
use cci_report::UserError;
use cci_via::{
    Access, Address, Connected, Error, Nic, Queue, Region, Reliability, Remote, Tag, Vi, ViAttributes, Work,
};
use std::net::IpAddr;
use std::time::Instant;

/// Receives of each VI: one for the message that comes, and one for that whose receive is posted
/// again after its answer.
const RECEIVES: usize = 2;
/// Sends that may be posted at once.
const SENDS: usize = 4;
/// The first byte of a message after which the other end goes back to CCI's own messages.
const BACK: u8 = 1;

/// What an end is like. Both ends have the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) reliability: Reliability,
    /// One completion queue for all work queues.
    pub(super) has_queue: bool,
    pub(super) vis: usize,
    /// Bytes of a message.
    pub(super) bytes: usize,
}

/// Some VIs, with the same work queues each.
pub(super) struct Vis {
    vis: Vec<Vi<Connected>>,
    queue: Option<Queue>,
    /// VIs that messages go through, in turn: the first ones.
    busy: usize,
    /// Where the next message leaves, has left, and comes.
    sending: usize,
    reaping: usize,
    receiving: usize,
    free: Vec<Work>,
    /// A receive that is to be posted again.
    taken: Option<(usize, Work)>,
    /// Sends and RDMA writes that have not come back.
    posted: usize,
    /// For RDMA writes.
    target: Option<Remote>,
    source: Option<Work>,
}

pub(super) fn failed(why: Error) -> UserError {
    UserError(format!("the VI cannot be used: {why}"))
}

/// A NIC with a tag.
pub(super) struct Card {
    pub(super) nic: Nic,
    pub(super) tag: Tag,
}

impl Card {
    /// This memory, which the other end may write.
    pub(super) fn target(&self, memory: &Memory) -> Result<Region, UserError> {
        let access = Access { write: true, read: false };
        self.nic.register_memory(memory.clone(), self.tag, access).map_err(failed)
    }

    /// Connects VIs with the end whose word this is, which waits for them; without a host, waits.
    pub(super) fn connect(&self, kind: &Kind, to: Option<IpAddr>, word: &str) -> Result<Vis, UserError> {
        let Self { nic, tag } = self;
        let access = Access { write: true, read: false };
        let reliability = kind.reliability;
        let max_transfer = LONG as u64;
        let attributes = ViAttributes { tag: *tag, access, reliability, max_transfer, ..ViAttributes::default() };
        let queue = kind.has_queue.then(|| nic.queue(4 * kind.vis.max(RECEIVES)).map_err(failed)).transpose()?;
        let work = || nic.register(vec![0; kind.bytes], *tag, Access::default()).map(Work::of).map_err(failed);
        let mut vis = Vec::new();
        for _ in 0..kind.vis {
            let mut vi = Vi::new(nic, &attributes, queue.as_ref(), queue.as_ref()).map_err(failed)?;
            for _ in 0..RECEIVES {
                vi.post_receive(work()?).map_err(|(_, why)| failed(why))?;
            }
            let local = Address::new(nic.host(), word.as_bytes());
            vis.push(match to {
                None => {
                    let mut incoming = nic.listen(&local, Some(ARRIVAL)).map_err(failed)?;
                    incoming.accept(vi).map_err(|(_, why)| failed(why))?
                }
                Some(host) => request(vi, &local, &Address::new(host, word.as_bytes()))?,
            });
        }
        let free = (0..SENDS).map(|_| work()).collect::<Result<_, _>>()?;
        let busy = vis.len();
        let (sending, reaping, receiving, posted) = (0, 0, 0, 0);
        let (taken, target, source) = (None, None, None);
        Ok(Vis { vis, queue, busy, sending, reaping, receiving, free, taken, posted, target, source })
    }
}

/// Connects to the end that waits, or will soon.
fn request(mut vi: Vi<cci_via::Idle>, local: &Address, remote: &Address) -> Result<Vi<Connected>, UserError> {
    let begin = Instant::now();
    loop {
        match vi.request(local, remote, ARRIVAL) {
            Ok(vi) => return Ok(vi),
            // The other end does not listen yet.
            Err((idle, Error::NoMatch)) if begin.elapsed() < ARRIVAL => vi = idle,
            Err((_, why)) => return Err(failed(why)),
        }
    }
}

impl Vis {
    /// Has messages go through the first VI alone, or through all in turn. No message is under way.
    pub(super) fn spread(&mut self, all: bool) {
        self.busy = if all { self.vis.len() } else { 1 };
        (self.sending, self.reaping, self.receiving) = (0, 0, 0);
    }

    /// Where RDMA writes go, and from where.
    pub(super) fn aim(&mut self, card: &Card, handle: u32, memory: &Memory) -> Result<(), UserError> {
        let source = card.nic.register_memory(memory.clone(), card.tag, Access::default()).map_err(failed)?;
        self.target = Some(Remote { address: 0, handle });
        self.source = Some(Work::of(source));
        Ok(())
    }

    #[inline(always)]
    fn next(&self, at: usize) -> usize {
        if at + 1 < self.busy { at + 1 } else { 0 }
    }

    /// Takes what has completed, once. A receive: its first byte.
    #[inline(always)]
    fn take(&mut self) -> Result<Option<u8>, UserError> {
        match &self.queue {
            Some(queue) => match queue.done().map_err(failed)? {
                None => Ok(None),
                Some((_, true)) => self.receive(),
                Some((_, false)) => self.reap().map(|()| None),
            },
            None => {
                if self.posted > 0 {
                    self.reap()?;
                }
                self.receive()
            }
        }
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<Option<u8>, UserError> {
        let Some(done) = self.vis[self.receiving].received().map_err(failed)? else { return Ok(None) };
        if done.status.is_error() {
            return Err(UserError(format!("a receive failed: {:?}", done.status)));
        }
        // A word, which is read whole.
        let mut word = [0; 8];
        let is_there = done.work.regions().first().is_some_and(|region| region.read(0, &mut word));
        self.taken = Some((self.receiving, done.work));
        self.receiving = self.next(self.receiving);
        Ok(is_there.then_some(word[0]))
    }

    #[inline(always)]
    fn reap(&mut self) -> Result<(), UserError> {
        let Some(done) = self.vis[self.reaping].sent().map_err(failed)? else { return Ok(()) };
        if done.status.is_error() {
            return Err(UserError(format!("a send failed: {:?}", done.status)));
        }
        self.posted -= 1;
        self.reaping = self.next(self.reaping);
        self.free.push(done.work);
        Ok(())
    }

    /// Takes until a message has come; its first byte.
    #[inline(always)]
    fn await_message(&mut self) -> Result<u8, UserError> {
        loop {
            if let Some(first) = self.take()? {
                return Ok(first);
            }
        }
    }

    /// Sends, and then posts the receive of the last message again: the message comes first.
    #[inline(always)]
    fn send(&mut self) -> Result<(), UserError> {
        let work = self.free.pop().ok_or_else(|| UserError::new("no buffer is left for a send"))?;
        self.vis[self.sending].post_send(work).map_err(|(_, why)| failed(why))?;
        self.sending = self.next(self.sending);
        self.posted += 1;
        match self.taken.take() {
            Some((at, work)) => self.vis[at].post_receive(work).map_err(|(_, why)| failed(why)),
            None => Ok(()),
        }
    }

    /// So many messages that are answered.
    pub(super) fn run(&mut self, count: u64) -> Result<(), UserError> {
        for _ in 0..count {
            self.send()?;
            self.await_message()?;
        }
        Ok(())
    }

    /// Answers until the other end goes back to CCI's own messages.
    pub(super) fn serve(&mut self) -> Result<(), UserError> {
        loop {
            let first = self.await_message()?;
            self.send()?;
            if first == BACK {
                return self.drain();
            }
        }
    }

    /// Has the other end go back to CCI's own messages.
    pub(super) fn go_back(&mut self) -> Result<(), UserError> {
        self.drain()?;
        self.mark(BACK);
        self.run(1)?;
        self.drain()?;
        self.mark(0);
        Ok(())
    }

    /// Sets the first byte of the messages that are sent. None is under way.
    fn mark(&mut self, first: u8) {
        for work in &self.free {
            let is_written = work.regions().iter().all(|region| region.write(0, &[first]));
            debug_assert!(is_written, "a message has a first byte");
        }
    }

    /// Takes the ends of all sends.
    fn drain(&mut self) -> Result<(), UserError> {
        while self.posted > 0 {
            if self.queue.is_none() {
                self.reap()?;
            } else if self.take()?.is_some() {
                return Err(UserError::new("a message came that nobody awaits"));
            }
        }
        Ok(())
    }

    /// So many RDMA writes, one after the other.
    pub(super) fn write(&mut self, count: u64) -> Result<(), UserError> {
        self.drain()?;
        let target = self.target.ok_or_else(|| UserError::new("the memory of the other end is not known"))?;
        for _ in 0..count {
            let work = self.source.take().ok_or_else(|| UserError::new("an RDMA write is under way"))?;
            self.vis[0].post_write(work, target, None).map_err(|(_, why)| failed(why))?;
            self.source = loop {
                let Some(done) = self.vis[0].sent().map_err(failed)? else { continue };
                if done.status.is_error() {
                    return Err(UserError(format!("an RDMA write failed: {:?}", done.status)));
                }
                break Some(done.work);
            };
        }
        Ok(())
    }
}
