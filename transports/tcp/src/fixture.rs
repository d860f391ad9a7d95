//! For tests: an endpoint without a facade, and a peer that speaks the frames by hand, to speak
//! them wrongly.

use crate::driver::open_with;
use crate::endpoint::Tcp;
use crate::frame::{ConnectBody, Fields, HEADER, HELLO, Header, Hello, Kind, Refusal};
use crate::seal::Secret;
use cci_mem::guarded::Threading;
use cci_mem::memory::{HeapBytes, Memory};
use cci_proto::{Access, Attribute, EventKind, Rights, RmaHandle, Status};
use cci_seal::Psk;
use cci_transport::{Connect, Connection, Core, CoreOptions, Endpoint, Posted, Rma, Slot, Transport, TransportOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a test waits for what is to come.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);
/// Slots of an [`End`].
pub(crate) const OPTIONS: CoreOptions =
    CoreOptions { recv_count: 1024, send_count: 1024, rma_count: 1024, ..CoreOptions::DEFAULT };
/// What scripted peers number their first connection by.
pub(crate) const NUMBER: u32 = 7;

/// An endpoint without a facade and without a progress thread.
pub(crate) struct End {
    pub(crate) core: Core,
    pub(crate) tcp: Tcp,
}

impl End {
    pub(crate) fn new() -> Self {
        Self::with(&[], OPTIONS)
    }

    /// An endpoint of a device with these keys.
    pub(crate) fn with(keys: &[(&str, &str)], options: CoreOptions) -> Self {
        Self::opened(keys, options, None)
    }

    /// An endpoint with a secret of this byte.
    pub(crate) fn sealed(byte: u8) -> Self {
        Self::opened(&[], OPTIONS, Some(secret(byte, false)))
    }

    /// An endpoint with a secret of this byte, whose lanes have so many streams.
    pub(crate) fn sealed_with(byte: u8, streams: &str) -> Self {
        Self::opened(&[("streams", streams)], OPTIONS, Some(secret(byte, false)))
    }

    /// An endpoint with a secret of this byte, which takes peers in clear.
    pub(crate) fn prefers_sealed(byte: u8) -> Self {
        Self::opened(&[], OPTIONS, Some(secret(byte, true)))
    }

    fn opened(keys: &[(&str, &str)], options: CoreOptions, secret: Option<Secret>) -> Self {
        let mut core = None;
        let _ = Endpoint::open(Threading::One, |endpoint| {
            core = Core::new(endpoint, &options).ok();
            None
        });
        let core = core.expect("memory for slots");
        let keys: Vec<_> = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let options = TransportOptions { threading: Threading::One, ..TransportOptions::new(&keys, 8192) };
        let tcp = open_with(&core, &options, secret).expect("an endpoint");
        Self { core, tcp }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.tcp.uri().strip_prefix("tcp://").and_then(|address| address.parse().ok()).expect("an address")
    }

    /// One call of `get_event`.
    pub(crate) fn call(&mut self) -> Option<&'static Slot> {
        self.tcp.progress(&mut self.core);
        self.core.pop()
    }

    /// Calls until `done`.
    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
            self.tcp.progress(&mut self.core);
        }
    }

    /// So many calls, in which no event comes.
    pub(crate) fn calls(&mut self, count: u32) {
        for _ in 0..count {
            if let Some(slot) = self.call() {
                panic!("an event of kind {}", slot.kind());
            }
        }
    }

    /// The next event, which is of this kind.
    pub(crate) fn next(&mut self, kind: EventKind) -> &'static Slot {
        let mut found = None;
        self.until("an event", |end| {
            found = end.core.pop();
            found.is_some()
        });
        let slot = found.expect("just seen");
        assert_eq!(slot.kind(), kind as u32);
        slot
    }

    /// The next event is of this kind and has this outcome; it is returned.
    pub(crate) fn ends(&mut self, kind: EventKind, status: Status) {
        let slot = self.next(kind);
        assert_eq!(slot.detail(), status as u32);
        assert!(slot.give_back());
    }

    /// Registers these bytes.
    pub(crate) fn register(&mut self, bytes: &Arc<HeapBytes>, rights: Rights) -> RmaHandle {
        self.tcp.register(&mut self.core, Memory::of_bytes(bytes), rights, None).expect("a registration")
    }

    pub(crate) fn send(&mut self, cell: &'static Connection, bytes: &[u8], context: u64) {
        let sent = self.tcp.send(&mut self.core, cell, bytes.into(), Posted::Event(context));
        assert!(sent.is_ok());
    }

    /// Begins an RMA of all of a registration.
    pub(crate) fn rma(&mut self, cell: &'static Connection, local: &RmaHandle, len: u64, how: (Access, bool)) {
        let remote = RmaHandle::from_words([1, 2, 0, 0]);
        let (access, fence) = how;
        let rma = Rma { local, local_offset: 0, remote: &remote, remote_offset: 0, len, access, fence, message: None };
        self.tcp.rma(&mut self.core, cell, &rma, Posted::Event(9)).expect("an RMA");
    }

    pub(crate) fn connect(&mut self, uri: &str, timeout: Duration) {
        let attribute = Attribute::ReliableOrdered;
        let connect = Connect { uri, payload: b"", attribute, context: 0, timeout: Some(timeout) };
        self.tcp.connect(&mut self.core, &connect).expect("a connect");
    }

    /// Accepts the next request.
    pub(crate) fn accept(&mut self) -> &'static Connection {
        let request = self.next(EventKind::ConnectRequest);
        self.tcp.accept(&mut self.core, request, 1).expect("an accept");
        assert!(request.give_back());
        let accepted = self.next(EventKind::Accept);
        let cell = accepted.connection.get().expect("accepted");
        assert!(accepted.give_back());
        cell
    }

    /// Waits until a lane has closed because its peer broke the protocol.
    pub(crate) fn until_violated(&mut self) {
        self.until("its end", |end| end.tcp.shared.malformed == 1);
    }
}

fn secret(byte: u8, takes_plain: bool) -> Secret {
    Secret { psk: Arc::new(Psk::from_bytes(&[byte; 32]).expect("memory")), takes_plain }
}

/// A port of this host, and its URI.
pub(crate) fn port() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let uri = format!("tcp://{}", listener.local_addr().expect("an address"));
    (listener, uri)
}

/// Bytes of the heap.
pub(crate) fn heap(byte: u8, len: usize) -> Arc<HeapBytes> {
    Arc::new(HeapBytes::new(vec![byte; len]))
}

/// What these bytes are now.
pub(crate) fn bytes_of(bytes: &Arc<HeapBytes>, len: usize) -> Vec<u8> {
    let mut copy = vec![0; len];
    assert!(Memory::of_bytes(bytes).copy_out(0, &mut copy));
    copy
}

/// A frame that has arrived.
pub(crate) type Frame = (Header, Vec<u8>);

/// A peer that speaks the frames by hand.
pub(crate) struct Script {
    pub(crate) stream: TcpStream,
    bytes: Vec<u8>,
    /// Messages that it says it has taken.
    pub(crate) taken: u32,
    /// The other side's number of the connection.
    pub(crate) connection: u32,
}

impl Script {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nonblocking(true).expect("a stream");
        stream.set_nodelay(true).expect("a stream");
        Self { stream, bytes: Vec::new(), taken: 0, connection: 0 }
    }

    /// A stream to this endpoint, on which nothing was said.
    pub(crate) fn dial(end: &End) -> Self {
        Self::new(TcpStream::connect(end.address()).expect("a stream"))
    }

    /// An endpoint, a client with an open connection, and the connection at the endpoint.
    pub(crate) fn connected() -> (End, Self, &'static Connection) {
        let mut end = End::new();
        let (script, cell) = Self::connect(&mut end);
        (end, script, cell)
    }

    /// A client with an open connection, and the connection at this endpoint.
    pub(crate) fn connect(end: &mut End) -> (Self, &'static Connection) {
        Self::connect_by(end, Attribute::ReliableOrdered)
    }

    pub(crate) fn connect_by(end: &mut End, attribute: Attribute) -> (Self, &'static Connection) {
        let mut script = Self::dial(end);
        script.say_hello(end, None);
        script.ask(end, attribute, b"");
        let cell = end.accept();
        assert_eq!(script.hello(end).refusal, None);
        let (header, body) = script.find(end, Kind::Accept);
        assert_eq!(header.connection, NUMBER);
        script.connection = Fields(&body).u32();
        (script, cell)
    }

    /// Asks for a connection.
    pub(crate) fn ask(&mut self, end: &mut End, attribute: Attribute, payload: &[u8]) {
        let body = ConnectBody { attribute, identity: [1, 2], token: 0 };
        self.put(end, Kind::Connect, 0, NUMBER, &[&body.emit(), payload]);
    }

    /// The stream that this endpoint dials next.
    pub(crate) fn answer(listener: &TcpListener, end: &mut End) -> Self {
        listener.set_nonblocking(true).expect("a socket");
        let mut stream = None;
        end.until("a stream", |_| {
            stream = listener.accept().ok();
            stream.is_some()
        });
        Self::new(stream.expect("just seen").0)
    }

    /// A server that this endpoint is connecting to, which has said this HELLO.
    pub(crate) fn greet(listener: &TcpListener, end: &mut End, hello: &Hello) -> Self {
        let mut script = Self::answer(listener, end);
        assert!(script.hello(end).dialed);
        script.write(end, &hello.emit());
        script
    }

    /// Accepts the connect of an endpoint.
    pub(crate) fn accept(&mut self, end: &mut End) -> &'static Connection {
        let (header, _) = self.find(end, Kind::Connect);
        let parts: [&[u8]; 2] = [&NUMBER.to_le_bytes(), &8192_u32.to_le_bytes()];
        self.put(end, Kind::Accept, 0, header.connection, &parts);
        let connected = end.next(EventKind::Connect);
        assert_eq!(connected.detail(), Status::Success as u32);
        let cell = connected.connection.get().expect("connected");
        assert!(connected.give_back());
        self.connection = header.connection;
        cell
    }

    pub(crate) fn own_hello() -> Hello {
        let (dialed, sealed, identity, offer, stream) = (true, false, [3, 4], [0; 2], 0);
        Hello { dialed, sealed, max_send_size: 8192, identity, offer, stream, operations: 1024, refusal: None }
    }

    pub(crate) fn say_hello(&mut self, end: &mut End, refusal: Option<Refusal>) {
        let hello = Hello { refusal, ..Self::own_hello() };
        self.write(end, &hello.emit());
    }

    /// Writes bytes, while the endpoint makes calls.
    pub(crate) fn write(&mut self, end: &mut End, mut bytes: &[u8]) {
        end.until("room", |_| {
            match self.stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            bytes.is_empty()
        });
    }

    /// Writes a frame.
    pub(crate) fn put(&mut self, end: &mut End, kind: Kind, flags: u8, connection: u32, parts: &[&[u8]]) {
        let bytes = self.emit(kind, flags, connection, parts);
        self.write(end, &bytes);
    }

    /// The bytes of a frame.
    pub(crate) fn emit(&self, kind: Kind, flags: u8, connection: u32, parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        let header = Header { len: body.len(), kind, flags, connection, taken: self.taken };
        [&header.emit()[..], &body].concat()
    }

    /// Reads what there is. False: the stream has ended.
    pub(crate) fn read(&mut self) -> bool {
        let mut bytes = [0; 1 << 16];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => self.bytes.extend_from_slice(&bytes[..count]),
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    /// The next bytes, so many.
    pub(crate) fn take(&mut self, end: &mut End, len: usize) -> Vec<u8> {
        end.until("bytes", |_| {
            let lives = self.read();
            assert!(lives || self.bytes.len() >= len, "the stream has ended");
            self.bytes.len() >= len
        });
        self.bytes.drain(..len).collect()
    }

    /// Puts bytes back that were taken last.
    pub(crate) fn put_back(&mut self, bytes: Vec<u8>) {
        self.bytes.splice(..0, bytes);
    }

    pub(crate) fn hello(&mut self, end: &mut End) -> Hello {
        let bytes = self.take(end, HELLO);
        Hello::parse(bytes.first_chunk().expect("so many")).expect("a HELLO")
    }

    /// The next frame, if it is there as a whole now.
    pub(crate) fn poll(&mut self) -> Option<Frame> {
        self.read();
        let header = Header::parse(self.bytes.first_chunk::<HEADER>()?, 8192).expect("a header");
        if self.bytes.len() < HEADER + header.len {
            return None;
        }
        let body = self.bytes[HEADER..HEADER + header.len].to_vec();
        self.bytes.drain(..HEADER + header.len);
        Some((header, body))
    }

    /// The next frame.
    pub(crate) fn frame(&mut self, end: &mut End) -> Frame {
        let mut found = None;
        end.until("a frame", |_| {
            found = self.poll();
            found.is_some()
        });
        found.expect("just seen")
    }

    /// The next frame of this kind; those before it are dropped.
    pub(crate) fn find(&mut self, end: &mut End, kind: Kind) -> Frame {
        loop {
            let frame = self.frame(end);
            if frame.0.kind == kind {
                return frame;
            }
        }
    }

    /// The frames that come while the endpoint makes so many calls.
    pub(crate) fn frames(&mut self, end: &mut End, calls: u32) -> Vec<Frame> {
        end.calls(calls);
        std::iter::from_fn(|| self.poll()).collect()
    }

    /// Waits for the end of the stream, whatever comes before.
    pub(crate) fn until_closed(&mut self, end: &mut End) {
        end.until("its end", |_| !self.read());
    }
}
