//! Two NICs of one process, and VIs between them.

pub(crate) use cci_conformance::local_device as device;

use cci::Device;
use cci_conformance::LIMIT;
use cci_via::{Access, Address, Connected, Done, Error, Nic, Region, Reliability, Tag, Vi, ViAttributes, Work};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// The transports that tests run over.
pub(crate) const TRANSPORTS: [&str; 4] = ["sm", "sock", "tcp", "auto"];
pub(crate) const LEVELS: [Reliability; 3] = [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception];

/// A discriminator that no other test has.
pub(crate) fn discriminator(what: &str) -> Vec<u8> {
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("{what}{}.{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed)).into_bytes()
}

/// One side: its NIC, a tag, a connected VI.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) nic: Nic,
    pub(crate) tag: Tag,
    pub(crate) vi: Vi<Connected>,
}

impl Side {
    pub(crate) fn region(&self, bytes: Vec<u8>) -> Region {
        self.nic.register(bytes, self.tag, Access::default()).expect("memory")
    }

    pub(crate) fn open_region(&self, bytes: Vec<u8>) -> Region {
        self.nic.register(bytes, self.tag, Access { write: true, read: true }).expect("memory")
    }

    pub(crate) fn post_receive(&mut self, len: usize) {
        let region = self.region(vec![0; len]);
        self.vi.post_receive(Work::of(region)).expect("room");
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let region = self.region(bytes.to_vec());
        self.vi.post_send(Work::of(region)).expect("room");
    }

    /// The end of the oldest send; the other side makes progress meanwhile.
    pub(crate) fn sent(&mut self, other: &Self) -> Done {
        let begun = Instant::now();
        loop {
            if let Some(done) = self.vi.sent().expect("a VI") {
                return done;
            }
            assert!(begun.elapsed() < LIMIT, "waited in vain for the end of a send");
            other.progress();
        }
    }

    pub(crate) fn received(&mut self, other: &Self) -> Done {
        let begun = Instant::now();
        loop {
            if let Some(done) = self.vi.received().expect("a VI") {
                return done;
            }
            assert!(begun.elapsed() < LIMIT, "waited in vain for a message");
            other.progress();
        }
    }

    pub(crate) fn progress(&self) -> bool {
        self.vi.is_connected()
    }
}

/// The bytes that a receive has got.
pub(crate) fn bytes(done: &Done) -> Vec<u8> {
    done.work.regions()[0].to_vec(0, done.length as usize).expect("inside")
}

pub(crate) fn attributes(level: Reliability) -> ViAttributes {
    let access = Access { write: true, read: level != Reliability::Unreliable };
    ViAttributes { reliability: level, max_transfer: 1 << 20, access, ..ViAttributes::default() }
}

/// Connects two new NICs.
pub(crate) fn pair(device: &Device, attributes: &ViAttributes) -> (Side, Side) {
    let open = || {
        let nic = Nic::open(device).expect("a NIC");
        let tag = nic.protection().expect("a tag");
        (nic, tag)
    };
    let ((server, server_tag), (client, client_tag)) = (open(), open());
    let name = discriminator("pair");
    let (at, from) = (Address::new(server.host(), &name), Address::new(client.host(), b"client"));
    let new = |nic: &Nic, tag| Vi::new(nic, &ViAttributes { tag, ..*attributes }, None, None).expect("a VI");
    let (server_vi, mut client_vi) = (new(&server, server_tag), new(&client, client_tag));
    std::thread::scope(|scope| {
        let accepted = scope.spawn(|| {
            let mut incoming = server.listen(&at, Some(LIMIT)).expect("a client");
            assert_eq!(incoming.asking().address(), &from);
            incoming.accept(server_vi).expect("the same attributes")
        });
        let begun = Instant::now();
        let client_vi = loop {
            match client_vi.request(&from, &at, LIMIT) {
                Ok(vi) => break vi,
                Err((vi, Error::NoMatch)) if begun.elapsed() < LIMIT => client_vi = vi,
                Err((_, why)) => panic!("{why}"),
            }
            std::thread::yield_now();
        };
        let server_vi = accepted.join().expect("the server");
        (
            Side { nic: server.clone(), tag: server_tag, vi: server_vi },
            Side { nic: client.clone(), tag: client_tag, vi: client_vi },
        )
    })
}
