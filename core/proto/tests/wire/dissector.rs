//! `tools/wireshark/cci.lua` shows what the wire format writes: tshark reads a capture made here.

mod sealed;

use crate::frames;
use cci_proto::wire::{Kind, seal};
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/cci.lua");

/// UDP port of the peer in every capture; no protocol of its own lives there.
const PORT: u16 = 50_123;

/// A file that goes with the test.
struct Capture {
    path: PathBuf,
    config: PathBuf,
}

impl Capture {
    /// One datagram each, between 192.0.2.1 and 192.0.2.2.
    fn of(name: &str, datagrams: &[Vec<u8>]) -> Self {
        Self::cut(name, datagrams, usize::MAX)
    }

    /// The same, of each packet no more than so many bytes.
    fn cut(name: &str, datagrams: &[Vec<u8>], most: usize) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = directory.join(format!("{name}.pcap"));
        let config = directory.join(format!("{name}.wireshark"));
        // Magic of microseconds, version 2.4, no zone, no accuracy, longest packet, raw IP.
        let mut file = Vec::new();
        for word in [0xA1B2_C3D4_u32, 0x0002_0004, 0, 0, 0x0004_0000, 101] {
            file.extend(word.to_be_bytes());
        }
        for (second, datagram) in (0_u32..).zip(datagrams) {
            let packet = packet(datagram);
            let captured = &packet[..packet.len().min(most)];
            for word in [second, 0, length(captured.len()), length(packet.len())] {
                file.extend(word.to_be_bytes());
            }
            file.extend(captured);
        }
        std::fs::create_dir_all(&config).expect("the target folder can be written");
        std::fs::write(&path, file).expect("the target folder can be written");
        Self { path, config }
    }

    /// What tshark shows of these fields: a line for each packet, values of one field separated by
    /// commas.
    fn fields(&self, options: &[&str], fields: &[&str]) -> Vec<Vec<String>> {
        let mut command = Command::new("tshark");
        command.args(["-r", self.path.to_str().expect("a path in UTF-8"), "-X", &format!("lua_script:{SCRIPT}")]);
        command.args(options).args(["-T", "fields", "-E", "separator=|", "-E", "occurrence=a"]);
        command.args(fields.iter().flat_map(|field| ["-e", field]));
        // Not what this user has configured; another copy of the script, for one.
        command
            .env("WIRESHARK_CONFIG_DIR", &self.config)
            .env("HOME", &self.config)
            .env("XDG_CONFIG_HOME", &self.config);
        let output = command
            .output()
            .expect("tshark is missing: install it (Debian: apt-get install tshark) or run make prepare");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !complaints.contains("Lua") && !complaints.contains(".lua"), "{complaints}");
        let lines = String::from_utf8(output.stdout).expect("tshark writes UTF-8");
        lines.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
    }

    /// One field of all packets.
    fn field(&self, field: &str) -> Vec<String> {
        self.fields(&[], &[field]).into_iter().map(|mut line| line.remove(0)).collect()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir_all(&self.config);
    }
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("short")
}

/// A UDP datagram in IPv4.
fn packet(datagram: &[u8]) -> Vec<u8> {
    let short = |bytes: usize| u16::try_from(bytes).expect("short").to_be_bytes();
    let mut packet = vec![0x45, 0];
    packet.extend(short(28 + datagram.len()));
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    packet.extend(50_124_u16.to_be_bytes());
    packet.extend(PORT.to_be_bytes());
    packet.extend(short(8 + datagram.len()));
    // No sum of its own, as UDP in IPv4 may.
    packet.extend([0, 0]);
    packet.extend(datagram);
    packet
}

/// All samples, a datagram each.
fn samples(name: &str) -> (Vec<&'static str>, Capture) {
    let (names, datagrams): (Vec<_>, Vec<_>) = frames::all().into_iter().unzip();
    (names, Capture::of(name, &datagrams))
}

#[test]
fn every_kind_is_recognised_with_a_right_check_and_nothing_to_complain_about() {
    let (names, capture) = samples("kinds");
    let shown = capture.fields(
        &[],
        &["_ws.col.Protocol", "_ws.col.Info", "cci.kind", "cci.length", "cci.check.status", "_ws.expert.message"],
    );
    assert_eq!(shown.len(), names.len());
    for ((name, bytes), line) in frames::all().iter().zip(shown) {
        let kind = Kind::from_u8(bytes[1]).expect("known");
        let expert = if *name == "ack" { "No slot was free for a message" } else { "" };
        let [number, length] = [bytes[1].to_string(), bytes.len().to_string()];
        let info = format!("{kind:?}").to_uppercase();
        assert_eq!(line, ["CCI", &info, &number, &length, "1", expert], "{name}");
    }
}

#[test]
fn every_field_has_its_value() {
    let (names, capture) = samples("values");
    let expect = |name: &str, wanted: &[(&str, &str)]| {
        let fields: Vec<&str> = wanted.iter().map(|(field, _)| *field).collect();
        let values: Vec<&str> = wanted.iter().map(|(_, value)| *value).collect();
        let place = names.iter().position(|known| *known == name).expect("a sample");
        assert_eq!(capture.fields(&[], &fields)[place], values, "{name}");
    };
    let (cookie, token) = ("0xd1d2d3d4d5d6d7d8", "0xc1c2c3c4c5c6c7c8");
    let offer = [
        ("cci.features", "0x00000001"),
        ("cci.features.unchecked", "1"),
        ("cci.first_seq", "1094861636"),
        ("cci.attribute", "1"),
        ("cci.mtu", "9000"),
        ("cci.max_send_size", "1048576"),
        ("cci.recv_buffer", "2097152"),
        ("cci.credit", "512"),
        ("cci.host", "0x5152535455565758"),
    ];
    expect("accept", &offer);
    expect("accept", &[("cci.cookie", cookie)]);
    expect("connect", &offer);
    expect(
        "connect",
        &[
            ("cci.version", "2"),
            ("cci.to", "0x0000000000000000"),
            ("cci.from", "0x1112131415161718"),
            ("cci.number", "555885348"),
            ("cci.time", "825373492"),
            ("cci.token", token),
            ("cci.cookie", cookie),
            ("cci.cookie_time", "3789743076"),
            ("cci.payload_length", "5"),
            ("cci.payload", "68656c6c6f"),
        ],
    );
    expect("retry", &[("cci.cookie", cookie), ("cci.cookie_time", "3789743076")]);
    expect("reject", &[("cci.reject_reason", "2"), ("cci.cookie", cookie)]);
    expect(
        "redirect",
        &[("cci.uri_length", "21"), ("cci.uri", "sock://192.0.2.7:9000"), ("cci.cookie", cookie), ("cci.token", token)],
    );
    expect(
        "close",
        &[("cci.close_reason", "0"), ("cci.is_answer", "0"), ("cci.ack", "2442302356"), ("cci.delivered", "3")],
    );
    expect(
        "close, with a sack and a result",
        &[("cci.sack_words", "1"), ("cci.sack", "0x0000000000000005"), ("cci.record.op", "2711790500")],
    );
    expect("reset", &[("cci.answered_number", "4059231220")]);
    expect("multicast", &[("cci.message", "67726f7570")]);
    expect(
        "message",
        &[
            ("cci.seq", "2442302356"),
            ("cci.flags", "0x03"),
            ("cci.flags.sequenced", "1"),
            ("cci.flags.ask", "1"),
            ("cci.flags.rnr", "0"),
            ("cci.flags.unchecked", "0"),
            ("cci.flags.prompt", "0"),
            ("cci.sack_words", "0"),
            ("cci.credit", "100"),
            ("cci.ack", "1633837924"),
            ("cci.echo_number", "1903326068"),
            ("cci.echo_time", "2172814212"),
            ("cci.delay", "25"),
            ("cci.congested", "3"),
            ("cci.record", "1"),
            ("cci.record.length", "4"),
            ("cci.record.bytes", "70696e67"),
        ],
    );
}

#[test]
fn every_record_is_shown() {
    let (names, capture) = samples("records");
    let fields = [
        "cci.record",
        "cci.record.op",
        "cci.record.handle",
        "cci.record.offset",
        "cci.record.len",
        "cci.record.at",
        "cci.record.status",
        "cci.record.size",
        "cci.record.message",
        "cci.record.total",
        "cci.record.bytes",
    ];
    let shown = capture.fields(&[], &fields);
    let handles = "0xa1a2a3a4a5a6a7a8,0xb1b2b3b4b5b6b7b8";
    let expected = [
        ("messages", ["1,1,6,1", "9", "", "", "", "", "1", "", "", "", "6f6e65,74776f"]),
        ("part", ["2", "", "", "", "", "1000", "", "", "5", "3000", "70617274"]),
        ("write", ["3", "7", handles, "4096", "1048576", "1024", "", "", "", "", "6d656d6f7279"]),
        ("read", ["4", "8", handles, "4096", "1048576", "", "", "", "", "", ""]),
        ("read bytes", ["5", "8", "", "", "", "2048", "", "", "", "", "6d656d6f7279"]),
        ("result", ["6", "8", "", "", "", "", "2", "", "", "", ""]),
        ("probe", ["7", "", "", "", "", "", "", "1400", "", "", ""]),
        ("probe reply", ["8", "", "", "", "", "", "", "1400", "", "", ""]),
        ("slice", ["9", "", "", "", "", "7728", "", "", "", "8004", "736c696365"]),
    ];
    for (name, values) in expected {
        let place = names.iter().position(|known| *known == name).expect("a sample");
        assert_eq!(shown[place], values, "{name}");
    }
    let words = ["cci.record.len", "cci.record.operand", "cci.record.expected", "cci.record.flags.compare"];
    let shown = capture.fields(&[], &[&words[..], &["cci.record.value"]].concat());
    let (swapped, expected) = (0xC1C2_C3C4_C5C6_C7C8_u64.to_string(), 0xD1D2_D3D4_D5D6_D7D8_u64.to_string());
    for (name, values) in [
        ("fetch and add", ["8", "5", "0", "0", ""]),
        ("compare and swap", ["8", &swapped, &expected, "1", ""]),
        ("value", ["", "", "", "", &swapped]),
    ] {
        let place = names.iter().position(|known| *known == name).expect("a sample");
        assert_eq!(shown[place], values, "{name}");
    }
    let place = names.iter().position(|name| *name == "large").expect("a sample");
    assert_eq!(capture.field("cci.record.len")[place], (1 << 30).to_string());
    let place = names.iter().position(|name| *name == "landing").expect("a sample");
    assert_eq!(capture.field("cci.record.handle")[place], "0xa1a2a3a4a5a6a7a8,0xb1b2b3b4b5b6b7b8");
    let place = names.iter().position(|name| *name == "sack").expect("a sample");
    assert_eq!(capture.field("cci.sack")[place], "0x000000000000000b,0x8000000000000000");
    let place = names.iter().position(|name| *name == "messages").expect("a sample");
    assert_eq!(capture.field("cci.record.flags.after")[place], "0,0,1");
}

#[test]
fn several_frames_in_one_datagram_are_shown_one_after_the_other() {
    let three: Vec<Vec<u8>> = ["message", "write, unchecked", "close"]
        .iter()
        .map(|wanted| frames::all().into_iter().find(|(name, _)| name == wanted).expect("a sample").1)
        .collect();
    let lengths = three.iter().map(|frame| frame.len().to_string()).collect::<Vec<_>>().join(",");
    let capture = Capture::of("several", &[three.concat()]);
    let shown = capture.fields(
        &[],
        &[
            "_ws.col.Info",
            "cci.kind",
            "cci.length",
            "cci.check.status",
            "cci.record",
            "cci.is_answer",
            "_ws.expert.message",
        ],
    );
    assert_eq!(shown, [["DATA, DATA, CLOSE", "6,6,7", &lengths, "1,1,1", "1,3", "0", ""]]);
}

#[test]
fn a_wrong_check_is_complained_about() {
    let wrong: Vec<Vec<u8>> = frames::all()
        .into_iter()
        .map(|(_, mut bytes)| {
            bytes[5] ^= 0x40;
            bytes
        })
        .collect();
    let capture = Capture::of("wrong", &wrong);
    assert!(capture.field("cci.check.status").iter().all(|status| status == "0"));
    let complaints = capture.field("_ws.expert.message");
    for ((name, right), complaint) in frames::all().iter().zip(complaints) {
        let check = u32::from_be_bytes([right[4], right[5], right[6], right[7]]);
        assert!(
            complaint.contains(&format!("The check is wrong, 0x{check:08x} would be right")),
            "{name}: {complaint}"
        );
    }
    let unverified = capture.fields(&["-o", "cci.verify:FALSE"], &["cci.check.status", "cci.check.wrong"]);
    assert!(unverified.iter().all(|line| *line == ["2", ""]));
}

#[test]
fn what_contradicts_itself_is_complained_about() {
    let broken = |wanted: &str, at: usize, byte: u8| {
        let (_, mut bytes) = frames::all().into_iter().find(|(name, _)| *name == wanted).expect("a sample");
        bytes[at] = byte;
        seal(&mut bytes, 0, |crc| crc);
        bytes
    };
    let cases = [
        (broken("accept", 40, 7), "an unknown attribute"),
        (broken("reject", 32, 9), "an unknown reason"),
        (broken("connect", 84, 9), "a payload that is too long"),
        (broken("redirect", 33, 3), "a URI of another length"),
        (broken("close", 33, 2), "neither an answer nor none"),
        (broken("close", 34, 2), "a sack that is too long"),
        (broken("close, with a sack and a result", 52, 8), "a record of a wrong length"),
        (broken("reset", 1, 2), "not of its kind's length"),
        (broken("message", 37, 2), "a sack that is too long"),
        (broken("message", 36, 0x40), "an unknown flag"),
        (broken("message", 56, 14), "a record of unknown kind"),
        (broken("value", 57, 1), "a record with an unknown flag"),
        (broken("fetch and add", 99, 5), "a record that contradicts itself"),
        (broken("message", 57, 2), "a record with an unknown flag"),
        (broken("message", 59, 5), "a record beyond its frame"),
        (broken("message", 59, 3), "a record without a head"),
        (broken("read", 56, 6), "a record of a wrong length"),
        (broken("part", 68, 1), "a record that contradicts itself"),
        (broken("write", 100, 1), "a record that contradicts itself"),
        (broken("write, unchecked", 100, 1), "a record that contradicts itself"),
        (broken("probe", 61, 1), "a probe of another size"),
        (broken("slice", 62, 255), "a record that contradicts itself"),
    ];
    let datagrams: Vec<Vec<u8>> = cases.iter().map(|(bytes, _)| bytes.clone()).collect();
    let capture = Capture::of("broken", &datagrams);
    let shown = capture.fields(&[], &["cci.check.status", "_ws.expert.message"]);
    for ((_, why), line) in cases.iter().zip(shown) {
        assert_eq!(line, ["1", &format!("Malformed frame: {why}")]);
    }
}

#[test]
fn what_is_not_ours_is_left_alone_unless_the_port_is_given() {
    let (_, message) = frames::data_frames().remove(2);
    let mut version = message.clone();
    version[0] = 0xC1;
    let mut kind = message.clone();
    kind[1] = 11;
    seal(&mut kind, 0, |crc| crc);
    let mut trailing = message.clone();
    trailing.push(0xC2);
    let capture =
        Capture::of("foreign", &[b"hello".to_vec(), version, kind, message[..40].to_vec(), trailing, message]);
    assert_eq!(capture.field("cci.kind"), ["", "", "", "", "", "6"]);
    let port = format!("cci.port:{PORT}");
    let shown = capture.fields(&["-o", &port], &["_ws.col.Protocol", "cci.kind", "_ws.expert.message"]);
    let not_a_frame = ["CCI", "", "Malformed frame: no header of this version, or not as long as it says"];
    assert_eq!(shown[0][0], "CCI");
    assert_eq!(shown[1], not_a_frame);
    assert_eq!(shown[2], ["CCI", "11", "Malformed frame: an unknown kind"]);
    assert_eq!(shown[3], not_a_frame);
    assert_eq!(shown[4], ["CCI", "6", not_a_frame[2]]);
    assert_eq!(shown[5], ["CCI", "6", ""]);
}

#[test]
fn a_capture_of_the_first_bytes_of_each_packet_is_no_fault_of_the_frame() {
    let (_, message) = frames::data_frames().remove(2);
    let capture = Capture::cut("cut", &[message], 28 + 40);
    assert_eq!(capture.fields(&[], &["_ws.col.Protocol", "_ws.expert.message"]), [["CCI", "Not captured whole"]]);
}
