//! Several endpoints of one process, driven by one thread.

use cci::{Attribute, Connect, Connection, Context, Device, Endpoint, EndpointOptions, Event, EventKind, PollError};
pub use cci_instruments::{pattern, pattern_into};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a test waits for what must happen: much longer than it ever takes, so that a loaded
/// machine fails no test.
pub const LIMIT: Duration = Duration::from_secs(30);

/// The device of the transport `sm`.
///
/// # Panics
///
/// There is none.
pub fn sm_device() -> Device {
    let context = Context::new().expect("devices");
    context.devices().iter().find(|device| device.transport == "sm" && device.up).expect("a device of sm").clone()
}

/// A device of this transport with these keys.
///
/// # Panics
///
/// The transport is not in this build or not usable here, or the keys are wrong.
pub fn device_of(transport: &str, keys: &[(&str, &str)]) -> Device {
    let lines: String = keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    let name = format!("cci-{}-{transport}-{}.ini", std::process::id(), fastrand::u64(..));
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, format!("[{transport}]\ntransport = {transport}\n{lines}")).expect("a file");
    let context = Context::from_file(&path);
    std::fs::remove_file(&path).expect("just written");
    let device = context.expect("a valid configuration").devices()[0].clone();
    assert!(device.up, "{}", device.reason);
    device
}

/// A device of this transport with these keys and a secret, which all such devices of this process
/// have: its connections are sealed.
///
/// # Panics
///
/// As of [`device_of`].
pub fn sealed_device_of(transport: &str, keys: &[(&str, &str)]) -> Device {
    static FILE: OnceLock<tempfile::NamedTempFile> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        // Nobody else may read it, as of each temporary file.
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "5e".repeat(32)).expect("just made");
        file
    });
    let path = file.path().to_str().expect("a path of letters");
    device_of(transport, &[keys, &[("security", "required"), ("secret_file", path)]].concat())
}

/// A device of this transport within this host; of `sim`, with a network of its own of 10 Gb/s and
/// 2 us.
///
/// # Panics
///
/// As of [`device_of`].
pub fn local_device(transport: &str) -> Device {
    static LAST: AtomicU32 = AtomicU32::new(0);
    match transport {
        "sim" => {
            let network = format!("local{}", LAST.fetch_add(1, Ordering::Relaxed));
            device_of("sim", &[("network", &network), ("delay", "2000"), ("bandwidth", "1250000000")])
        }
        "sock" | "tcp" => device_of(transport, &[("ip", "127.0.0.1")]),
        other => device_of(other, &[]),
    }
}

/// An endpoint with default options.
///
/// # Panics
///
/// It cannot be opened.
pub fn open(device: &Device) -> Endpoint {
    open_with(device, |_| ())
}

/// An endpoint with other options.
///
/// # Panics
///
/// It cannot be opened.
pub fn open_with(device: &Device, change: impl FnOnce(&mut EndpointOptions)) -> Endpoint {
    let mut options = EndpointOptions::new();
    change(&mut options);
    Endpoint::open(device, &options).expect("an endpoint")
}

/// The largest message of an open connection, bytes.
///
/// # Panics
///
/// It has ended.
pub fn most(connection: Connection) -> usize {
    connection.max_send_size().expect("an open connection") as usize
}

/// Waits until a descriptor is readable; false when the time is over.
///
/// # Panics
///
/// The descriptor cannot be polled.
pub fn readable(fd: impl AsFd, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Ok(count) => return count > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("cannot poll: {error}"),
        }
    }
}

/// Takes and returns every event that an endpoint has now, and says how many.
///
/// # Panics
///
/// The endpoint cannot be used here.
pub fn drain(endpoint: &Endpoint) -> usize {
    let mut count = 0;
    while let Ok(Some(event)) = endpoint.get_event() {
        drop(event);
        count += 1;
    }
    count
}

/// Runs `act` while another thread polls an endpoint and returns its events.
///
/// # Panics
///
/// `act` panics.
pub fn while_polled<T>(endpoint: &Endpoint, act: impl FnOnce() -> T) -> T {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if drain(endpoint) == 0 {
                    std::thread::yield_now();
                }
            }
        });
        // Also when `act` panics.
        let _over = Over(&over);
        act()
    })
}

/// Endpoints, and the events that they have given and nobody has asked for.
pub struct World<'e> {
    endpoints: Vec<&'e Endpoint>,
    queues: Vec<RefCell<VecDeque<Event<'e>>>>,
    /// Steps that found nothing.
    idle: Cell<u32>,
}

/// Steps that find nothing before the processor is offered to others. On a busy machine it comes
/// back after milliseconds, and the time of a virtual network moves by microseconds a step.
const PATIENCE: u32 = 32;

impl<'e> World<'e> {
    /// One of them.
    #[must_use]
    pub fn endpoint(&self, at: usize) -> &'e Endpoint {
        self.endpoints[at]
    }

    /// A world of these endpoints.
    pub fn new<const N: usize>(endpoints: [&'e Endpoint; N]) -> Self {
        let queues = endpoints.iter().map(|_| RefCell::default()).collect();
        Self { endpoints: endpoints.to_vec(), queues, idle: Cell::new(0) }
    }

    /// A world of two endpoints, and a connection from the first one: as the first has it, and as
    /// the second has it.
    ///
    /// # Panics
    ///
    /// They cannot connect.
    pub fn joined(endpoints: [&'e Endpoint; 2], attribute: Attribute) -> (Self, Connection, Connection) {
        let world = Self::new(endpoints);
        let (from, to) = world.connect(0, 1, attribute);
        (world, from, to)
    }

    /// The number of the last endpoint.
    pub fn last(&self) -> usize {
        self.endpoints.len() - 1
    }

    /// Asks one endpoint for an event and keeps it; false when it has none.
    ///
    /// # Panics
    ///
    /// The endpoint cannot be used here.
    pub fn poll(&self, at: usize) -> bool {
        match self.endpoints[at].get_event() {
            Ok(Some(event)) => self.queues[at].borrow_mut().push_back(event),
            Ok(None) | Err(PollError::NoBuffers) => return false,
            Err(error) => panic!("{error}"),
        }
        true
    }

    /// Asks every endpoint once.
    pub fn step(&self) {
        let found = (0..self.endpoints.len()).filter(|at| self.poll(*at)).count();
        if found == 0 {
            self.idle.set(self.idle.get().wrapping_add(1));
            if self.idle.get().is_multiple_of(PATIENCE) {
                std::thread::yield_now();
            }
        }
    }

    /// Steps until `done`.
    ///
    /// # Panics
    ///
    /// It does not come.
    pub fn until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !done() {
            assert!(Instant::now() < deadline, "waited in vain for {what}");
            self.step();
        }
    }

    /// The next event of an endpoint, whatever its kind.
    ///
    /// # Panics
    ///
    /// None comes.
    pub fn first(&self, at: usize) -> Event<'e> {
        self.until("an event", || !self.queues[at].borrow().is_empty());
        self.queues[at].borrow_mut().pop_front().expect("just seen")
    }

    /// The next event of this kind; others stay.
    ///
    /// # Panics
    ///
    /// None comes.
    pub fn next(&self, at: usize, kind: EventKind) -> Event<'e> {
        let find = || self.queues[at].borrow().iter().position(|event| event.kind() == kind);
        let mut found = None;
        self.until(&format!("an event {kind:?}"), || {
            found = find();
            found.is_some()
        });
        found.and_then(|place| self.queues[at].borrow_mut().remove(place)).expect("just seen")
    }

    /// How many events of this kind an endpoint has given that nobody has asked for.
    pub fn waiting(&self, at: usize, kind: EventKind) -> usize {
        self.queues[at].borrow().iter().filter(|event| event.kind() == kind).count()
    }

    /// The next message of an endpoint.
    ///
    /// # Panics
    ///
    /// None comes.
    pub fn message(&self, at: usize) -> Vec<u8> {
        self.next(at, EventKind::Recv).received().expect("a message").to_vec()
    }

    /// The next event is a SEND that succeeded; its context.
    ///
    /// # Panics
    ///
    /// None comes, or it failed.
    pub fn sent(&self, at: usize) -> u64 {
        let event = self.next(at, EventKind::Send);
        assert_eq!(event.outcome(), Ok(()), "the send with context {}", event.context());
        event.context()
    }

    /// Connects one endpoint to another: the connection at either side.
    ///
    /// # Panics
    ///
    /// It fails.
    pub fn connect(&self, from: usize, to: usize, attribute: Attribute) -> (Connection, Connection) {
        let (client, server) = (self.endpoints[from], self.endpoints[to]);
        client.connect(&Connect::to(server.uri()).attribute(attribute).context(1).timeout(LIMIT)).expect("a connect");
        let accepted = self.accept(to);
        (self.connected(from), accepted)
    }

    /// Connects an endpoint to one of another world, or of another process.
    ///
    /// # Panics
    ///
    /// It fails.
    pub fn connect_to(&self, from: usize, uri: &str, attribute: Attribute) -> Connection {
        let connect = Connect::to(uri).attribute(attribute).context(1).timeout(LIMIT);
        self.endpoints[from].connect(&connect).expect("a connect");
        self.connected(from)
    }

    fn connected(&self, from: usize) -> Connection {
        let connected = self.next(from, EventKind::Connect);
        assert_eq!(connected.outcome(), Ok(()), "{:?}", connected.reason());
        connected.connection().expect("a connection")
    }

    /// Accepts the next request of an endpoint.
    ///
    /// # Panics
    ///
    /// None comes, or it cannot be accepted.
    pub fn accept(&self, at: usize) -> Connection {
        self.next(at, EventKind::ConnectRequest).into_request().expect("a request").accept(2).expect("an accept");
        let accepted = self.next(at, EventKind::Accept);
        assert_eq!(accepted.outcome(), Ok(()));
        accepted.connection().expect("a connection")
    }
}
