//! The configuration, by the keys of the transports that the default features have.

#![cfg(all(feature = "sim", feature = "sm", feature = "sock"))]

use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Result<Vec<Device>, OpenError> {
    devices(Some(("cci.ini", text.as_bytes())), "")
}

fn names(devices: &[Device]) -> Vec<&str> {
    devices.iter().map(|device| device.name.as_str()).collect()
}

/// Each mistake: the file, and the whole sentence that it must give.
const MISTAKES: &[(&str, &str)] = &[
    (
        "# devices\n[sm0]\ntransport = sm\nprioritty = 3\n",
        "cci.ini:4: unknown key 'prioritty' of [sm0]; did you mean 'priority'?",
    ),
    ("[sm0]\ntransport = sm\nms = 4096\n", "cci.ini:3: unknown key 'ms' of [sm0]; did you mean 'mss'?"),
    ("[sm0]\ntransport = sm\nprio = 3\n", "cci.ini:3: unknown key 'prio' of [sm0]; did you mean 'priority'?"),
    ("[sm0]\ntransport = sm\nPri = 3\n", "cci.ini:3: unknown key 'Pri' of [sm0]; did you mean 'priority'?"),
    ("[sm0]\ntrans = sm\n", "cci.ini:2: unknown key 'trans' of [sm0]; did you mean 'transport'?"),
    (
        "[s]\ntransport = sock\nport = 65536\n",
        "cci.ini:3: 'port' of [s] is '65536'; write a whole number from 0 to 65535",
    ),
    (
        "[s]\ntransport = sock\nmtu = 1279\n",
        "cci.ini:3: 'mtu' of [s] is '1279'; write a whole number from 1280 to 65535",
    ),
    (
        "[s]\ntransport = sock\nip = lo\n",
        "cci.ini:3: 'ip' of [s] is 'lo'; write an IP address of this host, such as 192.0.2.1",
    ),
    (
        "[s]\ntransport = auto\nsecret = abcd\n",
        "cci.ini:3: 'secret' of [s] is a secret of 4 characters; write 64 hexadecimal digits, of 256 random bits",
    ),
    ("[s]\ntransport = sock\ncheck = no\n", "cci.ini:3: 'check' of [s] is 'no'; write always or remote"),
    ("[s]\ntransport = sim\nlos = 1\n", "cci.ini:3: unknown key 'los' of [s]; did you mean 'loss'?"),
    ("[p]\ntransport = port\n", "cci.ini:2: unknown transport 'port' of [p]; did you mean 'portals'?"),
    (
        "[sm0]\ntransport = sm\nz = 3\n",
        "cci.ini:3: unknown key 'z' of [sm0]; known are transport, priority, default, rma_rights, path, mss, pid, id, port, rma",
    ),
    (
        "[sm0]\ntransport = sm\ninterface = lo\n",
        "cci.ini:3: unknown key 'interface' of [sm0]; known are transport, priority, default, rma_rights, path, mss, pid, id, port, rma",
    ),
    ("[a]\ntransport = sock\nbufsiz = 9\n", "cci.ini:3: unknown key 'bufsiz' of [a]; did you mean 'bufsize'?"),
    ("[a]\ntransport = tcp\nPort = 9\n", "cci.ini:3: unknown key 'Port' of [a]; did you mean 'port'?"),
    ("[sm0]\ntransport = smm\n", "cci.ini:2: unknown transport 'smm' of [sm0]; did you mean 'sm'?"),
    ("[v]\ntransport = verb\n", "cci.ini:2: unknown transport 'verb' of [v]; did you mean 'verbs'?"),
    (
        "[v]\ntransport = carrier-pigeon\n",
        "cci.ini:2: unknown transport 'carrier-pigeon' of [v]; \
         known are sm, sock, tcp, auto, sim, mx, portals, ofi, verbs, gni, eth, e2e",
    ),
    ("[sm0]\ntrasport = sm\n", "cci.ini:2: unknown key 'trasport' of [sm0]; did you mean 'transport'?"),
    ("\n[sm0]\npriority = 3\n", "cci.ini:2: [sm0] has no transport; add a line such as transport = sm"),
    ("[sm0]", "cci.ini:1: [sm0] has no transport; add a line such as transport = sm"),
    (
        "[sm0]\ntransport = sm\n[sm0]\ntransport = sm\n",
        "cci.ini:3: [sm0] is already in line 1; give each device its own name",
    ),
    (
        "[sm0]\ntransport = sm\ntransport = sm\n",
        "cci.ini:3: 'transport' of [sm0] is already in line 2; keep one of them",
    ),
    (
        "[sm0]\ntransport = sm\npriority = 101\n",
        "cci.ini:3: 'priority' of [sm0] is '101'; write a whole number from 0 to 100",
    ),
    (
        "[sm0]\ntransport = sm\npriority = -1\n",
        "cci.ini:3: 'priority' of [sm0] is '-1'; write a whole number from 0 to 100",
    ),
    (
        "[a]\ntransport = sock\npriority = high\n",
        "cci.ini:3: 'priority' of [a] is 'high'; write a whole number from 0 to 100",
    ),
    ("[sm0]\ntransport = sm\ndefault = 2\n", "cci.ini:3: 'default' of [sm0] is '2'; write a whole number from 0 to 1"),
    ("[sm0]\ntransport = sm\nmss = 63\n", "cci.ini:3: 'mss' of [sm0] is '63'; write a whole number from 64 to 1048576"),
    (
        "[sm0]\ntransport = sm\nmss = 1048577\n",
        "cci.ini:3: 'mss' of [sm0] is '1048577'; write a whole number from 64 to 1048576",
    ),
    (
        "[sm0]\ntransport = sm\npid = me\n",
        "cci.ini:3: 'pid' of [sm0] is 'me'; write a whole number from 0 to 4294967295",
    ),
    ("[sm0]\ntransport = sm\nrma = fast\n", "cci.ini:3: 'rma' of [sm0] is 'fast'; write auto or segment"),
    ("[s]\ntransport = sock\nrma_rights = none\n", "cci.ini:3: 'rma_rights' of [s] is 'none'; write enforced or open"),
    (
        "[s]\ntransport = sim\nrma_right = open\n",
        "cci.ini:3: unknown key 'rma_right' of [s]; did you mean 'rma_rights'?",
    ),
    (
        "[a]\ntransport = sm\ndefault = 1\n[b]\ntransport = sm\ndefault = 1\n",
        "cci.ini:6: [b] is a second default, after line 3; keep one of them",
    ),
    ("transport = sm\n", "cci.ini:1: 'transport' stands before the first section; begin the device with [name]"),
    (
        "[sm0]\ntransport sm\n",
        "cci.ini:2: 'transport sm' is neither a section nor a key; write [name] for a device, or key = value",
    ),
    ("[sm0]\n= sm\n", "cci.ini:2: no key stands before '='; write key = value"),
    ("[sm0]\ntransport = # sm\n", "cci.ini:2: 'transport' has no value; write transport = value, or remove the line"),
    ("[sm0\n", "cci.ini:1: the section's name does not end; write [name]"),
    ("[ ]\n", "cci.ini:1: a section has no name; write [name]"),
    ("[sm0] transport = sm\n", "cci.ini:1: 'transport = sm' follows the section's name; put it on its own line"),
    ("[s\0m]\n", "cci.ini:1: a control character (\\u{0}) stands in the text; remove it"),
];

#[test]
fn every_mistake_names_line_and_remedy() {
    for (text, sentence) in MISTAKES {
        let error = read(text).expect_err(text);
        assert_eq!(error.to_string(), *sentence);
        assert_eq!(error.status, Status::Inval);
    }
}

#[test]
fn a_file_that_is_not_text_says_where() {
    let error = devices(Some(("cci.ini", b"[sm0]\ntransport = sm\nid = \xff\n")), "").expect_err("not UTF-8");
    assert!(error.to_string().starts_with("cci.ini:3: not UTF-8 text; "), "{error}");
    assert_eq!(error.status, Status::Inval);
}

#[test]
fn spacing_comments_and_line_ends_do_not_matter() {
    let text =
        "\u{feff}# first\r\n  [ my device ]  # name\r\ntransport=sm#x\r\n\t mss\t=\t4096 \r\n\r\npath = /a b=c\r\nid=7";
    let devices = read(text).expect("valid");
    assert_eq!(names(&devices), ["my device"]);
    let device = &devices[0];
    assert!(device.up, "{}", device.reason);
    assert_eq!((device.transport.as_str(), device.priority, device.is_default), ("sm", 20, false));
    assert_eq!(device.max_send_size, 4096);
    let arguments: Vec<_> = device.arguments.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(arguments, [("mss", "4096"), ("path", "/a b=c"), ("id", "7")]);
}

#[test]
fn without_a_file_each_transport_is_found_and_one_over_all() {
    let devices = devices(None, "").expect("found");
    assert_eq!(names(&devices), ["auto0", "sock0", "tcp0", "sm0"]);
    let [auto, sock, tcp, sm] = &devices[..] else { panic!("{devices:?}") };
    assert!(auto.up && auto.reason == "the best of sm, sock, tcp", "{}", auto.reason);
    assert_eq!((auto.priority, auto.is_default), (15, true));
    assert!(sock.up && sock.reason.starts_with("UDP from "), "{}", sock.reason);
    assert_eq!((sock.priority, sock.is_default), (30, false));
    assert!(tcp.up && tcp.reason == "TCP from 127.0.0.1", "{}", tcp.reason);
    assert_eq!((tcp.priority, tcp.is_default), (30, false));
    assert!(sm.up, "{}", sm.reason);
    assert_eq!((sm.priority, sm.is_default, sm.max_send_size), (20, false, cci_sm::MAX_SEND_SIZE));
    let smallest = devices[1..].iter().map(|device| device.max_send_size).min();
    assert_eq!(Some(auto.max_send_size), smallest, "what goes by every way");
}

#[test]
fn a_socket_device_keeps_its_keys_and_is_tried() {
    let text =
        "[a]\ntransport = sock\nip = 127.0.0.1\nport = 40123\npriority = 7\n[b]\ntransport = sock\nip = 203.0.113.77\n";
    let devices = read(text).expect("valid");
    assert_eq!(names(&devices), ["a", "b"]);
    assert!(devices[0].up && devices[0].reason == "UDP from 127.0.0.1", "{}", devices[0].reason);
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(devices[0].arguments, [pair("ip", "127.0.0.1"), pair("port", "40123")]);
    assert_eq!((devices[0].priority, devices[0].max_send_size), (7, 8192));
    assert!(!devices[1].up && devices[1].reason.contains("203.0.113.77"), "{}", devices[1].reason);
}

#[test]
fn a_simulated_network_is_there_by_configuration_only() {
    let devices = read("[s]\ntransport = sim\nnetwork = one\nloss = 5\n").expect("valid");
    assert!(devices[0].up, "{}", devices[0].reason);
    assert_eq!((devices[0].transport.as_str(), devices[0].arguments.len()), ("sim", 2));
}

/// Of every transport, and in its place among the others.
#[test]
fn rights_of_rma_can_be_opened() {
    for transport in ["sm", "sock", "sim"] {
        let key = if transport == "sm" { "mss = 4096" } else { "port = 0" };
        for value in ["open", "enforced"] {
            let text = format!("[a]\ntransport = {transport}\nrma_rights = {value}\npriority = 3\n{key}\n");
            let devices = read(&text).expect("valid");
            assert!(devices[0].up, "{}", devices[0].reason);
            let keys: Vec<_> = devices[0].arguments.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            assert_eq!(keys, [&format!("rma_rights = {value}"), key]);
        }
    }
}

#[test]
fn a_uri_names_its_transport() {
    assert_eq!(transport_of("sm://1/2").ok(), Some("sm"));
    assert_eq!(transport_of("sock://192.0.2.1:5000").ok(), Some("sock"));
    for (uri, sentence) in [
        (
            "192.0.2.1:5000",
            "'192.0.2.1:5000' is not a URI of an endpoint; pass what a server printed, such as sock://192.0.2.1:5000",
        ),
        (
            "scok://192.0.2.1:5000",
            "the URI 'scok://192.0.2.1:5000' names an unknown transport 'scok'; did you mean 'sock'?",
        ),
        (
            "gopher://x",
            "the URI 'gopher://x' names an unknown transport 'gopher'; known are sm, sock, tcp, auto, sim, mx, portals",
        ),
    ] {
        let error = transport_of(uri).expect_err(uri);
        assert_eq!((error.to_string().as_str(), error.status), (sentence, Status::Inval));
    }
}

#[test]
fn an_empty_file_has_no_devices() {
    for text in ["", "\n\n", "# nothing\n"] {
        assert_eq!(names(&read(text).expect("valid")), [""; 0]);
    }
}

#[test]
fn transports_of_other_builds_are_listed_as_down() {
    let text =
        "[a]\ntransport = ofi\npriority = 30\nport = 0\n[b]\ntransport = verbs\nanything = goes\n[c]\ntransport = sm\n";
    let devices = read(text).expect("valid");
    assert_eq!(names(&devices), ["c", "b", "a"], "up first, then priority 50 before 30");
    assert!(devices[0].up && !devices[1].up && !devices[2].up);
    assert_eq!(
        devices[2].reason,
        "the transport ofi is not in this build; only sm, sock, tcp, auto, sim, mx and portals are"
    );
    assert_eq!(devices[1].arguments, [("anything".to_owned(), "goes".to_owned())]);
    assert_eq!((devices[2].priority, devices[1].priority), (30, 50));
}

#[test]
fn order_is_up_default_priority_and_then_the_file() {
    let text = "[low]\ntransport=sm\npriority=0\n[down]\ntransport=ofi\npriority=100\n[one]\ntransport=sm\n[two]\ntransport=sm\n\
                [high]\ntransport=sm\npriority=100\n[mine]\ntransport=sm\npriority=1\ndefault=1\n";
    assert_eq!(names(&read(text).expect("valid")), ["mine", "high", "one", "two", "low", "down"]);
}

#[test]
fn the_selection_keeps_or_leaves_out() {
    let text: &[u8] = b"[a]\ntransport=sm\n[b]\ntransport=ofi\npriority=30\n[c]\ntransport=verbs\n";
    let table: &[(&str, &[&str])] = &[
        ("", &["a", "c", "b"]),
        (" , ", &["a", "c", "b"]),
        ("^", &["a", "c", "b"]),
        ("sm", &["a"]),
        (" ofi , sm ", &["a", "b"]),
        ("^sm", &["c", "b"]),
        ("^ofi,verbs", &["a"]),
        ("sock", &[]),
    ];
    for (selection, expected) in table {
        let devices = devices(Some(("cci.ini", text)), selection).expect("valid");
        assert_eq!(names(&devices), *expected, "CCI_CTP={selection}");
    }
    let found: &[(&str, &[&str])] = &[
        ("", &["auto0", "sock0", "tcp0", "sm0"]),
        ("^sm", &["auto0", "sock0", "tcp0"]),
        ("sock", &["auto0", "sock0"]),
        ("auto", &["auto0"]),
        ("^auto", &["sm0", "sock0", "tcp0"]),
        ("^auto,sm", &["sock0", "tcp0"]),
    ];
    for (selection, expected) in found {
        let devices = devices(None, selection).expect("valid");
        assert_eq!(names(&devices), *expected, "CCI_CTP={selection}");
    }
}

#[test]
fn an_unknown_transport_in_the_selection_is_refused() {
    for (selection, sentence) in [
        ("sm,tpc", "CCI_CTP: unknown transport 'tpc'; did you mean 'tcp'?"),
        ("^sokc", "CCI_CTP: unknown transport 'sokc'; did you mean 'sock'?"),
    ] {
        let error = devices(None, selection).expect_err(selection);
        assert_eq!(error.to_string(), sentence);
        assert_eq!(error.status, Status::Inval);
    }
}

/// A line that the table of mistakes and the grammar are likely to meet, among arbitrary ones.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\[[a-z ]{0,3}\\]?",
        "(transport|priority|default|mss|id|prio) ?=? ?(sm|tcp|verbs|0|1|70|1000|x)?",
        ".{0,12}",
    ]
}

proptest! {
    /// Arbitrary bytes are devices or one sentence that names file and an existing line; never a
    /// panic.
    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes)?;
    }

    #[test]
    fn likely_lines_are_read_or_refused(lines in prop::collection::vec(line(), 0..12)) {
        check(lines.join("\n").as_bytes())?;
    }

    /// What was written is what is read, whatever the spacing.
    #[test]
    fn written_devices_are_read(
        written in prop::collection::btree_map("[a-z][a-z0-9]{0,7}", (0..=100_u32, 64..=1_048_576_u32), 1..6),
        space in " {0,3}",
    ) {
        let mut text = String::new();
        for (name, (priority, mss)) in &written {
            text += &format!("[{name}]{space}\n{space}transport{space}={space}sm # c\npriority={space}{priority}\n{space}mss{space}={mss}\n");
        }
        let devices = read(&text).expect("valid");
        prop_assert_eq!(devices.len(), written.len());
        for device in &devices {
            let (priority, mss) = written[&device.name];
            prop_assert_eq!((device.priority, device.max_send_size), (priority, mss));
        }
        prop_assert!(devices.is_sorted_by_key(|device| Reverse(device.priority)));
    }
}

fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    match devices(Some(("f", bytes)), "") {
        Ok(devices) => {
            let mut names = names(&devices);
            names.sort_unstable();
            names.dedup();
            prop_assert_eq!(names.len(), devices.len());
            prop_assert!(devices.iter().filter(|device| device.is_default).count() <= 1);
        }
        Err(error) => {
            let sentence = error.to_string();
            let mut parts = sentence.splitn(3, ':');
            prop_assert_eq!(parts.next(), Some("f"));
            let line: usize = parts.next().and_then(|line| line.parse().ok()).expect("a line number");
            let lines = 1 + bytes.iter().filter(|byte| **byte == b'\n').count();
            prop_assert!((1..=lines).contains(&line), "{}", sentence);
        }
    }
    Ok(())
}

/// The listings of `docs/configuration.md`, as a program reads them.
#[test]
fn the_page_shows_files_that_can_be_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let listings: Vec<&str> = page.split("```ini\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let found: Vec<_> = listings.iter().map(|text| read(text).map(|devices| names(&devices).join(" "))).collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found.into_iter().collect::<Result<Vec<_>, _>>().expect("devices"), ["sm0", "net"]);
}
