//! What the Rust API adds to the rules of the contract, which `cci-conformance` tests.

#![forbid(unsafe_code)]

mod pair;

use cci::{
    BlockingError, CloseError, Connect, Connection, Endpoint, EndpointOptions, Event, EventKind, Failure,
    LocalEndpoint, Notify, PollError, RegisterError, RequestError, Rights, Rma, RmaError, RmaHandle, SendError,
    SharedMemory, Unusable,
};
use cci_mem::sync::{AtomicBool, AtomicU64, Ordering};
use pair::{LIMIT, connect, device, next, open};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs `act` while another thread polls.
fn while_polled<T>(endpoint: &Endpoint, act: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = endpoint.get_event();
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        over.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn an_event_costs_no_more_than_a_tag_and_a_pointer() {
    assert_eq!(size_of::<Option<Event<'_>>>(), 16);
    assert!(size_of::<SendError>() == 1 && size_of::<RmaError>() == 1 && size_of::<RequestError>() == 1);
}

#[test]
fn a_message_in_the_slot_is_shown_in_place_and_one_in_shared_memory_is_not() {
    let (a, b) = (open(), open());
    let (to_b, _) = connect(&a, &b);
    for len in [0, 1, 8, 56, 57, 300] {
        let bytes: Vec<u8> = (0..len).map(|at| u8::try_from(at % 251).expect("small")).collect();
        a.send(to_b, &bytes, Notify::OnFailure(0)).expect("a send");
        let Event::Received(message) = next(&b, &a, EventKind::Recv) else { panic!("a message") };
        assert_eq!((message.len(), message.is_empty()), (len, len == 0));
        assert_eq!((message.to_vec(), message.view().to_vec()), (bytes.clone(), bytes.clone()));
        assert_eq!(message.bytes(), (len <= 56).then_some(&bytes[..]), "{len} bytes");
    }
}

#[test]
fn messages_over_sock_are_shown_in_place() {
    let device = device("sock");
    let open = || Endpoint::open(&device, &EndpointOptions::new()).expect("an endpoint");
    let (a, b) = (open(), open());
    a.connect(&Connect::to(b.uri()).timeout(LIMIT)).expect("a connect");
    let (begun, mut seen) = (Instant::now(), Vec::new());
    while seen.len() < 2 {
        assert!(begun.elapsed() < LIMIT, "{seen:?}");
        match b.get_event().expect("usable") {
            Some(Event::Request(request)) => request.accept(1).expect("an accept"),
            Some(Event::Received(message)) => seen.push(message.bytes().map(<[u8]>::to_vec)),
            _ => {}
        }
        if let Some(Event::Connected(connected)) = a.get_event().expect("usable") {
            for len in [8, 1000] {
                let connection = connected.connection().expect("open");
                a.send(connection, &vec![7; len], Notify::OnFailure(0)).expect("a send");
            }
        }
    }
    assert_eq!(seen, [Some(vec![7; 8]), Some(vec![7; 1000])]);
}

#[test]
fn a_request_that_is_dropped_is_rejected() {
    let (a, b) = (open(), open());
    a.connect(&Connect::to(b.uri()).context(9).timeout(LIMIT)).expect("a connect");
    drop(next(&b, &a, EventKind::ConnectRequest));
    let Event::ConnectFailed(connect) = next(&a, &b, EventKind::Connect) else { panic!("not rejected") };
    assert_eq!((connect.failure(), connect.context()), (Failure::Refused, 9));
}

#[test]
fn a_request_whose_answer_is_refused_comes_back() {
    let (a, b, other) =
        (open(), open(), Endpoint::open(&device("sock"), &EndpointOptions::new()).expect("an endpoint"));
    a.connect(&Connect::to(b.uri()).payload(b"again").timeout(LIMIT)).expect("a connect");
    let request = next(&b, &a, EventKind::ConnectRequest).into_request().expect("a request");
    let refused = request.accept_on(&other, 1).expect_err("an endpoint of another device");
    assert_eq!((refused.why, refused.request.payload()), (RequestError::OtherDevice, b"again".to_vec()));
    refused.request.accept(2).expect("the request can still be answered");
    assert_eq!(next(&a, &b, EventKind::Connect).outcome(), Ok(()));
}

#[test]
fn a_detached_event_outlives_its_endpoint_and_closes_it() {
    // A number of its own: other tests take the lowest that is free.
    let options = EndpointOptions::new().service(format!("{}/40002", std::process::id()));
    let (a, b) = (open(), Endpoint::open(&device("sm"), &options).expect("a free service"));
    let uri = b.uri().to_owned();
    let (to_b, _) = connect(&a, &b);
    a.send(to_b, &[5; 300], Notify::OnFailure(0)).expect("a send");
    let first = next(&b, &a, EventKind::Recv).detach();
    a.send(to_b, &[6; 300], Notify::OnFailure(0)).expect("a send");
    let second = next(&b, &a, EventKind::Recv).detach();
    assert_eq!(b.close(), Err(CloseError::Detached(2)));
    drop(second);
    let bytes = std::thread::spawn(move || first.received().map(|message| message.to_vec())).join();
    assert_eq!(bytes.expect("the thread"), Some(vec![5; 300]));
    // The endpoint is closed with its last event, and its name is free.
    let again = Endpoint::open(&device("sm"), &options).expect("a free service");
    assert_eq!(again.uri(), uri);
}

#[test]
fn a_detached_request_is_answered_later_and_by_its_endpoint_only() {
    let (a, b) = (open(), open());
    a.connect(&Connect::to(b.uri()).timeout(LIMIT)).expect("a connect");
    let detached = next(&b, &a, EventKind::ConnectRequest).detach();
    let detached = detached.attach(&a).expect_err("an event of another endpoint");
    let request = detached.attach(&b).expect("its endpoint").into_request().expect("a request");
    request.accept(3).expect("an accept");
    assert_eq!(next(&a, &b, EventKind::Connect).outcome(), Ok(()));
    assert_eq!(next(&b, &a, EventKind::Accept).context(), 3);
    b.close().expect("no event keeps it open");
}

#[test]
fn an_ended_connection_has_no_properties() {
    let (a, b) = (open(), open());
    let (old, _) = connect(&a, &b);
    assert!(old.max_send_size().is_some_and(|bytes| bytes > 0));
    assert_eq!((old.context(), old.attribute()), (Some(1), Some(cci::Attribute::ReliableOrdered)));
    a.disconnect(old).expect("a disconnect");
    for _ in 0..200 {
        assert_eq!((old.context(), old.max_send_size(), old.attribute()), (None, None, None));
        let (new, at_b) = connect(&a, &b);
        assert_eq!(new.context(), Some(1));
        a.disconnect(new).expect("a disconnect");
        b.disconnect(at_b).expect("a disconnect");
    }
}

#[test]
fn a_wait_ends_with_an_event_or_with_its_time() {
    let (a, b) = (open(), open());
    let begun = Instant::now();
    assert!(a.wait(Some(Duration::from_millis(20))).expect("usable").is_none());
    assert!(begun.elapsed() >= Duration::from_millis(20));
    let (to_b, _) = connect(&a, &b);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| b.wait(Some(LIMIT)).expect("usable").expect("an event").kind());
        a.send(to_b, b"wake up", Notify::OnFailure(0)).expect("a send");
        assert_eq!(waiter.join().expect("the thread"), EventKind::Recv);
    });
    assert!(rustix::io::fcntl_getfd(a.as_fd()).is_ok());
}

#[test]
fn refused_now_and_failed_later_are_told_apart() {
    let (a, b) = (open(), open());
    let (to_b, _) = connect(&a, &b);
    let too_long = vec![0; to_b.max_send_size().expect("open") as usize + 1];
    assert_eq!(a.send_blocking(to_b, &too_long), Err(BlockingError::Refused(SendError::TooLong)));
    let mine = a.register(vec![1; 64], Rights::NONE).expect("a registration");
    let theirs = b.register(vec![0; 64], Rights::READ).expect("a registration");
    let rma = Rma::new(mine.handle(), theirs.handle(), 64);
    let outcome = while_polled(&b, || a.write_blocking(to_b, &rma));
    assert_eq!(outcome, Err(BlockingError::Failed(Failure::RemoteHandle)), "no right to write");
    assert_eq!(while_polled(&b, || a.read_blocking(to_b, &rma)), Ok(()));
    assert_eq!(mine.to_vec(0, 64), Some(vec![0; 64]));
    assert_eq!(while_polled(&b, || a.send_blocking(to_b, b"taken")), Ok(()));
}

/// Writes 8 bytes at offset 8 of the peer's memory, and reads them back.
fn write_and_read(mine: &RmaHandle, theirs: &RmaHandle, a: &Endpoint, b: &Endpoint, to_b: Connection) {
    let rma = Rma::new(mine, theirs, 8).remote_offset(8);
    while_polled(b, || a.write_blocking(to_b, &rma)).expect("a write");
    while_polled(b, || a.read_blocking(to_b, &rma.local_offset(8))).expect("a read");
}

#[test]
fn every_kind_of_memory_is_registered_copied_and_given_back() {
    let (a, b) = (open(), open());
    let (to_b, _) = connect(&a, &b);
    let theirs = b.register(vec![0; 64], Rights::READ_WRITE).expect("a registration");
    let remote = RmaHandle::from_bytes(&theirs.handle().to_bytes()).expect("32 bytes");
    let number = 0x0102_0304_0506_0708_u64;

    let vector = a.register(number.to_le_bytes().repeat(2), Rights::NONE).expect("a registration");
    write_and_read(vector.handle(), &remote, &a, &b, to_b);
    assert_eq!(vector.deregister().expect("nobody copies"), number.to_le_bytes().repeat(2));
    assert_eq!(theirs.to_vec(8, 8), Some(number.to_le_bytes().to_vec()));

    let words: Arc<[AtomicU64]> = [1, 2, 3].map(AtomicU64::new).into();
    let registered = a.register(Arc::clone(&words), Rights::NONE).expect("a registration");
    write_and_read(registered.handle(), &remote, &a, &b, to_b);
    assert_eq!(words[1].load(Ordering::Relaxed), 1, "what was written first was read back");
    drop(registered);
    assert_eq!(Arc::strong_count(&words), 1, "the endpoint has forgotten it");

    let shared = a.register(SharedMemory::new(64).expect("memory"), Rights::NONE).expect("a registration");
    assert!(shared.write(0, &7_u64.to_le_bytes()) && !shared.write(57, &[0; 8]));
    write_and_read(shared.handle(), &remote, &a, &b, to_b);
    assert_eq!((shared.to_vec(8, 8), shared.to_vec(57, 8)), (Some(7_u64.to_le_bytes().to_vec()), None));
    let memory: SharedMemory = shared.deregister().expect("nobody copies");
    assert_eq!(memory.to_vec(8, 8), 7_u64.to_le_bytes());
    assert_eq!((a.kept_registrations(), b.kept_registrations()), (Ok(0), Ok(0)));
}

#[test]
fn a_dropped_registration_is_no_target_any_more() {
    let (a, b) = (open(), open());
    let (to_b, _) = connect(&a, &b);
    let mine = a.register(vec![1; 8], Rights::NONE).expect("a registration");
    let theirs = b.register(vec![0; 8], Rights::READ_WRITE).expect("a registration");
    let handle = *theirs.handle();
    drop(theirs);
    let rma = Rma::new(mine.handle(), &handle, 8);
    let outcome = while_polled(&b, || a.write_blocking(to_b, &rma));
    assert_eq!(outcome, Err(BlockingError::Failed(Failure::RemoteHandle)));
    let gone = *mine.handle();
    drop(mine);
    let rma = Rma::new(&gone, &handle, 8);
    assert_eq!(a.write(to_b, &rma, 0), Err(RmaError::LocalHandle));
}

#[test]
fn a_registration_outlives_its_endpoint_harmlessly() {
    let endpoint = open();
    let registration = endpoint.register(vec![3; 8], Rights::READ).expect("a registration");
    endpoint.close().expect("a close");
    assert!(registration.write(0, &[4; 8]));
    let still = registration.deregister().expect_err("there is no endpoint");
    assert_eq!(still.why, RegisterError::Unusable(Unusable::Closed));
    assert_eq!(still.registration.to_vec(0, 8), Some(vec![4; 8]));
}

#[test]
fn empty_memory_is_refused() {
    let endpoint = open();
    assert_eq!(endpoint.register(Vec::new(), Rights::READ).err(), Some(RegisterError::Null));
}

#[test]
fn a_local_endpoint_is_used_by_one_thread() {
    let (a, b) = (LocalEndpoint::open(&device("sm"), &EndpointOptions::new()).expect("an endpoint"), open());
    a.connect(&Connect::to(b.uri()).timeout(LIMIT)).expect("a connect");
    let begun = Instant::now();
    let connected = loop {
        assert!(begun.elapsed() < LIMIT, "not connected");
        if let Some(Event::Request(request)) = b.get_event().expect("usable") {
            request.accept(1).expect("an accept");
        }
        if let Some(event) = a.get_event().expect("usable") {
            break event;
        }
    };
    assert!(matches!(connected, Event::Connected(_)));
    // An event may go to any thread; what it names may not be used there.
    std::thread::scope(|scope| scope.spawn(move || drop(connected)).join().expect("the thread"));
    assert_eq!(a.get_event().map(|event| event.is_none()), Ok::<_, PollError>(true));
}
