//! Connects that do not wait.

use crate::owner::Owner;
use crate::world::{host, id, published, refused, two, until};
use cci_conformance::LIMIT;
use cci_sci::{Access, Error};
use std::sync::mpsc::channel;
use std::time::Duration;

#[test]
fn a_connect_goes_on_by_itself_and_its_end_is_given_once() {
    let [owner, other] = two();
    let segment = published(&owner, 64);
    for (node, why) in [(0, Error::IllegalNode), (20, Error::NoSuchNode), (16, Error::NotImplemented)] {
        assert_eq!(refused(other.begin_connect(node, 1, None)), why);
    }
    let connecting = other.begin_connect(4, segment.id(), None).expect("a thread");
    assert_eq!(other.close(), Err(Error::Busy));
    let connection = connecting.wait(Some(LIMIT)).expect("published");
    connection.map(0..8, Access::ReadWrite).and_then(|window| window.store(0, 3_u64)).expect("mapped");
    assert_eq!(refused(connecting.wait(Some(LIMIT))), Error::Cancelled, "it was given");
    assert_eq!(refused(connecting.on_end(|_| ())), Error::Cancelled);
    let connecting = other.begin_connect(4, id(), Some(LIMIT)).expect("a thread");
    assert_eq!(refused(connecting.wait(None)), Error::NoSuchSegment);
    // By a callback, on the thread of the host, which must not wait.
    let (sender, ended) = channel();
    let connecting = other.begin_connect(4, segment.id(), None).expect("a thread");
    let again = move |outcome: Result<cci_sci::RemoteSegment, _>| {
        let connection = outcome.expect("published");
        let why = connection.wait(Some(LIMIT)).expect_err("a callback");
        sender.send((connection, why)).expect("it is waited for");
    };
    connecting.on_end(again).expect("there");
    let (connection, why) = ended.recv_timeout(LIMIT).expect("called");
    assert_eq!((connection.len(), why), (64, Error::IllegalOperation));
}

#[test]
fn a_connect_to_a_stopped_owner_ends_when_it_is_dropped_and_leaves_nothing() {
    let own = host(8);
    let mut owner = Owner::published();
    // The link is up: the owner gets the question once it goes on.
    let connection = owner.connect(&own);
    connection.disconnect().expect("no window");
    owner.stop();
    let connecting = [(); 2].map(|()| own.begin_connect(4, owner.segment, None).expect("a thread"));
    let short = Some(Duration::from_millis(20));
    assert_eq!(refused(connecting[0].outcome(short)), Error::Timeout);
    let limited = own.begin_connect(4, owner.segment, short).expect("a thread");
    assert!(matches!(limited.outcome(Some(LIMIT)), Ok(Err(Error::Timeout))));
    let [first, second] = connecting;
    drop(first);
    rustix::process::kill_process(owner.pid, rustix::process::Signal::CONT).expect("a child");
    drop(second.wait(Some(LIMIT)).expect("it goes on"));
    until("nobody is connected", || owner.tell("remove") == "Some(Ok(()))");
}

#[test]
fn a_host_that_ends_ends_its_connects() {
    let own = host(8);
    let owner = Owner::published();
    owner.stop();
    let connecting = own.begin_connect(4, owner.segment, None).expect("a thread");
    let (sender, ended) = channel();
    let tell = move |outcome: Result<_, _>| {
        let _ = sender.send(outcome.err());
    };
    connecting.on_end(tell).expect("there");
    drop(own);
    assert!(ended.recv_timeout(LIMIT).is_err(), "its callback was dropped, and not called");
    assert_eq!(refused(connecting.wait(None)), Error::NotInitialized);
}
