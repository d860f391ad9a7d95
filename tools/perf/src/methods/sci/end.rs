//! What both ends have: a host of SCI, a segment, windows, and interrupts by which the client tells
//! the server what the next block is.

use super::loops::{LEN, MIDDLE, Messages, SMALL, Windows};
use crate::measure::driver::DriverOptions;
use crate::measure::facade::device;
use crate::methods::own_end::OwnEnd;
use cci::{Event, Rma, RmaError, SharedMemory};
use cci_report::{UserError, while_doing};
use cci_sci::{
    Access, DataInterrupt, Direction, DmaQueue, Error, Host, Kind, LocalSegment, Nodes, Options, QueueState,
    RemoteDataInterrupt, RemoteSegment,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a transfer.
pub(super) const LONG: usize = 1 << 20;
const _: () = assert!(LONG <= LEN);
/// What mirror windows are called.
pub(super) const MIRROR: &str = "mirror";
/// Polls before an end looks for the next order.
const POLLS: usize = 64;
/// Bytes of the answer to a message that has a changed word: of its confirmation.
const ANSWER: usize = 24;
/// Transfers of a queue.
pub(super) const IN_A_ROW: u64 = 16;

/// Messages to an owner that polls its memory and makes no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Watch {
    pub(super) count: u64,
    /// The other threads of the owner may use all processors, and the one that polls has its own.
    pub(super) is_free: bool,
    /// What the owner's memory has before the first one.
    pub(super) before: u64,
}

/// What the other end is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// Its part of messages by windows, by bare memory, or by RMA writes of CCI.
    Windows(Messages),
    Bare(Messages),
    Written(Messages),
    /// Progress for RMA of CCI, or for the host of SCI.
    Rma,
    Drive,
    /// Answers each message of CCI by one.
    Answers,
    /// Polls its memory, and makes no call.
    Watch(Watch),
    /// Nothing: the client works alone.
    Rest,
    End,
}

/// How an end is reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Card {
    node: u32,
    segments: Vec<u32>,
    bell: u32,
    own: String,
    /// Its memory, for RMA of CCI's own.
    handle: [u64; 4],
}

/// An end that waits for the other one.
pub(super) struct Alone {
    host: Arc<Host>,
    segments: Vec<LocalSegment>,
    bell: DataInterrupt,
    memory: SharedMemory,
    own: OwnEnd,
}

/// An end. What stands first is dropped first.
pub(super) struct End {
    /// Of segments of [`LEN`], [`SMALL`] and [`MIDDLE`] bytes; of ends that are apart, of
    /// [`SMALL`] bytes alone.
    pub(super) windows: Vec<Windows>,
    queue: DmaQueue,
    far_bell: RemoteDataInterrupt,
    far: Vec<RemoteSegment>,
    bell: DataInterrupt,
    segments: Vec<LocalSegment>,
    /// What RMA of CCI's own writes to.
    pub(super) memory: SharedMemory,
    pub(super) own: OwnEnd,
    host: Arc<Host>,
}

pub(super) fn failed(why: Error) -> UserError {
    UserError(format!("a window of SCI cannot be measured: {why}"))
}

impl Alone {
    pub(super) fn open(opening: &DriverOptions, nodes: Option<Nodes>) -> Result<Self, UserError> {
        let nodes_are_given = nodes.is_some();
        let mut options = Options::new().device(device(opening)?);
        options.nodes = nodes;
        let host = Host::open(&options).map_err(while_doing("cannot open a host of SCI"))?;
        let host = Arc::new(host);
        // Ends in name spaces of their own have few bytes.
        let lens: &[usize] = if nodes_are_given { &[SMALL] } else { &[LEN, SMALL, MIDDLE] };
        let mut segments = Vec::new();
        for (len, number) in lens.iter().zip(0_u32..) {
            // The number of a process has 22 bits.
            let segment = host.create(number << 24 | std::process::id(), *len).map_err(failed)?;
            segment.prepare().and_then(|()| segment.publish()).map_err(failed)?;
            segments.push(segment);
        }
        let bell = host.data_interrupt(None).map_err(failed)?;
        // As segments are: memory of the library is copied by other means than a program's own.
        let memory = SharedMemory::new(LONG).map_err(while_doing("no memory for RMA"))?;
        let own = OwnEnd::open(opening, memory.memory())?;
        Ok(Self { host, segments, bell, memory, own })
    }

    pub(super) fn card(&self) -> Card {
        let segments = self.segments.iter().map(LocalSegment::id).collect();
        let (node, bell) = (self.host.node(), self.bell.number());
        Card { node, segments, bell, own: self.own.uri().to_owned(), handle: self.own.handle() }
    }

    /// The end that measures: tells the other one how it is reached.
    pub(super) fn meet(mut self, other: &Card) -> Result<End, UserError> {
        self.own.connect(&other.own, other.handle)?;
        let card = serde_json::to_vec(&self.card()).map_err(while_doing("cannot write a card"))?;
        let end = self.connect(other)?;
        end.far_bell.trigger(&card).map_err(failed)?;
        end.await_answer()?;
        Ok(end)
    }

    /// The end that serves.
    pub(super) fn accept(mut self) -> Result<End, UserError> {
        self.own.accept()?;
        let card = self.bell.wait(None).map_err(failed)?;
        let card: Card = serde_json::from_slice(&card).map_err(while_doing("cannot read a card"))?;
        self.own.know(card.handle);
        let end = self.connect(&card)?;
        end.answer()?;
        Ok(end)
    }

    fn connect(self, other: &Card) -> Result<End, UserError> {
        let Self { host, segments, bell, memory, own } = self;
        let (mut far, mut windows) = (Vec::new(), Vec::new());
        for (segment, number) in segments.iter().zip(&other.segments) {
            let connection = host.connect(other.node, *number, None).map_err(failed)?;
            windows.push(Windows {
                own: segment.map(0..segment.len(), Access::ReadWrite).map_err(failed)?,
                far: connection.map(0..connection.len(), Access::ReadWrite).map_err(failed)?,
                host: Arc::clone(&host),
            });
            far.push(connection);
        }
        let far_bell = host.connect_data_interrupt(other.node, other.bell, None).map_err(failed)?;
        let queue = host.dma_queue(usize::try_from(IN_A_ROW).unwrap_or(1)).map_err(failed)?;
        Ok(End { windows, queue, far_bell, far, bell, segments, memory, own, host })
    }
}

impl End {
    /// Windows to the longest segments.
    pub(super) fn long(&self) -> &Windows {
        &self.windows[0]
    }

    /// How windows reach their segment.
    pub(super) fn kind(&self) -> &'static str {
        if self.long().far.kind() == Kind::Shared { "shared" } else { MIRROR }
    }

    /// Gives an order, and waits until the other end is at it.
    pub(super) fn order(&self, order: Order) -> Result<(), UserError> {
        let order = serde_json::to_vec(&order).map_err(while_doing("cannot write an order"))?;
        self.far_bell.trigger(&order).map_err(failed)?;
        self.await_answer()
    }

    fn await_answer(&self) -> Result<(), UserError> {
        self.await_bytes().map(drop)
    }

    /// What the other end answers when it has done its part.
    pub(super) fn await_bytes(&self) -> Result<Vec<u8>, UserError> {
        self.bell.wait(None).map_err(failed)
    }

    pub(super) fn answer(&self) -> Result<(), UserError> {
        self.answer_with(&[])
    }

    pub(super) fn answer_with(&self, bytes: &[u8]) -> Result<(), UserError> {
        self.far_bell.trigger(bytes).map_err(failed)
    }

    /// The order after the last one. While there is none this sleeps, or makes the progress that
    /// the last one asks for.
    pub(super) fn next_order(&self, last: Order) -> Result<Order, UserError> {
        let order = loop {
            match last {
                Order::Rma => (0..POLLS).try_for_each(|_| self.progress().map(drop))?,
                Order::Answers => (0..POLLS).try_for_each(|_| self.exchange(Some(ANSWER)).map(drop))?,
                Order::Drive => (0..POLLS).try_for_each(|_| self.host.progress()).map_err(failed)?,
                _ => {}
            }
            let limit = matches!(last, Order::Rma | Order::Drive | Order::Answers).then_some(Duration::ZERO);
            match self.bell.wait(limit) {
                Ok(order) => break order,
                Err(Error::Timeout) => {}
                Err(why) => return Err(failed(why)),
            }
        };
        serde_json::from_slice(&order).map_err(while_doing("cannot read an order"))
    }

    /// Takes events of CCI's own; how many operations have ended.
    pub(super) fn progress(&self) -> Result<u64, UserError> {
        let (mut ended, mut lost) = (0, None);
        while let Some(event) = self.own.endpoint.get_event().map_err(while_doing("cannot take events"))? {
            match event {
                Event::Completed(done) => match done.outcome() {
                    Ok(()) => ended += 1,
                    Err(why) => lost = Some(while_doing("an operation failed")(why)),
                },
                Event::Disconnected(_) => lost = Some(UserError::new("the other end is gone")),
                _ => {}
            }
        }
        lost.map_or(Ok(ended), Err)
    }

    /// So many RMA writes of `len` bytes, `at_once` of them begun before their ends are awaited.
    pub(super) fn write(&self, len: usize, count: u64, at_once: u64) -> Result<(), UserError> {
        let (to, remote) = (self.own.to()?, self.own.remote()?);
        let rma = Rma::new(self.own.memory.handle(), remote, len as u64);
        let mut left = count;
        while left > 0 {
            let (mut begun, mut ended) = (0, 0);
            while begun < at_once.min(left) {
                match self.own.endpoint.write(to, &rma, 1) {
                    Ok(()) => begun += 1,
                    // The ends of those that have begun make room.
                    Err(RmaError::NoBuffers) if ended < begun => ended += self.progress()?,
                    Err(why) => return Err(while_doing("cannot write")(why)),
                }
            }
            while ended < begun {
                ended += self.progress()?;
            }
            left -= begun;
        }
        Ok(())
    }

    /// A queue of transfers, and its end.
    pub(super) fn transfer(&self) -> Result<(), UserError> {
        for _ in 0..IN_A_ROW {
            let enqueued = self.queue.enqueue((&self.segments[0], 0), (&self.far[0], 0), LONG, Direction::Write);
            enqueued.map_err(failed)?;
        }
        self.queue.post().map_err(failed)?;
        match self.queue.wait(None).map_err(failed)? {
            QueueState::Done => self.queue.reset().map_err(failed),
            _ => Err(UserError::new("a transfer of a DMA queue failed")),
        }
    }
}
