//! What matching costs, by the number of entries: `cargo run --release -p cci-matching --example
//! depth`. Medians of 31 blocks.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use cci_matching::{Envelope, NoMemory, Offer, Ordered, Pattern, Posted, Ticket, Unexpected};
use std::time::Instant;

const BLOCKS: usize = 31;
const DEPTHS: [u64; 5] = [1, 32, 1024, 2048, 100_000];

/// Nanoseconds of one of `count` operations that a block does.
fn median(count: u32, mut block: impl FnMut()) -> f64 {
    let mut times: Vec<_> = (0..BLOCKS)
        .map(|_| {
            let begin = Instant::now();
            block();
            begin.elapsed().as_secs_f64() * 1e9 / f64::from(count)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[BLOCKS / 2]
}

fn insert(inserted: Result<Ticket, NoMemory<u64>>) {
    inserted.expect("memory for the table");
}

fn main() {
    println!(
        "ns of one operation{:>39}{:>10}{:>10}{:>10}{:>10}",
        DEPTHS[0], DEPTHS[1], DEPTHS[2], DEPTHS[3], DEPTHS[4]
    );
    let message = |bits| Envelope { source: 1, bits };
    let show = |name: &str, times: Vec<f64>| {
        println!("{name:<48}{}", times.iter().map(|time| format!("{time:10.1}")).collect::<String>());
    };
    let posted = |pattern: fn(u64) -> Pattern| {
        let of = |depth: u64| {
            let mut posted = Posted::new();
            (0..depth).for_each(|bits| insert(posted.post(pattern(bits), bits)));
            let mut bits = 0;
            median(1000, || {
                for _ in 0..1000 {
                    // The one in the middle, so that a list would be walked.
                    bits = (bits + 7919) % depth;
                    if let Some(item) = posted.take(&message(bits)) {
                        insert(posted.post(pattern(item), item));
                    }
                }
            })
        };
        DEPTHS.map(of).to_vec()
    };
    show("take and post, full", posted(|bits| Pattern::exact(1, bits)));
    show("take and post, any source", posted(|bits| Pattern::new(0, 0, bits, !0)));
    let unexpected = |pattern: fn(u64) -> Pattern| {
        let of = |depth: u64| {
            let mut queue = Unexpected::new();
            (0..depth).for_each(|bits| insert(queue.insert(message(bits), bits)));
            let mut bits = 0;
            median(1000, || {
                for _ in 0..1000 {
                    bits = (bits + 7919) % depth;
                    if let Some((envelope, item)) = queue.take(&pattern(bits)) {
                        insert(queue.insert(envelope, item));
                    }
                }
            })
        };
        DEPTHS.map(of).to_vec()
    };
    show("take and insert, full", unexpected(|bits| Pattern::exact(1, bits)));
    show("take and insert, any source", unexpected(|bits| Pattern::new(0, 0, bits, !0)));
    let list = |pattern: fn(u64) -> Pattern, per_entry: bool| {
        let of = |depth: u64| {
            let mut list = Ordered::new();
            (0..depth).for_each(|bits| insert(list.push_back(pattern(bits), bits)));
            let count = if per_entry { u32::try_from(depth).unwrap_or(1) } else { 1 };
            median(count, || assert!(list.find(&message(depth - 1), |item| *item == depth - 1).is_some()))
        };
        DEPTHS.map(of).to_vec()
    };
    show("list, the last one matches", list(|bits| Pattern::exact(1, bits), false));
    let passed_over = |depth: u64| {
        let mut list = Ordered::new();
        for bits in 0..depth {
            let entry = list.push_back(Pattern::any(), bits).expect("memory for the table");
            list.set_offer(entry, Offer { rights: u32::from(bits == depth - 1), room: 8 });
        }
        let need = Offer { rights: 1, room: 8 };
        let count = u32::try_from(depth).unwrap_or(1);
        median(count, || assert!(list.find_offer(&message(0), need, |_, _| true).is_some()))
    };
    show("list, all match and offer too little, an entry", DEPTHS.map(passed_over).to_vec());
    show("list, all match and refuse, an entry", list(|_| Pattern::any(), true));
}
