//! The control protocol between the two ends of a run, over messages of the library itself.
//!
//! The client asks the server's listening endpoint for a connection; the request's payload is
//! [`Hello`]. The server answers on that connection by [`Answer::Ready`] with the URI of an
//! endpoint opened as the run needs it, or by [`Answer::Refused`]. The client opens an endpoint in
//! the same way and connects it there twice: for control, always reliable and ordered, and for the
//! operations that are measured. Then it sends a [`Command`] for each block.
//!
//! A run has several launches, each of which begins so. After the last the client asks for one more
//! connection, whose payload is a [`Hello`] with its [`Report`].

use super::driver::{Completion, Driver, DriverError, DriverEvent, PostError, await_event};
use super::loops::Silence;
use cci_report::names::ProbeKind;
use cci_report::session::Session;
use cci_report::{UserError, while_doing};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;
use std::time::Duration;

/// Version of the control protocol. The server rejects any other version.
pub(crate) const VERSION: u32 = 4;

/// Payload of the first connection request.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Version; the name says what this is, in every version.
    pub(crate) cci_perf: u32,
    pub(crate) client: Client,
    pub(crate) request: Request,
}

/// What a client wants.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// A launch of a run.
    Launch(Session),
    /// The server is to know how the run has ended.
    Report(Report),
}

/// Who measures, in its own words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Client {
    /// The same for all launches of a run.
    pub(crate) run: u64,
    /// The endpoint that asks.
    pub(crate) uri: String,
    pub(crate) pid: u32,
    pub(crate) uid: u32,
}

impl Client {
    /// This process, which asks from this endpoint.
    pub(crate) fn at(driver: &impl Driver) -> Self {
        static RUN: LazyLock<u64> = LazyLock::new(|| fastrand::u64(..));
        Self { run: *RUN, uri: driver.uri(), pid: std::process::id(), uid: rustix::process::getuid().as_raw() }
    }
}

/// How a run has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// What was measured; empty when nothing was.
    pub(crate) result: String,
    /// Why the run ended early, if it did.
    pub(crate) early: Option<String>,
}

impl Hello {
    /// Takes a payload apart.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, UserError> {
        let value: serde_json::Value = serde_json::from_slice(payload)
            .map_err(|_| UserError::new("the request is not one of `cci perf`: connect with `cci perf --connect`"))?;
        let version = value.get("cci_perf").and_then(serde_json::Value::as_u64);
        if version != Some(u64::from(VERSION)) {
            let theirs = version.map_or_else(|| "no version".into(), |version| format!("version {version}"));
            return Err(UserError(format!(
                "the server speaks version {VERSION} of the measuring protocol and the client {theirs}: \
                 use the same `cci` on both sides"
            )));
        }
        serde_json::from_value(value).map_err(while_doing("the request of the client is malformed"))
    }
}

/// What the server says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Connect to this endpoint.
    Ready { uri: String },
    /// No run, for this reason.
    Refused {
        why: String,
        /// It is refused for want of a place: the client asks again.
        #[serde(default)]
        is_full: bool,
    },
    /// The server's memory: handle, process and address, the latter two for the process_vm probe.
    Memory { handle: [u64; 4], pid: i32, address: u64 },
    /// The block may begin.
    Go,
    /// So many messages have arrived.
    Done { received: u64 },
}

/// What the client says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Command {
    /// The client's memory; the server's is the answer.
    Memory { handle: [u64; 4] },
    /// Take part in a block, the `number`th.
    Block { what: What, size: u64, count: u64, number: u64 },
    /// The run is over.
    End,
}

/// What a block consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// Operations of the library.
    Measured,
    /// Bare operations.
    Probe(ProbeKind),
}

/// Two connected endpoints, seen from one of them.
pub(crate) struct Link<P: Driver> {
    pub(crate) driver: P,
    /// For control, reliable and ordered.
    pub(crate) control: P::Connection,
    /// For what is measured.
    pub(crate) operations: P::Connection,
    bytes: Vec<u8>,
    /// `bytes` holds a message that no call has returned yet.
    is_early: bool,
}

impl<P: Driver> Link<P> {
    pub(crate) fn new(driver: P, control: P::Connection, operations: P::Connection) -> Self {
        driver.heed([Some(control), Some(operations)]);
        Self { driver, control, operations, bytes: Vec::new(), is_early: false }
    }

    /// Stores a message that arrived before the link existed; the next `recv` returns it.
    pub(crate) fn keep(&mut self, bytes: Vec<u8>) {
        (self.bytes, self.is_early) = (bytes, true);
    }

    /// The message that arrived before it was waited for.
    pub(crate) fn take_early(&mut self) -> Option<Vec<u8>> {
        std::mem::take(&mut self.is_early).then(|| std::mem::take(&mut self.bytes))
    }

    /// Waits for `open` SEND events. The next `recv` returns a control message that arrives
    /// meanwhile.
    pub(crate) fn settle(&mut self, mut open: u64) -> Result<(), DriverError> {
        let mut silence = Silence::default();
        while open > 0 {
            let mut bytes = Vec::new();
            match self.driver.poll_event(&mut bytes, |_| 0)? {
                DriverEvent::Sent => {
                    open -= 1;
                    silence.end();
                }
                DriverEvent::Received(connection) if connection == self.control => {
                    (self.bytes, self.is_early) = (bytes, true);
                }
                // What others do is no sign of the peer.
                _ => silence.rest(&self.driver)?,
            }
        }
        Ok(())
    }

    /// Sends a control message.
    pub(crate) fn send(&self, what: &impl Serialize) -> Result<(), UserError> {
        send(&self.driver, self.control, what)
    }

    /// Receives a control message; blocks up to `limit`.
    pub(crate) fn recv<T: DeserializeOwned>(&mut self, limit: Duration) -> Result<T, UserError> {
        if std::mem::take(&mut self.is_early) {
            return parse(&self.bytes);
        }
        let control = self.control;
        recv(&self.driver, &mut self.bytes, limit, |connection| connection == control)
    }
}

/// Sends a control message on a connection.
pub(crate) fn send<P: Driver>(driver: &P, connection: P::Connection, what: &impl Serialize) -> Result<(), UserError> {
    let text = text_for(driver, connection, what)?;
    let mut silence = Silence::default();
    loop {
        match driver.send(connection, &text, true) {
            Ok(()) => return Ok(()),
            // Between blocks nothing arrives that was not asked for, so nothing is lost by this
            // look; what others do is no sign of the peer.
            Err(PostError::Full) => match driver.poll::<false>()? {
                Completion::Sent => silence.end(),
                _ => silence.rest(driver)?,
            },
            Err(PostError::Driver(error)) => return Err(error.into()),
        }
    }
}

/// Sends a control message if there is room for it. An endpoint at which anybody asks does not
/// wait for room: the look for it would lose requests of others.
pub(crate) fn offer<P: Driver>(driver: &P, connection: P::Connection, what: &impl Serialize) -> Result<(), UserError> {
    match driver.send(connection, &text_for(driver, connection, what)?, true) {
        Ok(()) => Ok(()),
        Err(PostError::Full) => Err(UserError::new("the endpoint has no room for the answer")),
        Err(PostError::Driver(error)) => Err(error.into()),
    }
}

/// A control message, if the connection carries it.
fn text_for<P: Driver>(driver: &P, connection: P::Connection, what: &impl Serialize) -> Result<Vec<u8>, UserError> {
    let text = serde_json::to_vec(what).map_err(while_doing("cannot write a control message"))?;
    if text.len() as u64 > driver.max_send_size(connection) {
        return Err(UserError(format!(
            "the connection carries messages of at most {} bytes, too few to agree on a run",
            driver.max_send_size(connection)
        )));
    }
    Ok(text)
}

/// Receives a control message on a connection that `on` accepts; blocks up to `limit`.
pub(crate) fn recv<P: Driver, T: DeserializeOwned>(
    driver: &P,
    bytes: &mut Vec<u8>,
    limit: Duration,
    mut on: impl FnMut(P::Connection) -> bool,
) -> Result<T, UserError> {
    let received = await_event(driver, bytes, limit, |event, bytes| match event {
        DriverEvent::Received(connection) if on(connection) => Some(parse(bytes)),
        _ => None,
    })?;
    match received {
        Some(parsed) => parsed,
        None => Err(silent(limit)),
    }
}

/// Nothing came for so long.
pub(crate) fn silent(limit: Duration) -> UserError {
    UserError(format!("no message from the other end for {} s: check that it still runs", limit.as_secs()))
}

pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, UserError> {
    serde_json::from_slice(bytes).map_err(while_doing("the other end sent a control message that is malformed"))
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::session;
    use super::*;

    #[test]
    fn a_request_comes_back_as_it_was_and_fits_a_connection_request() {
        let client = Client { run: u64::MAX, uri: format!("sock://{}", "f".repeat(60)), pid: u32::MAX, uid: u32::MAX };
        let hello = Hello { cci_perf: VERSION, client, request: Request::Launch(session()) };
        let text = serde_json::to_vec(&hello).unwrap();
        assert!(text.len() <= cci::CONN_REQ_LEN, "{} bytes", text.len());
        assert_eq!(Hello::parse(&text).unwrap(), hello);
    }

    #[test]
    fn another_version_is_refused_by_a_sentence_whatever_else_it_says() {
        let error = Hello::parse(br#"{"cci_perf": 99, "novelty": true}"#).unwrap_err();
        assert!(error.0.contains("version 4") && error.0.contains("version 99"), "{error}");
        let error = Hello::parse(b"{}").unwrap_err();
        assert!(error.0.contains("no version"), "{error}");
    }

    #[test]
    fn what_is_no_request_is_told_apart() {
        assert!(Hello::parse(b"hello").unwrap_err().0.contains("not one of `cci perf`"));
        assert!(Hello::parse(br#"{"cci_perf": 4}"#).unwrap_err().0.contains("malformed"));
    }

    #[test]
    fn commands_and_answers_come_back_as_they_were() {
        let command = Command::Block { what: What::Probe(ProbeKind::Ring), size: 8, count: 1000, number: 3 };
        let text = serde_json::to_string(&command).unwrap();
        assert_eq!(serde_json::from_str::<Command>(&text).unwrap(), command);
        let answer = Answer::Memory { handle: [u64::MAX, 1, 2, 3], pid: 7, address: u64::MAX };
        let text = serde_json::to_string(&answer).unwrap();
        assert_eq!(serde_json::from_str::<Answer>(&text).unwrap(), answer);
    }
}
