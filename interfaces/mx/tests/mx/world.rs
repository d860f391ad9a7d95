//! Endpoints of one process, driven by one thread.

pub(crate) use cci_conformance::local_device as device;

use cci::{Device, Memory};
use cci_conformance::LIMIT;
use cci_mx::{Address, Code, Endpoint, Error, Match, Options, Place, Request, Status, buffer, endpoint_options};
use cci_peers::{Name, Table};
use std::time::Instant;

/// The transports that tests run over.
pub(crate) const TRANSPORTS: [&str; 4] = ["sm", "sim", "sock", "tcp"];

pub(crate) const NIC: u64 = 9;
pub(crate) const KEY: u32 = 0x1234;

pub(crate) fn side(endpoint: cci::Endpoint, id: u32, table: &Table, options: &Options) -> Endpoint {
    let place = Place::of(endpoint, NIC, id, Box::new(table.clone()));
    Endpoint::open(place, KEY, options).expect("an endpoint")
}

/// Endpoints that know each other's places.
pub(crate) fn some_with(device: &Device, count: u32, options: &Options) -> Vec<Endpoint> {
    let open = |_| cci::Endpoint::open(device, &endpoint_options()).expect("an endpoint");
    let ends: Vec<_> = (0..count).map(open).collect();
    let mut table = Table::new();
    (0..).zip(&ends).for_each(|(id, end)| table.insert(Name::Number(NIC << 32 | id), end.uri()));
    (0..).zip(ends).map(|(id, end)| side(end, id, &table, options)).collect()
}

pub(crate) fn two_with(device: &Device, options: &Options) -> Vec<Endpoint> {
    some_with(device, 2, options)
}

pub(crate) fn two(transport: &str) -> Vec<Endpoint> {
    two_with(&device(transport), &Options::new())
}

/// Closes all at once: the time of a virtual network stands still while its ends do not poll.
pub(crate) fn close(sides: Vec<Endpoint>) {
    std::thread::scope(|scope| sides.into_iter().for_each(|side| drop(scope.spawn(|| drop(side)))));
}

/// Makes progress for all until there is a result.
pub(crate) fn until<R>(sides: &[Endpoint], what: &str, mut done: impl FnMut() -> Option<R>) -> R {
    let begun = Instant::now();
    loop {
        if let Some(result) = done() {
            return result;
        }
        assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
        sides.iter().for_each(|side| side.progress().expect("usable"));
    }
}

/// The end of a request.
pub(crate) fn end(sides: &[Endpoint], at: usize, request: Request) -> Status {
    until(sides, "the end of a request", || sides[at].test(request).expect("a request"))
}

/// The address of one side for another, by a connect.
pub(crate) fn connect(sides: &[Endpoint], from: usize, to: usize) -> Address {
    let request = sides[from].start_connect((NIC, to as u32), KEY, 77, 5).expect("room");
    let status = end(sides, from, request);
    assert_eq!((status.code, status.bits, status.context), (Code::Success, 77, 5));
    assert_eq!(status.source, sides[to].address());
    status.source
}

pub(crate) fn bytes(memory: &Memory) -> Vec<u8> {
    let mut bytes = vec![0; memory.len() as usize];
    assert!(memory.is_empty() || memory.copy_out(0, &mut bytes));
    bytes
}

pub(crate) fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

pub(crate) fn zeroes(len: usize) -> Memory {
    buffer(vec![0; len])
}

/// Posts a receive of these bits into new memory.
pub(crate) fn post(side: &Endpoint, len: usize, bits: u64) -> (Request, Memory) {
    let memory = zeroes(len);
    (side.receive(memory.clone(), Match::exact(bits), bits).expect("room"), memory)
}

pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> Error {
    result.expect_err("refused")
}
