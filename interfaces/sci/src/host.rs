//! Hosts: what a program opens first.

use crate::broadcast;
use crate::claims::{self, Named, Owner};
use crate::connect::{self, Connecting};
use crate::device_memory::DeviceMemory;
use crate::dma::DmaQueue;
use crate::errors::{Error, NotOpened};
use crate::interrupts::{DataInterrupt, Interrupt, RemoteDataInterrupt, RemoteInterrupt};
use crate::links::{Hosts, Links};
use crate::names::{self, Names};
use crate::nodes::{Nodes, unserved};
use crate::objects::Request;
use crate::options::Options;
use crate::remote::RemoteSegment;
use crate::segment::LocalSegment;
use crate::shared::Shared;
use crate::state::State;
use crate::thread::start;
use crate::types::deadline;
use crate::wire::Message;
use cci::{Context, Device, Endpoint, EndpointOptions};
use cci_mem::descriptors;
use cci_mem::fork::PerProcess;
use cci_peers::{Name, Peers};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a process that cannot be reached is tried.
const REACH: Duration = Duration::from_secs(5);
/// Tells a forked child from this process.
static MARK: PerProcess<()> = PerProcess::new();
/// The first number of interrupts that may have any, and how many are tried.
const ANY: (u32, u32) = (1024, 4096);

/// A host: what SISCI calls a virtual device. It has an endpoint of CCI and one thread, on which
/// callbacks run. Any thread may call it. Dropping it ends all its objects, for others too;
/// windows stay mapped until they are dropped.
///
/// # Example
///
/// ```
/// use cci_sci::{Access, Host, Options, SequenceStatus};
///
/// let id = std::process::id();
/// let (owner, other) = (Host::open(&Options::new())?, Host::open(&Options::new())?);
/// let segment = owner.create(id, 4096)?;
/// segment.prepare()?;
/// segment.publish()?;
///
/// let far = other.connect(owner.node(), id, None)?;
/// let window = far.map(0..4096, Access::ReadWrite)?;
/// let sequence = window.sequence();
/// window.store(64, 7_u32)?;
/// assert_eq!(sequence.check(), SequenceStatus::Ok);
/// assert_eq!(segment.map(0..4096, Access::Read)?.load::<u32>(64)?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Host {
    pub(crate) shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Opens a host.
    ///
    /// # Errors
    ///
    /// The node table or the memory of a device is wrong, the endpoint cannot be opened, or the
    /// system has no descriptor, thread or random numbers.
    pub fn open(options: &Options) -> Result<Self, NotOpened> {
        let nodes = match &options.nodes {
            Some(nodes) => nodes.clone(),
            None => Nodes::from_environment()?,
        };
        let device = match &options.device {
            Some(device) => device.clone(),
            None => Context::new()?.default_device()?.clone(),
        };
        let memory = options.memory.clone().or_else(|| std::env::var_os("SCI_MEMORY").map(PathBuf::from));
        let memory = memory.map(|path| DeviceMemory::open(&path, &nodes)).transpose()?;
        let endpoint = Endpoint::open(&device, &EndpointOptions::new().disconnect_events(true))?;
        let mut number = [0; 8];
        // So few bytes come whole.
        rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())?;
        let number = u64::from_ne_bytes(number);
        let hosts = Hosts::default();
        let peer_options = cci_peers::Options::new().limit(REACH);
        let peers = Peers::new(Name::Number(number), Box::new(hosts.clone()), &peer_options)?;
        let asked = descriptors::epoll()?;
        let introduction = Owner { number, uri: endpoint.uri().to_owned() }.emit();
        let mut state = State::new(Links::new(peers, hosts), MARK.get(|| ())?.0);
        state.device = memory.map(Arc::new);
        let shared = Arc::new(Shared::new(endpoint, nodes, state, asked, introduction)?);
        shared.begin_mirrors(options.protect);
        if let Some(port) = shared.nodes.served_port().filter(|_| is_open(&device)) {
            let served = Names::serve(port).map_err(|why| unserved(port, &why))?;
            *shared.names.lock().unwrap_or_else(PoisonError::into_inner) = Some(served);
        }
        let thread = start(&shared).map_err(NotOpened::System)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Returns the node of this host.
    #[must_use]
    pub fn node(&self) -> u32 {
        self.shared.nodes.own()
    }

    /// Returns whether a node can be reached. Waits a second at most for another host.
    ///
    /// # Errors
    ///
    /// [`Error::IllegalNode`], [`Error::NoSuchNode`]; [`Error::NotImplemented`]: it is another
    /// host, and this one is not open; [`Error::NodeNotResponding`]; [`Error::IllegalOperation`]:
    /// in a callback, of another host.
    pub fn probe(&self, node: u32) -> Result<(), Error> {
        let place = self.shared.place(node)?;
        if place.is_here {
            return Ok(());
        }
        self.shared.check_wait()?;
        names::probe(place, node)
    }

    /// Takes what has come from other hosts. A program that polls memory into which other hosts
    /// write calls it: then nobody has to be woken. Does not wait, and runs no callback.
    ///
    /// # Errors
    ///
    /// [`Error::NotInitialized`].
    pub fn progress(&self) -> Result<(), Error> {
        self.shared.drive_once()
    }

    /// Creates a segment of `size` zero bytes. Others cannot connect to it yet.
    ///
    /// # Errors
    ///
    /// [`Error::IllegalParameter`]: no bytes. [`Error::SegmentIdUsed`], [`Error::NoSpace`],
    /// [`Error::NotInitialized`].
    pub fn create(&self, id: u32, size: usize) -> Result<LocalSegment, Error> {
        LocalSegment::create(&self.shared, id, size)
    }

    /// Creates a segment of a broadcast group, of `size` zero bytes or what the group has on this
    /// host. A store by [`Host::connect_broadcast`] reaches all segments of the group.
    ///
    /// # Errors
    ///
    /// As [`Host::create`]; [`Error::SegmentIdUsed`]: the group has another size, or this process
    /// a segment of the number. [`Error::Timeout`]: the members on this host do not answer.
    pub fn create_broadcast(&self, id: u32, size: usize) -> Result<LocalSegment, Error> {
        broadcast::create(&self.shared, id, size)
    }

    /// Connects to all segments of a broadcast group, those of this process too. Waits at most for
    /// `limit`; without one, as long as the members run.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSegment`]: the group has no segment that is available. [`Error::Timeout`],
    /// [`Error::NoSpace`]; [`Error::IllegalOperation`]: in a callback.
    /// [`Error::NotInitialized`].
    pub fn connect_broadcast(&self, id: u32, limit: Option<Duration>) -> Result<RemoteSegment, Error> {
        broadcast::connect(&self.shared, id, deadline(limit))
    }

    /// Connects to a segment of a node. Waits at most for `limit`; without one, as long as its
    /// owner runs.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSegment`]: it is not there, or not available; the program tries again.
    /// [`Error::Timeout`]; [`Error::NodeNotResponding`]: its owner cannot be reached.
    /// [`Error::NoSpace`]; [`Error::IllegalOperation`]: in a callback. As [`Host::probe`].
    pub fn connect(&self, node: u32, id: u32, limit: Option<Duration>) -> Result<RemoteSegment, Error> {
        connect::connect(&self.shared, (node, id), (deadline(limit), None))
    }

    /// Begins to connect to a segment of a node, and does not wait. `limit` is that of the connect;
    /// without one, it goes on as long as the owner runs. It fails with the errors of
    /// [`Host::connect`].
    ///
    /// # Errors
    ///
    /// [`Error::IllegalNode`], [`Error::NoSuchNode`], [`Error::NotImplemented`]: as
    /// [`Host::probe`]. [`Error::NoSpace`]: there is no thread. [`Error::NotInitialized`].
    pub fn begin_connect(&self, node: u32, id: u32, limit: Option<Duration>) -> Result<Connecting, Error> {
        connect::begin(&self.shared, (node, id), deadline(limit))
    }

    /// Creates an interrupt with this number, or with any.
    ///
    /// # Errors
    ///
    /// [`Error::SegmentIdUsed`]: the number is used. [`Error::NoSpace`],
    /// [`Error::NotInitialized`].
    pub fn interrupt(&self, number: Option<u32>) -> Result<Interrupt, Error> {
        self.enter_interrupt(number, false)
            .map(|(number, life, claim)| Interrupt::new(&self.shared, number, life, claim))
    }

    /// Creates an interrupt that takes bytes, with this number or with any.
    ///
    /// # Errors
    ///
    /// As [`Host::interrupt`].
    pub fn data_interrupt(&self, number: Option<u32>) -> Result<DataInterrupt, Error> {
        self.enter_interrupt(number, true)
            .map(|(number, life, claim)| DataInterrupt::new(&self.shared, number, life, claim))
    }

    fn enter_interrupt(&self, number: Option<u32>, has_bytes: bool) -> Result<(u32, u64, u64), Error> {
        let node = self.node();
        let (number, socket) = match number {
            Some(number) => (number, claims::claim(node, Named::Interrupt(number))?),
            None => {
                let claim = |number| match claims::claim(node, Named::Interrupt(number)) {
                    Err(Error::SegmentIdUsed) => None,
                    other => Some(other.map(|socket| (number, socket))),
                };
                (ANY.0..ANY.0 + ANY.1).find_map(claim).unwrap_or(Err(Error::NoSpace))?
            }
        };
        self.shared.with(|state| {
            let life = state.next();
            let claim = self.shared.enter_claim(state, socket)?;
            state.enter_interrupt(number, life, has_bytes);
            Ok((number, life, claim))
        })
    }

    /// Connects to an interrupt of a node, as [`Host::connect`].
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchSegment`]: there is none, or it takes bytes. Others as [`Host::connect`].
    pub fn connect_interrupt(&self, node: u32, number: u32, limit: Option<Duration>) -> Result<RemoteInterrupt, Error> {
        let token = self.attach(node, number, limit, false)?;
        Ok(RemoteInterrupt::new(&self.shared, token))
    }

    /// Connects to an interrupt that takes bytes, as [`Host::connect_interrupt`].
    ///
    /// # Errors
    ///
    /// As [`Host::connect_interrupt`].
    pub fn connect_data_interrupt(
        &self,
        node: u32,
        number: u32,
        limit: Option<Duration>,
    ) -> Result<RemoteDataInterrupt, Error> {
        let token = self.attach(node, number, limit, true)?;
        Ok(RemoteDataInterrupt::new(&self.shared, token))
    }

    fn attach(&self, node: u32, number: u32, limit: Option<Duration>, has_bytes: bool) -> Result<u64, Error> {
        let until = (deadline(limit), None);
        let is_own = |state: &State| node == self.node() && state.interrupts.contains_key(&number);
        let find = self.shared.find((node, Named::Interrupt(number)), until, is_own, Error::NoSuchSegment);
        let partner = find?;
        let request = Request { partner, node, segment: None, outcome: None };
        self.shared.ask(request, until, |token| Message::Attach { token, interrupt: number, has_bytes })
    }

    /// Creates a DMA queue for at most `most` transfers.
    ///
    /// # Errors
    ///
    /// [`Error::IllegalParameter`]: none. [`Error::NotInitialized`].
    pub fn dma_queue(&self, most: usize) -> Result<DmaQueue, Error> {
        DmaQueue::create(&self.shared, most)
    }

    /// Waits until the owners of all segments have what this process has stored to its windows, as
    /// a program does that ends, `limit` at most and a second. Shared windows need no wait.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]: an owner does not answer, or it takes longer.
    pub fn confirm(&self, limit: Duration) -> Result<(), Error> {
        if self.shared.confirm_mirrors(limit) { Ok(()) } else { Err(Error::Timeout) }
    }

    /// Ends the host, unless objects live.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`]: objects live. [`Error::NotInitialized`]: it has ended already.
    pub fn close(&self) -> Result<(), Error> {
        self.shared.with(|state| if state.is_in_use() { Err(Error::Busy) } else { Ok(()) })?;
        self.shared.close();
        Ok(())
    }
}

/// Whether endpoints of a device can be reached by other hosts.
fn is_open(device: &Device) -> bool {
    let Some(driver) = cci::driver(&device.transport) else { return false };
    let given = driver.with_environment(&device.arguments);
    let address = given.iter().find_map(|(key, value)| match key.as_str() {
        "ip" => Some(!value.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())),
        "interface" => Some(value != "lo"),
        _ => None,
    });
    let listen = given.iter().find(|(key, _)| key == "listen").map(|(_, value)| value == "network");
    // Of one transport the address stands above `listen`; over several it counts below.
    let said = if driver.over.is_some() { listen.or(address) } else { address.or(listen) };
    said.unwrap_or_else(|| std::env::var("CCI_LISTEN").is_ok_and(|value| value == "network"))
}

impl Drop for Host {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // A forked child has no such thread.
        if !self.shared.is_here() {
            std::mem::forget(thread);
            return;
        }
        self.shared.close();
        if thread.thread().id() != std::thread::current().id() {
            // The thread catches panics of callbacks.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host(node {} at {})", self.node(), self.shared.endpoint().uri())
    }
}
