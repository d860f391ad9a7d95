use super::super::control::{Hello, Request, VERSION};
use super::super::driver::{Asking, DriverError};
use super::super::ends::{CONTROL, OPERATIONS};
use super::super::plan::tests::session;
use super::super::scripted::{Script, Scripted};
use super::*;
use cci::Status;
use cci_report::names::{Measurement, Operation};
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

fn text(what: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(what).expect("text")
}

fn client() -> Client {
    Client { run: 1, uri: String::new(), pid: 1, uid: 1 }
}

/// A client asks the listening endpoint for a run.
fn ask_to_launch(context_of: &mut dyn FnMut(&Asking<'_>) -> u64) -> DriverEvent<u32> {
    let payload = text(&Hello { cci_perf: VERSION, client: client(), request: Request::Launch(session()) });
    context_of(&Asking { payload: &payload, origin: &|| cci_admission::Origin::Here });
    DriverEvent::Asked
}

/// An endpoint at which the end of the run comes after so many looks that find nothing.
struct Quiet {
    looks: Cell<u32>,
    /// One that sleeps has a handle.
    handle: Option<OwnedFd>,
}

impl Script for Quiet {
    fn next(
        &self,
        bytes: &mut Vec<u8>,
        _: &mut dyn FnMut(&Asking<'_>) -> u64,
    ) -> Result<DriverEvent<u32>, DriverError> {
        let Some(left) = self.looks.get().checked_sub(1) else {
            *bytes = text(&Command::End);
            return Ok(DriverEvent::Received(CONTROL as u32));
        };
        self.looks.set(left);
        Ok(DriverEvent::Nothing)
    }

    fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.handle.as_ref().map(AsFd::as_fd)
    }
}

/// How often a server looks after others while a run says nothing for so many looks.
fn attended(looks: u32, handle: Option<OwnedFd>) -> u32 {
    let (client, session) = (client(), session());
    let count = Cell::new(0);
    let attend = |_: &Scripted<Quiet>| count.set(count.get() + 1);
    let mut run = Run { client: &client, session: &session, patience: PATIENCE, begin: Duration::ZERO, attend };
    let quiet = Scripted(Quiet { looks: Cell::new(looks), handle });
    let mut link = Link::new(quiet, CONTROL as u32, OPERATIONS as u32);
    let command = run.next_command(&mut link, PATIENCE.silence).expect("a command");
    assert_eq!(command, Command::End);
    count.get()
}

#[test]
fn a_server_that_polls_looks_after_others_at_every_1024th_look_and_one_that_sleeps_at_each() {
    assert_eq!([1023, 1024, 5000].map(|looks| attended(looks, None)), [0, 1, 4]);
    let handle = || Some(OwnedFd::from(std::fs::File::open("/dev/null").expect("it is there")));
    assert_eq!([1, 1024].map(|looks| attended(looks, handle())), [1, 1024]);
}

#[test]
fn a_server_that_computes_hears_of_blocks() {
    let base = Session { measurement: Measurement::Bandwidth, operation: Operation::Write, ..session() };
    let hears_nothing = |target| ends::hears_nothing(&Session { target, ..base.clone() });
    assert_eq!([Target::Polling, Target::Computing].map(hears_nothing), [true, false]);
}

/// The listening endpoint of a server and then that of a run: a client launches the run at the
/// first, where a stranger's messages come without end, and ends it at the second.
struct Flooded {
    is_listening: bool,
    looks: Cell<u32>,
}

/// The endpoints of a server with one port: when the run of its client has ended, another program
/// has the port for a while.
struct Robbed {
    opened: u32,
    looks: Cell<u32>,
}

/// For how long the other program has it: longer than a port takes to be free by itself.
const ROBBED: Duration = Duration::from_millis(2500);

thread_local! {
    static ROBBED_OPENED: Cell<u32> = const { Cell::new(0) };
    static ROBBED_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

impl Script for Robbed {
    fn open() -> Result<Self, UserError> {
        let opened = ROBBED_OPENED.replace(ROBBED_OPENED.get() + 1);
        let is_taken = match opened {
            // Beside the listening endpoint.
            1 => true,
            ..=2 => false,
            _ => {
                let since = ROBBED_SINCE.get().unwrap_or_else(Instant::now);
                ROBBED_SINCE.set(Some(since));
                since.elapsed() < ROBBED
            }
        };
        if is_taken { Err(UserError::new("port 5000 is in use")) } else { Ok(Self { opened, looks: Cell::new(0) }) }
    }

    fn next(
        &self,
        bytes: &mut Vec<u8>,
        context_of: &mut dyn FnMut(&Asking<'_>) -> u64,
    ) -> Result<DriverEvent<u32>, DriverError> {
        let look = self.looks.replace(self.looks.get() + 1);
        Ok(match (self.opened, look) {
            (0, 0) => ask_to_launch(context_of),
            (0, 1) => DriverEvent::Open(1, 1),
            // The client leaves.
            (0, _) => return Err(DriverError::PeerLost),
            (2, 0) => DriverEvent::Open(CONTROL as u32, CONTROL),
            (2, 1) => DriverEvent::Open(OPERATIONS as u32, OPERATIONS),
            (2, _) => {
                *bytes = text(&Command::End);
                DriverEvent::Received(CONTROL as u32)
            }
            // It listens again, which ends the test.
            _ => return Err(DriverError::Failed(Status::NetDown)),
        })
    }
}

#[test]
fn a_server_with_one_port_waits_for_a_program_that_has_taken_it_and_says_so() {
    let mut lines = Vec::new();
    let why = serve::<Scripted<Robbed>>(&DriverOptions::on_loopback("sm"), PATIENCE, None, |notice| {
        if let Notice::Ended(line) = notice {
            lines.push(line.to_owned());
        }
        Ok(())
    });
    assert_eq!(why.err(), Some(UserError::from(DriverError::Failed(Status::NetDown))), "the end of the test");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("Another program had the port of this server for "), "{lines:?}");
    assert!(ROBBED_SINCE.get().is_some_and(|since| since.elapsed() >= ROBBED));
}

/// The endpoint of a server that has no descriptor for another one.
struct Poor {
    looks: Cell<u32>,
}

thread_local! {
    static POOR_OPENED: Cell<u32> = const { Cell::new(0) };
    static POOR_ANSWER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Script for Poor {
    fn open() -> Result<Self, UserError> {
        match POOR_OPENED.replace(POOR_OPENED.get() + 1) {
            0 => Ok(Self { looks: Cell::new(0) }),
            _ => Err(UserError::new("cannot open an endpoint: epoll_create1: Too many open files (os error 24)")),
        }
    }

    fn next(
        &self,
        _: &mut Vec<u8>,
        context_of: &mut dyn FnMut(&Asking<'_>) -> u64,
    ) -> Result<DriverEvent<u32>, DriverError> {
        match self.looks.replace(self.looks.get() + 1) {
            0 => Ok(ask_to_launch(context_of)),
            1 => Ok(DriverEvent::Open(1, 1)),
            // The end of the test.
            _ => Err(DriverError::Failed(Status::NetDown)),
        }
    }

    fn sees(&self, message: &[u8]) {
        POOR_ANSWER.set(message.to_vec());
    }
}

#[test]
fn a_server_without_descriptors_has_its_client_ask_again() {
    let why = serve::<Scripted<Poor>>(&DriverOptions::on_loopback("sm"), PATIENCE, None, |_| Ok(()));
    assert_eq!(why.err(), Some(UserError::from(DriverError::Failed(Status::NetDown))), "the end of the test");
    let answer: Answer = parse(&POOR_ANSWER.take()).expect("an answer");
    assert!(matches!(&answer, Answer::Refused { why, is_full: true } if why.contains("os error 24")), "{answer:?}");
}

#[test]
fn a_server_whose_uri_cannot_be_told_ends() {
    let why = serve::<Scripted<Flooded>>(&DriverOptions::on_loopback("sm"), PATIENCE, None, |notice| match notice {
        Notice::Listening(_) => Err(UserError::new("nobody listens")),
        Notice::Ended(_) => Ok(()),
    });
    assert_eq!(why.err(), Some(UserError::new("nobody listens")));
}

/// Looks at the listening endpoint after which a server has failed its client.
const MOST_LOOKS: u32 = 100_000;

thread_local! {
    static OPENED: Cell<u32> = const { Cell::new(0) };
    static IS_SERVED: Cell<bool> = const { Cell::new(false) };
}

impl Script for Flooded {
    fn open() -> Result<Self, UserError> {
        Ok(Self { is_listening: OPENED.replace(OPENED.get() + 1) == 0, looks: Cell::new(0) })
    }

    fn next(
        &self,
        bytes: &mut Vec<u8>,
        context_of: &mut dyn FnMut(&Asking<'_>) -> u64,
    ) -> Result<DriverEvent<u32>, DriverError> {
        let look = self.looks.replace(self.looks.get() + 1);
        Ok(match (self.is_listening, look) {
            (true, 0) => ask_to_launch(context_of),
            (true, 1) => DriverEvent::Open(1, 1),
            (true, ..MOST_LOOKS) if !IS_SERVED.get() => DriverEvent::Received(2),
            (true, _) => return Err(DriverError::Failed(Status::NetDown)),
            (false, 0) => DriverEvent::Open(CONTROL as u32, CONTROL),
            (false, 1) => DriverEvent::Open(OPERATIONS as u32, OPERATIONS),
            (false, 2) => {
                *bytes = text(&Command::End);
                IS_SERVED.set(true);
                DriverEvent::Received(CONTROL as u32)
            }
            (false, _) => DriverEvent::Nothing,
        })
    }
}

#[test]
fn a_client_is_served_while_somebody_sends_to_the_listening_endpoint_all_the_time() {
    let why = serve::<Scripted<Flooded>>(&DriverOptions::on_loopback("sm"), PATIENCE, None, |_| Ok(()));
    assert_eq!(why.err(), Some(UserError::from(DriverError::Failed(Status::NetDown))), "the end of the test");
    assert!(IS_SERVED.get(), "the client of the run has waited for {MOST_LOOKS} looks");
}
