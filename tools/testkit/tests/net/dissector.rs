//! A live exchange, captured by dumpcap, as tshark shows it with the dissector: every frame is
//! known, nothing is complained about, and what was sent is what is counted.

use crate::namespace::{Net, pair};
use crate::traffic::{Areas, WRITTEN, length, messages, transfers};
use cci::Attribute;
use cci_conformance::{LIMIT, World};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../wireshark/cci.lua");
/// Messages each way.
const MESSAGES: u64 = 100;
/// Bytes of memory that are written, and read back.
const LEN: usize = 1 << 20;
/// Ports that mean nothing to tshark, as nearly half a hundred do of those that the kernel gives:
/// it takes 33434 to 33534 for a traceroute, and 47808 for BACnet.
const PORTS: &str = "20100 20199";
/// Headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 14 + 20 + 8;

/// A program that writes down what passes an interface, ended when this is dropped; and its file.
struct Capture {
    program: Child,
    path: PathBuf,
}

impl Capture {
    /// Begins; every packet from now on is captured.
    fn begin(net: &Net, interface: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exchange.pcap");
        let program = net.enter(|| {
            // A buffer that holds everything, so that nothing is lost while others have the
            // processor.
            Command::new("dumpcap")
                .args(["-q", "-P", "-B", "64", "-f", "udp", "-i", interface, "-w"])
                .arg(&path)
                .stderr(Stdio::piped())
                .spawn()
                .expect("dumpcap")
        });
        let mut capture = Self { program, path };
        let said = BufReader::new(capture.program.stderr.take().expect("its output"));
        // It names its file once the interface is open.
        let mut lines = said.lines().map_while(Result::ok);
        let begun = lines.any(|line| line.starts_with("File: "));
        assert!(begun, "dumpcap does not begin: is this user allowed to capture?");
        capture
    }

    /// The UDP payloads that stand in the file so far.
    fn payloads(&self) -> Vec<Vec<u8>> {
        let file = fs::read(&self.path).unwrap_or_default();
        // After the file's own header, 24 bytes, each packet has one of 16, with its length in the
        // third word.
        let mut rest = file.get(24..).unwrap_or_default();
        let mut payloads = Vec::new();
        while let Some(bytes) = rest.get(8..12) {
            let len = u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize;
            let Some(packet) = rest.get(16..16 + len) else { break };
            payloads.push(packet.get(HEADERS..).unwrap_or_default().to_vec());
            rest = &rest[16 + len..];
        }
        payloads
    }

    /// What tshark says of the file, in its XML.
    fn dissected(&self) -> String {
        let config = self.path.with_extension("wireshark");
        fs::create_dir_all(&config).expect("the target folder can be written");
        let mut command = Command::new("tshark");
        command.arg("-r").arg(&self.path).args(["-X", &format!("lua_script:{SCRIPT}"), "-T", "pdml"]);
        // Not what this user has configured; another copy of the script, for one.
        for variable in ["WIRESHARK_CONFIG_DIR", "HOME", "XDG_CONFIG_HOME"] {
            command.env(variable, &config);
        }
        let output = command.output().expect("tshark");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !complaints.contains(".lua"), "{complaints}");
        String::from_utf8(output.stdout).expect("tshark writes UTF-8")
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // All of these fail only when what they end or remove is gone.
        if let Some(pid) = i32::try_from(self.program.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::INT);
        }
        let _ = self.program.wait();
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_dir_all(self.path.with_extension("wireshark"));
    }
}

/// UDP datagrams that left this name space so far; what the kernel cuts later is one.
fn sent(net: &Net) -> usize {
    // `/proc/net` would be that of another thread.
    let text = net.enter(|| fs::read_to_string("/proc/thread-self/net/snmp").expect("counters"));
    let mut lines = text.lines().filter(|line| line.starts_with("Udp:")).map(str::split_whitespace);
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let found = names.zip(values).find(|(name, _)| *name == "OutDatagrams");
    found.expect("a counter").1.parse().expect("a number")
}

/// A frame as it is shown: fields and values, in order.
type Frame = Vec<(String, String)>;

fn value<'f>(frame: &'f Frame, field: &str) -> Option<&'f str> {
    frame.iter().find(|(name, _)| name == field).map(|(_, value)| value.as_str())
}

fn number(frame: &Frame, field: &str) -> u64 {
    value(frame, field).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {field} in {frame:?}"))
}

/// The frames of each packet, and what is complained about.
fn read(text: &str) -> (Vec<Vec<Frame>>, Vec<String>) {
    let (mut packets, mut complaints): (Vec<Vec<Frame>>, _) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let attribute = |name: &str| Some(line.split_once(&format!(" {name}=\""))?.1.split('"').next()?.to_owned());
        if line.contains("<packet>") {
            packets.push(Vec::new());
        }
        let (Some(name), Some(packet)) = (attribute("name"), packets.last_mut()) else { continue };
        let shown = attribute("show").unwrap_or_default();
        if name.starts_with("_ws.expert") || name.starts_with("_ws.malformed") {
            complaints.push(shown);
        } else if let Some(field) = name.strip_prefix("cci.") {
            // The first field of each.
            if field == "version" {
                packet.push(Vec::new());
            }
            let frame = packet.last_mut().expect("a frame begins with its version");
            frame.push((field.to_owned(), shown));
        }
    }
    (packets, complaints)
}

/// Records of one kind: how many, bytes of their bodies, and how many begin something that has
/// several.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    bytes: u64,
    first: u64,
}

/// Sums of the records of these frames, by the numbers of their kinds.
fn sums<'f>(frames: impl Iterator<Item = &'f Frame>) -> [Sum; 9] {
    let mut sums = [Sum::default(); 9];
    for frame in frames {
        let mut sum = &mut Sum::default();
        for (field, shown) in frame {
            let value = || shown.parse::<u64>().expect("a number");
            match field.as_str() {
                "record" => {
                    sum = &mut sums[usize::try_from(value()).expect("a kind")];
                    sum.count += 1;
                }
                "record.length" => sum.bytes += value(),
                "record.at" => sum.first += u64::from(value() == 0),
                _ => {}
            }
        }
    }
    sums
}

/// Connects, sends messages both ways, writes and reads memory, disconnects; until all of it was
/// captured.
fn exchange(nets: &[Net; 2], capture: &Capture) -> Vec<Vec<u8>> {
    let ends = [nets[0].endpoint("v0"), nets[1].endpoint("v1")];
    let ends = [&ends[0], &ends[1]];
    let before: usize = nets.iter().map(sent).sum();
    let areas = Areas::new(ends, LEN);
    let world = World::new(ends);
    let (here, there) = world.connect(0, 1, Attribute::ReliableOrdered);
    messages(ends, [here, there], MESSAGES);
    transfers(&world, ends, here, &areas, 1);
    ends[0].disconnect(here).expect("a connection");
    let deadline = Instant::now() + LIMIT;
    loop {
        world.step();
        let payloads = capture.payloads();
        let is_farewell = |payload: &Vec<u8>| payload.get(1) == Some(&7) && payload.get(33) == Some(&1);
        let expected = nets.iter().map(sent).sum::<usize>() - before;
        if payloads.iter().any(is_farewell) && payloads.len() == expected {
            return payloads;
        }
        assert!(Instant::now() < deadline, "{} datagrams were captured of {expected}", payloads.len());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What the dissector shows is what was sent.
pub(crate) fn live() {
    let nets = pair(9000);
    // Cables of these tests cut datagrams before they leave; this one leaves that to whoever takes
    // them.
    nets.iter().zip(["v0", "v1"]).for_each(|(net, end)| net.run(&[&format!("ip link set {end} gso_max_segs 64")]));
    nets.iter().for_each(|net| net.set("ip_local_port_range", PORTS));
    let capture = Capture::begin(&nets[0], "v0");
    let payloads = exchange(&nets, &capture);
    let (packets, complaints) = read(&capture.dissected());
    assert!(complaints.is_empty(), "{complaints:?}");
    assert_eq!(packets.len(), payloads.len());
    for (frames, payload) in packets.iter().zip(&payloads) {
        let lengths: u64 = frames.iter().map(|frame| number(frame, "length")).sum();
        assert_eq!(lengths, payload.len() as u64, "all of a datagram is frames: {frames:?}");
    }
    let frames: Vec<&Frame> = packets.iter().flatten().collect();
    assert!(frames.iter().all(|frame| value(frame, "check.status") == Some("1")));
    let most = packets.iter().map(Vec::len).max().unwrap_or(0);
    assert!(most > 1, "no datagram of several frames was captured");

    let kinds = |kind: u64| frames.iter().filter(|frame| number(frame, "kind") == kind).count();
    let (connect, retry, accept, close) = (kinds(1), kinds(2), kinds(3), kinds(7));
    assert!(connect >= 2 && retry >= 1 && accept >= 1 && close >= 2, "{connect} {retry} {accept} {close}");
    assert_eq!(connect + retry + accept + close + kinds(6) + kinds(10), frames.len(), "no other kind was sent");
    // What was sent again counts once.
    let mut seen = BTreeSet::new();
    let data = frames.iter().copied().filter(|frame| number(frame, "kind") == 6);
    let (sequenced, others): (Vec<_>, Vec<_>) = data.partition(|frame| value(frame, "flags.sequenced") == Some("1"));
    let once = sequenced.iter().copied().filter(|frame| seen.insert((value(frame, "from"), number(frame, "seq"))));
    let [_, message, part, write, read, bytes, result, probe, reply] = sums(once.chain(others));
    say!("{} datagrams of up to {most} frames: {message:?} {part:?} {write:?} {bytes:?}", packets.len());
    let sent: usize = 2 * (0..MESSAGES).map(length).sum::<usize>() + WRITTEN.len();
    assert_eq!(message.count + part.first, 2 * MESSAGES + 1, "messages, whole and in parts");
    assert_eq!(message.bytes + part.bytes - 12 * part.count, sent as u64, "their bytes");
    assert_eq!((write.bytes - 48 * write.count, bytes.bytes - 16 * bytes.count), (LEN as u64, LEN as u64));
    assert_eq!((read.count, result.count), (1, 1));
    assert!(part.first > 0 && probe.count > 0 && reply.count > 0, "frames were small, and grew after probes");
}
