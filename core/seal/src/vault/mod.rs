//! The keys of an endpoint's connections.
//!
//! ```text
//!     index --> slot, 84 bytes: two secrets, next number --.
//!                                                          |  expand when used, 0.5 us
//!     at most so many as the vault was made for  <---------'
//!     expanded keys, 640 bytes each: send, receive, next, previous
//! ```
//!
//! A connection that rests has its slot alone. The first frame after a rest expands its key, in
//! room that was freed, or new, or of the connection that has used its own least lately.

#[cfg(test)]
mod tests;

use crate::aead::{Direction, Key, Nonce};
pub use crate::plain::MOST_FRAMES;
use crate::plain::{SLOTS, Slot, Slots};
use crate::sizes::KEY;
use crate::{Refused, Session, kdf, labels};
use cci_mem::secrets::{Secret, on_clean_stack};
use cci_mem::source::Source;

/// Which key of the peer a frame is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The one before the present one, as long as it was not forgotten.
    Previous,
    /// The present one.
    Present,
    /// The one after, into which [`Vault::advance_receiving`] goes once a frame of it was opened.
    Next,
}

/// Which expanded key: an index of [`Slot::places`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Send = 0,
    Present = 1,
    Next = 2,
    Previous = 3,
}

impl From<Phase> for Purpose {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Previous => Self::Previous,
            Phase::Present => Self::Present,
            Phase::Next => Self::Next,
        }
    }
}

/// What a vault has done. Numbers grow only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that were sealed.
    pub sealed: u64,
    /// Frames that were opened.
    pub opened: u64,
    /// Frames whose tag was wrong.
    pub forged: u64,
    /// Keys that were expanded.
    pub expanded: u64,
}

/// An expanded key of a connection, or room for one.
struct Entry {
    key: Key,
    /// `None`: room.
    of: Option<(u32, Purpose)>,
    /// Whether it was used since the search for room has passed it.
    was_used: bool,
}

/// The keys of an endpoint's connections, found by an index of the caller.
///
/// # Example
///
/// ```
/// use cci_seal::noise::{Initiator, Responder};
/// use cci_seal::{Phase, Psk, TAG, Vault};
///
/// # let psk = Psk::fresh()?;
/// # let initiator = Initiator::begin(&psk, &[], b"")?;
/// # let responder = Responder::read(&psk, &[], initiator.message(), &mut [])?;
/// # let (answer, server_session) = responder.answer(&[], b"")?;
/// # let client_session = initiator.finish(&[], &answer, &mut [])?;
/// let (mut client, mut server) = (Vault::new(64), Vault::new(64));
/// client.insert(0, &client_session)?;
/// server.insert(7, &server_session)?;
///
/// let mut frame = [0; 5 + TAG];
/// client.seal(0, 1, b"header", &[(&b"bytes"[..]).into()], &mut frame)?;
/// assert_eq!(server.open(7, Phase::Present, 1, b"header", &mut frame)?, b"bytes");
/// # Ok::<(), cci_seal::Refused>(())
/// ```
pub struct Vault {
    cells: Vec<Secret<Slots>>,
    entries: Vec<Entry>,
    /// Entries that are room.
    rooms: Vec<u16>,
    most: u16,
    /// Where the search for an entry to take goes on.
    hand: u16,
    counts: Counts,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").field("expanded", &self.entries.len()).finish_non_exhaustive()
    }
}

impl Vault {
    /// Returns a vault without connections. It keeps at most `most_expanded` keys ready, at least
    /// 4, of 640 bytes each.
    #[must_use]
    pub fn new(most_expanded: u16) -> Self {
        let most = most_expanded.clamp(4, u16::MAX - 1);
        Self { cells: vec![], entries: vec![], rooms: vec![], most, hand: 0, counts: Counts::default() }
    }

    /// Returns what it has done.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Gives the connection of this index the secrets of a session, in place of what it had.
    /// Numbers begin anew, since the keys are new.
    ///
    /// # Errors
    ///
    /// [`Refused::Forked`], [`Refused::NoMemory`].
    pub fn insert(&mut self, index: u32, session: &Session) -> Result<(), Refused> {
        let [from_initiator, from_responder] = session.secrets()?;
        self.remove(index);
        let (cell, at) = place(index);
        while self.cells.len() <= cell {
            self.cells.push(Secret::zeroed()?);
        }
        let slot = &mut self.cells[cell].get_mut()?.0[at];
        let (sending, receiving) = match session.sending() {
            Direction::FromInitiator => (from_initiator, from_responder),
            Direction::FromResponder => (from_responder, from_initiator),
        };
        slot.sending.copy_from_slice(sending);
        slot.receiving.copy_from_slice(receiving);
        slot.set_direction(session.sending());
        Ok(())
    }

    /// Wipes all that the connection has. Nothing happens where it has nothing.
    pub fn remove(&mut self, index: u32) {
        self.rest(index);
        if let Ok(slot) = self.slot_mut(index) {
            *slot = Slot::EMPTY;
        }
    }

    /// Wipes the expanded keys of a connection, which rests: its next frames expand them again. The
    /// key of the previous phase goes with them.
    pub fn rest(&mut self, index: u32) {
        for purpose in [Purpose::Send, Purpose::Present, Purpose::Next, Purpose::Previous] {
            self.free(index, purpose);
        }
    }

    /// Seals parts into `out`, with the tag behind them, as [`Key::seal`] does.
    ///
    /// `number` is above all numbers of this connection before, also those of other phases. So no
    /// nonce is used twice.
    ///
    /// # Errors
    ///
    /// [`Refused::Reused`], [`Refused::WornOut`], [`Refused::NoKey`], [`Refused::Length`],
    /// [`Refused::Forked`], [`Refused::NoMemory`].
    #[inline]
    pub fn seal(
        &mut self,
        index: u32,
        number: u64,
        header: &[u8],
        parts: &[Source<'_>],
        out: &mut [u8],
    ) -> Result<(), Refused> {
        let (direction, place) = self.number(index, number)?;
        let entry = self.entry(index, Purpose::Send, place)?;
        entry.key.seal(Nonce::new(direction, number), header, parts, out)?;
        self.counts.sealed += 1;
        Ok(())
    }

    /// As [`Vault::seal`], in place: the last [`TAG`](crate::TAG) bytes of the buffer become the
    /// tag.
    ///
    /// # Errors
    ///
    /// As [`Vault::seal`].
    #[inline]
    pub fn seal_in_place(&mut self, index: u32, number: u64, header: &[u8], buffer: &mut [u8]) -> Result<(), Refused> {
        let (direction, place) = self.number(index, number)?;
        let entry = self.entry(index, Purpose::Send, place)?;
        entry.key.seal_in_place(Nonce::new(direction, number), header, buffer)?;
        self.counts.sealed += 1;
        Ok(())
    }

    /// Opens a buffer whose last [`TAG`](crate::TAG) bytes are the tag, as [`Key::open`] does. It
    /// says nothing about whether the number was opened before.
    ///
    /// # Errors
    ///
    /// [`Refused::Forged`]; [`Refused::NoKey`], also where the previous phase was forgotten;
    /// [`Refused::Length`], [`Refused::Forked`], [`Refused::NoMemory`].
    #[inline]
    pub fn open<'b>(
        &mut self,
        index: u32,
        phase: Phase,
        number: u64,
        header: &[u8],
        buffer: &'b mut [u8],
    ) -> Result<&'b mut [u8], Refused> {
        let (nonce, entry) = self.opener(index, phase, number)?;
        let opened = entry.key.open(nonce, header, buffer);
        self.count(opened.as_ref().err());
        opened
    }

    /// As [`Vault::open`], into another buffer, as [`Key::open_to`] does.
    ///
    /// # Errors
    ///
    /// As [`Vault::open`].
    #[inline]
    pub fn open_to(
        &mut self,
        index: u32,
        phase: Phase,
        number: u64,
        header: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<(), Refused> {
        let (nonce, entry) = self.opener(index, phase, number)?;
        let opened = entry.key.open_to(nonce, header, sealed, out);
        self.count(opened.as_ref().err());
        opened
    }

    /// The nonce and the key of a frame of the peer.
    #[inline(always)]
    fn opener(&mut self, index: u32, phase: Phase, number: u64) -> Result<(Nonce, &mut Entry), Refused> {
        let (slot, sending) = self.slot(index)?;
        let place = slot.places[Purpose::from(phase) as usize];
        let entry = self.entry(index, phase.into(), place)?;
        Ok((Nonce::new(sending.reversed(), number), entry))
    }

    #[inline(always)]
    fn count(&mut self, refused: Option<&Refused>) {
        match refused {
            None => self.counts.opened += 1,
            Some(Refused::Forged) => self.counts.forged += 1,
            Some(_) => {}
        }
    }

    /// Returns how many frames the present key has sealed.
    ///
    /// # Errors
    ///
    /// [`Refused::NoKey`], [`Refused::Forked`].
    pub fn sealed(&self, index: u32) -> Result<u32, Refused> {
        self.slot(index).map(|(slot, _)| slot.sealed())
    }

    /// Goes on to the next key for sealing. The present one is gone.
    ///
    /// # Errors
    ///
    /// [`Refused::NoKey`], [`Refused::Forked`].
    pub fn advance_sending(&mut self, index: u32) -> Result<(), Refused> {
        self.free(index, Purpose::Send);
        let slot = self.slot_mut(index)?;
        update(&mut slot.sending);
        slot.set_sealed(0);
        Ok(())
    }

    /// Goes on to the peer's next key, of which a frame was opened. The present one becomes the
    /// previous one, as far as it was expanded; it stays until [`Vault::forget_previous`], a rest,
    /// or until its room is needed.
    ///
    /// # Errors
    ///
    /// [`Refused::NoKey`], [`Refused::Forked`].
    pub fn advance_receiving(&mut self, index: u32) -> Result<(), Refused> {
        self.free(index, Purpose::Previous);
        let slot = self.slot_mut(index)?;
        update(&mut slot.receiving);
        let [_, present, next, previous] = &mut slot.places;
        (*previous, *present, *next) = (*present, *next, 0);
        let (present, previous) = (*present, *previous);
        self.rename(present, index, Purpose::Present);
        self.rename(previous, index, Purpose::Previous);
        Ok(())
    }

    /// Wipes the key of the phase before the present one.
    pub fn forget_previous(&mut self, index: u32) {
        self.free(index, Purpose::Previous);
    }

    fn rename(&mut self, place: u16, index: u32, purpose: Purpose) {
        if let Some(entry) = self.entries.get_mut(usize::from(place).wrapping_sub(1)) {
            entry.of = Some((index, purpose));
        }
    }

    #[inline(always)]
    fn slot(&self, index: u32) -> Result<(&Slot, Direction), Refused> {
        let (cell, at) = place(index);
        let slot = &self.cells.get(cell).ok_or(Refused::NoKey)?.get()?.0[at];
        Ok((slot, slot.direction().ok_or(Refused::NoKey)?))
    }

    #[inline(always)]
    fn slot_mut(&mut self, index: u32) -> Result<&mut Slot, Refused> {
        let (cell, at) = place(index);
        let slot = &mut self.cells.get_mut(cell).ok_or(Refused::NoKey)?.get_mut()?.0[at];
        if slot.direction().is_none() { Err(Refused::NoKey) } else { Ok(slot) }
    }

    /// Takes a number for good, and returns the direction and where the key is.
    #[inline(always)]
    fn number(&mut self, index: u32, number: u64) -> Result<(Direction, u16), Refused> {
        let slot = self.slot_mut(index)?;
        if number < slot.next || number == u64::MAX {
            return Err(Refused::Reused);
        }
        if slot.sealed() >= MOST_FRAMES {
            return Err(Refused::WornOut);
        }
        slot.next = number + 1;
        slot.set_sealed(slot.sealed() + 1);
        Ok((slot.direction().ok_or(Refused::NoKey)?, slot.places[Purpose::Send as usize]))
    }

    /// Returns an expanded key, which lies at `place` if it is there.
    #[inline(always)]
    fn entry(&mut self, index: u32, purpose: Purpose, place: u16) -> Result<&mut Entry, Refused> {
        let at = if place == 0 { self.expand(index, purpose)? } else { usize::from(place) - 1 };
        let entry = &mut self.entries[at];
        entry.was_used = true;
        Ok(entry)
    }

    #[cold]
    fn expand(&mut self, index: u32, purpose: Purpose) -> Result<usize, Refused> {
        if purpose == Purpose::Previous {
            return Err(Refused::NoKey);
        }
        let at = self.room()?;
        let (cell, slot) = place(index);
        let slot = &mut self.cells[cell].get_mut()?.0[slot];
        let entry = &mut self.entries[usize::from(at)];
        let secret = if purpose == Purpose::Send { &slot.sending } else { &slot.receiving };
        let made = on_clean_stack(|| {
            let (mut next, mut key) = ([0; KEY], [0; KEY]);
            let secret = if purpose == Purpose::Next {
                kdf::expand(secret, &[labels::UPDATE], &mut next);
                &next
            } else {
                secret
            };
            kdf::expand(secret, &[labels::CIPHER], &mut key);
            entry.key.replace_unclean(&key)
        });
        if let Err(refused) = made {
            self.rooms.push(at);
            return Err(refused);
        }
        slot.places[purpose as usize] = at + 1;
        entry.of = Some((index, purpose));
        self.counts.expanded += 1;
        Ok(at.into())
    }

    /// Returns an entry without a key: one that was freed, a new one, or one that was not used
    /// since the last search.
    fn room(&mut self) -> Result<u16, Refused> {
        if let Some(room) = self.rooms.pop() {
            return Ok(room);
        }
        let len = self.entries.len() as u16;
        if len < self.most {
            self.entries.push(Entry { key: Key::unset()?, of: None, was_used: false });
            return Ok(len);
        }
        loop {
            let at = self.hand;
            self.hand = if at + 1 == len { 0 } else { at + 1 };
            let entry = &mut self.entries[usize::from(at)];
            if !std::mem::take(&mut entry.was_used) {
                if let Some((index, purpose)) = entry.of {
                    self.free(index, purpose);
                }
                return self.rooms.pop().ok_or(Refused::NoMemory);
            }
        }
    }

    /// Wipes an expanded key, if it is there.
    fn free(&mut self, index: u32, purpose: Purpose) {
        let Ok(slot) = self.slot_mut(index) else { return };
        let place = std::mem::take(&mut slot.places[purpose as usize]);
        if let Some(at) = place.checked_sub(1) {
            let entry = &mut self.entries[usize::from(at)];
            (entry.of, entry.was_used) = (None, false);
            entry.key.wipe();
            self.rooms.push(at);
        }
    }
}

/// Where the slot of an index is.
#[inline(always)]
fn place(index: u32) -> (usize, usize) {
    (index as usize / SLOTS, index as usize % SLOTS)
}

/// Replaces a secret by that of the next phase.
fn update(secret: &mut [u8; KEY]) {
    on_clean_stack(|| {
        let mut next = [0; KEY];
        kdf::expand(secret, &[labels::UPDATE], &mut next);
        *secret = next;
    });
}
