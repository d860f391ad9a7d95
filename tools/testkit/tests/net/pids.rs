//! `sm` between processes of different pid name spaces, which share this network name space.

use cci::__binding::{Contract, Flags};
use cci::{Connect, Connection, Endpoint, EventKind, Notify, Rights, Rma, RmaHandle};
use cci_conformance::memory::Origin;
use cci_conformance::{LIMIT, Peer, World, open, open_with, pattern, sm_device};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cci-peer");

/// A peer that is the first process of a pid name space of its own: this process sees it, and it
/// does not see this one.
fn elsewhere(role: &[&str]) -> Peer {
    // It has no parent there, of which it could make sure.
    let fixed = ["--fork", "--kill-child", "env", "-u", "CCI_TEST_PARENT", PROGRAM];
    Peer::spawn("unshare", "--pid", &[&fixed[..], role].concat())
}

fn connect(world: &World<'_>, endpoint: &Endpoint, uri: &str) -> Connection {
    endpoint.connect(&Connect::to(uri).payload(b"hello").context(1).timeout(LIMIT)).expect("a connect");
    let event = world.next(0, EventKind::Connect);
    assert_eq!((event.outcome(), event.reason()), (Ok(()), None));
    event.connection().expect("one")
}

/// Both directions of messages, connects and RMA, and the peer's death.
pub(crate) fn connects() {
    let endpoint = open_with(&sm_device(), |options| options.disconnect_events = true);
    let world = World::new([&endpoint]);
    let mut server = elsewhere(&["echo"]);
    let uri = server.line_while(|| world.step());
    assert!(uri.starts_with("sm://1/"), "{uri} is not of the first process of a name space");
    let connection = connect(&world, &endpoint, &uri);
    for len in [0, 8, 3000] {
        endpoint.send(connection, &pattern(1, len), Notify::OnFailure(0)).expect("a send");
        assert_eq!(world.message(0), pattern(1, len));
    }
    drop(server);
    assert_eq!(world.next(0, EventKind::Disconnect).connection(), Some(connection));
    endpoint.disconnect(connection).expect("still to be disconnected");

    // We copy to it by its number here.
    const LEN: usize = 300_000;
    let source = Origin::Program.allocate(LEN);
    source.write(0, &pattern(2, LEN));
    let local = endpoint.register_memory(source.memory(), Rights::READ_WRITE).expect("a registration");
    let target = elsewhere(&["target", endpoint.uri(), "program"]);
    let connection = world.accept(0);
    let remote = RmaHandle::from_bytes(&world.message(0)).expect("a handle");
    let report = endpoint.report(connection).expect("open");
    assert!(report.rma_path.contains("process_vm"), "{}; {}", report.rma_path, report.why);
    for flags in [Flags::WRITE, Flags::READ] {
        let rma = Rma::new(&local, &remote, LEN as u64);
        endpoint.rma(connection, &rma, 7, flags).expect("an RMA");
        assert_eq!(world.sent(0), 7);
        if flags == Flags::WRITE {
            source.write(0, &vec![0; LEN]);
        }
    }
    assert!(source.to_vec(0, LEN) == pattern(2, LEN), "other bytes came back");
    drop(target);

    // It copies to us through slots: it does not see our number.
    let writer = elsewhere(&["writer", endpoint.uri()]);
    let connection = world.accept(0);
    let memory = Origin::Program.allocate(LEN);
    let handle = endpoint.register_memory(memory.memory(), Rights::WRITE).expect("a registration");
    let message = [&handle.to_bytes()[..], &(LEN as u64).to_ne_bytes()].concat();
    endpoint.send(connection, &message, Notify::OnFailure(0)).expect("a send");
    world.until("a write", || memory.to_vec(0, LEN).contains(&0xff));
    endpoint.deregister(&handle).expect("nobody is stopped");
    drop(writer);
}

/// Two processes with the number 1, neither of which sees the other.
pub(crate) fn siblings() {
    let mut first = elsewhere(&["echo"]);
    let mut second = elsewhere(&["echo"]);
    let uris = [first.line(), second.line()];
    assert_ne!(uris[0], uris[1], "two endpoints of one name");
    // Both are what their URIs say.
    let endpoint = open(&sm_device());
    let world = World::new([&endpoint]);
    for uri in &uris {
        let connection = connect(&world, &endpoint, uri);
        endpoint.send(connection, uri.as_bytes(), Notify::OnFailure(0)).expect("a send");
        assert_eq!(world.message(0), uri.as_bytes());
    }
    let mut flood = elsewhere(&["flood", &uris[0], "40"]);
    assert_eq!(flood.line(), "connected");
    // The client does not see the process, and is told of its end.
    drop(first);
    assert_eq!(flood.line(), "disconnected");
}
