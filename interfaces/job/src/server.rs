//! The store with its sockets: those of a launcher's ranks, and those of ranks that come by TCP.

use crate::listener::Listener;
use crate::place::Local;
use crate::seal::{Claim, Nonce, Seal, random};
use crate::secret::Secret;
use crate::store::Store;
use crate::stream::{Broken, Stream};
use crate::wire::{Frame, Hello, Key, LONGEST_REQUEST, Reply, Request, Welcome};
use cci_admission::{Admission, Arrival, BURST, Failed, Limits, Origin};
use cci_mem::descriptors;
use cci_mem::inherited::close_in_children;
use cci_seal::Refused;
use rustix::event::{Timespec, epoll};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a connection may take to prove who it is.
const STRANGER: Duration = Duration::from_secs(10);

/// How many connections may be about to prove who they are, beside one for each rank.
const MORE_STRANGERS: usize = 64;

/// Bytes that a connection may send before that: a HELLO has 62.
const BEFORE: usize = 4096;

/// Why connections are closed where there is a secret.
const UNPROVEN: &str = "it does not prove the secret of this job";
const UNSEALED: &str = "a record that this rank has not sealed";

/// Reports that are kept until they are taken.
const MOST_REPORTS: usize = 64;

/// No wait.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The name of the listener among the connections.
const LISTENER: u64 = 0;

/// Why a connection is closed.
type Wrong = Cow<'static, str>;

/// Why a proof is of no use: the rank's fault, or what this side lacks.
fn unproven(refused: Refused) -> Wrong {
    match refused {
        Refused::Forged | Refused::Length => UNPROVEN.into(),
        other => other.to_string().into(),
    }
}

enum State {
    /// Came to the listener; to prove itself with this.
    Stranger(Nonce),
    /// Holds the descriptor that was made for this rank.
    Inherited {
        rank: u32,
        local: Local,
        /// The rank has the secret already: it runs this server.
        has_secret: bool,
    },
    Joined(u32),
}

struct Connection {
    stream: Stream,
    state: State,
    /// Whether the connection waits for room to send.
    is_full: bool,
}

/// Serves the store of a job to its ranks, without a thread of its own.
///
/// Its descriptor is readable when [`Server::progress`] has something to do; call that then, and
/// when the time that it returned is over. A connection that breaks the protocol is closed, with a
/// sentence in [`Server::reports`]; the others go on.
///
/// ```
/// use cci_job::{Local, Secret, Server};
/// use std::os::unix::net::UnixStream;
///
/// let mut server = Server::new(1, Some(Secret::fresh()?))?;
/// let (ours, _for_the_rank) = UnixStream::pair()?;
/// server.adopt(ours, 0, Local { rank: 0, size: 1, processors: 1 })?;
/// assert_eq!(server.progress()?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Server {
    store: Store,
    secret: Option<Secret>,
    is_plain: bool,
    epoll: OwnedFd,
    listener: Option<Listener>,
    /// Whether the system tells of who comes to the listener.
    is_accepting: bool,
    admission: Admission<u64>,
    connections: BTreeMap<u64, Connection>,
    /// The connection of each rank that has joined.
    names: Vec<Option<u64>>,
    next: u64,
    begin: Instant,
    reports: Vec<String>,
    /// The status with which a rank has ended the job.
    end: Option<u8>,
    closes_in_children: bool,
}

impl AsFd for Server {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Server {
    /// A server for the ranks of a job of this size.
    ///
    /// # Errors
    ///
    /// The system has no descriptor left.
    pub fn new(size: u32, secret: Option<Secret>) -> io::Result<Self> {
        let places = (size as usize).saturating_add(MORE_STRANGERS);
        Ok(Self {
            store: Store::new(size),
            secret,
            is_plain: false,
            epoll: descriptors::epoll()?,
            listener: None,
            is_accepting: true,
            admission: Admission::new(Limits { places, patience: STRANGER, bytes: BEFORE }),
            connections: BTreeMap::new(),
            names: vec![None; size as usize],
            next: LISTENER + 1,
            begin: Instant::now(),
            reports: Vec::new(),
            end: None,
            closes_in_children: false,
        })
    }

    /// Has ranks leave their connections to each other in clear, though they have a secret that
    /// they prove ([`crate::Job::is_plain`]). Before ranks come.
    ///
    /// ```
    /// use cci_job::{Secret, Server};
    ///
    /// let server = Server::new(2, Some(Secret::fresh()?))?.in_clear();
    /// # let _ = server;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn in_clear(mut self) -> Self {
        self.is_plain = true;
        self
    }

    /// Has forked children of this process close their copies of all sockets, which would keep
    /// ranks from learning of its end. No child may drop this server then.
    pub(crate) fn close_in_children(mut self) -> Self {
        self.closes_in_children = true;
        self
    }

    /// Serves the rank that holds the other end of this stream. Whoever holds it needs no proof,
    /// and gets the secret.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn adopt(&mut self, stream: UnixStream, rank: u32, local: Local) -> io::Result<()> {
        self.add(stream.into(), State::Inherited { rank, local, has_secret: false }).map(drop)
    }

    /// Serves rank 0, which runs this server and holds the other end of this stream. It is not sent
    /// the secret, which it has.
    pub(crate) fn adopt_own(&mut self, stream: UnixStream) -> io::Result<()> {
        let local = Local { rank: 0, size: 1, processors: 1 };
        self.add(stream.into(), State::Inherited { rank: 0, local, has_secret: true }).map(drop)
    }

    /// Accepts ranks from this listener, which each prove the secret.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn listen(&mut self, listener: TcpListener) -> io::Result<()> {
        self.listen_at(Listener::Port(listener))
    }

    /// As [`Server::listen`], wherever ranks come to.
    pub(crate) fn listen_at(&mut self, listener: Listener) -> io::Result<()> {
        listener.set_nonblocking()?;
        if self.closes_in_children {
            close_in_children(&listener);
        }
        epoll::add(&self.epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
        self.listener = Some(listener);
        Ok(())
    }

    fn add(&mut self, socket: OwnedFd, state: State) -> io::Result<u64> {
        if self.closes_in_children {
            close_in_children(&socket);
        }
        let stream = Stream::new(socket, LONGEST_REQUEST)?;
        epoll::add(&self.epoll, &stream, epoll::EventData::new_u64(self.next), epoll::EventFlags::IN)?;
        self.connections.insert(self.next, Connection { stream, state, is_full: false });
        self.next += 1;
        Ok(self.next - 1)
    }

    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Whether a rank has a connection.
    #[must_use]
    pub fn serves(&self, rank: u32) -> bool {
        self.names.get(rank as usize).is_some_and(Option::is_some)
    }

    /// Whether a rank has a connection, or the descriptor for one. Strangers do not count.
    pub(crate) fn serves_any(&self) -> bool {
        self.connections.values().any(|connection| !matches!(connection.state, State::Stranger(_)))
    }

    /// Takes why connections were closed since the last call, a sentence each: at most the first
    /// 64, so that strangers fill no memory of who does not take them.
    pub fn reports(&mut self) -> Vec<String> {
        std::mem::take(&mut self.reports)
    }

    /// The status with which a rank has ended the job ([`crate::Job::end`]), if one has: the first.
    /// All ranks have been sent it. Who serves the job sees to it that they end.
    #[must_use]
    pub fn end(&self) -> Option<u8> {
        self.end
    }

    /// Does what is to be done now, without waiting; the time until it is to be called again at the
    /// latest.
    ///
    /// # Errors
    ///
    /// The system refuses to tell what is ready.
    pub fn progress(&mut self) -> io::Result<Option<Duration>> {
        let mut ready = Vec::with_capacity(64);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut ready), Some(&NOW)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => (),
            Err(error) => return Err(error.into()),
        }
        // Who has sent something is served before newcomers need room.
        let names: Vec<u64> = ready.iter().map(|event| event.data.u64()).collect();
        names.iter().filter(|name| **name != LISTENER).for_each(|name| self.serve(*name));
        if names.contains(&LISTENER) {
            self.accept();
        }
        let now = self.now();
        self.store.handle_timeout(now);
        while let Some(name) = self.admission.poll_late(now) {
            self.close(name, Some("it has not proved anything for 10 s"));
        }
        self.answer();
        self.watch_listener(now);
        let timeouts = self.admission.poll_timeout().into_iter().chain(self.store.poll_timeout());
        Ok(timeouts.min().map(|deadline| deadline.saturating_sub(now)))
    }

    /// Has the system tell of newcomers, unless there is no descriptor for one.
    fn watch_listener(&mut self, now: Duration) {
        let may_accept = self.admission.may_accept(now);
        let Some(listener) = self.listener.as_ref().filter(|_| may_accept != self.is_accepting) else { return };
        let flags = if may_accept { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
        // Of a descriptor that has been added.
        let _ = epoll::modify(&self.epoll, listener, epoll::EventData::new_u64(LISTENER), flags);
        self.is_accepting = may_accept;
    }

    /// Takes new connections.
    fn accept(&mut self) {
        for _ in 0..BURST {
            let Some(listener) = &self.listener else { return };
            match listener.newcomer() {
                Ok(Some((socket, origin))) => self.meet(socket, origin),
                Ok(None) => (),
                Err(why) => match self.admission.handle_failed_accept(self.begin.elapsed(), &why) {
                    Failed::Again => (),
                    Failed::Later => return,
                    Failed::Close(name) => self.put_out(name),
                },
            }
        }
    }

    /// Gives a new connection a challenge, if there is a place.
    pub(crate) fn meet(&mut self, socket: OwnedFd, origin: Origin) {
        let Ok(challenge) = random() else { return };
        match self.admission.handle_arrival(self.now(), self.next, origin) {
            Arrival::Admitted => (),
            Arrival::Replaces(name) => self.put_out(name),
            Arrival::Refused => return,
        }
        match self.add(socket, State::Stranger(challenge)) {
            Ok(name) => self.send(name, Reply::Challenge(challenge).emit().into()),
            Err(_) => self.admission.remove(&self.next),
        }
    }

    /// Closes a stranger that makes room, unless its proof has come meanwhile.
    fn put_out(&mut self, name: u64) {
        self.serve(name);
        if self.rank(name).is_none() {
            self.close(name, None);
        }
    }

    /// Takes what a connection has sent, and sends what it had no room for.
    fn serve(&mut self, name: u64) {
        let Some(connection) = self.connections.get_mut(&name) else { return };
        let received = connection.stream.flush().and_then(|()| connection.stream.receive());
        // What came before the end counts.
        while let Some(connection) = self.connections.get_mut(&name) {
            match connection.stream.frame() {
                Ok(Some(frame)) => self.handle(name, &frame),
                Ok(None) => break,
                Err(_) => self.close(name, Some("a frame longer than 66048 bytes")),
            }
        }
        match received {
            Ok(length) if !self.admission.handle_bytes(&name, length) => {
                self.close(name, Some("more than 4096 bytes before its proof"));
            }
            Ok(_) => self.watch(name),
            Err(why) => self.close_broken(name, &why),
        }
    }

    /// Ends a connection whose stream is of no use any more.
    fn close_broken(&mut self, name: u64, why: &Broken) {
        match why {
            Broken::Unsealed => self.close(name, Some(UNSEALED)),
            Broken::Refused(refused) => self.close(name, Some(&refused.to_string())),
            Broken::Ended | Broken::TooLong => self.close(name, None),
        }
    }

    fn handle(&mut self, name: u64, frame: &[u8]) {
        let now = self.now();
        let done = match (Request::parse(frame), self.rank(name)) {
            (Some(Request::Hello(hello)), None) => self.join(name, &hello),
            (Some(Request::End { status }), Some(_)) => {
                self.end_with(status);
                Ok(())
            }
            (Some(request), Some(rank)) => {
                self.store.handle_request(now, rank, request).map_err(|wrong| wrong.0.into())
            }
            (Some(_), None) => Err("a request before HELLO".into()),
            (None, _) => Err("a malformed request".into()),
        };
        if let Err(wrong) = done {
            self.close(name, Some(&wrong));
        }
    }

    /// Tells all ranks that the job ends.
    fn end_with(&mut self, status: u8) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(status);
        for name in self.names.iter().flatten().copied().collect::<Vec<_>>() {
            self.send(name, Reply::Ending(status).emit().into());
        }
    }

    /// The rank that has joined by this connection.
    fn rank(&self, name: u64) -> Option<u32> {
        match self.connections.get(&name)?.state {
            State::Joined(rank) => Some(rank),
            _ => None,
        }
    }

    /// Lets a rank in that is what it states to be.
    fn join(&mut self, name: u64, hello: &Hello) -> Result<(), Wrong> {
        let &Hello { rank, size, share } = hello;
        let (local, challenge) = match self.connections[&name].state {
            State::Inherited { rank, local, has_secret } => {
                let secret = self.secret.clone().filter(|_| !has_secret);
                return self.welcome(name, rank, local, secret);
            }
            State::Stranger(challenge) => (Local { rank: 0, size: 1, processors: 1 }, challenge),
            State::Joined(_) => return Err("a second HELLO".into()),
        };
        let mut welcome = Welcome { rank, size, local, key: Key::None };
        let mut seal = None;
        match (&self.secret, share) {
            (None, None) => (),
            (Some(secret), Some(share)) => {
                let claim = Claim { challenge, rank, size };
                // Its tag is checked before anything that takes time.
                let (answer, keys) = claim.answer(secret, &share, &welcome.numbers()).map_err(unproven)?;
                (welcome.key, seal) = (Key::Share(answer), Some(keys));
            }
            _ => return Err(UNPROVEN.into()),
        }
        if size != self.store.size() {
            return Err("another size of the job".into());
        }
        self.store.join(rank).map_err(|wrong| wrong.0)?;
        self.joined(name, welcome, seal);
        Ok(())
    }

    /// Lets the holder of a descriptor in, and gives it this secret.
    fn welcome(&mut self, name: u64, rank: u32, local: Local, secret: Option<Secret>) -> Result<(), Wrong> {
        self.store.join(rank).map_err(|wrong| wrong.0)?;
        let key = secret.map_or(Key::None, if self.is_plain { Key::Plain } else { Key::Secret });
        self.joined(name, Welcome { rank, size: self.store.size(), local, key }, None);
        Ok(())
    }

    /// What follows the WELCOME is sealed, if there are keys.
    fn joined(&mut self, name: u64, welcome: Welcome, seal: Option<Seal>) {
        self.admission.remove(&name);
        self.names[welcome.rank as usize] = Some(name);
        if let Some(connection) = self.connections.get_mut(&name) {
            connection.state = State::Joined(welcome.rank);
        }
        self.send(name, Reply::Welcome(welcome).emit().into());
        let Some((seal, connection)) = seal.zip(self.connections.get_mut(&name)) else { return };
        if let Err(why) = connection.stream.seal(Box::new(seal)) {
            self.close_broken(name, &why);
        }
    }

    /// Sends the store's answers: that of the rank which runs this server last, because it may end
    /// the process that the others need until then.
    fn answer(&mut self) {
        let mut last = Vec::new();
        while let Some((rank, frame)) = self.store.poll_reply() {
            match self.names[rank as usize] {
                Some(name) if rank == 0 => last.push((name, frame)),
                Some(name) => self.send(name, frame),
                None => (),
            }
        }
        for (name, frame) in last {
            self.send(name, frame);
        }
    }

    fn send(&mut self, name: u64, frame: Frame) {
        let Some(connection) = self.connections.get_mut(&name) else { return };
        match connection.stream.push(frame) {
            Ok(()) => self.watch(name),
            Err(why) => self.close_broken(name, &why),
        }
    }

    /// Has the system tell of room while there is something to send.
    fn watch(&mut self, name: u64) {
        let Some(connection) = self.connections.get_mut(&name) else { return };
        let is_full = !connection.stream.is_flushed();
        if is_full != connection.is_full {
            let room = if is_full { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
            let flags = epoll::EventFlags::IN | room;
            // Of a descriptor that has been added.
            let _ = epoll::modify(&self.epoll, &connection.stream, epoll::EventData::new_u64(name), flags);
            connection.is_full = is_full;
        }
    }

    /// Ends a connection, and with it what others wait for from its rank.
    fn close(&mut self, name: u64, wrong: Option<&str>) {
        let Some(connection) = self.connections.remove(&name) else { return };
        self.admission.remove(&name);
        if let Some(wrong) = wrong.filter(|_| self.reports.len() < MOST_REPORTS) {
            let who = match connection.state {
                State::Stranger(_) => "a stranger".to_owned(),
                State::Inherited { rank, .. } | State::Joined(rank) => format!("rank {rank}"),
            };
            self.reports.push(format!("the store has closed the connection of {who}: {wrong}"));
        }
        if let State::Joined(rank) | State::Inherited { rank, .. } = connection.state {
            self.names[rank as usize] = None;
            self.store.handle_gone(rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_without_memory_does_not_say_that_the_secret_is_wrong() {
        assert_eq!([Refused::Forged, Refused::Length].map(unproven), [UNPROVEN; 2]);
        assert_eq!(unproven(Refused::NoMemory), "no memory for keys; raise the limit of address space");
    }
}
