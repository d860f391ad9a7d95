//! Peers mapped by the ranks of a job.

use crate::world::Seen;
use cci::{Context, Names};
use cci_am::{Endpoint, Handlers, MapError, Options, TAG_ALL};
use cci_conformance::LIMIT;
use std::sync::Arc;
use std::time::Instant;

const NOTE: u8 = 1;

fn handlers() -> Handlers<Seen> {
    Handlers::new().request(NOTE, |seen: &mut Seen, request| {
        seen.requests.push((request.arguments().to_vec(), Vec::new()));
    })
}

/// The URIs of all ranks, in their order.
struct Ranks(Vec<String>);

impl Names for Ranks {
    fn resolve(&self, name: &str) -> Option<String> {
        self.0.get(name.strip_prefix("job:")?.parse::<usize>().ok()?).cloned()
    }
}

/// A rank maps itself by its name too: its handler runs in the call.
#[test]
fn ranks_of_a_job_are_mapped_by_name() {
    let context = Context::new().expect("devices");
    let device = context.default_device().expect("a device");
    let open = || Endpoint::open(device, &Options::new(), handlers(), Seen::default()).expect("an endpoint");
    let (mut first, mut second) = (open(), open());
    let none = first.map("job:1", TAG_ALL).expect_err("there is no job");
    assert!(none.to_string().starts_with("cannot map the peer: ") && none.to_string().contains("job"), "{none}");

    context.set_names(Arc::new(Ranks([&first, &second].map(|end| end.name().to_owned()).into())));
    assert!(matches!(first.map("job:2", TAG_ALL), Err(MapError::Refused(_))), "there are two ranks");
    let itself = first.map("job:0", TAG_ALL).expect("a rank");
    assert_eq!(first.request(itself, NOTE, &[10]), Ok(()));
    assert_eq!(first.state().requests, [(vec![10], vec![])]);

    let other = first.map("job:1", TAG_ALL).expect("a rank");
    let begin = Instant::now();
    let mut is_sent = false;
    while second.state().requests.is_empty() {
        is_sent = is_sent || first.now().request(other, NOTE, &[11]).is_ok();
        first.poll().and(second.poll()).expect("usable");
        assert!(begin.elapsed() < LIMIT, "the request does not come");
    }
    assert_eq!(second.state().requests, [(vec![11], vec![])]);
}
