//! What is the facade's own: handles that outlive what they name, services, sentences. The rules of
//! the API are in `cci-conformance`.

#![forbid(unsafe_code)]

mod pair;

use cci::{
    Connection, Context, Device, Endpoint, EndpointOptions, Event, EventKind, OptionError, SendError, SharedMemory,
    Status,
};
use pair::{connect, next, open};

fn device() -> Device {
    Context::new().expect("devices").default_device().expect("a usable device").clone()
}

/// The device of shared memory, whose services are numbers of a process and of an endpoint.
fn shared_memory() -> Device {
    Context::new().expect("devices").device_for("sm://1/1").expect("a usable device").clone()
}

#[test]
fn handles_go_to_any_thread() {
    fn assert_shareable<T: Send + Sync>() {}
    assert_shareable::<Context>();
    assert_shareable::<Endpoint>();
    assert_shareable::<Connection>();
    assert_shareable::<Event<'_>>();
    assert_shareable::<SharedMemory>();
    let endpoint = open();
    let taken = std::thread::spawn(move || endpoint.get_event().map(|event| event.is_none())).join();
    assert_eq!(taken.expect("the thread"), Ok(true));
}

#[test]
fn contexts_are_independent_and_repeatable() {
    let (first, second) = (Context::new().expect("devices"), Context::new().expect("devices"));
    let names = |context: &Context| context.devices().iter().map(|device| device.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&first), names(&second));
    let endpoint = open();
    drop((first, second));
    assert!(endpoint.get_event().expect("an endpoint outlives its context").is_none());
}

#[test]
fn a_service_is_taken_once_and_free_after_the_close() {
    let service = format!("{}/40001", std::process::id());
    let options = EndpointOptions::new().service(service.clone());
    let endpoint = Endpoint::open(&shared_memory(), &options).expect("a free service");
    assert!(endpoint.uri().ends_with(&service), "{}", endpoint.uri());
    let error = Endpoint::open(&shared_memory(), &options).expect_err("taken");
    assert_eq!(error.status, Status::AddrNotAvail);
    assert!(error.to_string().contains(&service), "{error}");
    endpoint.close().expect("a close");
    Endpoint::open(&shared_memory(), &options).expect("free again").close().expect("a close");
}

/// The service of the default device is a port, the same of UDP and of TCP.
#[test]
fn a_port_is_taken_once_and_free_after_the_close() {
    let bound = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
    let port = bound.local_addr().expect("its address").port().to_string();
    drop(bound);
    let options = EndpointOptions::new().service(port.clone());
    let endpoint = Endpoint::open(&device(), &options).expect("a free port");
    assert!(endpoint.uri().contains(&format!(":{port},tcp")), "{}", endpoint.uri());
    let error = Endpoint::open(&device(), &options).expect_err("taken");
    assert_eq!(error.status, Status::AddrNotAvail, "{error}");
    assert!(error.to_string().contains(&port), "{error}");
    endpoint.close().expect("a close");
    Endpoint::open(&device(), &options).expect("free again").close().expect("a close");
}

#[test]
fn a_malformed_service_is_refused_with_a_sentence() {
    for service in ["", "7", "7/", "/7", "7/8/9", "x/1", "1/x", "-1/2", "1/99999999999"] {
        let options = EndpointOptions::new().service(service);
        let error = Endpoint::open(&shared_memory(), &options).expect_err("malformed");
        assert_eq!(error.status, Status::Inval, "{service:?}: {error}");
        assert!(error.to_string().contains(' '), "{error}");
    }
    for service in ["", "1/7", "x", "-1", "65536"] {
        let error = Endpoint::open(&device(), &EndpointOptions::new().service(service)).expect_err("no port");
        assert_eq!(error.status, Status::Inval, "{service:?}: {error}");
        assert!(error.to_string().contains("is not PORT or ADDRESS:PORT"), "{error}");
    }
}

#[test]
fn stale_connections_are_refused_by_their_successors_endpoint() {
    let (a, b) = (open(), open());
    let (old, _) = connect(&a, &b);
    a.disconnect(old).expect("a disconnect");
    for _ in 0..50 {
        let (new, accepted) = connect(&a, &b);
        assert_ne!(old, new);
        assert_eq!(a.send(old, b"x", 0), Err(SendError::Disconnected));
        assert_eq!(a.report(old), Err(OptionError::Disconnected));
        a.disconnect(new).expect("a disconnect");
        b.disconnect(accepted).expect("a disconnect");
    }
}

/// A connection belongs to one endpoint; another one does not send on it.
#[test]
fn connections_of_another_endpoint_are_refused() {
    let (a, b) = (open(), open());
    let (to_b, to_a) = connect(&a, &b);
    assert!(b.send(to_b, b"x", 0).is_err(), "the connection is the other endpoint's");
    assert!(a.disconnect(to_a).is_err(), "the connection is the other endpoint's");
    a.send(to_b, b"fine", 7).expect("a send");
    assert_eq!(next(&a, &b, EventKind::Send).context(), 7);
}

#[test]
fn debug_output_tells_no_secret() {
    let endpoint = open();
    let memory = SharedMemory::new(64).expect("memory");
    let registration = endpoint.register(memory, cci::Rights::READ).expect("a registration");
    let secret = format!("{:x}", registration.handle().words()[1]);
    for text in [format!("{registration:?}"), format!("{:?}", registration.handle())] {
        assert!(!text.contains(&secret), "{text}");
    }
    assert!(format!("{endpoint:?}").contains(endpoint.uri()));
}

#[test]
fn more_buffers_than_an_endpoint_can_have_are_refused_with_the_limit() {
    for (recv_buffers, send_buffers, name) in [(1 << 30, 16, "recv_buffers"), (16, (1 << 20) + 1, "send_buffers")] {
        let options = EndpointOptions::new().recv_buffers(recv_buffers).send_buffers(send_buffers);
        let Err(error) = Endpoint::open(&device(), &options) else { panic!("an endpoint with {options:?}") };
        assert_eq!(error.status, Status::Inval);
        assert!(error.what.starts_with(name) && error.what.contains("1048576"), "{error}");
    }
}
