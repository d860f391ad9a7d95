//! The secret of a job lies nowhere but in the arena, which no core dump has.
//!
//! One process joins, from what gives a secret, and waits. Another one, which has made the secret,
//! reads its memory.

use super::{LIMIT, free_port, join, serve, variables};
use crate::place::Local;
use crate::secret::Secret;
use crate::server::Server;
use crate::store_client::Client;
use cci_instruments::Dump;
use cci_mem::descriptors;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::scope;

/// Tells the process that waits where its secret comes from.
const SOURCE: &str = "CCI_TEST_SOURCE";

/// Names the file with the secret to it: no variable by which a process joins.
const FILE: &str = "CCI_TEST_SECRET";

/// Bytes of the secret that are looked for together: less than an allocator leaves of it.
const PIECE: usize = 8;

/// Says that all has been done, and waits.
fn wait() {
    let mut out = std::io::stdout();
    writeln!(out, "\njoined").and_then(|()| out.flush()).expect("printed");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("read");
}

/// A launcher's server and one of its ranks.
fn launched(file: &Path, in_clear: bool) {
    let server = Server::new(1, Some(Secret::read(file).expect("a secret"))).expect("a server");
    let mut server = if in_clear { server.in_clear() } else { server };
    let (ours, theirs) = descriptors::stream_pair().expect("a pair");
    server.adopt(ours, 0, Local { rank: 0, size: 1, processors: 1 }).expect("room");
    let ((end, ended), (report, _reports)) = (channel(), channel());
    let store = std::thread::spawn(move || serve(server, &ended, &report));
    let (client, welcome) = Client::trusted(theirs.into(), LIMIT).expect("a rank");
    assert!(welcome.key.secret().is_some());
    wait();
    end.send(()).expect("a store");
    store.join().expect("no panic");
    drop(client);
}

/// Two ranks that have the file.
fn addressed(file: &Path) {
    let store = format!("127.0.0.1:{}", free_port());
    let file = file.to_str().expect("text");
    let of = |rank| {
        let mut variables = variables(rank, 2, &store);
        variables.insert("CCI_SECRET_FILE", file.into());
        join(&variables, LIMIT).expect("a rank")
    };
    let ranks = scope(|scope| {
        let other = scope.spawn(|| of(1));
        [of(0), other.join().expect("no panic")]
    });
    wait();
    drop(ranks);
}

#[test]
#[ignore = "run by the other tests"]
fn a_process_that_joins() {
    let (Ok(source), Some(file)) = (std::env::var(SOURCE), std::env::var_os(FILE)) else { return };
    let file = Path::new(&file);
    match source.as_str() {
        "launched" => launched(file, false),
        "in clear" => launched(file, true),
        "addressed" => addressed(file),
        _ => {
            let leaked = Secret::read(file).expect("a secret").bytes().expect("here").to_vec();
            wait();
            drop(std::hint::black_box(leaked));
        }
    }
}

/// Where a process that has joined has pieces of the secret.
fn found(source: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    let secret: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(32).collect();
    let digits = secret.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("room");
        text
    });
    std::fs::write(&path, digits).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "tests::memory::a_process_that_joins", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(SOURCE, source).env(FILE, &path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("started");
    let mut lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
    assert!(lines.any(|line| line.expect("a line") == "joined"), "{source}: it has ended");

    let dump = Dump::of(child.id()).expect("its memory");
    let (mut places, mut read) = (Vec::new(), 0);
    let pieces: Vec<&[u8]> = secret.chunks_exact(PIECE).collect();
    // Most bytes begin none of its pieces.
    let mut is_first = [false; 256];
    pieces.iter().for_each(|piece| is_first[usize::from(piece[0])] = true);
    for mapping in dump.mappings().iter().filter(|mapping| mapping.is_dumped && mapping.rights == "rw-p") {
        dump.pieces(mapping, |start, bytes| {
            read += bytes.len();
            let windows = bytes.windows(PIECE).enumerate().filter(|(_, window)| is_first[usize::from(window[0])]);
            let hits = windows.filter(|(_, window)| pieces.contains(window));
            places
                .extend(hits.map(|(at, piece)| format!("{:#x} in {:?}: {piece:x?}", start + at as u64, mapping.name)));
        });
    }
    assert!(read > 100_000, "only {read} bytes were read");
    drop(child.stdin.take());
    assert!(child.wait().expect("ended").success());
    places
}

#[test]
fn a_rank_and_its_store_leave_no_copy_of_the_secret() {
    for source in ["launched", "in clear", "addressed"] {
        let places = found(source);
        assert!(places.is_empty(), "{source}:\n{}", places.join("\n"));
    }
}

#[test]
fn a_copy_of_the_secret_on_the_heap_is_found() {
    assert!(!found("leaked").is_empty(), "the search finds nothing");
}
