//! What a path between a rank and a store that listens sees, and what it can change.

use super::{LIMIT, free_port, join, secret_file, serve, variables};
use crate::error::JobError;
use crate::joining::Joined;
use crate::place::Local;
use crate::secret::Secret;
use crate::server::Server;
use crate::source::Source;
use crate::store_client::Client;
use crate::wire::LONGEST_VALUE;
use cci_mem::descriptors;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{Scope, scope};
use std::time::Instant;

const MARKER: &[u8] = b"a value that nobody on the path may read";

/// What the path does to a piece; `at`: how many bytes came before it in its direction.
type Change = fn(piece: &mut [u8], at: usize);

/// Changes nothing.
const NOTHING: Change = |_, _| ();

/// A path to the store, which changes what comes from the store and what goes to it: its address,
/// and all bytes that have passed once both sides have ended.
fn path<'scope>(
    scope: &'scope Scope<'scope, '_>,
    store: &str,
    [from_store, to_store]: [Change; 2],
) -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (passed, all) = channel();
    let store = store.to_owned();
    listener.set_nonblocking(true).expect("a socket");
    scope.spawn(move || {
        let (rank, _) = again(|| listener.accept());
        rank.set_nonblocking(false).expect("a socket");
        // Rank 0 may not listen yet.
        let there = again(|| TcpStream::connect(&store));
        let back = (there.try_clone().expect("a socket"), rank.try_clone().expect("a socket"));
        let bytes = scope.spawn(move || pass(back.0, back.1, from_store));
        let mut all = pass(rank, there, to_store);
        all.extend(bytes.join().expect("no panic"));
        passed.send(all).expect("a test");
    });
    (address, all)
}

/// Does it until it can be done.
fn again<T>(mut attempt: impl FnMut() -> io::Result<T>) -> T {
    let begun = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(why) => assert!(begun.elapsed() < LIMIT, "in vain: {why}"),
        }
        std::thread::yield_now();
    }
}

/// Passes bytes on until their end; what they were.
fn pass(mut from: TcpStream, mut to: TcpStream, change: Change) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), vec![0; 65_536]);
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let piece = &mut piece[..length];
        change(piece, all.len());
        all.extend_from_slice(piece);
        if to.write_all(piece).is_err() {
            break;
        }
    }
    // The other side may have gone.
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    all
}

/// Two ranks, one of them behind a path, that each do this; what both found, and what has passed.
fn two<T: Send>(secret: Option<u8>, change: Change, act: impl Fn(Joined) -> T + Sync) -> ([T; 2], Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("127.0.0.1:{}", free_port());
    scope(|scope| {
        let (address, passed) = path(scope, &store, [change, NOTHING]);
        let of = |rank, store: &str| {
            let mut variables = variables(rank, 2, store);
            let of_secret = secret.map(|byte| ("CCI_SECRET_FILE", secret_file(folder.path(), byte)));
            variables.extend([of_secret.unwrap_or(("CCI_LISTEN", "network".into()))]);
            variables
        };
        // Files are written before a rank reads one.
        let [first, other] = [of(0, &store), of(1, &address)];
        let act = &act;
        let other = scope.spawn(move || act(join(&other, LIMIT).expect("a rank")));
        let first = act(join(&first, LIMIT).expect("a rank"));
        let both = [first, other.join().expect("no panic")];
        (both, passed.recv_timeout(LIMIT).expect("a path"))
    })
}

#[test]
fn a_path_sees_no_value_of_ranks_that_have_a_secret() {
    let act = |mut joined: Joined| {
        joined.source.publish("name", MARKER).expect("room");
        let other = joined.source.look_up(1 - joined.rank, "name", LIMIT).expect("it comes");
        assert_eq!(other, MARKER);
        // More than one record.
        let own = vec![u8::try_from(joined.rank).expect("small"); LONGEST_VALUE];
        let values = joined.source.exchange(&own, LIMIT).expect("all come");
        assert_eq!(values, [vec![0; LONGEST_VALUE], vec![1; LONGEST_VALUE]]);
    };
    let has_marker = |bytes: &[u8]| bytes.windows(MARKER.len()).any(|part| part == MARKER);
    let (_, sealed) = two(Some(7), NOTHING, act);
    assert!(sealed.len() > 3 * LONGEST_VALUE && !has_marker(&sealed));
    let (_, plain) = two(None, NOTHING, act);
    assert!(has_marker(&plain), "what is not sealed is seen");
}

/// What the join needs of the store, and the places of both, is shorter.
const BEHIND_THE_JOIN: usize = 4096;

#[test]
fn a_path_that_changes_what_the_store_sends_ends_the_connection_and_releases_nothing() {
    let change: Change = |piece, at| {
        if at + piece.len() > BEHIND_THE_JOIN {
            *piece.last_mut().expect("a byte") ^= 1;
        }
    };
    let act = |mut joined: Joined| joined.source.exchange(&vec![3; LONGEST_VALUE], LIMIT);
    let ([_, behind], _) = two(Some(7), change, act);
    let Err(JobError::Lost(why)) = behind else { panic!("it was taken") };
    assert!(why.contains("is not sealed by its key"), "{why}");
}

/// Bytes of a HELLO with its share, all that a rank sends in clear.
const HELLO: usize = 62;

#[test]
fn a_path_that_changes_what_a_rank_sends_ends_its_connection_and_the_store_says_so() {
    let change: Change = |piece, at| {
        if at + piece.len() > HELLO {
            *piece.last_mut().expect("a byte") ^= 1;
        }
    };
    let secret = Secret::from_bytes(&[7; 32]).expect("memory");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let store = listener.local_addr().expect("an address").to_string();
    let mut server = Server::new(2, Some(secret.clone())).expect("a server");
    server.listen(listener).expect("a listener");
    let (ours, theirs) = descriptors::stream_pair().expect("a pair");
    server.adopt(ours, 0, Local { rank: 0, size: 1, processors: 1 }).expect("room");
    let ((end, ended), (report, reports)) = (channel(), channel());
    scope(|scope| {
        scope.spawn(move || serve(server, &ended, &report));
        let (address, passed) = path(scope, &store, [NOTHING, change]);
        scope.spawn(move || {
            let socket = TcpStream::connect(address).expect("a path");
            let client = Client::connected(socket.into(), 1, 2, Some(&secret), LIMIT);
            let mut client = client.ok().expect("its HELLO is not changed");
            assert!(client.exchange(&vec![3; LONGEST_VALUE], LIMIT).is_err(), "it was taken");
        });
        let (mut first, _) = Client::trusted(theirs.into(), LIMIT).expect("a rank");
        let got = first.exchange(b"value", LIMIT);
        let report = reports.recv_timeout(LIMIT);
        // The store ends in any case, or this scope never did.
        end.send(()).expect("a store");
        passed.recv_timeout(LIMIT).expect("both sides have ended");
        assert_eq!(got, Err(JobError::Gone(vec![1])));
        let report = report.expect("a report");
        assert!(report.ends_with("of rank 1: a record that this rank has not sealed"), "{report}");
    });
}
