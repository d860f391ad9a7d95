//! So many messages of 8 bytes back and forth between two VIs of this process over `sm`, and
//! nothing else: what callgrind counts the instructions of. Arguments: a way, and how many round
//! trips. The ways: a reliability level (`unreliable`, `delivery`, `reception`), by sends whose
//! queues are polled; `queue`, reliable delivery with one completion queue for each NIC; `write`,
//! by RDMA writes with immediate data.

use cci::{Context, Device};
use cci_via::{Access, Address, Connected, Idle, Nic, Queue, Region, Reliability, Remote, Tag, Vi, ViAttributes, Work};
use std::error::Error;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// One end: its VI, its completion queue if it has one, and the work that it posts again and again.
struct End {
    vi: Vi<Connected>,
    queue: Option<Queue>,
    send: Option<Work>,
    receive: Option<Work>,
    /// Where RDMA writes go.
    remote: Option<Remote>,
}

impl End {
    fn post_receive(&mut self) -> Result<(), Box<dyn Error>> {
        let work = self.receive.take().ok_or("the receive is posted")?;
        self.vi.post_receive(work).map_err(|refused| refused.1.into())
    }

    fn post_send(&mut self) -> Result<(), Box<dyn Error>> {
        let work = self.send.take().ok_or("the send is posted")?;
        let posted = match self.remote {
            Some(remote) => self.vi.post_write(work, remote, Some(7)),
            None => self.vi.post_send(work),
        };
        posted.map_err(|refused| refused.1.into())
    }

    /// Takes what has completed, of one queue or, where there is a completion queue, of the one
    /// that it names.
    fn take(&mut self, is_receive: bool) -> Result<(), Box<dyn Error>> {
        let found = match &self.queue {
            Some(queue) => queue.done()?.map(|(_, is_receive)| is_receive),
            None => Some(is_receive),
        };
        match found {
            Some(true) if self.receive.is_none() => self.receive = self.vi.received()?.map(|done| done.work),
            Some(false) if self.send.is_none() => self.send = self.vi.sent()?.map(|done| done.work),
            _ => {}
        }
        Ok(())
    }

    /// Takes a message. Its sender looks after its send where that needs more than one step.
    fn receive(&mut self, sender: &mut Self) -> Result<(), Box<dyn Error>> {
        loop {
            self.take(true)?;
            if self.receive.is_some() {
                return Ok(());
            }
            sender.take(false)?;
        }
    }

    /// Takes the end of the last send.
    fn reap(&mut self, receiver: &mut Self) -> Result<(), Box<dyn Error>> {
        while self.send.is_none() {
            self.take(false)?;
            if self.send.is_none() {
                receiver.take(true)?;
            }
        }
        Ok(())
    }
}

/// A NIC with a VI that is not connected.
struct Opened {
    nic: Nic,
    tag: Tag,
    vi: Vi<Idle>,
    queue: Option<Queue>,
}

fn open(device: &Device, reliability: Reliability, has_queue: bool) -> Result<Opened, Box<dyn Error>> {
    let nic = Nic::open(device)?;
    let tag = nic.protection()?;
    let queue = has_queue.then(|| nic.queue(16)).transpose()?;
    let access = Access { write: true, read: false };
    let attributes = ViAttributes { reliability, tag, access, ..ViAttributes::default() };
    let vi = Vi::new(&nic, &attributes, queue.as_ref(), queue.as_ref())?;
    Ok(Opened { nic, tag, vi, queue })
}

/// Connects two VIs as peers whose discriminators nobody else has: this thread drives both sides.
fn connect(left: Opened, right: Opened, writes: bool) -> Result<[(End, Region); 2], Box<dyn Error>> {
    let names = ["a", "b"].map(|end| format!("{end}{}", std::process::id()));
    let (at, from) =
        (Address::new(left.nic.host(), names[0].as_bytes()), Address::new(right.nic.host(), names[1].as_bytes()));
    let mut one = left.vi.peer(&at, &from, LIMIT).map_err(|refused| refused.1)?;
    let mut other = right.vi.peer(&from, &at, LIMIT).map_err(|refused| refused.1)?;
    while !one.poll()? | !other.poll()? {}
    let (one, other) = (one.wait().map_err(|failed| failed.1)?, other.wait().map_err(|failed| failed.1)?);
    let end = |nic: &Nic, tag, vi, queue| -> Result<(End, Region), Box<dyn Error>> {
        let work = || nic.register(vec![1; 8], tag, Access::default()).map(Work::of);
        let target = nic.register(vec![0; 8], tag, Access { write: true, read: false })?;
        Ok((End { vi, queue, send: Some(work()?), receive: Some(work()?), remote: None }, target))
    };
    let mut ends = [end(&left.nic, left.tag, one, left.queue)?, end(&right.nic, right.tag, other, right.queue)?];
    if writes {
        let [first, second] = [0, 1].map(|at| Remote { address: 0, handle: ends[at].1.handle() });
        (ends[0].0.remote, ends[1].0.remote) = (Some(second), Some(first));
    }
    Ok(ends)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, count] = &arguments[..] else { return Err("usage: via_instructions WAY COUNT".into()) };
    let count: u64 = count.parse()?;
    let reliability = match way.as_str() {
        "unreliable" => Reliability::Unreliable,
        "delivery" | "queue" | "write" => Reliability::Delivery,
        "reception" => Reliability::Reception,
        other => return Err(format!("{other} is no way; give unreliable, delivery, reception, queue or write").into()),
    };
    let context = Context::new()?;
    let device = context.devices().iter().find(|device| device.transport == "sm").ok_or("no device of sm")?;
    let opened = || open(device, reliability, way == "queue");
    let [(mut here, _ours), (mut there, _theirs)] = connect(opened()?, opened()?, way == "write")?;
    for _ in 0..count {
        there.post_receive()?;
        here.post_receive()?;
        here.post_send()?;
        there.receive(&mut here)?;
        there.post_send()?;
        here.receive(&mut there)?;
        here.reap(&mut there)?;
        there.reap(&mut here)?;
    }
    Ok(())
}
