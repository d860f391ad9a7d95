//! Descriptors, messages and RDMA allocate nothing once the first ones have gone, over `sm`.

#![forbid(unsafe_code)]

use cci_conformance::{LIMIT, sm_device};
use cci_instruments::{CountingAllocator, allocations_off_main};
use cci_via::{Access, Address, Done, Error, Nic, Reliability, Remote, Tag, Vi, ViAttributes, Work};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn open(reliability: Reliability) -> (Nic, Tag, Vi<cci_via::Idle>) {
    let nic = Nic::open(&sm_device()).expect("a NIC");
    let tag = nic.protection().expect("a tag");
    let access = Access { write: true, read: false };
    let attributes = ViAttributes { reliability, tag, access, ..ViAttributes::default() };
    let vi = Vi::new(&nic, &attributes, None, None).expect("a VI");
    (nic, tag, vi)
}

/// What comes back, while both sides make progress.
fn until(mut done: impl FnMut() -> Option<Done>) -> Work {
    let begun = std::time::Instant::now();
    loop {
        if let Some(done) = done() {
            assert!(!done.status.is_error(), "{done:?}");
            return done.work;
        }
        assert!(begun.elapsed() < LIMIT, "waited in vain");
    }
}

#[test]
fn no_allocation_in_30_000_descriptors() {
    for level in [Reliability::Unreliable, Reliability::Delivery, Reliability::Reception] {
        let ((server_nic, server_tag, server), (client_nic, client_tag, mut client)) = (open(level), open(level));
        let name = format!("allocations{}{level:?}", std::process::id());
        let (from, at) = (Address::new(client_nic.host(), b"c"), Address::new(server_nic.host(), name.as_bytes()));
        let (mut server, mut client) = std::thread::scope(|scope| {
            let waits =
                scope.spawn(|| server_nic.listen(&at, Some(LIMIT)).expect("a client").accept(server).expect("agreed"));
            let client = loop {
                match client.request(&from, &at, LIMIT) {
                    Ok(vi) => break vi,
                    Err((vi, why)) => {
                        assert_eq!(why, Error::NoMatch);
                        client = vi;
                    }
                }
            };
            (waits.join().expect("the server"), client)
        });
        let open = Access { write: true, read: true };
        let target = server_nic.register(vec![0; 4096], server_tag, open).expect("memory");
        let remote = Remote { address: 0, handle: target.handle() };
        let register = |nic: &Nic, tag| nic.register(vec![1; 4096], tag, Access::default()).expect("memory");
        let mut receive = Some(Work::of(register(&server_nic, server_tag)));
        let mut send = Some(Work::of(register(&client_nic, client_tag)));
        let mut round = |count: usize| {
            for number in 0..count {
                server.post_receive(receive.take().expect("came back")).expect("room");
                let work = send.take().expect("came back");
                match number % 3 {
                    0 => client.post_write(work, remote, Some(7)).expect("room"),
                    _ => client.post_send(work).expect("room"),
                }
                receive = Some(until(|| {
                    let _ = client.is_connected();
                    server.received().expect("a VI")
                }));
                send = Some(until(|| {
                    let _ = server.is_connected();
                    client.sent().expect("a VI")
                }));
            }
        };
        round(1_000);
        let before = allocations_off_main();
        round(5_000);
        assert_eq!(allocations_off_main() - before, 0, "allocations in 10,000 descriptors, {level:?}");
    }
}
