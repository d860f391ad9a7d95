//! Endpoints of one process, for the tests of this folder.

use cci::{HeapBytes, Memory};
use cci_fabric::{
    AddressVector, Code, Counter, Domain, Endpoint, EndpointOptions, Entry, Failed, NOT_AVAILABLE, Queue, QueueOptions,
    Receive, Segments, Send, Space, What, bits,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a test waits for what must come.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A domain on the device of a transport.
pub(crate) fn domain(transport: &str) -> Domain {
    Domain::on(if transport == "sm" {
        cci_conformance::sm_device()
    } else {
        cci_conformance::device_of(transport, &[])
    })
}

pub(crate) fn memory(len: usize) -> Memory {
    of(vec![0; len])
}

pub(crate) fn of(bytes: Vec<u8>) -> Memory {
    if bytes.is_empty() { Memory::none() } else { Memory::of_bytes(&Arc::new(HeapBytes::new(bytes))) }
}

pub(crate) fn bytes(memory: &Memory) -> Vec<u8> {
    let mut bytes = vec![0; memory.len() as usize];
    assert!(bytes.is_empty() || memory.copy_out(0, &mut bytes));
    bytes
}

/// An endpoint with its vector and queue.
pub(crate) struct Side {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) vector: AddressVector,
    pub(crate) queue: Queue,
    /// Counts everything.
    pub(crate) counter: Counter,
}

impl Side {
    pub(crate) fn new(domain: &Domain) -> Self {
        Self::with(domain, 0)
    }

    /// `flags`: how its queue is bound, beside both directions.
    pub(crate) fn with(domain: &Domain, flags: u64) -> Self {
        Self::at(domain, flags, None)
    }

    /// `place`: where it listens.
    pub(crate) fn at(domain: &Domain, flags: u64, place: Option<SocketAddr>) -> Self {
        let options = QueueOptions { waits: true, descriptor: true, ..QueueOptions::default() };
        let (vector, queue) = (AddressVector::open(domain), Queue::open(domain, options).expect("a queue"));
        let endpoint = EndpointOptions { context: 4_711, directed: true, source: true, place };
        let endpoint = Endpoint::new(domain, endpoint);
        endpoint.bind_vector(&vector).expect("a vector");
        endpoint.bind_queue(&queue, bits::TRANSMIT | bits::RECV | flags).expect("a queue");
        let counter = Counter::open(domain);
        endpoint.bind_counter(&counter, bits::SEND | bits::RECV | bits::READ | bits::WRITE).expect("a counter");
        endpoint.enable().expect("an endpoint");
        Self { endpoint: Arc::new(endpoint), vector, queue, counter }
    }

    pub(crate) fn meet(&self, other: &Self) -> u64 {
        self.vector.insert(&other.endpoint.address().expect("it is enabled")).expect("a record")
    }

    pub(crate) fn send(&self, to: u64, memory: &Memory, tag: u64, context: u64, flags: u64) -> Result<(), Code> {
        let what = What::Memory(Segments::from(memory.clone()));
        self.endpoint.send(Send { what, to, space: Space::Tagged, tag, data: None, context, flags })
    }

    pub(crate) fn receive(&self, memory: &Memory, tag: u64, context: u64) -> Result<(), Code> {
        self.post(memory, (tag, 0), NOT_AVAILABLE, context, 0)
    }

    pub(crate) fn post(
        &self,
        memory: &Memory,
        (tag, ignore): (u64, u64),
        from: u64,
        context: u64,
        flags: u64,
    ) -> Result<(), Code> {
        let segments = Segments::from(memory.clone());
        self.endpoint.receive(Receive { segments, from, space: Space::Tagged, tag, ignore, context, flags })
    }

    /// The next entry.
    pub(crate) fn next(&self) -> Result<Entry, Failed> {
        let mut found = None;
        match self.queue.wait(1, Some(LONG), |entry| found = Some(*entry)) {
            Ok(_) => Ok(found.expect("an entry")),
            Err(Code::Available) => Err(self.queue.read_failed().expect("a failure")),
            Err(why) => panic!("nothing came: {why}"),
        }
    }

    /// Makes progress of both until one has an entry.
    pub(crate) fn next_beside(&self, other: &Self) -> Result<Entry, Failed> {
        let begun = Instant::now();
        loop {
            let mut found = None;
            match self.queue.read(1, |entry| found = Some(*entry)) {
                Ok(_) => return Ok(found.expect("an entry")),
                Err(Code::Available) => return Err(self.queue.read_failed().expect("a failure")),
                Err(_) => {}
            }
            other.turn();
            assert!(begun.elapsed() < LONG, "nothing came");
        }
    }

    /// Makes progress, and leaves entries.
    pub(crate) fn turn(&self) {
        let _ = self.counter.read();
    }
}

impl Drop for Side {
    /// Closes beside others, each of which waits for what it has sent.
    fn drop(&mut self) {
        let endpoint = Arc::clone(&self.endpoint);
        std::thread::spawn(move || endpoint.close());
    }
}
