//! What a viewer reads of an endpoint's counters.

use cci_mem::counters::{Home, LEN, WAITS};
use cci_mem::guarded::Threading;
use cci_mem::sync::Ordering;
use cci_proto::Time;
use cci_transport::{Core, CoreOptions, Endpoint, Gauge, Snapshot, Unreadable, WaitFor};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// A core whose page others can read, and the file that it is in.
fn core(uri: &str) -> (Core, File) {
    core_over(0, uri)
}

fn core_over(ways: u8, uri: &str) -> (Core, File) {
    let mut core = None;
    let options = CoreOptions { recv_count: 8, send_count: 4, rma_count: 16, ways, ..CoreOptions::default() };
    let endpoint = Endpoint::open(Threading::Many, |endpoint| {
        core = Core::new(endpoint, &options).ok();
        None
    });
    assert!(endpoint.is_ok());
    let mut core = core.expect("memory");
    core.publish_counters("sm", uri);
    let mut files = std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten().filter_map(|entry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        let is_page = target.to_str().is_some_and(|target| target.contains(Snapshot::NAME));
        let file = File::open(entry.path()).ok().filter(|_| is_page)?;
        (take(&file).ok()?.uri == uri).then_some(file)
    });
    let file = files.next().expect("a published page");
    (core, file)
}

fn take(file: &File) -> Result<Snapshot, Unreadable> {
    Snapshot::take(|bytes| file.read_at(bytes, 0))
}

#[test]
fn gauges_are_as_they_were_noted() {
    let (mut core, file) = core("sm://gauges/0");
    let first = take(&file).expect("a page");
    assert_eq!((first.pid, first.transport.as_str()), (std::process::id(), "sm"));
    assert_eq!((first.recv_taken, first.recv_limit, first.send_limit, first.rma_limit), (0, 8, 4, 16));
    assert!(first.opened > Duration::ZERO && first.progress == first.opened);
    let slot = core.take_recv(|_| ()).expect("a slot");
    core.push(slot);
    core.take_send().expect("a slot");
    core.on_armed();
    core.set_starving(true);
    core.publish_gauges();
    let noted = take(&file).expect("a page");
    assert_eq!((noted.recv_taken, noted.recv_lent, noted.send_taken), (1, 0, 1));
    assert!(noted.is_armed && noted.is_starving);
    core.pop().expect("an event");
    core.publish_gauges();
    assert_eq!(take(&file).expect("a page").recv_lent, 1);
}

#[test]
fn gauges_of_several_ways_are_their_sum() {
    let (mut core, file) = core_over(2, "cci://gauges");
    let mut set = |way: u8, values: &[(Gauge, u64)]| {
        core.enter_way(way);
        let slot = core.take_recv(|_| ()).expect("a slot");
        core.push(slot);
        core.set_gauges(values);
        core.publish_gauges();
        core.leave_way();
        let noted = take(&file).expect("a page");
        [noted.in_flight, noted.refused, noted.recv_taken, noted.recv_limit]
    };
    assert_eq!(set(0, &[(Gauge::InFlight, 3)]), [3, 0, 1, 8]);
    assert_eq!(set(1, &[(Gauge::InFlight, 4), (Gauge::Refused, 2)]), [7, 2, 2, 8]);
    assert_eq!(set(0, &[(Gauge::InFlight, 0)]), [4, 2, 3, 8]);
    // Beside what is counted as it happens.
    core.counters().on_refused();
    core.enter_way(1);
    core.set_gauges(&[(Gauge::Refused, 3)]);
    core.leave_way();
    assert_eq!(take(&file).expect("a page").refused, 4);
}

/// A way's handle may be armed where the endpoint's is not, and the other way round.
#[test]
fn the_state_is_that_of_the_endpoints_handle() {
    let (mut core, file) = core_over(2, "cci://armed");
    let mut state = |of_endpoint: bool, of_way: bool| {
        let set = |core: &mut Core, is_armed: bool| if is_armed { core.on_armed() } else { core.on_disarmed() };
        set(&mut core, of_endpoint);
        core.enter_way(1);
        set(&mut core, of_way);
        core.publish_gauges();
        core.leave_way();
        take(&file).expect("a page").is_armed
    };
    assert_eq!([state(false, true), state(true, false), state(true, true)], [false, true, true]);
}

#[test]
fn an_earlier_time_of_progress_changes_nothing() {
    let (core, file) = core("sm://progress/0");
    let progress = || take(&file).expect("a page").progress;
    let at = progress() + Duration::from_secs(1);
    core.set_progress(Time(u64::try_from(at.as_nanos()).expect("small")));
    assert_eq!(progress(), at);
    core.set_progress(Time(1));
    assert_eq!(progress(), at);
}

#[test]
fn as_many_waits_as_there_are_entries_are_listed_and_the_others_counted() {
    let (mut core, file) = core("sm://waits/0");
    let all = WAITS as u64 + 3;
    core.begin_waits();
    for key in 0..all {
        core.wait_for(key, WaitFor::Room, Time(key + 1), 2, format_args!("sm://{key}/0"));
    }
    core.end_waits();
    let shown = take(&file).expect("a page");
    assert_eq!((shown.waits.len(), shown.unlisted), (WAITS, 3));
    let first = &shown.waits[0];
    assert_eq!(
        (first.peer.as_str(), first.what, first.since, first.operations),
        ("sm://0/0", Some(WaitFor::Room), Duration::from_nanos(1), 2)
    );

    // Those that are not shown again are gone, and there is room for others.
    core.begin_waits();
    core.wait_for(all, WaitFor::Rma, Time(5), 1, "sm://new/0");
    core.wait_for(2, WaitFor::Connection, Time(9), 1, "sm://2/0");
    core.end_waits();
    let shown = take(&file).expect("a page");
    let peers: Vec<_> = shown.waits.iter().map(|wait| (wait.peer.as_str(), wait.what)).collect();
    assert_eq!(peers, [("sm://2/0", Some(WaitFor::Connection))], "no entry was free for the new one yet");
    assert_eq!(shown.unlisted, 1);
    core.wait_for(all, WaitFor::Rma, Time(5), 1, "sm://new/0");
    core.wait_over(2);
    core.wait_over(77);
    let shown = take(&file).expect("a page");
    assert_eq!(shown.waits.iter().map(|wait| wait.peer.as_str()).collect::<Vec<_>>(), ["sm://new/0"]);
    assert!(core.has_waits());
    core.wait_over(all);
    assert!(!core.has_waits());
}

/// Reads pages one after the other, the last again and again.
fn reader(pages: Vec<Vec<u8>>) -> impl FnMut(&mut [u8]) -> std::io::Result<usize> {
    let mut at = 0;
    move |target| {
        let page = &pages[at.min(pages.len() - 1)];
        at += 1;
        let len = page.len().min(target.len());
        target[..len].copy_from_slice(&page[..len]);
        Ok(len)
    }
}

#[test]
fn what_is_no_page_is_refused_with_the_reason() {
    let refused = |page: Vec<u8>| Snapshot::take(reader(vec![page])).expect_err("no page").to_string();
    assert!(refused(vec![]).contains("0 bytes"));
    assert!(refused(vec![0xff; 100]).contains("100 bytes instead of 4096"));
    assert!(refused(vec![0; LEN + 1]).contains("4097 bytes"));
    assert!(refused(vec![0; LEN]).contains("mark"));
    assert!(refused(vec![0xff; LEN]).contains("mark"));
    let mut page = vec![0; LEN];
    page[..8].copy_from_slice(b"cci-ctr1");
    page[8] = 7;
    assert!(refused(page).contains("version 7"));
    let failed = Snapshot::take(|_| Err(std::io::ErrorKind::PermissionDenied.into())).expect_err("no page");
    assert!(failed.to_string().contains("cannot be read"));
}

#[test]
fn an_entry_that_changes_between_the_looks_is_left_out() {
    let (mut core, file) = core("sm://torn/0");
    core.wait_for(1, WaitFor::Room, Time(1), 1, "sm://one/0");
    core.wait_for(2, WaitFor::Room, Time(1), 1, "sm://two/0");
    let page = |file: &File| {
        let mut bytes = vec![0; LEN];
        file.read_exact_at(&mut bytes, 0).expect("a page");
        bytes
    };
    let before = page(&file);
    core.wait_over(2);
    core.wait_for(3, WaitFor::Room, Time(1), 1, "sm://three/0");
    let after = page(&file);
    for pages in [vec![before.clone(), after.clone()], vec![before.clone(), before, after]] {
        let shown = Snapshot::take(reader(pages)).expect("a page");
        assert_eq!(shown.waits.iter().map(|wait| wait.peer.as_str()).collect::<Vec<_>>(), ["sm://one/0"]);
    }
}

#[test]
fn a_page_of_all_ones_with_a_right_head_is_numbers_and_nothing_else() {
    let mut bytes = vec![0xff; LEN];
    let (_core, file) = core("sm://head/0");
    file.read_exact_at(&mut bytes[..16], 0).expect("a page");
    let shown = Snapshot::take(reader(vec![bytes.clone()])).expect("a page");
    assert_eq!((shown.sent, shown.pid, shown.unlisted), (u64::MAX, u32::MAX, u64::MAX));
    assert!(shown.waits.is_empty(), "their generations are odd");
    let home = Home::copy_of(&bytes).expect("a page");
    assert_eq!(home.sent.load(Ordering::Relaxed), u64::MAX);
}
