//! An owner in another process, which obeys lines. It also connects to what node 8 has by the same
//! numbers.

use crate::world::{host, id};
use cci_conformance::LIMIT;
use cci_sci::{Access, Error, Host, RemoteSegment, Sequence, SequenceStatus, Window, Withdraw};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStderr, ChildStdin, Command, Stdio};

/// The variable that makes a run of this program the owner: a segment, and an interrupt.
const CHILD: &str = "CCI_SCI_CHILD";
/// What the lines of the owner begin with.
const SAYS: &str = "owner: ";
pub(crate) const SIZE: usize = 1 << 20;

fn say(words: &str) {
    let _ = writeln!(std::io::stderr(), "{SAYS}{words}");
}

/// Runs only as the child of the next tests: obeys the lines of its parent.
#[test]
fn child() {
    let Ok(numbers) = std::env::var(CHILD) else { return };
    let (segment, number) = numbers.split_once(' ').expect("two numbers");
    let [id, number] = [segment, number].map(|word| word.parse::<u32>().expect("a number"));
    let owner = host(4);
    let mut segment = Some(owner.create(id, SIZE).expect("memory"));
    let interrupt = owner.data_interrupt(Some(number)).expect("free");
    let mut member = None::<cci_sci::LocalSegment>;
    let (mut connected, mut attached, mut attached_data);
    say("ready");
    for line in std::io::stdin().lines() {
        let of = segment.as_ref();
        let answer = match line.expect("text").as_str() {
            "publish" => of.map(|of| of.prepare().and_then(|()| of.publish())),
            "notice" => of.map(|of| of.withdraw(Withdraw::Notify)),
            "force" => of.map(|of| of.withdraw(Withdraw::Force)),
            "remove" => of.map(cci_sci::LocalSegment::remove),
            "drop" => {
                segment = None;
                None
            }
            "join" => {
                let joined = owner.create_broadcast(number, SIZE).expect("memory");
                let answer = joined.prepare().and_then(|()| joined.publish());
                member = Some(joined);
                Some(answer)
            }
            "common" => {
                let word = member.as_ref().and_then(|of| of.map(0..8, Access::Read).ok()?.load::<u64>(0).ok());
                say(&format!("{word:?}"));
                continue;
            }
            "connect" => {
                connected = owner.connect(8, id, Some(LIMIT)).ok();
                Some(connected.as_ref().map(drop).ok_or(Error::NoSuchSegment))
            }
            "attach" => {
                attached = owner.connect_interrupt(8, number, Some(LIMIT)).ok();
                Some(attached.as_ref().map(drop).ok_or(Error::NoSuchSegment))
            }
            "attach data" => {
                attached_data = owner.connect_data_interrupt(8, number, Some(LIMIT)).ok();
                Some(attached_data.as_ref().map(drop).ok_or(Error::NoSuchSegment))
            }
            "take" => Some(interrupt.wait(Some(LIMIT)).map(drop)),
            "word" => {
                let word = of.and_then(|of| of.map(0..8, Access::Read).ok()?.load::<u64>(0).ok());
                say(&format!("{word:?}"));
                continue;
            }
            "fork" => {
                fork(&owner, of.expect("a segment"));
                continue;
            }
            other => panic!("{other}"),
        };
        say(&format!("{answer:?}"));
    }
}

/// Forks a child that uses what it has inherited, and stays.
#[expect(unsafe_code, reason = "the process is forked")]
fn fork(owner: &Host, segment: &cci_sci::LocalSegment) {
    let window = segment.map(0..8, Access::ReadWrite).expect("mapped");
    let sequence = window.sequence();
    // SAFETY: the child takes no lock that another thread may hold: that is what it tests.
    if unsafe { libc::fork() } != 0 {
        return;
    }
    let ends = (owner.create(1, 1).err(), segment.publish().err(), segment.wait(None).err());
    let is_refused = ends == (Some(Error::NotInitialized), Some(Error::NotInitialized), Some(Error::NotInitialized));
    let is_lost = (sequence.start(), sequence.check()) == (SequenceStatus::NotRetriable, SequenceStatus::NotRetriable);
    let is_stored = window.store(0, 77_u64).is_ok();
    say(&format!("forked {is_refused} {is_lost} {is_stored}"));
    // Until the test has ended: lines are the parent's.
    let mut input = libc::pollfd { fd: 0, events: 0, revents: 0 };
    // SAFETY: waits for the end of a pipe; then the child ends at once, and touches nothing of what
    // is its parent's.
    unsafe {
        libc::poll(&mut input, 1, -1);
        libc::_exit(0)
    };
}

pub(crate) struct Owner {
    pub(crate) pid: Pid,
    pub(crate) process: std::process::Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStderr>>,
    pub(crate) segment: u32,
    pub(crate) interrupt: u32,
}

impl Owner {
    pub(crate) fn start() -> Self {
        let (segment, interrupt) = (id(), id());
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "owner::child", "--nocapture"]).env(CHILD, format!("{segment} {interrupt}"));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("a child");
        let input = process.stdin.take();
        let lines = BufReader::new(process.stderr.take().expect("a pipe")).lines();
        let mut owner = Self { pid: Pid::from_child(&process), process, input, lines, segment, interrupt };
        assert_eq!(owner.line(), "ready");
        owner
    }

    pub(crate) fn published() -> Self {
        let mut owner = Self::start();
        assert_eq!(owner.tell("publish"), "Some(Ok(()))");
        owner
    }

    fn line(&mut self) -> String {
        let line = self.lines.by_ref().find_map(|line| line.expect("text").strip_prefix(SAYS).map(str::to_owned));
        line.expect("the owner lives")
    }

    fn order(&mut self, words: &str) {
        writeln!(self.input.as_mut().expect("a pipe"), "{words}").expect("the owner lives");
    }

    pub(crate) fn tell(&mut self, words: &str) -> String {
        self.order(words);
        self.line()
    }

    pub(crate) fn stop(&self) {
        kill_process(self.pid, Signal::STOP).expect("a child");
        // Its threads may run until the system has stopped them.
        let stopped = waitpid(Some(self.pid), WaitOptions::UNTRACED).expect("a child").expect("it has stopped");
        assert!(stopped.1.stopped());
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("a child");
        self.process.wait().expect("its end");
    }

    /// A published segment that this host has mapped, and a sequence of that.
    pub(crate) fn mapped(own: &Host) -> (Self, RemoteSegment, Window, Sequence) {
        let owner = Self::published();
        let connection = owner.connect(own);
        let window = connection.map(0..SIZE, Access::ReadWrite).expect("mapped");
        let sequence = window.sequence();
        (owner, connection, window, sequence)
    }

    pub(crate) fn connect(&self, host: &Host) -> RemoteSegment {
        host.connect(4, self.segment, Some(LIMIT)).expect("published")
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Killed before, in some tests.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
