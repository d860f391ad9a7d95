//! Interrupts, with bytes and without.

use crate::errors::Error;
use crate::notices::{Notices, Source};
use crate::objects::OwnInterrupt;
use crate::partner::Key;
use crate::shared::Shared;
use crate::state::State;
use crate::types::{Callback, Reason, Then};
use crate::wire::{HEADER, MOST_DATA, Message};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

impl State {
    pub(crate) fn enter_interrupt(&mut self, number: u32, life: u64, has_bytes: bool) {
        let interrupt = OwnInterrupt { life, has_bytes, connectors: BTreeMap::new(), notices: Notices::new() };
        self.interrupts.insert(number, interrupt);
    }
}

/// What both kinds of interrupts of this host have.
struct Own {
    shared: Arc<Shared>,
    number: u32,
    life: u64,
    claim: u64,
}

impl Own {
    fn source(&self) -> Source {
        Source::Interrupt(self.number, self.life)
    }

    fn find<'s>(&self, state: &'s mut State) -> Result<&'s mut OwnInterrupt, Error> {
        state.interrupts.get_mut(&self.number).filter(|of| of.life == self.life).ok_or(Error::Cancelled)
    }

    fn wait(&self, limit: Option<Duration>) -> Result<Vec<u8>, Error> {
        self.shared.wait_for(limit, |state| {
            let interrupt = match self.find(state) {
                Ok(interrupt) if interrupt.notices.callback.is_some() => return Some(Err(Error::IllegalOperation)),
                Ok(interrupt) => interrupt,
                Err(why) => return Some(Err(why)),
            };
            let (key, bytes) = interrupt.notices.events.pop_front()?;
            if interrupt.has_bytes {
                state.on_taken(self.shared.endpoint(), self.number, key);
            }
            Some(Ok(bytes))
        })
    }

    fn set(&self, callback: Callback<(Key, Vec<u8>)>) -> Result<(), Error> {
        // One that is refused is dropped without the lock.
        let mut callback = Some(callback);
        self.shared.with(|state| {
            state.cancel(self.source());
            let interrupt = self.find(state)?;
            interrupt.notices.callback = callback.take();
            let waiting = interrupt.notices.events.len();
            state.callbacks.ready.extend(std::iter::repeat_n(self.source(), waiting));
            Ok(())
        })
    }

    fn remove(&self, is_forced: bool) -> Result<(), Error> {
        self.shared.with(|state| {
            if !self.find(state)?.connectors.is_empty() && !is_forced {
                return Err(Error::Busy);
            }
            state.cancel(self.source());
            let Some(interrupt) = state.interrupts.remove(&self.number) else { return Ok(()) };
            for key in interrupt.connectors.into_keys() {
                state.connectors.remove(&key);
                let notice = Message::Notice { token: key.1, reason: Reason::Lost as u32 };
                state.send(self.shared.endpoint(), key.0, notice);
            }
            self.shared.free_claim(state, self.claim);
            state.waits.has_changed = true;
            Ok(())
        })?;
        self.shared.settle(self.source());
        Ok(())
    }
}

/// An interrupt of this host. Interrupts are not counted: several become one until it is taken.
/// Dropping it removes it; others get [`Error::NotConnected`] then.
///
/// # Example
///
/// ```
/// use cci_sci::{Host, Options};
///
/// let host = Host::open(&Options::new())?;
/// let interrupt = host.interrupt(None)?;
/// let remote = host.connect_interrupt(host.node(), interrupt.number(), None)?;
/// remote.trigger()?;
/// interrupt.wait(None)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Interrupt(Own);

impl Interrupt {
    pub(crate) fn new(shared: &Arc<Shared>, number: u32, life: u64, claim: u64) -> Self {
        Self(Own { shared: Arc::clone(shared), number, life, claim })
    }

    /// Returns the number by which others connect.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// Waits for an interrupt, at most for `limit`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]; [`Error::Cancelled`]: it was removed; [`Error::IllegalOperation`]: it
    /// has a callback, or this is one.
    pub fn wait(&self, limit: Option<Duration>) -> Result<(), Error> {
        self.0.wait(limit).map(drop)
    }

    /// Sets what is called for each interrupt, on the thread of the host, in place of
    /// [`Interrupt::wait`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`]: it was removed. [`Error::NotInitialized`].
    pub fn on_trigger(&self, mut callback: impl FnMut(()) -> Then + Send + 'static) -> Result<(), Error> {
        self.0.set(Arc::new(Mutex::new(move |_| callback(()))))
    }

    /// Removes the interrupt.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`]: others are connected. [`Error::Cancelled`]: it was removed before.
    pub fn remove(&self) -> Result<(), Error> {
        self.0.remove(false)
    }

    /// Removes the interrupt, also where others are connected: they get [`Error::NotConnected`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`]: it was removed before. [`Error::NotInitialized`].
    pub fn release(&self) -> Result<(), Error> {
        self.0.remove(true)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        // Refused where it was removed, or the host has ended.
        let _ = self.0.remove(true);
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Interrupt({})", self.0.number)
    }
}

/// An interrupt of this host that takes bytes. They are counted, and wait in order.
///
/// # Example
///
/// ```
/// use cci_sci::{Host, Options};
///
/// let host = Host::open(&Options::new())?;
/// let interrupt = host.data_interrupt(None)?;
/// let remote = host.connect_data_interrupt(host.node(), interrupt.number(), None)?;
/// remote.trigger(b"bytes")?;
/// assert_eq!(interrupt.wait(None)?, b"bytes");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DataInterrupt(Own);

impl DataInterrupt {
    pub(crate) fn new(shared: &Arc<Shared>, number: u32, life: u64, claim: u64) -> Self {
        Self(Own { shared: Arc::clone(shared), number, life, claim })
    }

    /// Returns the number by which others connect.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// Waits for the bytes of an interrupt, at most for `limit`.
    ///
    /// # Errors
    ///
    /// As [`Interrupt::wait`].
    pub fn wait(&self, limit: Option<Duration>) -> Result<Vec<u8>, Error> {
        self.0.wait(limit)
    }

    /// Sets what is called for each interrupt, as [`Interrupt::on_trigger`].
    ///
    /// # Errors
    ///
    /// As [`Interrupt::on_trigger`].
    pub fn on_data(&self, mut callback: impl FnMut(Vec<u8>) -> Then + Send + 'static) -> Result<(), Error> {
        self.0.set(Arc::new(Mutex::new(move |(_, bytes)| callback(bytes))))
    }

    /// Removes the interrupt.
    ///
    /// # Errors
    ///
    /// As [`Interrupt::remove`].
    pub fn remove(&self) -> Result<(), Error> {
        self.0.remove(false)
    }

    /// Removes the interrupt, also where others are connected: they get [`Error::NotConnected`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`]: it was removed before. [`Error::NotInitialized`].
    pub fn release(&self) -> Result<(), Error> {
        self.0.remove(true)
    }
}

impl Drop for DataInterrupt {
    fn drop(&mut self) {
        // As that of `Interrupt`.
        let _ = self.0.remove(true);
    }
}

impl fmt::Debug for DataInterrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataInterrupt({})", self.0.number)
    }
}

/// What both kinds of connections to interrupts have.
struct Far {
    shared: Arc<Shared>,
    token: u64,
}

impl Far {
    fn disconnect(&self) -> Result<(), Error> {
        self.shared.with(|state| {
            let of = state.attachments.remove(&self.token).ok_or(Error::NotConnected)?;
            if !of.is_lost {
                state.send(self.shared.endpoint(), of.partner, Message::Disconnect { token: self.token });
            }
            Ok(())
        })
    }
}

/// A connection to an interrupt. Dropping it disconnects.
///
/// # Example
///
/// ```
/// use cci_sci::{Error, RemoteInterrupt};
///
/// /// Whether the owner lives.
/// fn ring(bell: &RemoteInterrupt) -> bool {
///     bell.trigger() != Err(Error::NotConnected)
/// }
/// ```
pub struct RemoteInterrupt(Far);

impl RemoteInterrupt {
    pub(crate) fn new(shared: &Arc<Shared>, token: u64) -> Self {
        Self(Far { shared: Arc::clone(shared), token })
    }

    /// Triggers the interrupt, after what was stored in mirror windows of its owner. Does not wait
    /// for the owner to take it.
    ///
    /// # Errors
    ///
    /// [`Error::NotConnected`]: the owner is gone, or has removed it. [`Error::NotInitialized`].
    pub fn trigger(&self) -> Result<(), Error> {
        let Far { shared, token } = &self.0;
        shared.flush_for_trigger(*token);
        shared.with(|state| match state.attachments.get(token) {
            Some(of) if !of.is_lost => {
                state.send_trigger(shared.endpoint(), *token);
                Ok(())
            }
            _ => Err(Error::NotConnected),
        })
    }

    /// Ends the connection. Interrupts that the owner has not taken stay with it.
    ///
    /// # Errors
    ///
    /// [`Error::NotConnected`]: it was disconnected before. [`Error::NotInitialized`].
    pub fn disconnect(&self) -> Result<(), Error> {
        self.0.disconnect()
    }
}

impl Drop for RemoteInterrupt {
    fn drop(&mut self) {
        // Refused where it was disconnected, or the host has ended.
        let _ = self.0.disconnect();
    }
}

impl fmt::Debug for RemoteInterrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteInterrupt({})", self.0.token)
    }
}

/// A connection to an interrupt that takes bytes. Dropping it disconnects.
///
/// # Example
///
/// ```
/// use cci_sci::{Error, RemoteDataInterrupt};
///
/// /// Sends what the owner has room for.
/// fn offer(to: &RemoteDataInterrupt, bytes: &[u8]) -> Result<bool, Error> {
///     match to.trigger(bytes) {
///         Err(Error::Overflow) => Ok(false),
///         other => other.map(|()| true),
///     }
/// }
/// ```
pub struct RemoteDataInterrupt(Far);

impl RemoteDataInterrupt {
    pub(crate) fn new(shared: &Arc<Shared>, token: u64) -> Self {
        Self(Far { shared: Arc::clone(shared), token })
    }

    /// Triggers the interrupt with these bytes, which are copied, as [`RemoteInterrupt::trigger`].
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`]: the owner has 16 from this connection that it has not taken.
    /// [`Error::OutOfRange`]: more bytes than a message has. [`Error::NotConnected`]: the owner is
    /// gone, or has removed it. [`Error::NotInitialized`].
    pub fn trigger(&self, bytes: &[u8]) -> Result<(), Error> {
        let Far { shared, token } = &self.0;
        shared.flush_for_trigger(*token);
        shared.with(|state| {
            let of = state.attachments.get(token).filter(|of| !of.is_lost).ok_or(Error::NotConnected)?;
            let partner = of.partner;
            let most = partner.map(|peer| state.links.peers.connection(peer).and_then(|of| of.max_send_size()));
            if let Some(most) = most
                && bytes.len() + HEADER > most.ok_or(Error::NotConnected)? as usize
            {
                return Err(Error::OutOfRange);
            }
            let of = state.attachments.get_mut(token).ok_or(Error::NotConnected)?;
            if of.outstanding >= MOST_DATA {
                return Err(Error::Overflow);
            }
            of.outstanding += 1;
            let message = Message::Data { token: *token, bytes: bytes.to_vec() };
            state.send(shared.endpoint(), partner, message);
            Ok(())
        })
    }

    /// Ends the connection. Bytes that the owner has not taken stay with it.
    ///
    /// # Errors
    ///
    /// As [`RemoteInterrupt::disconnect`].
    pub fn disconnect(&self) -> Result<(), Error> {
        self.0.disconnect()
    }
}

impl Drop for RemoteDataInterrupt {
    fn drop(&mut self) {
        // As that of `RemoteInterrupt`.
        let _ = self.0.disconnect();
    }
}

impl fmt::Debug for RemoteDataInterrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteDataInterrupt({})", self.0.token)
    }
}
