//! Two endpoints of this process, and a connection between them.

use cci::{Connect, Connection, Context, Device, Endpoint, EndpointOptions, Event, EventKind};
use std::time::{Duration, Instant};

/// What a step of a test may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A usable device of this transport.
pub(crate) fn device(transport: &str) -> Device {
    let context = Context::new().expect("devices");
    let device = context.devices().iter().find(|device| device.transport == transport && device.up);
    device.expect("a usable device").clone()
}

/// An endpoint of `sm`.
pub(crate) fn open() -> Endpoint {
    Endpoint::open(&device("sm"), &EndpointOptions::new()).expect("an endpoint")
}

/// Polls both endpoints until the first has an event of this kind, and takes it.
pub(crate) fn next<'e>(endpoint: &'e Endpoint, other: &Endpoint, kind: EventKind) -> Event<'e> {
    let begun = Instant::now();
    loop {
        match endpoint.get_event().expect("usable") {
            Some(event) if event.kind() == kind => return event,
            _ => assert!(begun.elapsed() < LIMIT, "no event {kind:?}"),
        }
        // What the other one has to do happens in its calls; nothing for the program comes of it
        // here.
        assert!(other.get_event().expect("usable").is_none());
    }
}

/// Connects the first endpoint with context 1 to the second one, which accepts with context 2.
pub(crate) fn connect(a: &Endpoint, b: &Endpoint) -> (Connection, Connection) {
    a.connect(&Connect::to(b.uri()).context(1).timeout(LIMIT)).expect("a connect");
    let Event::Request(request) = next(b, a, EventKind::ConnectRequest) else { panic!("a request") };
    request.accept(2).expect("an accept");
    let accepted = next(b, a, EventKind::Accept).connection().expect("one");
    (next(a, b, EventKind::Connect).connection().expect("one"), accepted)
}
