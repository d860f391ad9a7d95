//! The network: the mailbox of each endpoint, and the process's list of mailboxes.
//!
//! A new transport replaces this file by its own way to move frames. Peers use a mailbox without
//! the endpoint's lock. So each part has a lock of its own, which nobody holds while taking
//! another.

use cci_mem::fork::PerProcess;
use cci_mem::sync::{AtomicU64, Ordering};
use cci_proto::{Attribute, Status, decimal};
use cci_transport::{Connection, NameCall, OpenError, PollSet, RegistrationTable, lock};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// The scheme of URIs, with what separates it from the number.
const SCHEME: &str = "template://";

/// A request for a connection.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) from: Arc<Mailbox>,
    /// The client's number of the connection.
    pub(crate) number: u32,
    pub(crate) attribute: Attribute,
    pub(crate) max_send_size: u32,
    pub(crate) payload: Vec<u8>,
    /// 0, or what a redirected client presents.
    pub(crate) token: u64,
}

impl Request {
    pub(crate) fn reject(&self) {
        self.from.push(Frame::Rejected { to: self.number });
    }
}

/// What one endpoint sends to another. `to`: the receiver's number of the connection.
pub(crate) enum Frame {
    /// Asks for a connection.
    Request(Request),
    /// The client has given up its request.
    Withdrawn { client: u64, number: u32 },
    /// Answers a request, by the server's number of the connection, and the largest message.
    Accepted { to: u32, from: Arc<Mailbox>, number: u32, most: u32 },
    /// Answers a request.
    Rejected { to: u32 },
    /// Answers a request: ask the endpoint at `uri`, with the token.
    Redirected { to: u32, uri: String, token: u64 },
    /// A message.
    Message { to: u32, bytes: Vec<u8> },
    /// The oldest message that was not acknowledged is in a receive slot.
    Delivered { to: u32 },
    /// A message waits for a receive slot (receiver not ready).
    NotReady { to: u32 },
    /// The connection has ended; no frame follows.
    Close { to: u32 },
}

/// The frames of an endpoint, and whether it sleeps until they come.
#[derive(Default)]
struct Arrivals {
    frames: VecDeque<Frame>,
    /// The program may sleep on the handle, so that the next arrival writes the waker.
    is_watched: bool,
    is_closed: bool,
}

/// The part of an endpoint that peers use.
pub(crate) struct Mailbox {
    pub(crate) number: u64,
    pub(crate) uri: String,
    arrivals: Mutex<Arrivals>,
    /// The OS handle: a timer for deadlines and edges, and the waker, which peers write. A
    /// transport with sockets adds them to the set.
    pub(crate) handle: PollSet,
    /// When the endpoint made progress last, nanoseconds: peers see that it is alive (keepalive).
    pub(crate) polled: AtomicU64,
    pub(crate) registrations: Mutex<RegistrationTable<()>>,
}

/// The mailboxes by number, and the last number that was given.
type Mailboxes = (BTreeMap<u64, Arc<Mailbox>>, u64);

/// All mailboxes of this process. A forked child has a list of its own, because the parent's
/// endpoints do not exist there.
static MAILBOXES: PerProcess<Mutex<Mailboxes>> = PerProcess::new();

/// The number in a URI of this transport.
pub(crate) fn number_of(uri: &str) -> Option<u64> {
    decimal(uri.strip_prefix(SCHEME)?)
}

/// This side's number of a connection.
pub(crate) fn number_in(cell: &Connection) -> u32 {
    cell.local.load(Ordering::Relaxed)
}

impl Mailbox {
    /// Enters a mailbox into the list, with this number or a free one.
    pub(crate) fn open(wanted: Option<u64>, key: u64) -> Result<Arc<Self>, OpenError> {
        let system = |refused| OpenError::call("cannot open a template endpoint", refused);
        let handle = PollSet::new().map_err(system)?;
        let (_, list) = MAILBOXES.get(Mutex::default).by("mmap").map_err(system)?;
        let (mailboxes, last) = &mut *lock(list);
        let number = wanted.unwrap_or_else(|| {
            *last = (*last + 1..).find(|number| !mailboxes.contains_key(number)).unwrap_or_default();
            *last
        });
        if mailboxes.contains_key(&number) {
            let what = format!("another endpoint has the number {number}; give another service");
            return Err(OpenError::new(Status::AddrNotAvail, what));
        }
        let mailbox = Arc::new(Self {
            number,
            uri: format!("{SCHEME}{number}"),
            arrivals: Mutex::default(),
            handle,
            polled: AtomicU64::new(0),
            registrations: Mutex::new(RegistrationTable::new(key)),
        });
        mailboxes.insert(number, Arc::clone(&mailbox));
        Ok(mailbox)
    }

    /// The mailbox of the open endpoint with this number.
    pub(crate) fn find(number: u64) -> Option<Arc<Self>> {
        let (_, list) = MAILBOXES.get(Mutex::default).ok()?;
        lock(list).0.get(&number).cloned()
    }

    /// Sends a frame to this endpoint, and wakes its program if that may sleep. False: the endpoint
    /// is closed.
    pub(crate) fn push(&self, frame: Frame) -> bool {
        let mut arrivals = lock(&self.arrivals);
        if arrivals.is_closed {
            return false;
        }
        arrivals.frames.push_back(frame);
        // Under the lock, so that `watch` cannot clear the handle between the frame and the write.
        // Once: the handle stays readable until the endpoint watches again.
        if std::mem::take(&mut arrivals.is_watched) {
            self.handle.write_waker();
        }
        true
    }

    /// Frames that wait. A sender of unreliable messages drops them where there are many.
    pub(crate) fn len(&self) -> usize {
        lock(&self.arrivals).frames.len()
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.arrivals).is_closed
    }

    /// Takes all frames. The caller handles them without the lock, since its answers may go to this
    /// same mailbox.
    pub(crate) fn take(&self) -> VecDeque<Frame> {
        std::mem::take(&mut lock(&self.arrivals).frames)
    }

    /// Drains the waker, and has the next arrival write it, unless there is work or a frame.
    /// Returns whether there is neither.
    pub(crate) fn watch(&self, has_work: bool) -> bool {
        let mut arrivals = lock(&self.arrivals);
        arrivals.is_watched = !has_work && arrivals.frames.is_empty();
        if arrivals.is_watched {
            // Also where this side has not written: another thread's wake-up makes it readable
            // once.
            self.handle.drain_waker();
        }
        arrivals.is_watched
    }

    /// Closes the mailbox: peers find it no more, and no frame is added. Returns the frames that
    /// wait.
    pub(crate) fn close(&self) -> VecDeque<Frame> {
        if let Ok((_, list)) = MAILBOXES.get(Mutex::default) {
            let mailboxes = &mut lock(list).0;
            // Another endpoint may have the number by now.
            if mailboxes.get(&self.number).is_some_and(|mailbox| std::ptr::eq(&raw const **mailbox, self)) {
                mailboxes.remove(&self.number);
            }
        }
        // A peer that copies has the lock: from here on nobody touches the program's memory.
        lock(&self.registrations).clear();
        let mut arrivals = lock(&self.arrivals);
        arrivals.is_closed = true;
        std::mem::take(&mut arrivals.frames)
    }
}
