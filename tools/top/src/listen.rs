//! `cci top --listen`: a look for the requests of HTTP that have come.

use super::metrics;
use super::processes::Scope;
use super::rows::{Order, Watch};
use cci_admission::{Admission, Arrival, BURST, Failed, Limits, Origin};
use cci_report::{UserError, while_doing};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A request that is longer, or takes longer, ends its connection.
const LONGEST: usize = 8192;
const ASKING: Limits = Limits { places: 64, patience: Duration::from_secs(1), bytes: LONGEST + PIECE };

/// So does an answer that is not taken.
const ANSWERED: Limits = Limits { places: 64, patience: Duration::from_secs(2), bytes: 0 };

/// Bytes of one read.
const PIECE: usize = 1024;

/// Answers requests until the process ends.
pub(crate) fn serve(scope: &Scope, address: SocketAddr) -> Result<(), UserError> {
    let listener =
        TcpListener::bind(address).map_err(|error| UserError(format!("cannot listen at {address}: {error}")))?;
    let address = listener.local_addr().map_err(while_doing("cannot name the address to listen at"))?;
    listener.set_nonblocking(true).map_err(while_doing("cannot take requests"))?;
    writeln!(io::stdout(), "http://{address}/metrics").map_err(while_doing("cannot write the address"))?;
    let mut server = Server::new(listener);
    let mut watch = Watch::default();
    loop {
        server.wait().map_err(while_doing("cannot take requests"))?;
        server.turn(|| {
            let look = super::look(scope)?;
            Ok(metrics::text(&watch.rows(&look, Order::Pid), &look))
        });
    }
}

/// A connection: its request until that is whole, then its answer.
struct Client {
    name: u64,
    origin: Origin,
    stream: TcpStream,
    request: Vec<u8>,
    answer: Option<Vec<u8>>,
    /// How much of the answer has left.
    sent: usize,
}

/// What has become of a client.
enum Next {
    Waits,
    Asks(Option<String>),
    Ends,
}

/// All clients, served in turn by one thread.
struct Server {
    listener: TcpListener,
    begin: Instant,
    clients: Vec<Client>,
    /// Those that have not asked, and those that have not taken their answer.
    asking: Admission<u64>,
    answered: Admission<u64>,
    next: u64,
}

impl Server {
    fn new(listener: TcpListener) -> Self {
        let (asking, answered) = (Admission::new(ASKING), Admission::new(ANSWERED));
        Self { listener, begin: Instant::now(), clients: Vec::new(), asking, answered, next: 0 }
    }

    /// Sleeps until there is something to do.
    fn wait(&mut self) -> io::Result<()> {
        let now = self.begin.elapsed();
        let may_accept = self.asking.may_accept(now);
        let mut ready: Vec<_> = self
            .clients
            .iter()
            .map(|client| {
                let flags = if client.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
                PollFd::new(&client.stream, flags)
            })
            .collect();
        if may_accept {
            ready.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        let timeouts = self.asking.poll_timeout().into_iter().chain(self.answered.poll_timeout());
        let left = timeouts.min().and_then(|at| Timespec::try_from(at.saturating_sub(now)).ok());
        match poll(&mut ready, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(why) => Err(why.into()),
        }
    }

    /// Serves who is there, then takes in who has come. One look serves all requests of a turn.
    fn turn(&mut self, look: impl FnOnce() -> Result<String, UserError>) {
        let mut asked = Vec::new();
        for at in 0..self.clients.len() {
            self.advance(at, &mut asked);
        }
        self.accept(&mut asked);
        let now = self.begin.elapsed();
        self.answer(now, asked, look);
        while let Some(late) = self.asking.poll_late(now).or_else(|| self.answered.poll_late(now)) {
            self.close(late);
        }
        let (asking, answered) = (&self.asking, &self.answered);
        self.clients.retain(|client| asking.has(&client.name) || answered.has(&client.name));
    }

    /// Goes on with one client, by its index.
    fn advance(&mut self, at: usize, asked: &mut Vec<(u64, Option<String>)>) {
        let Some(client) = self.clients.get_mut(at) else { return };
        let name = client.name;
        if !self.asking.has(&name) && !self.answered.has(&name) {
            return;
        }
        let before = client.request.len();
        let next = client.advance();
        let is_short = self.asking.handle_bytes(&name, client.request.len() - before);
        match next {
            Next::Waits if is_short => {}
            Next::Asks(request) => {
                self.asking.remove(&name);
                asked.push((name, request));
            }
            Next::Waits | Next::Ends => self.close(name),
        }
    }

    fn accept(&mut self, asked: &mut Vec<(u64, Option<String>)>) {
        for _ in 0..BURST {
            let now = self.begin.elapsed();
            if !self.asking.may_accept(now) {
                return;
            }
            match self.listener.accept() {
                Ok((stream, from)) => self.meet(now, stream, Origin::of(from.ip()), asked),
                Err(why) => match self.asking.handle_failed_accept(now, &why) {
                    Failed::Again => {}
                    Failed::Later => return,
                    Failed::Close(name) => self.make_room(name, asked),
                },
            }
        }
    }

    fn meet(&mut self, now: Duration, stream: TcpStream, origin: Origin, asked: &mut Vec<(u64, Option<String>)>) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        self.next += 1;
        let name = self.next;
        match self.asking.handle_arrival(now, name, origin) {
            Arrival::Admitted => {}
            Arrival::Replaces(other) => self.make_room(other, asked),
            Arrival::Refused => return,
        }
        self.clients.push(Client { name, origin, stream, request: Vec::new(), answer: None, sent: 0 });
        // Most requests are there already.
        self.advance(self.clients.len() - 1, asked);
    }

    fn answer(
        &mut self,
        now: Duration,
        asked: Vec<(u64, Option<String>)>,
        look: impl FnOnce() -> Result<String, UserError>,
    ) {
        if asked.is_empty() {
            return;
        }
        let wants_text = |request: &Option<String>| matches!(request.as_deref(), Some("GET /metrics" | "GET /"));
        let text = if asked.iter().any(|(_, request)| wants_text(request)) { look() } else { Ok(String::new()) };
        for (name, request) in asked {
            let origin = self.clients.iter().find(|client| client.name == name).map(|client| client.origin);
            let Some(origin) = origin else { continue };
            match self.answered.handle_arrival(now, name, origin) {
                Arrival::Admitted => {}
                Arrival::Replaces(other) => self.put_out(other),
                Arrival::Refused => {
                    self.close(name);
                    continue;
                }
            }
            // Whoever made room may have stood before it.
            let Some(at) = self.clients.iter().position(|client| client.name == name) else { continue };
            self.clients[at].answer = Some(answer(request.as_deref(), &text));
            self.advance(at, &mut Vec::new());
        }
    }

    /// Puts out a client that makes room, unless its request has come meanwhile.
    fn make_room(&mut self, name: u64, asked: &mut Vec<(u64, Option<String>)>) {
        let client = self.clients.iter_mut().find(|client| client.name == name);
        match client.map(Client::advance) {
            Some(Next::Asks(Some(request))) => asked.push((name, Some(request))),
            _ => self.put_out(name),
        }
    }

    /// Ends a client, whose connection is closed at the end of the turn.
    fn close(&mut self, name: u64) {
        self.asking.remove(&name);
        self.answered.remove(&name);
    }

    /// Ends a client, and closes its connection at once: its descriptor may be needed.
    fn put_out(&mut self, name: u64) {
        self.close(name);
        self.clients.retain(|client| client.name != name);
    }
}

impl Client {
    fn advance(&mut self) -> Next {
        match &self.answer {
            None => self.receive(),
            Some(answer) => match self.stream.write(&answer[self.sent..]) {
                Ok(length) => {
                    self.sent += length;
                    if self.sent == answer.len() { Next::Ends } else { Next::Waits }
                }
                Err(why) if is_for_later(&why) => Next::Waits,
                Err(_) => Next::Ends,
            },
        }
    }

    fn receive(&mut self) -> Next {
        let mut piece = [0; PIECE];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Next::Asks(None),
                Ok(length) => self.request.extend_from_slice(&piece[..length]),
                Err(why) if is_for_later(&why) => return Next::Waits,
                Err(_) => return Next::Ends,
            }
            if self.request.windows(4).any(|end| end == b"\r\n\r\n") {
                return Next::Asks(method_and_path(&self.request));
            }
            if self.request.len() > LONGEST {
                return Next::Asks(None);
            }
        }
    }
}

fn is_for_later(why: &io::Error) -> bool {
    matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The answer to a request, with head and body.
fn answer(request: Option<&str>, text: &Result<String, UserError>) -> Vec<u8> {
    let plain = "text/plain; charset=utf-8";
    let (status, kind, body) = match (request, text) {
        (Some("GET /metrics" | "GET /"), Ok(text)) => ("200 OK", metrics::CONTENT_TYPE, text.clone()),
        (Some("GET /metrics" | "GET /"), Err(why)) => ("500 Internal Server Error", plain, format!("{why}\n")),
        (Some(line), _) if line.starts_with("GET ") => ("404 Not Found", plain, "there is /metrics\n".into()),
        (Some(_), _) => ("405 Method Not Allowed", plain, "there is GET\n".into()),
        (None, _) => ("400 Bad Request", plain, "this is no request of HTTP\n".into()),
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    [head.into_bytes(), body.into_bytes()].concat()
}

/// Method and path of a request, without its query; `None`: it is no request.
pub(crate) fn method_and_path(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut words = text.lines().next().unwrap_or_default().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let is_http = version.is_some_and(|version| version.starts_with("HTTP/1."));
    let path = target.and_then(|target| target.split('?').next());
    method.zip(path).filter(|_| is_http).map(|(method, path)| format!("{method} {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci_admission::GRACE;
    use std::net::Ipv4Addr;

    const PLACES: usize = ASKING.places;

    fn server() -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        Server::new(listener)
    }

    /// A connection, both ends.
    fn connected(server: &Server) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(server.listener.local_addr().expect("an address")).expect("a server");
        poll(&mut [PollFd::new(&server.listener, PollFlags::IN)], None).expect("a connection");
        (client, server.listener.accept().expect("a connection").0)
    }

    fn ask(client: &mut TcpStream, server_end: &TcpStream) {
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("a server");
        poll(&mut [PollFd::new(server_end, PollFlags::IN)], None).expect("bytes");
    }

    /// The time of the server, moved back so that strangers of now are past their grace.
    fn age(server: &mut Server) {
        server.begin = server.begin.checked_sub(2 * GRACE).expect("a clock that runs");
    }

    #[test]
    fn silent_clients_of_one_address_leave_their_places_to_those_of_others() {
        let mut server = server();
        let mut asked = Vec::new();
        // All within their grace, and more than there are places.
        let silent: Vec<_> = (0..300).map(|_| connected(&server)).collect();
        let mut clients = Vec::new();
        for (client, stream) in silent {
            server.meet(Duration::ZERO, stream, Origin::V4(1), &mut asked);
            clients.push(client);
        }
        assert_eq!((server.asking.len(), asked.len()), (PLACES, 0));
        for address in 2..10 {
            let (mut client, stream) = connected(&server);
            ask(&mut client, &stream);
            server.meet(Duration::ZERO, stream, Origin::V4(address), &mut asked);
        }
        assert_eq!(asked.len(), 8, "each client of another address");
        assert!(asked.iter().all(|(_, request)| request.as_deref() == Some("GET /metrics")));
    }

    #[test]
    fn a_request_that_comes_before_its_client_makes_room_is_served() {
        let mut server = server();
        let mut asked = Vec::new();
        let mut clients: Vec<_> = (0..PLACES)
            .map(|_| {
                let (client, stream) = connected(&server);
                server.meet(Duration::ZERO, stream, Origin::Here, &mut asked);
                client
            })
            .collect();
        assert_eq!((server.asking.len(), asked.len()), (PLACES, 0));
        // The oldest is the one that is to make room.
        ask(&mut clients[0], &server.clients[0].stream);
        age(&mut server);
        let (_newcomer, stream) = connected(&server);
        server.meet(server.begin.elapsed(), stream, Origin::Here, &mut asked);
        assert_eq!(asked, [(1, Some("GET /metrics".into()))]);
        assert_eq!(server.asking.len(), PLACES, "the newcomer has its place");
        server.answer(server.begin.elapsed(), asked, || Ok("text".into()));
        let mut answer = [0; 15];
        clients[0].read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
    }
}
