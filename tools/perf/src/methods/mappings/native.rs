//! Native VI: an end that posts descriptors itself, with one completion queue.

use crate::methods::logp::Line;
use cci::Device;
use cci_report::{UserError, while_doing};
use cci_via::{Access, Address, Connected, Error, Nic, Queue, Region, Remote, Vi, ViAttributes, Work};
use std::net::IpAddr;
use std::time::Duration;

/// Receives of each end; the requester has fewer requests under way.
const RECEIVES: usize = 192;
/// Bytes of a buffer.
const BUFFER: usize = 4_096;
/// RDMA writes under way.
const WRITES: usize = 8;
/// How long the other end may take to come.
const ARRIVAL: Duration = Duration::from_secs(60);
/// The first byte of the last message.
const LAST: u8 = 0xFF;

/// The end.
pub(super) struct Native {
    vi: Vi<Connected>,
    queue: Queue,
    nic: Nic,
    tag: cci_via::Tag,
    /// Send buffers that nothing uses.
    free: Vec<Work>,
    under_way: usize,
    /// Kept for the other end.
    _target: Region,
}

/// What the requester needs to reach the other end.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Card {
    host: IpAddr,
    word: String,
}

/// A NIC, before it is connected.
pub(super) struct Opened {
    nic: Nic,
    tag: cci_via::Tag,
    queue: Queue,
    target: Region,
    word: String,
}

fn failed(why: Error) -> UserError {
    UserError(format!("the VI cannot be used: {why}"))
}

impl Opened {
    pub(super) fn new(device: &Device, area: usize) -> Result<Self, UserError> {
        let nic = Nic::open(device).map_err(while_doing("cannot open a NIC"))?;
        let tag = nic.protection().map_err(failed)?;
        let queue = nic.queue(4 * RECEIVES).map_err(failed)?;
        let target = nic.register(vec![0; area], tag, Access { write: true, read: false }).map_err(failed)?;
        let word = format!("native{}", std::process::id());
        Ok(Self { nic, tag, queue, target, word })
    }

    /// The memory that the other end may write.
    pub(super) fn handle(&self) -> u32 {
        self.target.handle()
    }

    pub(super) fn card(&self) -> Card {
        Card { host: self.nic.host(), word: self.word.clone() }
    }

    /// Connects to the end with this card; without one, waits for the other end.
    pub(super) fn connect(self, to: Option<&Card>) -> Result<Native, UserError> {
        let Self { nic, tag, queue, target, word } = self;
        let access = Access { write: true, read: false };
        let attributes = ViAttributes { tag, access, max_transfer: cci_via::MAX_TRANSFER, ..ViAttributes::default() };
        let mut vi = Vi::new(&nic, &attributes, Some(&queue), Some(&queue)).map_err(failed)?;
        let buffer = || nic.register(vec![0; BUFFER], tag, Access::default()).map_err(failed);
        for _ in 0..RECEIVES {
            vi.post_receive(Work::of(buffer()?)).map_err(|(_, why)| failed(why))?;
        }
        let local = Address::new(nic.host(), word.as_bytes());
        let vi = match to {
            None => {
                let mut incoming = nic.listen(&local, Some(ARRIVAL)).map_err(failed)?;
                incoming.accept(vi).map_err(|(_, why)| failed(why))?
            }
            Some(card) => {
                let remote = Address::new(card.host, card.word.as_bytes());
                let begin = std::time::Instant::now();
                loop {
                    match vi.request(&local, &remote, ARRIVAL) {
                        Ok(vi) => break vi,
                        // The other end does not listen yet.
                        Err((idle, Error::NoMatch)) if begin.elapsed() < ARRIVAL => vi = idle,
                        Err((_, why)) => return Err(failed(why)),
                    }
                }
            }
        };
        Ok(Native { vi, queue, nic, tag, free: Vec::new(), under_way: 0, _target: target })
    }
}

impl Native {
    /// Has send buffers for messages of so many bytes.
    pub(super) fn resize(&mut self, bytes: usize) -> Result<(), UserError> {
        self.free.clear();
        for _ in 0..RECEIVES {
            let region = self.nic.register(vec![1; bytes], self.tag, Access::default()).map_err(failed)?;
            self.free.push(Work::of(region));
        }
        Ok(())
    }

    /// Takes what has completed, once. A receive: its first byte.
    #[inline]
    fn take(&mut self) -> Result<Option<u8>, UserError> {
        let Some((_, is_receive)) = self.queue.done().map_err(failed)? else { return Ok(None) };
        let done = if is_receive { self.vi.received() } else { self.vi.sent() };
        let Some(done) = done.map_err(failed)? else { return Ok(None) };
        if done.status.is_error() {
            return Err(UserError(format!("a descriptor failed: {:?}", done.status)));
        }
        if !is_receive {
            self.free.push(done.work);
            return Ok(None);
        }
        let mut first = [0];
        let is_there = done.work.regions().first().is_some_and(|region| region.read(0, &mut first));
        self.vi.post_receive(done.work).map_err(|(_, why)| failed(why))?;
        Ok(is_there.then_some(first[0]))
    }

    /// Answers each message by as many bytes, until the last one.
    pub(super) fn serve(mut self) -> Result<(), UserError> {
        loop {
            match self.take()? {
                Some(LAST) => return Ok(()),
                Some(_) => {
                    while self.free.is_empty() {
                        self.take()?;
                    }
                    self.send()?;
                }
                None => {}
            }
        }
    }

    #[inline]
    fn send(&mut self) -> Result<(), UserError> {
        let work = self.free.pop().ok_or_else(|| UserError::new("no buffer is left for a send"))?;
        self.vi.post_send(work).map_err(|(_, why)| failed(why))
    }

    /// Lets the other end go.
    pub(super) fn leave(mut self) -> Result<(), UserError> {
        let region = self.nic.register(vec![LAST; 8], self.tag, Access::default()).map_err(failed)?;
        self.vi.post_send(Work::of(region)).map_err(|(_, why)| failed(why))?;
        let before = self.free.len();
        while self.free.len() == before {
            self.take()?;
        }
        Ok(())
    }

    /// So many copies of bytes into registered memory, as a message is copied to its buffer.
    pub(super) fn copy(&mut self, bytes: &[u8], count: u64) -> Result<(), UserError> {
        let region = self.nic.register(vec![0; bytes.len()], self.tag, Access::default()).map_err(failed)?;
        for _ in 0..count {
            if !std::hint::black_box(&region).write(0, std::hint::black_box(bytes)) {
                return Err(UserError::new("the bytes do not fit"));
            }
        }
        Ok(())
    }

    /// So many RDMA writes of so many bytes.
    pub(super) fn stream(&mut self, to: u32, bytes: usize, count: u64) -> Result<(), UserError> {
        let remote = Remote { address: 0, handle: to };
        let register = |_| self.nic.register(vec![1; bytes], self.tag, Access::default()).map(Work::of);
        self.free = (0..WRITES).map(register).collect::<Result<_, _>>().map_err(failed)?;
        let (mut posted, mut ended) = (0, 0);
        while ended < count {
            while posted < count
                && let Some(work) = self.free.pop()
            {
                self.vi.post_write(work, remote, None).map_err(|(_, why)| failed(why))?;
                posted += 1;
            }
            let before = self.free.len();
            self.take()?;
            ended += (self.free.len() - before) as u64;
        }
        Ok(())
    }
}

impl Line for Native {
    #[inline(always)]
    fn issue(&mut self, _: &[u8]) -> Result<bool, UserError> {
        if self.under_way >= RECEIVES - 8 || self.free.is_empty() {
            return Ok(false);
        }
        self.send()?;
        self.under_way += 1;
        Ok(true)
    }

    #[inline(always)]
    fn look(&mut self) -> Result<u64, UserError> {
        let came = self.take()?.is_some();
        self.under_way -= usize::from(came);
        Ok(u64::from(came))
    }
}
