//! VIs as Rust programs hold them: what may be called follows from the type.

use crate::attributes::ViAttributes;
use crate::engine::{Core, Taken};
use crate::errors::{Error, Status};
use crate::nic::{Nic, Queue};
use crate::region::Work;
use crate::rendezvous::Address;
use crate::state::ViState;
use crate::task::{Completion, Op, Remote};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// The mark of a VI that is not connected.
///
/// # Example
///
/// ```
/// fn post(vi: &mut cci_via::Vi<cci_via::Idle>, work: cci_via::Work) -> bool {
///     vi.post_receive(work).is_ok()
/// }
/// ```
#[derive(Debug)]
pub enum Idle {}

/// The mark of a VI that connects in the peer-to-peer model.
///
/// # Example
///
/// ```
/// fn wait(vi: cci_via::Vi<cci_via::Pending>) -> Option<cci_via::Vi<cci_via::Connected>> {
///     vi.wait().ok()
/// }
/// ```
#[derive(Debug)]
pub enum Pending {}

/// The mark of a VI that is connected, or was until its connection broke.
///
/// # Example
///
/// ```
/// fn end(vi: cci_via::Vi<cci_via::Connected>) -> cci_via::Vi<cci_via::Idle> {
///     vi.disconnect()
/// }
/// ```
#[derive(Debug)]
pub enum Connected {}

/// How a descriptor ended, with its work.
///
/// # Example
///
/// ```
/// fn again(done: cci_via::Done) -> Option<cci_via::Work> {
///     (!done.status.is_error()).then_some(done.work)
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Done {
    /// How it ended.
    pub status: Status,
    /// Bytes that were transferred.
    pub length: u32,
    /// Immediate data of the peer.
    pub immediate: Option<u32>,
    /// What was posted.
    pub work: Work,
}

/// A VI: one end of a connection. It ends when it is dropped, with what is posted to it.
///
/// # Example
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cci_via::{Nic, Vi, ViAttributes};
///
/// let nic = Nic::open(cci::Context::new()?.default_device()?)?;
/// let attributes = ViAttributes { tag: nic.protection()?, ..ViAttributes::default() };
/// let mut vi = Vi::new(&nic, &attributes, None, None)?;
/// assert!(vi.received()?.is_none());
/// # Ok(())
/// # }
/// ```
pub struct Vi<S> {
    core: Arc<Core<Work>>,
    number: u32,
    /// Ends the VI; moved from state to state.
    owner: Owner,
    state: PhantomData<fn() -> S>,
}

struct Owner(Arc<Core<Work>>, u32);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.drop_vi(self.1);
    }
}

impl Vi<Idle> {
    /// Makes a VI; its queues report to completion queues of the same NIC if such are given.
    ///
    /// # Errors
    ///
    /// The first attribute that is not offered; [`Error::Resource`].
    pub fn new(
        nic: &Nic,
        attributes: &ViAttributes,
        send: Option<&Queue>,
        receive: Option<&Queue>,
    ) -> Result<Self, Error> {
        let number = |queue: Option<&Queue>| queue.map(|queue| queue.number);
        let number = nic.0.create_vi(attributes, number(send), number(receive))?;
        let (core, owner) = (Arc::clone(&nic.0), Owner(Arc::clone(&nic.0), number));
        Ok(Self { core, number, owner, state: PhantomData })
    }

    /// Connects to whoever waits at `to`.
    ///
    /// # Errors
    ///
    /// The VI comes back; see [`Core::request`].
    pub fn request(self, from: &Address, to: &Address, limit: Duration) -> Result<Vi<Connected>, (Self, Error)> {
        match self.core.request(self.number, from, to, Some(limit)) {
            Ok(_) => Ok(self.into_state()),
            Err(why) => Err((self, why)),
        }
    }

    /// Begins to connect with a peer that does the same.
    ///
    /// # Errors
    ///
    /// The VI comes back; see [`Core::peer_request`].
    pub fn peer(self, from: &Address, to: &Address, limit: Duration) -> Result<Vi<Pending>, (Self, Error)> {
        match self.core.peer_request(self.number, from, to, Some(limit)) {
            Ok(()) => Ok(self.into_state()),
            Err(why) => Err((self, why)),
        }
    }
}

impl Vi<Pending> {
    /// Goes on; whether it is connected now.
    ///
    /// # Errors
    ///
    /// It has failed: [`Vi::wait`] gives the VI back.
    pub fn poll(&mut self) -> Result<bool, Error> {
        self.core.peer_done(self.number).map(|attributes| attributes.is_some())
    }

    /// Waits until it is connected, or the time is over.
    ///
    /// # Errors
    ///
    /// The VI comes back; see [`Core::peer_done`].
    pub fn wait(self) -> Result<Vi<Connected>, (Vi<Idle>, Error)> {
        match self.core.peer_wait(self.number) {
            Ok(_) => Ok(self.into_state()),
            Err(why) => Err((self.into_state(), why)),
        }
    }
}

impl Vi<Connected> {
    #[inline]
    fn post(&mut self, op: Op, immediate: Option<u32>, work: Work) -> Result<(), (Work, Error)> {
        self.core.post_send(self.number, None, work, |work, _, task| {
            work.describe(task);
            task.op = op;
            if immediate.is_some() {
                task.immediate = immediate.map(u64::from);
            }
        })
    }

    /// Posts a send.
    ///
    /// # Errors
    ///
    /// The work comes back. [`Error::Resource`]: the queue is full.
    pub fn post_send(&mut self, work: Work) -> Result<(), (Work, Error)> {
        self.post(Op::Send, None, work)
    }

    /// Posts an RDMA write; immediate data takes a receive of the peer.
    ///
    /// # Errors
    ///
    /// As [`Vi::post_send`].
    pub fn post_write(&mut self, work: Work, to: Remote, immediate: Option<u32>) -> Result<(), (Work, Error)> {
        self.post(Op::Write(to), immediate, work)
    }

    /// Posts an RDMA read into the memory of `work`.
    ///
    /// # Errors
    ///
    /// As [`Vi::post_send`].
    pub fn post_read(&mut self, work: Work, from: Remote) -> Result<(), (Work, Error)> {
        self.post(Op::Read(from), None, work)
    }

    /// Returns whether the connection stands.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(self.core.query_vi(self.number), Ok((ViState::Connected, ..)))
    }

    /// Ends the connection. What is posted is flushed, and can still be taken.
    #[must_use]
    pub fn disconnect(self) -> Vi<Idle> {
        // The number is live as long as this value.
        let _ = self.core.disconnect(self.number);
        self.into_state()
    }
}

impl<S> Vi<S> {
    /// Returns the number that completion queues and faults name it by.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn into_state<R>(self) -> Vi<R> {
        Vi { core: self.core, number: self.number, owner: self.owner, state: PhantomData }
    }

    /// Posts a receive.
    ///
    /// # Errors
    ///
    /// The work comes back. [`Error::Resource`]: the queue is full.
    pub fn post_receive(&mut self, work: Work) -> Result<(), (Work, Error)> {
        self.core.post_receive(self.number, None, work, |work, _, task| work.describe(task))
    }

    /// Takes the oldest descriptor of the send queue, if it has completed.
    ///
    /// # Errors
    ///
    /// None while the VI lives.
    pub fn sent(&mut self) -> Result<Option<Done>, Error> {
        self.core.take(self.number, false).map(done)
    }

    /// Takes the oldest descriptor of the receive queue, if it has completed.
    ///
    /// # Errors
    ///
    /// As [`Vi::sent`].
    pub fn received(&mut self) -> Result<Option<Done>, Error> {
        self.core.take(self.number, true).map(done)
    }

    /// As [`Vi::sent`], and sleeps until it has completed.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]; [`Error::State`]: nothing is posted; [`Error::Parameter`]: the queue
    /// reports to a completion queue.
    pub fn wait_sent(&mut self, limit: Option<Duration>) -> Result<Done, Error> {
        self.core.wait_taken(self.number, false, limit).map(done)?.ok_or(NOTHING_POSTED)
    }

    /// As [`Vi::received`], and sleeps until it has completed.
    ///
    /// # Errors
    ///
    /// As [`Vi::wait_sent`].
    pub fn wait_received(&mut self, limit: Option<Duration>) -> Result<Done, Error> {
        self.core.wait_taken(self.number, true, limit).map(done)?.ok_or(NOTHING_POSTED)
    }
}

const NOTHING_POSTED: Error = Error::State("nothing is posted to that queue; post first");

fn done(taken: Taken<Work>) -> Option<Done> {
    match taken {
        Taken::Done(Completion { status, length, immediate }, work) => {
            Some(Done { status, length, immediate: immediate.map(|immediate| immediate as u32), work })
        }
        Taken::NotDone | Taken::Empty => None,
    }
}

impl<S> fmt::Debug for Vi<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vi({:#x})", self.number)
    }
}
