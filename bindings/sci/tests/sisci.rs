//! The library as it is installed: headers, symbols, and C programs that use it.

use cci_conformance::installed::{self, Installed, end, finish, finish_all};
use cci_conformance::namespace;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};

/// The nodes of the programs: two on this host, one elsewhere.
const NODES: &str = "4 localhost\n8 localhost\n16 192.0.2.1\n";

static INSTALLED: LazyLock<Installed> =
    LazyLock::new(|| Installed::new("cci-sisci", "sisci", env!("CARGO_MANIFEST_DIR"), env!("CARGO_TARGET_TMPDIR")));

/// A number of segments and interrupts that no other test of this run has, nor the next few.
fn id() -> u32 {
    static LAST: Mutex<u32> = Mutex::new(0);
    let mut last = LAST.lock().expect("no test panics here");
    *last += 1;
    number(std::process::id(), *last)
}

/// Of a process and how many it has had. Behind the last one the first one comes again: its program
/// has ended long before.
fn number(process: u32, count: u32) -> u32 {
    (process & 0xf_ffff) << 11 | (count & 0xff) << 3
}

#[test]
fn no_number_is_that_of_another_process() {
    let process = |number: u32| number >> 11;
    let (own, next) = (1 << 20 | 7, 8);
    assert!((0..1000).all(|count| process(number(own, count)) == 7 && process(number(next, count)) == 8));
    assert!((0..255).all(|count| number(own, count) + 8 == number(own, count + 1)));
}

/// A node table of its own: a program that runs may be reading another one's.
fn table(nodes: &str, dir: &Path) -> PathBuf {
    static LAST: Mutex<u32> = Mutex::new(0);
    let mut last = LAST.lock().expect("no test panics here");
    *last += 1;
    let table = dir.join(format!("nodes.{last}"));
    std::fs::write(&table, nodes).expect("a table");
    table
}

fn command(program: &Path, node: u32, dir: &Path) -> Command {
    let mut command = installed::command(program);
    command.env("SCI_NODES", table(NODES, dir)).env("SCI_NODE", node.to_string());
    command
}

/// Runs a program in two processes, of nodes 4 and 8, with both sets of symbols.
fn run(source: &str, said: &str) {
    for flags in [&[][..], &["-D_REENTRANT"], &["-U_REENTRANT"]] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let program = INSTALLED.compile(source, flags, dir.path());
        both(source, said, |rank| command(&program, 4 + 4 * rank, dir.path()));
    }
}

/// Runs two processes, which say the same.
fn both(source: &str, said: &str, command: impl Fn(u32) -> Command) {
    let ids = [id(), id()];
    let ranks = [0, 1].map(|rank| {
        let [own, peer] = [rank, 1 - rank].map(|rank| ids[rank as usize]);
        command(rank).args([rank, own, peer].map(|word| word.to_string())).spawn().expect("the program starts")
    });
    finish_all(ranks, said, source);
}

/// Runs the broadcast program: a producer and its consumers, with one group.
fn broadcast(program: &Path, commands: impl Iterator<Item = (u32, Command)>) {
    let (group, commands) = (id(), commands.collect::<Vec<_>>());
    let count = commands.len();
    let children: Vec<_> = commands
        .into_iter()
        .map(|(rank, mut command)| {
            let words = [rank as usize, count, group as usize].map(|word| word.to_string());
            command.args(words).spawn().unwrap_or_else(|why| panic!("{} does not start: {why}", program.display()))
        })
        .collect();
    finish_all(children, "to all of them\n", "broadcast.c");
}

#[test]
fn one_store_of_a_producer_reaches_several_consumers() {
    for flags in ["-D_REENTRANT", "-U_REENTRANT"] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let program = INSTALLED.compile("broadcast.c", &[flags], dir.path());
        broadcast(&program, (0..4).map(|rank| (rank, command(&program, 4 + rank % 2 * 4, dir.path()))));
    }
}

/// The producer and a consumer in one name space, two consumers in the other one.
#[test]
fn one_store_of_a_producer_reaches_consumers_in_two_name_spaces() {
    if !namespace::may_be_made() {
        return;
    }
    let nets = namespace::pair(1500);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile("broadcast.c", &[], dir.path());
    let commands = (0..4).map(|rank| (rank, inside(&nets[rank as usize / 2].path(), &program, dir.path())));
    broadcast(&program, commands);
}

/// A program in a name space, whose hosts reach each other by a cable only.
fn inside(net: &str, program: &Path, dir: &Path) -> Command {
    let mut command = command(Path::new("nsenter"), 4, dir);
    command.arg(format!("--net={net}")).arg(program);
    command
        .env("SCI_NODES", table("4 10.0.0.1\n8 10.0.0.2\n", dir))
        .env_remove("SCI_NODE")
        .env("CCI_LISTEN", "network");
    command
}

/// The same programs as on one host, between hosts that reach each other by a cable only.
#[test]
fn programs_run_between_two_name_spaces() {
    if namespace::may_be_made() {
        between(&namespace::pair(1500));
    }
}

/// And by a cable that loses one frame of twenty.
#[test]
fn programs_run_between_two_name_spaces_that_lose_frames() {
    if !namespace::may_be_made() || !namespace::has("nft") {
        return;
    }
    let nets = namespace::pair(1500);
    for net in &nets {
        net.rules(
            "add table ip t; add chain ip t in { type filter hook input priority 0; }; \
             add rule ip t in meta l4proto udp numgen random mod 100 < 5 counter drop",
        );
    }
    between(&nets);
}

/// Behind it comes `SCITerminate`, or the end of the process.
#[test]
fn the_last_store_of_a_program_arrives() {
    if !namespace::may_be_made() {
        return;
    }
    let nets = namespace::pair(1500);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile("last.c", &[], dir.path());
    for variable in ["BY_TERMINATE", "BY_EXIT"] {
        both("last.c", "the last one\n", |rank| {
            let mut command = inside(&nets[rank as usize].path(), &program, dir.path());
            command.env(variable, "yes");
            command
        });
    }
}

/// Runs programs of nodes 4 and 8, each in a name space of its own.
fn between(nets: &[namespace::Net; 2]) {
    for (source, said) in [
        ("pingpong.c", "ping and pong\n"),
        ("producer.c", "produced and consumed\n"),
        ("dma.c", "transferred\n"),
        ("stopped.c", "stopped and continued\n"),
    ] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let program = INSTALLED.compile(source, &[], dir.path());
        both(source, said, |rank| inside(&nets[rank as usize].path(), &program, dir.path()));
    }
}

#[test]
fn structures_and_constants_are_those_of_sisci() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile("layout.c", &[], dir.path());
    assert_eq!(finish(command(&program, 4, dir.path()).spawn().expect("it starts"), "layout.c"), "laid out\n");
}

/// Runs a program of one process, and returns what it says.
fn run_alone(source: &str, flags: &[&str]) -> String {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile(source, flags, dir.path());
    let mut command = command(&program, 4, dir.path());
    let child = command.args(["0".to_owned(), id().to_string(), "0".to_owned()]).spawn().expect("it starts");
    finish(child, source)
}

#[test]
fn each_call_works_and_each_code_is_provoked() {
    assert_eq!(run_alone("codes.c", &[]), "codes\n");
}

#[test]
fn a_forked_child_has_sequences_of_its_own() {
    assert_eq!(run_alone("forked.c", &[]), "forked\n");
}

/// Whatever call they are in, also where they may be cancelled at each instruction.
#[test]
fn threads_are_cancelled() {
    assert_eq!(run_alone("cancelled.c", &["-D_REENTRANT"]), "cancelled\n");
}

#[test]
fn stores_go_to_and_fro() {
    run("pingpong.c", "ping and pong\n");
}

/// Runs the ping-pong in the memory of a plain file, as that of a device that hosts share.
fn in_a_file(start: impl Fn(u32, &Path, &Path) -> Command) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile("pingpong.c", &[], dir.path());
    let file = dir.path().join("memory");
    std::fs::File::create(&file).and_then(|file| file.set_len(1 << 20)).expect("a file");
    both("pingpong.c", "ping and pong\n", |rank| {
        let mut command = start(rank, &program, dir.path());
        command.env("SCI_MEMORY", &file);
        command
    });
    // The segment of each has the last of the longest messages, 65,000 bytes of one value.
    let bytes = std::fs::read(&file).expect("a file");
    let stored = bytes.iter().filter(|byte| **byte == 100).count();
    assert!(stored >= 2 * 65_000, "{stored}");
}

#[test]
fn stores_go_to_and_fro_in_the_memory_of_a_file() {
    in_a_file(|rank, program, dir| command(program, 4 + 4 * rank, dir));
}

/// As between two machines that share the memory of a device, and do not reach each other by CCI.
#[test]
fn stores_go_to_and_fro_in_a_file_that_two_name_spaces_share() {
    if namespace::may_be_made() {
        let nets = namespace::pair(1500);
        in_a_file(|rank, program, dir| {
            let mut command = inside(&nets[rank as usize].path(), program, dir);
            command.env_remove("CCI_LISTEN").env("BY_DIRECTORY", "yes");
            command
        });
    }
}

/// Shared windows need no owner that runs.
#[test]
fn stores_go_to_an_owner_that_is_stopped() {
    run("stopped.c", "stopped and continued\n");
}

#[test]
fn a_producer_rings_and_a_consumer_answers() {
    run("producer.c", "produced and consumed\n");
}

#[test]
fn queues_transfer_both_ways() {
    run("dma.c", "transferred\n");
}

#[test]
fn chunks_are_offered_by_scalis_names() {
    run("scali.c", "offered and connected\n");
}

/// As programs do that have no library when they are built.
#[test]
fn the_library_is_found_by_name() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile("byname.c", &["-ldl"], dir.path());
    let folder = INSTALLED.pkg_config("sisci", &["--variable=libdir"]).concat();
    let child = command(&program, 4, dir.path()).arg(format!("{folder}/libsisci.so")).spawn().expect("it starts");
    assert_eq!(finish(child, "byname.c"), "found\n");
}

#[test]
fn a_wrong_node_table_or_none_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile("pingpong.c", &[], dir.path());
    let no_node = "no node has this number";
    let tables = [("SCI_NODE", "16", no_node), ("SCI_NODE", "x", no_node), ("SCI_NODES", "/no/such/file", no_node)];
    let memory = [("SCI_MEMORY", "/no/such/file", "the system refuses the call")];
    for (variable, value, why) in tables.into_iter().chain(memory) {
        let mut command = command(&program, 4, dir.path());
        let output = end(command.args(["0", "1", "2"]).env(variable, value).spawn().expect("it starts"), "pingpong.c");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && words.contains(why), "{variable} is {value}: {words}");
    }
}

#[test]
fn the_libraries_export_the_list() {
    assert_eq!(INSTALLED.exported("sisci"), [(); 2].map(|()| INSTALLED.listed()));
}

#[test]
fn the_headers_declare_what_the_list_names() {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/include/sisci_api.h");
    let text = std::fs::read_to_string(header).expect("a header");
    let calls =
        text.lines().filter_map(|line| line.strip_prefix("#define SCI")?.strip_suffix(')')?.split_once(" SISCI_NAME("));
    let calls = calls.flat_map(|(_, name)| ["ST", "MT"].map(|set| format!("_SISCI_PUBLIC_FUNC_{set}_{name}")));
    let flags = text.lines().filter_map(|line| line.strip_prefix("extern const unsigned int ")?.strip_suffix(';'));
    let names: BTreeSet<_> = calls.chain(flags.map(str::to_owned)).collect();
    assert_eq!(names, INSTALLED.listed());
}

#[test]
fn each_header_stands_alone_in_c_and_in_cxx() {
    for header in ["sisci_api.h", "dis_types.h", "sisci_types.h", "sisci_error.h", "scasci.h", "rtl.h"] {
        INSTALLED.stands_alone("sisci", header, &[]);
    }
}

#[test]
fn no_descriptor_is_inherited_or_a_standard_one() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = INSTALLED.compile("descriptors.c", &[], dir.path());
    for when in ["never", "closed", "closing"] {
        both("descriptors.c", "exchanged\n", |rank| {
            let mut command = command(&program, 4 + 4 * rank, dir.path());
            command.env("DESCRIPTORS", when);
            command
        });
    }
}

/// No compiler finds it without pkg-config: a library of that name elsewhere is not shadowed.
#[test]
fn it_lies_in_directories_of_its_own() {
    assert_eq!(INSTALLED.names_in("include"), ["cci"]);
    assert_eq!(INSTALLED.names_in("lib"), ["cci", "pkgconfig"]);
    assert_eq!(INSTALLED.names_in("lib/pkgconfig"), ["sisci.pc"]);
}
