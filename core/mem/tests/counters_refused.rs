//! Without a descriptor left, a page stays private. A process of its own: the limit holds for all
//! threads.
#![cfg(not(loom))]

use cci_mem::counters::Home;
use cci_mem::sync::Ordering;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn without_a_descriptor_the_page_stays_private_and_counts() {
    let before = getrlimit(Resource::Nofile);
    let mut home = Home::new().expect("memory");
    home.on_sent(8);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), maximum: before.maximum }).expect("a lower limit");
    let refused = home.publish();
    setrlimit(Resource::Nofile, before).expect("the limit as it was");
    assert!(refused.is_err() && !home.is_published());
    home.on_sent(8);
    assert_eq!(home.sent.load(Ordering::Relaxed), 2);
    home.publish().expect("a memfd");
    assert_eq!(home.sent.load(Ordering::Relaxed), 2, "it moves with what stands in it");
}
