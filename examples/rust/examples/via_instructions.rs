//! So many messages of 8 bytes back and forth between two VIs of this process over `sm`, and
//! nothing else: what callgrind counts the instructions of. Arguments: the reliability level (1, 2
//! or 4), and how many round trips.

use cci::Context;
use cci_via::{Access, Address, Connected, Nic, Reliability, Vi, ViAttributes, Work};
use std::error::Error;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// One end: its VI, and the work that it posts again and again.
struct End {
    vi: Vi<Connected>,
    send: Option<Work>,
    receive: Option<Work>,
}

impl End {
    fn new(nic: &Nic, tag: cci_via::Tag, vi: Vi<Connected>) -> Result<Self, Box<dyn Error>> {
        let work = || nic.register(vec![1; 8], tag, Access::default()).map(Work::of);
        Ok(Self { vi, send: Some(work()?), receive: Some(work()?) })
    }

    fn post_receive(&mut self) -> Result<(), Box<dyn Error>> {
        let work = self.receive.take().ok_or("the receive is posted")?;
        self.vi.post_receive(work).map_err(|refused| refused.1.into())
    }

    fn post_send(&mut self) -> Result<(), Box<dyn Error>> {
        let work = self.send.take().ok_or("the send is posted")?;
        self.vi.post_send(work).map_err(|refused| refused.1.into())
    }

    /// Takes a message, and the end of the last send if it has one.
    fn receive(&mut self) -> Result<(), Box<dyn Error>> {
        while self.receive.is_none() {
            self.receive = self.vi.received()?.map(|done| done.work);
        }
        Ok(())
    }

    fn reap(&mut self, other: &mut Self) -> Result<(), Box<dyn Error>> {
        while self.send.is_none() {
            self.send = self.vi.sent()?.map(|done| done.work);
            if self.send.is_none() && other.vi.received()?.is_some() {
                return Err("a message that nobody sent".into());
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [level, count] = &arguments[..] else { return Err("usage: via_instructions LEVEL COUNT".into()) };
    let (reliability, count) = (Reliability::from_bits(level.parse()?).ok_or("levels are 1, 2 and 4")?, count.parse()?);
    let context = Context::new()?;
    let device = context.devices().iter().find(|device| device.transport == "sm").ok_or("no device of sm")?;
    let open = || -> Result<_, Box<dyn Error>> {
        let nic = Nic::open(device)?;
        let tag = nic.protection()?;
        let vi = Vi::new(&nic, &ViAttributes { reliability, tag, ..ViAttributes::default() }, None, None)?;
        Ok((nic, tag, vi))
    };
    let ((one, one_tag, left), (other, other_tag, right)) = (open()?, open()?);
    // Peers whose discriminators nobody else has: both sides are driven by this thread.
    let names = ["a", "b"].map(|end| format!("{end}{}", std::process::id()));
    let (at, from) = (Address::new(one.host(), names[0].as_bytes()), Address::new(other.host(), names[1].as_bytes()));
    let mut left = left.peer(&at, &from, LIMIT).map_err(|refused| refused.1)?;
    let mut right = right.peer(&from, &at, LIMIT).map_err(|refused| refused.1)?;
    while !left.poll()? | !right.poll()? {}
    let (left, right) = (left.wait().map_err(|failed| failed.1)?, right.wait().map_err(|failed| failed.1)?);
    let (mut here, mut there) = (End::new(&one, one_tag, left)?, End::new(&other, other_tag, right)?);
    let count: u64 = count;
    for _ in 0..count {
        there.post_receive()?;
        here.post_receive()?;
        here.post_send()?;
        there.receive()?;
        there.post_send()?;
        here.receive()?;
        here.reap(&mut there)?;
        there.reap(&mut here)?;
    }
    Ok(())
}
