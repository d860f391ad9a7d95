//! Sending and receiving take no memory.

use crate::ends::{frame, open, wait, with_length};
use crate::sys::no_children;
use cci_instruments::{CountingAllocator, thread_allocations as allocations_off_main};
use cci_reliable::{Link, Outgoing, Wait};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn nothing_is_allocated_after_warm_up() {
    let _guard = no_children();
    let (mut a, mut b) = (open("127.0.0.1", &[]), open("127.0.0.1", &[]));
    let (to, nobody) = (a.resolve(b.uri()).expect("a URI"), a.resolve(open("127.0.0.1", &[]).uri()).expect("a URI"));
    let bytes: Vec<Vec<u8>> = (0..64).map(|at| with_length(vec![7; 100 + at / 9 * 300], 0)).collect();
    let mut frames: Vec<Outgoing<'_>> = bytes.iter().map(|bytes| frame(to, bytes)).collect();
    frames.push(frame(nobody, &bytes[0]));
    let mut round = |check: bool| {
        let before = allocations_off_main();
        let (mut taken, mut arrived, mut refused) = (0, 0, 0);
        while taken < frames.len() {
            taken += a.send_burst(&frames[taken..]);
            assert!(a.is_writable());
        }
        while arrived < 64 {
            arrived += b.recv_burst(10, &mut |_| ());
            let deadline = b.now().plus_micros(1000);
            if arrived < 64 && b.arm(Some(deadline), false) {
                wait(&b, 10);
            }
            b.disarm();
        }
        while refused == 0 {
            refused += a.recv_burst(10, &mut |_| ());
        }
        assert!(!check || allocations_off_main() == before, "{} allocations", allocations_off_main() - before);
    };
    round(false);
    (0..500).for_each(|_| round(true));
}
