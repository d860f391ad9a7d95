//! A job whose store rank 0 serves, at an address that all ranks know.

use crate::error::JobError;
use crate::listener::{self, Listener, Place};
use crate::names;
use crate::secret::Secret;
use crate::server::Server;
use crate::source::{Environment, Source, cannot};
use crate::store_client::{Client, CutOff};
use cci_mem::descriptors;
use cci_mem::quiet_thread;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// How long rank 0 goes on serving the others after it has left.
const OTHERS: Duration = Duration::from_secs(5);

/// The longest wait before a rank tries again to connect to a store that is not there yet.
const AGAIN: Duration = Duration::from_millis(50);

/// How often a rank comes again that the store has turned away after its HELLO: a store that has no
/// place does so before that, and one that refuses the proof goes on to do so.
const MOST_REFUSALS: u32 = 10;

/// Where the store of a job is.
#[derive(Debug)]
pub(crate) struct Address {
    name: String,
    found: SocketAddr,
    /// Whether anybody may come without a secret.
    is_open: bool,
}

impl Address {
    /// As programs of one coordinator name it: the port behind the coordinator's.
    pub(crate) fn of_master(environment: &Environment<'_>, deadline: Instant) -> Result<Self, JobError> {
        let port: u16 = environment.number("MASTER_PORT")?;
        let port = port.checked_add(1).ok_or_else(|| cannot("MASTER_PORT is 65535; take a smaller one"))?;
        Self::find(&environment.get("MASTER_ADDR").unwrap_or_default(), port, deadline)
    }

    /// As `CCI_STORE` names it: `host:port`.
    pub(crate) fn of_store(environment: &Environment<'_>, deadline: Instant) -> Result<Self, JobError> {
        let text = environment.get("CCI_STORE").unwrap_or_default();
        let wrong = || cannot(format!("CCI_STORE is '{text}'; write HOST:PORT"));
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        Self::find(host.trim_start_matches('[').trim_end_matches(']'), port.parse().map_err(|_| wrong())?, deadline)
    }

    fn find(host: &str, port: u16, deadline: Instant) -> Result<Self, JobError> {
        let addresses = names::addresses(host, port, deadline)
            .map_err(|error| cannot(format!("the store's host '{host}': {error}")))?;
        let found = *addresses.first().ok_or_else(|| cannot(format!("the store's host '{host}' has no address")))?;
        Ok(Self { name: format!("{host}:{port}"), found, is_open: false })
    }

    /// How ranks reach the store. Without proofs it is the system that names the user of a rank.
    fn place(&self) -> Place {
        if self.is_open { Place::Port(self.found) } else { Place::User(self.found) }
    }

    /// The address to use: any if ranks prove the secret or the user allows it, and the loop-back
    /// address otherwise.
    pub(crate) fn allowed(self, has_secret: bool, is_open: bool) -> Result<Self, JobError> {
        let is_open = has_secret || is_open;
        if is_open || self.found.ip().is_loopback() {
            return Ok(Self { is_open, ..self });
        }
        // Only an address of this host can be bound.
        if descriptors::listener((self.found.ip(), 0)).is_err() {
            return Err(cannot(format!(
                "the store {} is on another host, and ranks have no secret; set CCI_SECRET_FILE, or \
                 CCI_LISTEN=network to do without",
                self.name
            )));
        }
        Ok(Self { found: (IpAddr::V4(Ipv4Addr::LOCALHOST), self.found.port()).into(), ..self })
    }
}

/// Joins: rank 0 serves the store, and the others connect to it.
pub(crate) fn join(
    address: &Address,
    rank: u32,
    size: u32,
    secret: Option<&Secret>,
    limit: Duration,
) -> Result<Box<dyn Source>, JobError> {
    if rank == 0 {
        return Ok(Box::new(serve(address, size, secret, limit)?));
    }
    let deadline = Instant::now() + limit;
    let (mut pause, mut refusals, mut turned_away) = (Duration::from_millis(1), 0, None);
    loop {
        let socket = connect(address, deadline)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let unmet = match Client::connected(socket, rank, size, secret, left) {
            Ok(client) => return Ok(Box::new(client)),
            Err(unmet) => unmet,
        };
        refusals += u32::from(unmet.at == CutOff::AfterHello);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // The last attempt may have had no time.
            return Err(turned_away.unwrap_or(unmet.error));
        }
        if unmet.at == CutOff::Never || refusals == MOST_REFUSALS {
            return Err(unmet.error);
        }
        turned_away = Some(unmet.error);
        // Nothing tells when the store has a place.
        sleep(pause.min(left));
        pause = (pause * 2).min(AGAIN);
    }
}

/// Connects once rank 0 listens.
fn connect(address: &Address, deadline: Instant) -> Result<OwnedFd, JobError> {
    let mut pause = Duration::from_millis(1);
    loop {
        // No time at all is no limit that the system takes.
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match listener::connect(address.place(), left) {
            Ok(socket) => return Ok(socket),
            Err(error) if Instant::now() >= deadline => {
                return Err(cannot(format!(
                    "no store at {}: {error}; see that rank 0 runs there, and with a secret as this rank",
                    address.name
                )));
            }
            // Rank 0 may not listen yet, or have no room, and nothing tells when that ends.
            Err(_) => sleep(pause.min(left)),
        }
        pause = (pause * 2).min(AGAIN);
    }
}

/// Rank 0's side: a thread that serves the store until the others have gone.
struct Served {
    client: Option<Client>,
    thread: Option<JoinHandle<()>>,
}

fn serve(address: &Address, size: u32, secret: Option<&Secret>, limit: Duration) -> Result<Served, JobError> {
    let failed = |error: std::io::Error| cannot(format!("rank 0 cannot serve the store at {}: {error}", address.name));
    let listener = Listener::bind(address.place()).map_err(failed)?;
    // Its thread alone drops it, which no child has.
    let mut server = Server::new(size, secret.cloned()).map_err(failed)?.close_in_children();
    let (ours, for_the_rank) = descriptors::stream_pair().map_err(failed)?;
    server.adopt_own(ours).map_err(failed)?;
    server.listen_at(listener).map_err(failed)?;
    let thread = quiet_thread::spawn("cci-job-store", quiet_thread::STACK, move || run(server)).map_err(failed)?;
    let (client, _) = Client::trusted(for_the_rank.into(), limit)?;
    Ok(Served { client: Some(client), thread: Some(thread) })
}

/// Serves until no rank is left, or for some time after rank 0 has left.
fn run(mut server: Server) {
    let mut last: Option<Instant> = None;
    let mut has_begun = false;
    loop {
        let Ok(timeout) = server.progress() else { return };
        has_begun |= server.serves(0);
        if has_begun && !server.serves(0) {
            last = last.or_else(|| Some(Instant::now() + OTHERS));
        }
        let left = last.map(|last| last.saturating_duration_since(Instant::now()));
        // Who takes them is the program, which has none to show them with.
        drop(server.reports());
        if has_begun && !server.serves_any() || left.is_some_and(|left| left.is_zero()) {
            return;
        }
        let timeout = timeout.into_iter().chain(left).min().and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut [PollFd::new(&server, PollFlags::IN)], timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => (),
            Err(_) => return,
        }
    }
}

impl Served {
    fn client(&mut self) -> &mut Client {
        self.client.as_mut().expect("until it is dropped")
    }
}

impl Source for Served {
    fn publish(&mut self, key: &str, value: &[u8]) -> Result<(), JobError> {
        self.client().publish(key, value)
    }

    fn look_up(&mut self, rank: u32, key: &str, limit: Duration) -> Result<Vec<u8>, JobError> {
        self.client().look_up(rank, key, limit)
    }

    fn exchange(&mut self, value: &[u8], limit: Duration) -> Result<Vec<Vec<u8>>, JobError> {
        self.client().exchange(value, limit)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.client = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been shown.
            let _ = thread.join();
        }
    }
}
