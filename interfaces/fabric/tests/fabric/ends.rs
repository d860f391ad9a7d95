//! Ends of peers, and threads that sleep.

use crate::world::{LONG, Side, domain, memory, of};
use cci_fabric::{Code, NOT_AVAILABLE, Remote, Segments, bits};
use rustix::event::{PollFd, PollFlags, poll};

const TRANSPORTS: [&str; 4] = ["sm", "sock", "tcp", "auto"];

#[test]
fn what_waits_for_a_peer_that_ends_ends_with_it_and_a_receive_of_any_source_stays() {
    for transport in TRANSPORTS {
        let domain = domain(transport);
        let (here, there) = (Side::new(&domain), Side::new(&domain));
        let (to, _) = (here.meet(&there), there.meet(&here));
        here.post(&memory(8), (1, 0), to, 10, 0).expect("a receive");
        here.post(&memory(8), (1, 0), NOT_AVAILABLE, 11, 0).expect("a receive");
        here.post(&memory(4_096), (1, 0), to, 13, bits::MULTI_RECV).expect("a buffer of several");
        here.post(&memory(4_096), (1, 0), NOT_AVAILABLE, 14, bits::MULTI_RECV).expect("a buffer of several");
        here.send(to, &of(vec![1; 1_000_000]), 1, 12, 0).expect("a send");
        // It is offered, and nobody receives it.
        let peek = |side: &Side| side.post(&memory(0), (1, 0), NOT_AVAILABLE, 1, bits::PEEK);
        loop {
            here.turn();
            peek(&there).expect("a peek");
            if there.next_beside(&here).is_ok() {
                break;
            }
        }
        let ended = [(); 3].map(|()| {
            there.endpoint.close();
            here.next().map_err(|failed| (failed.entry.context, failed.code))
        });
        let mut ended = ended.map(|ended| ended.expect_err("the peer has ended"));
        ended.sort_by_key(|(context, _)| *context);
        assert_eq!(ended, [10, 12, 13].map(|context| (context, Code::ConnectionReset)), "{transport}");
        assert_eq!([11, 14].map(|context| here.endpoint.cancel(context)), [Ok(()); 2], "{transport}");
    }
}

#[test]
fn where_nobody_is_each_operation_ends_once_with_a_code_that_says_so() {
    let domain = domain("sm");
    let (here, gone) = (Side::new(&domain), Side::new(&domain));
    let to = here.meet(&gone);
    drop(gone);
    here.send(to, &of(vec![1; 8]), 1, 1, 0).expect("a send");
    here.post(&memory(8), (1, 0), to, 2, 0).expect("a receive");
    let (segments, pieces) = (Segments::from(memory(8)), vec![(0, 8, 7)]);
    here.endpoint
        .remote(Remote { segments, to, pieces, is_write: true, data: None, context: 3, flags: 0 })
        .expect("it begins");
    let mut ended: Vec<u64> = Vec::new();
    for _ in 0..3 {
        let failed = here.next().expect_err("nobody is there");
        assert!(matches!(failed.code, Code::HostUnreachable | Code::ConnectionReset), "{failed:?}");
        ended.push(failed.entry.context);
    }
    ended.sort_unstable();
    assert_eq!(ended, [1, 2, 3]);
}

#[test]
fn a_program_sleeps_on_the_descriptor_until_there_is_an_entry() {
    for transport in TRANSPORTS {
        let domain = domain(transport);
        let (here, there) = (Side::new(&domain), Side::new(&domain));
        let to = here.meet(&there);
        there.receive(&memory(8), 1, 10).expect("a receive");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                here.send(to, &of(vec![1; 8]), 1, 1, 0).expect("a send");
                here.next().expect("it leaves");
            });
            let descriptor = there.queue.descriptor().expect("it was opened with one");
            let limit = rustix::time::Timespec { tv_sec: LONG.as_secs() as i64, tv_nsec: 0 };
            let entry = loop {
                match there.queue.try_wait() {
                    Ok(()) => {
                        let woken = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit));
                        assert_eq!(woken, Ok(1), "{transport}: it slept on");
                    }
                    Err(why) => assert_eq!(why, Code::Again),
                }
                let mut found = None;
                if there.queue.read(1, |entry| found = Some(entry.context)).is_ok() {
                    break found;
                }
            };
            assert_eq!(entry, Some(10), "{transport}");
        });
    }
}
