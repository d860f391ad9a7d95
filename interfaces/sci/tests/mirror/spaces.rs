//! Two name spaces of the network: hosts that find each other by the node table.

use crate::world::{bytes, id, seen, until};
use cci_conformance::namespace::{Net, has, may_be_made, pair};
use cci_conformance::{LIMIT, device_of};
use cci_sci::{Access, Error, Host, Kind, Nodes, Options, SequenceStatus};

const TABLE: &str = "4 10.0.0.1\n8 10.0.0.2:7300\n12 10.0.0.9\n";

fn host(net: &Net, interface: &str) -> Host {
    host_of(net, interface, TABLE)
}

pub(crate) fn host_of(net: &Net, interface: &str, table: &str) -> Host {
    net.enter(|| {
        let nodes = Nodes::parse(table).expect("a table");
        Host::open(&Options::new().nodes(nodes).device(device_of("sock", &[("interface", interface)])))
    })
    .expect("a host")
}

/// Has one datagram in twenty that comes to a name space be lost. Needs nft.
pub(crate) fn lose_some(net: &Net) {
    net.rules(
        "add table ip t; add chain ip t in { type filter hook input priority 0; }; \
         add rule ip t in meta l4proto udp numgen random mod 100 < 5 drop",
    );
}

#[test]
fn hosts_of_two_name_spaces_find_and_mirror_segments_through_loss() {
    if !may_be_made() {
        return;
    }
    let nets = pair(1500);
    let owner = host(&nets[0], "v0");
    let id = id();
    let connect = |other: &Host, node, limit| nets[1].enter(|| other.connect(node, id, limit));
    let other = host(&nets[1], "v1");
    assert_eq!(connect(&other, 4, Some(LIMIT)).err(), Some(Error::NoSuchSegment), "nobody has the name");
    let short = Some(std::time::Duration::from_millis(200));
    assert_eq!(connect(&other, 12, short).err(), Some(Error::Timeout), "nobody has the address");
    assert_eq!(nets[1].enter(|| [4, 12].map(|node| other.probe(node))), [Ok(()), Err(Error::NodeNotResponding)]);

    let segment = nets[0].enter(|| owner.create(id, 100_000)).expect("memory");
    segment.prepare().and_then(|()| segment.publish()).expect("room");
    let bell = nets[0].enter(|| owner.interrupt(Some(id))).expect("free");
    let lossy = has("nft");
    if lossy {
        nets.iter().for_each(lose_some);
    }
    let connection = connect(&other, 4, Some(LIMIT)).expect("published");
    let window = connection.map(0..100_000, Access::ReadWrite).expect("mapped");
    assert_eq!(window.kind(), Kind::Mirror);
    let (own, sequence) = (seen(&segment), window.sequence());
    let mut random = fastrand::Rng::with_seed(1);
    let mut model = vec![0; 100_000];
    for round in 0..40 {
        let (at, len) = (random.usize(..60_000), 1 + random.usize(..40_000) / (1 + round % 2 * 1000));
        let part: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
        model[at..at + len].copy_from_slice(&part);
        window.write(at, &part).expect("inside");
        if round % 4 == 0 {
            // A loss is repaired in time, or reported and repaired later.
            until("the owner confirms", || sequence.check() == SequenceStatus::Ok);
            assert!(bytes(&own) == model, "round {round}");
        }
    }
    until("what nobody has flushed", || bytes(&own) == model);
    let ring = nets[1].enter(|| other.connect_interrupt(4, id, Some(LIMIT))).expect("there");
    window.store(0, 42_u64).expect("inside");
    ring.trigger().expect("connected");
    bell.wait(Some(LIMIT)).expect("triggered");
    assert_eq!(own.load(0), Ok(42_u64));
}
