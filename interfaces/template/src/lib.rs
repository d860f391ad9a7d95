//! An echo, to start a new interface from: `docs/design/interface-template.md` leads through it.

#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod c;
mod driving;
mod state;

pub use state::{CREDITS, Code, LONGEST};

// The echo's own from here on.
use cci::{Endpoint, OpenError};
use cci_ground::Driven;
use cci_peers::{Directory, Name, Options, Peers};
use state::{End, State};
use std::convert::Infallible;
use std::time::Duration;

/// An echo: it sends requests, and answers those of others while one of its calls waits. Any thread
/// may call. Calls wait for `limit` at most; `None`: for ever.
pub struct Echo(Driven<State>);

impl Echo {
    /// Opens an echo with this name, which finds others by the directory, on an endpoint with
    /// `disconnect_events`.
    pub fn open(endpoint: Endpoint, name: Name, directory: Box<dyn Directory + Send>) -> Result<Self, OpenError> {
        let peers = Peers::new(name, directory, &Options::new())?;
        Ok(Self(Driven::new(endpoint, State::new(peers))?))
    }

    /// Sends a request, once there is credit, and returns its number.
    pub fn request(&self, to: &Name, bytes: &[u8], limit: impl Into<Option<Duration>>) -> Result<u64, Code> {
        (bytes.len() <= LONGEST).then_some(()).ok_or(Code::TooLong)?;
        self.wait_for(limit.into(), |state| state.begin(self.0.endpoint(), to, bytes).transpose())
    }

    /// Waits for the answer to a request, and takes it.
    pub fn wait(&self, request: u64, limit: impl Into<Option<Duration>>) -> Result<Vec<u8>, Code> {
        self.wait_for(limit.into(), |state| state.finish(request))
    }

    /// Answers requests until the time is over or the echo has ended, and returns the code of that.
    pub fn serve(&self, limit: impl Into<Option<Duration>>) -> Code {
        let Err(why) = self.wait_for(limit.into(), |_| None::<Result<Infallible, Code>>);
        why
    }

    /// Ends the waits of all threads, and refuses calls from now on. Links end by a drop.
    pub fn close(&self) {
        self.0.with(|state| state.end(Code::Closed));
    }

    // As in each interface from here on.
    fn wait_for<R>(&self, limit: Option<Duration>, mut ready: impl FnMut(&mut State) -> End<R>) -> Result<R, Code> {
        let found = self.0.wait_for(limit, |state| state.over.map(Err).or_else(|| ready(state)));
        found.unwrap_or(Err(Code::Timeout))
    }
}
