//! A core dump of a process with sealed connections holds no byte of their keys.
//!
//! One process has secrets, handshakes and connections, and waits. Another one reads its memory:
//! the words of the arena, which no dump holds, are looked for in all that a dump may hold.

use cci_instruments::Dump;
use cci_mem::source::Source;
use cci_seal::noise::{Initiator, Responder};
use cci_seal::{Phase, Psk, Session, TAG, Vault};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

/// Tells the process that waits to leave a part of a secret on its heap.
const LEAK: &str = "CCI_TEST_LEAK";

fn handshake(psk: &Psk) -> [Session; 2] {
    let initiator = Initiator::begin(psk, &[b"fields"], b"payload").expect("begun");
    let responder = Responder::read(psk, &[b"fields"], initiator.message(), &mut [0; 7]).expect("read");
    let (answer, session) = responder.answer(&[b"more"], b"answer").expect("answered");
    [initiator.finish(&[b"more"], &answer, &mut [0; 6]).expect("finished"), session]
}

fn exchange(index: u32, sender: &mut Vault, receiver: &mut Vault, phase: Phase, number: u64, len: usize) {
    let text = vec![number as u8; len];
    let mut frame = vec![0; len + TAG];
    sender.seal(index, number, b"header", &[Source::from(&text[..])], &mut frame).expect("sealed");
    let mut copy = vec![0; len];
    receiver.open_to(index, phase, number, b"header", &frame, &mut copy).expect("opened");
    receiver.open(index, phase, number, b"header", &mut frame).expect("opened");
    sender.seal_in_place(index, number + 1, b"header", &mut frame).expect("sealed");
    frame[0] ^= 1;
    assert!(receiver.open(index, phase, number + 1, b"header", &mut frame).is_err());
}

/// Everything that the crate does with secrets, before the process waits.
fn connections(psk: &Psk) -> [Vault; 2] {
    let [client_session, server_session] = handshake(psk);
    let (mut client, mut server) = (Vault::new(8), Vault::new(8));
    let streams = [client_session.stream(1), server_session.stream(1)].map(|stream| stream.expect("derived"));
    for (index, pair) in [[&client_session, &server_session], [&streams[0], &streams[1]]].into_iter().enumerate() {
        client.insert(index as u32, pair[0]).expect("memory");
        server.insert(index as u32, pair[1]).expect("memory");
    }
    let exported = client_session.export(b"resumption").expect("derived");
    assert!(exported.is_same(&server_session.export(b"resumption").expect("derived")).expect("here"));
    for round in 0..20 {
        exchange(0, &mut client, &mut server, Phase::Present, 10 * round + 1, 1 << (round % 16));
        exchange(0, &mut server, &mut client, Phase::Present, 10 * round + 1, 65_000);
        exchange(1, &mut client, &mut server, Phase::Present, 10 * round + 1, 8);
        exchange(1, &mut server, &mut client, Phase::Present, 10 * round + 1, 1_000);
        client.advance_sending(0).expect("a key");
        exchange(0, &mut client, &mut server, Phase::Next, 10 * round + 3, 8);
        server.advance_receiving(0).expect("a key");
    }
    [client, server]
}

/// Runs something so many frames of 8 KiB deep in the stack: nothing shallower overwrites what it
/// has left.
#[inline(never)]
fn deep_below(frames: usize, run: &mut dyn FnMut()) {
    let room = std::hint::black_box([0_u8; 8 << 10]);
    if frames == 0 {
        run()
    } else {
        deep_below(frames - 1, run)
    }
    std::hint::black_box(room);
}

/// Seals and opens texts of many lengths, the last ones higher in the stack.
fn exchange_at_many_depths([client, server]: &mut [Vault; 2]) {
    let lengths = [1, 8, 48, 129, 300, 700, 1_000, 1_500, 4_096, 16_384, 65_000];
    for (at, len) in lengths.into_iter().enumerate() {
        let (frames, number) = (4 * (lengths.len() - at), 10 * at as u64 + 1_000);
        deep_below(frames + 2, &mut || exchange(1, server, client, Phase::Present, number, len));
        deep_below(frames, &mut || exchange(1, client, server, Phase::Present, number, len));
    }
}

/// The process that waits. It prints the public bytes that its arena holds, too.
#[test]
#[ignore = "run by the other tests"]
fn a_process_with_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    drop(Psk::write_new(&path).expect("written"));
    let psk = Psk::from_file(&path).expect("a secret");
    psk.label().expect("here");
    psk.reset_token(b"here", [1, 2]).expect("here");
    let digits = psk.digits().expect("memory");
    let mut vaults = None;
    deep_below(56, &mut || vaults = Some(connections(&psk)));
    let mut vaults = vaults.expect("made");
    let asking = Initiator::begin(&psk, &[], b"").expect("begun");
    let asked = Responder::read(&psk, &[], asking.message(), &mut []).expect("read");
    let tag = asked.deny(&[b"no"]).expect("here");
    asking.check_denial(&[b"no"], &tag).expect("right");
    let leak = std::env::var_os(LEAK).map(|_| std::hint::black_box(digits.get().expect("here").to_vec()));

    exchange_at_many_depths(&mut vaults);
    let mut out = std::io::stdout();
    writeln!(out, "\npublic {:?}", &asking.message()).expect("printed");
    out.flush().expect("printed");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("read");
    drop((vaults, asked, leak));
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().expect("8 bytes"))
}

/// Whether a word may be of a key: neither an address nor a number nor a text of few letters.
fn is_random(word: u64) -> bool {
    let bytes: HashSet<u8> = word.to_ne_bytes().into_iter().collect();
    bytes.len() >= 5 && word >> 48 != 0
}

/// The words of the arena: those beside another such word, since keys are longer than one.
fn secret_words(dump: &Dump, public: &[u8]) -> HashSet<u64> {
    let mut words = HashSet::new();
    for mapping in dump.mappings().iter().filter(|mapping| !mapping.is_dumped) {
        dump.pieces(mapping, |_, bytes| {
            let all: Vec<u64> = bytes.chunks_exact(8).map(word).collect();
            let pairs = all.windows(2).filter(|pair| pair.iter().all(|word| is_random(*word)));
            words.extend(pairs.flatten().copied());
        });
    }
    for bytes in public.windows(8) {
        words.remove(&word(bytes));
    }
    words
}

/// Where a dump would hold a word of the arena.
fn found_in_dump(leak: bool) -> (usize, Vec<String>) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "a_process_with_connections", "--ignored", "--nocapture", "--test-threads=1"]);
    if leak {
        command.env(LEAK, "1");
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
    let lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
    let public = lines
        .map(|line| line.expect("a line"))
        .find_map(|line| line.strip_prefix("public ").map(|list| list.trim_matches(['[', ']']).to_owned()))
        .expect("it waits");
    let public: Vec<u8> = public.split(", ").map(|byte| byte.parse().expect("a byte")).collect();

    let dump = Dump::of(child.id()).expect("its memory");
    let words = secret_words(&dump, &public);
    let mut found = Vec::new();
    for mapping in dump.mappings().iter().filter(|mapping| mapping.is_dumped) {
        dump.pieces(mapping, |start, bytes| {
            let places = bytes.windows(8).enumerate().filter(|(_, bytes)| words.contains(&word(bytes)));
            found.extend(
                places.map(|(at, bytes)| format!("{:#x} in {:?}: {:x?}", start + at as u64, mapping.name, bytes)),
            );
        });
    }
    drop(child.stdin.take());
    assert!(child.wait().expect("ended").success());
    (words.len(), found)
}

#[test]
fn a_dump_holds_no_byte_of_a_key() {
    let (words, found) = found_in_dump(false);
    // Expanded keys alone are some hundred words.
    assert!(words > 300, "only {words} words of secrets were looked for");
    assert!(found.is_empty(), "a dump holds {} words of secrets:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_secret_on_the_heap_is_found() {
    let (_, found) = found_in_dump(true);
    assert!(!found.is_empty(), "the search finds nothing");
}
