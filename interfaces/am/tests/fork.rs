//! A child of a fork may not use the endpoint that it has inherited; its parent goes on. This is a
//! program of one thread, because only such a one can fork safely.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it counts itself among the tests")]

use cci_am::{Endpoint, Handlers, Options, RequestError, TAG_ALL};
use cci_conformance::{LIMIT, sm_device, sys};
use std::time::{Duration, Instant};

const COUNT: u8 = 1;

fn open() -> Endpoint<u32> {
    let handlers = Handlers::new().request(COUNT, |count: &mut u32, _| *count += 1);
    Endpoint::open(&sm_device(), &Options::new(), handlers, 0).expect("an endpoint")
}

fn exchange(client: &mut Endpoint<u32>, server: &mut Endpoint<u32>, to: cci_am::Peer) {
    let (begin, before) = (Instant::now(), *server.state());
    let mut is_sent = false;
    while *server.state() == before {
        is_sent = is_sent || client.now().request(to, COUNT, &[]).is_ok();
        client.poll().and(server.poll()).expect("usable");
        assert!(begin.elapsed() < LIMIT, "the request does not come");
    }
}

/// Refused by every call that would use the endpoint, and nothing waits.
fn check_refused(client: &mut Endpoint<u32>, to: cci_am::Peer) {
    assert_eq!(client.request(to, COUNT, &[]), Err(RequestError::Unusable));
    assert_eq!(client.poll(), Err(RequestError::Unusable));
    assert_eq!(client.wait(Some(Duration::from_secs(1))), Err(RequestError::Unusable));
}

fn main() {
    let (mut client, mut server) = (open(), open());
    let to = client.map(server.name(), TAG_ALL).expect("a URI");
    exchange(&mut client, &mut server, to);
    let Some(child) = sys::fork() else {
        // Its destructors run too, and touch nothing of the parent's.
        check_refused(&mut client, to);
        drop((client, server));
        return;
    };
    let ended = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty());
    let status = ended.expect("a child").and_then(|(_, status)| status.exit_status());
    assert_eq!(status, Some(0), "the child is refused");
    exchange(&mut client, &mut server, to);
    println!("test result: ok. 1 passed; 0 failed;");
}
