//! Names of hosts, looked up away from the endpoint's lock, by the threads of
//! [`cci_mem::lookup`]. The answer for a question that is dropped meanwhile is dropped too.

use crate::lock;
use cci_mem::lookup::{Lookup, begin, by_system};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, Weak};

/// What a lookup found: addresses, or why there are none.
pub type Found = Result<Vec<SocketAddr>, String>;

/// What was found for a host's name.
///
/// ```
/// # use cci_transport::HostAnswer;
/// fn first(answer: &HostAnswer) -> Result<std::net::SocketAddr, String> {
///     let found = answer.found.as_ref().map_err(|why| format!("no {}: {why}", answer.host))?;
///     found.first().copied().ok_or_else(|| format!("{} has no address", answer.host))
/// }
/// ```
#[derive(Debug)]
pub struct HostAnswer {
    /// The name.
    pub host: String,
    /// What the lookup found.
    pub found: Found,
}

/// Where answers arrive, for one endpoint.
struct Mailbox {
    answers: Mutex<Vec<(u64, HostAnswer)>>,
    /// Makes the endpoint's handle readable.
    waker: Arc<OwnedFd>,
}

/// A lookup whose answer is still wanted.
struct Asked {
    number: u64,
    mailbox: Weak<Mailbox>,
}

/// The names that one endpoint has asked for. No method blocks.
///
/// ```
/// # use cci_transport::{PollSet, Resolver};
/// let set = PollSet::new()?;
/// let mut resolver = Resolver::new(set.waker());
/// assert!(resolver.ask(1, "localhost", 80), "a thread can be had");
/// assert!(resolver.forget(1), "the answer is dropped when it comes");
/// assert!(resolver.next_answer().is_none());
/// # Ok::<(), rustix::io::Errno>(())
/// ```
pub struct Resolver {
    mailbox: Arc<Mailbox>,
    asked: Vec<Arc<Asked>>,
    lookup: Lookup,
}

impl Resolver {
    /// Of an endpoint with this waker, which an answer writes.
    #[must_use]
    pub fn new(waker: Arc<OwnedFd>) -> Self {
        Self { mailbox: Arc::new(Mailbox { answers: Mutex::default(), waker }), asked: Vec::new(), lookup: by_system }
    }

    /// Begins to look a name up; [`Resolver::next_answer`] gives what it found under `number`.
    /// False: no thread can be had.
    pub fn ask(&mut self, number: u64, host: &str, port: u16) -> bool {
        let asked = Arc::new(Asked { number, mailbox: Arc::downgrade(&self.mailbox) });
        let (of, host, lookup) = (Arc::downgrade(&asked), host.to_owned(), self.lookup);
        if begin(&asked, move || answer(&of, host, port, lookup)).is_err() {
            return false;
        }
        self.asked.push(asked);
        true
    }

    /// The answer to a question that is still wanted.
    pub fn next_answer(&mut self) -> Option<(u64, HostAnswer)> {
        loop {
            let (number, answer) = lock(&self.mailbox.answers).pop()?;
            if self.forget(number) {
                return Some((number, answer));
            }
        }
    }

    /// The answer is not wanted any more. False: it was not before.
    pub fn forget(&mut self, number: u64) -> bool {
        let at = self.asked.iter().position(|asked| asked.number == number);
        at.map(|at| self.asked.swap_remove(at)).is_some()
    }
}

/// Looks a name up, and answers whoever still wants to know.
fn answer(asked: &Weak<Asked>, host: String, port: u16, lookup: Lookup) {
    let found = lookup(&host, port).map_err(|error| error.to_string());
    let Some(asked) = asked.upgrade() else { return };
    let Some(mailbox) = asked.mailbox.upgrade() else { return };
    lock(&mailbox.answers).push((asked.number, HostAnswer { host, found }));
    let _ = rustix::io::write(&*mailbox.waker, &1u64.to_ne_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use cci_mem::lookup::{THREADS, threads};
    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    use std::io::Error;
    use std::net::Ipv4Addr;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// The pool is the process's: one test at a time. What lookups take their answers from, and
    /// where they say that they began.
    static TEST: Mutex<Option<Script>> = Mutex::new(None);
    pub(crate) static ALONE: Mutex<()> = Mutex::new(());

    struct Script {
        began: Sender<String>,
        answers: Arc<Mutex<Receiver<Found>>>,
    }

    /// Waits for an answer, as for a name server.
    fn scripted(host: &str, _: u16) -> std::io::Result<Vec<SocketAddr>> {
        let answers = {
            let script = lock(&TEST);
            let script = script.as_ref().ok_or_else(|| Error::other("no script"))?;
            script.began.send(host.to_owned()).map_err(Error::other)?;
            Arc::clone(&script.answers)
        };
        // One lookup waits here, the others for the lock: all of them wait.
        let answer = lock(&answers).recv();
        answer.map_err(Error::other)?.map_err(Error::other)
    }

    fn script() -> (Receiver<String>, Sender<Found>) {
        let (began, begins) = channel();
        let (answer, answers) = channel();
        *lock(&TEST) = Some(Script { began, answers: Arc::new(Mutex::new(answers)) });
        (begins, answer)
    }

    fn resolver() -> Resolver {
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd");
        Resolver { lookup: scripted, ..Resolver::new(Arc::new(waker)) }
    }

    fn await_answer(resolver: &mut Resolver) -> (u64, Found) {
        loop {
            if let Some(answer) = resolver.next_answer() {
                return (answer.0, answer.1.found);
            }
            let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
            let woken = poll(&mut [PollFd::new(&*resolver.mailbox.waker, PollFlags::IN)], Some(&limit));
            assert_eq!(woken, Ok(1), "no answer");
            let _ = rustix::io::read(&*resolver.mailbox.waker, &mut [0; 8]);
        }
    }

    pub(crate) fn await_no_threads() {
        let begun = std::time::Instant::now();
        while threads() > 0 {
            assert!(begun.elapsed().as_secs() < 30, "threads stay although no name waits");
            std::thread::yield_now();
        }
    }

    #[test]
    fn each_thread_has_a_name_and_there_are_no_more_threads() {
        let _alone = lock(&ALONE);
        let (begins, answer) = script();
        let mut resolver = resolver();
        let names = THREADS as u64 + 6;
        for number in 0..names {
            assert!(resolver.ask(number, &format!("host{number}"), 1));
        }
        let first: Vec<_> = (0..THREADS).map(|_| begins.recv().expect("a lookup begins")).collect();
        assert_eq!(first.len(), THREADS);
        assert!(begins.try_recv().is_err(), "a lookup began without a thread");
        assert_eq!(threads(), THREADS);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        (0..names).for_each(|_| answer.send(Ok(vec![address])).expect("lookups wait"));
        let mut numbers: Vec<_> = (0..names).map(|_| await_answer(&mut resolver)).collect();
        assert!(numbers.iter().all(|(_, found)| *found == Ok(vec![address])));
        numbers.sort_unstable_by_key(|(number, _)| *number);
        assert!(numbers.iter().map(|(number, _)| *number).eq(0..names));
        await_no_threads();
    }

    #[test]
    fn an_answer_that_nobody_wants_is_dropped() {
        let _alone = lock(&ALONE);
        let (begins, answer) = script();
        let (mut one, mut other) = (resolver(), resolver());
        assert!(one.ask(1, "closed", 1) && other.ask(2, "forgotten", 1) && other.ask(3, "wanted", 1));
        (0..3).for_each(|_| drop(begins.recv().expect("a lookup begins")));
        let waker = Arc::downgrade(&one.mailbox.waker);
        drop(one);
        assert!(waker.upgrade().is_none(), "a lookup keeps the descriptor of a closed endpoint");
        assert!(other.forget(2) && !other.forget(2));
        (0..3).for_each(|_| answer.send(Err("no such host".into())).expect("lookups wait"));
        let (number, found) = await_answer(&mut other);
        assert_eq!((number, &found), (3, &Err("no such host".into())));
        await_no_threads();
        assert!(other.next_answer().is_none());
        assert!(other.ask(4, "after all threads have ended", 1));
        answer.send(Ok(Vec::new())).expect("kept");
        assert_eq!(await_answer(&mut other), (4, Ok(Vec::new())));
        await_no_threads();
    }
}
