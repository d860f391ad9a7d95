//! The probe of two futexes: two processes that wake each other, with nothing else on the way.

use super::shared::{FUTEXES, Shared};
use super::side::Side;
use rustix::io::Errno;
use rustix::thread::futex::{Flags, Timespec, wait, wake};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a process sleeps at most. It bounds what the death of the other one costs.
const LIMIT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// Sleeps until the word has changed, and takes what it was by then.
fn sleep(word: &AtomicU32, last: &mut u32) -> io::Result<()> {
    loop {
        // Acquire: what the other side wrote before is visible.
        let now = word.load(Ordering::Acquire);
        if now != *last {
            *last = now;
            return Ok(());
        }
        match wait(word, Flags::empty(), *last, Some(&LIMIT)) {
            // Another process sleeps here too, or a signal came: look again.
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(why) => return Err(why.into()),
        }
    }
}

fn ring(word: &AtomicU32) -> io::Result<()> {
    word.fetch_add(1, Ordering::Release);
    wake(word, Flags::empty(), 1)?;
    Ok(())
}

/// The client's word counts its calls, and the server's word its answers.
pub(super) fn exchange(shared: &Shared, side: Side, count: usize, pause: Duration) -> io::Result<Vec<Duration>> {
    let [client, server] = [FUTEXES, FUTEXES + 128].map(|at| shared.futex(at));
    let mut answered = server.load(Ordering::Relaxed);
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        match side {
            Side::Client => {
                std::thread::sleep(pause);
                let begin = Instant::now();
                ring(client)?;
                sleep(server, &mut answered)?;
                times.push(begin.elapsed());
            }
            Side::Server => {
                sleep(client, &mut answered)?;
                ring(server)?;
            }
        }
    }
    Ok(times)
}
