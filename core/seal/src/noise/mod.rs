//! The handshake: `Noise_NNpsk0_25519_AESGCM_SHA256`, revision 34.
//!
//! ```text
//!     initiator                                     responder
//!        |  e, payload under the secret and e           |
//!        |  ------------------------------------------> |  checks the tag; no Diffie-Hellman yet
//!        |                                              |  asks its program
//!        |  e, ee, payload under all of these           |
//!        |  <------------------------------------------ |  or a refusal with a tag
//!     session                                        session
//! ```
//!
//! The *prologue* is what both sides know before and have not sent under the handshake. What both
//! know only by the second message (the fields of an answer) is `bound` into it: the hash takes it
//! up before the answer, which Noise has no name for. Without such fields the messages are those of
//! Noise.
//!
//! The state of a handshake lies in the arena. Dropping either side wipes it.

#[cfg(test)]
mod tests;

use crate::aead::{Direction, Key, Nonce};
use crate::plain::Handshake;
use crate::sizes::{KEY, TAG};
use crate::{Psk, Refused, Session, curve, kdf, labels};
use cci_mem::secrets::{Secret, on_clean_stack};
use cci_mem::source::Source;
use subtle::ConstantTimeEq;

/// What is hashed first: exactly as long as a hash.
const NAME: &[u8; KEY] = b"Noise_NNpsk0_25519_AESGCM_SHA256";

/// Bytes of each message beside its payload: a public key and a tag.
pub const OVERHEAD: usize = KEY + TAG;

/// The nonce of the only encryption under a key of the handshake.
const FIRST: u64 = 0;

impl Handshake {
    fn start(&mut self, psk: &[u8; KEY], prologue: &[&[u8]]) {
        (self.chaining, self.hash) = (*NAME, *NAME);
        self.mix_hash(prologue);
        let [chaining, hash, key] = kdf::mix(&self.chaining, psk);
        self.chaining = chaining;
        self.mix_hash(&[&hash]);
        self.key = key;
    }

    fn mix_hash(&mut self, parts: &[&[u8]]) {
        self.hash = kdf::hash([&self.hash[..]].into_iter().chain(parts.iter().copied()));
    }

    fn mix_key(&mut self, input: &[u8]) {
        let [chaining, key, _] = kdf::mix(&self.chaining, input);
        (self.chaining, self.key) = (chaining, key);
    }

    /// Takes up a public key, as a handshake with a pre-shared secret does: into the hash and the
    /// key.
    fn mix_public(&mut self, public: &[u8]) {
        self.mix_hash(&[public]);
        self.mix_key(public);
    }

    fn expanded(&self) -> Result<Key, Refused> {
        let mut key = Key::unset()?;
        key.replace_unclean(&self.key)?;
        Ok(key)
    }

    /// Writes what a payload becomes, and takes it up.
    fn encrypt(&mut self, payload: &[u8], out: &mut [u8]) -> Result<(), Refused> {
        let nonce = Nonce::salted([0; 4], FIRST);
        self.expanded()?.seal(nonce, &self.hash, &[Source::from(payload)], out)?;
        self.mix_hash(&[out]);
        Ok(())
    }

    /// Reads the payload of a message, and takes it up. A forged one leaves zeroes.
    fn decrypt(&mut self, sealed: &[u8], payload: &mut [u8]) -> Result<(), Refused> {
        let nonce = Nonce::salted([0; 4], FIRST);
        self.expanded()?.open_to(nonce, &self.hash, sealed, payload)?;
        self.mix_hash(&[sealed]);
        Ok(())
    }

    /// Writes the secrets of the session: that of the initiator's direction first.
    fn split(&self, secrets: &mut [[u8; KEY]; 2]) {
        let [first, second, _] = kdf::mix(&self.chaining, &[]);
        *secrets = [first, second];
    }

    /// The tag of a refusal, under what the first message has made.
    fn denial(&self, refusal: &[&[u8]]) -> [u8; TAG] {
        let mut key = [0; KEY];
        kdf::expand(&self.chaining, &[labels::DENIAL], &mut key);
        let whole = kdf::hmac(&key, [&self.hash[..]].into_iter().chain(refusal.iter().copied()));
        let mut tag = [0; TAG];
        tag.copy_from_slice(&whole[..TAG]);
        tag
    }
}

/// Fills a private key with random bytes of the system.
fn random(private: &mut [u8; KEY]) -> Result<(), Refused> {
    let filled = rustix::rand::getrandom(private, rustix::rand::GetRandomFlags::empty())?;
    // Up to 256 bytes come whole.
    if filled == KEY { Ok(()) } else { Err(Refused::NoMemory) }
}

/// The side that connects, between its message and the answer.
///
/// # Example
///
/// ```
/// use cci_seal::noise::{Initiator, Responder};
/// use cci_seal::{Psk, noise};
///
/// let psk = Psk::fresh()?;
/// let initiator = Initiator::begin(&psk, &[b"fields"], b"hello")?;
///
/// let mut hello = [0; 5];
/// let responder = Responder::read(&psk, &[b"fields"], initiator.message(), &mut hello)?;
/// assert_eq!(&hello, b"hello");
/// let (answer, at_responder) = responder.answer(&[], b"welcome")?;
///
/// let mut welcome = [0; 7];
/// let at_initiator = initiator.finish(&[], &answer, &mut welcome)?;
/// assert_eq!((&welcome, answer.len()), (b"welcome", 7 + noise::OVERHEAD));
/// assert_eq!(at_initiator.sending(), at_responder.sending().reversed());
/// # Ok::<(), cci_seal::Refused>(())
/// ```
#[derive(Debug)]
pub struct Initiator {
    state: Secret<Handshake>,
    message: Box<[u8]>,
}

impl Initiator {
    /// Begins a handshake. The parts of the prologue count as one.
    ///
    /// # Errors
    ///
    /// [`Refused::Forked`], [`Refused::NoMemory`].
    pub fn begin(psk: &Psk, prologue: &[&[u8]], payload: &[u8]) -> Result<Self, Refused> {
        Self::begin_with(psk, prologue, payload, random)
    }

    pub(crate) fn begin_with(
        psk: &Psk,
        prologue: &[&[u8]],
        payload: &[u8],
        ephemeral: impl FnOnce(&mut [u8; KEY]) -> Result<(), Refused>,
    ) -> Result<Self, Refused> {
        let mut made = Self { state: Secret::zeroed()?, message: vec![0; OVERHEAD + payload.len()].into() };
        let (state, psk) = (made.state.get_mut()?, psk.bytes()?);
        on_clean_stack(|| {
            state.start(psk, prologue);
            ephemeral(&mut state.ephemeral)?;
            let (public, sealed) = made.message.split_at_mut(KEY);
            public.copy_from_slice(&curve::public_of(&state.ephemeral));
            state.mix_public(public);
            state.encrypt(payload, sealed)
        })?;
        Ok(made)
    }

    /// Returns the first message: the same bytes each time.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Reads the answer and its payload, which is [`OVERHEAD`] bytes shorter than the answer. A
    /// forged answer changes nothing: the right one may still come. Each costs a Diffie-Hellman.
    ///
    /// # Errors
    ///
    /// [`Refused::Forged`], also where `bound` differs; [`Refused::Length`], [`Refused::Forked`],
    /// [`Refused::NoMemory`].
    pub fn finish(&self, bound: &[&[u8]], answer: &[u8], payload: &mut [u8]) -> Result<Session, Refused> {
        let (public, sealed) = answer.split_first_chunk::<KEY>().ok_or(Refused::Length)?;
        let (begun, mut copy) = (self.state.get()?, Secret::<Handshake>::zeroed()?);
        let mut shared = Secret::<[u8; KEY]>::zeroed()?;
        let (state, shared) = (copy.get_mut()?, shared.get_mut()?);
        on_clean_stack(|| {
            *state = *begun;
            take_up(state, bound);
            state.mix_public(public);
            if !curve::agree(&state.ephemeral, public, shared) {
                return Err(Refused::Forged);
            }
            state.mix_key(shared);
            state.decrypt(sealed, payload)?;
            Session::of(Direction::FromInitiator, |secrets| state.split(secrets))
        })
    }

    /// Checks the tag of a refusal, in constant time.
    ///
    /// # Errors
    ///
    /// [`Refused::Forged`], [`Refused::Forked`].
    pub fn check_denial(&self, refusal: &[&[u8]], tag: &[u8; TAG]) -> Result<(), Refused> {
        let state = self.state.get()?;
        let right = on_clean_stack(|| state.denial(refusal));
        if right.ct_eq(tag).into() { Ok(()) } else { Err(Refused::Forged) }
    }
}

/// Takes up what both sides know by the second message, if there is something.
fn take_up(state: &mut Handshake, bound: &[&[u8]]) {
    if !bound.is_empty() {
        state.mix_hash(bound);
    }
}

/// The side that accepts, between the first message and its answer.
#[derive(Debug)]
pub struct Responder {
    state: Secret<Handshake>,
}

impl Responder {
    /// Reads a first message and its payload, which is [`OVERHEAD`] bytes shorter than the message.
    /// It computes no Diffie-Hellman: hashes and one tag.
    ///
    /// # Errors
    ///
    /// [`Refused::Forged`], also where the secrets or prologues differ; [`Refused::Length`],
    /// [`Refused::Forked`], [`Refused::NoMemory`].
    pub fn read(psk: &Psk, prologue: &[&[u8]], message: &[u8], payload: &mut [u8]) -> Result<Self, Refused> {
        let (public, sealed) = message.split_first_chunk::<KEY>().ok_or(Refused::Length)?;
        let mut made = Self { state: Secret::zeroed()? };
        let (state, psk) = (made.state.get_mut()?, psk.bytes()?);
        on_clean_stack(|| {
            state.start(psk, prologue);
            state.ephemeral = *public;
            state.mix_public(public);
            state.decrypt(sealed, payload)
        })?;
        Ok(made)
    }

    /// Answers. The answer is to be kept for repetitions: it is not made twice.
    ///
    /// # Errors
    ///
    /// [`Refused::Forged`] where the peer's key is one that makes the shared secret zero;
    /// [`Refused::Forked`], [`Refused::NoMemory`].
    pub fn answer(self, bound: &[&[u8]], payload: &[u8]) -> Result<(Box<[u8]>, Session), Refused> {
        self.answer_with(bound, payload, random)
    }

    pub(crate) fn answer_with(
        mut self,
        bound: &[&[u8]],
        payload: &[u8],
        ephemeral: impl FnOnce(&mut [u8; KEY]) -> Result<(), Refused>,
    ) -> Result<(Box<[u8]>, Session), Refused> {
        let mut message: Box<[u8]> = vec![0; OVERHEAD + payload.len()].into();
        let mut secrets = Secret::<[[u8; KEY]; 2]>::zeroed()?;
        let (state, [private, shared]) = (self.state.get_mut()?, secrets.get_mut()?);
        let session = on_clean_stack(|| {
            ephemeral(private)?;
            let (public, sealed) = message.split_at_mut(KEY);
            public.copy_from_slice(&curve::public_of(private));
            take_up(state, bound);
            state.mix_public(public);
            if !curve::agree(private, &state.ephemeral, shared) {
                return Err(Refused::Forged);
            }
            state.mix_key(shared);
            state.encrypt(payload, sealed)?;
            Session::of(Direction::FromResponder, |secrets| state.split(secrets))
        })?;
        Ok((message, session))
    }

    /// Returns the tag of a refusal, by which the initiator knows that it comes from this side.
    ///
    /// # Errors
    ///
    /// [`Refused::Forked`].
    pub fn deny(&self, refusal: &[&[u8]]) -> Result<[u8; TAG], Refused> {
        let state = self.state.get()?;
        Ok(on_clean_stack(|| state.denial(refusal)))
    }
}
