//! Memory that is offered to partners, which read it.

use crate::link::{Link, register};
use cci::{Connection, Endpoint, Memory, RegisterError, Registration, Rights, RmaHandle};

#[derive(Debug)]
struct Offer<R> {
    /// `None`: the place is free.
    of: Option<(R, Link)>,
    registered: Vec<Registration<Memory>>,
}

/// Memory that is registered for partners to read until they have, each under a number. `R` names
/// the request that waits for it.
///
/// ```text
///    offer ---> registered for one link, to be read ---> done: its partner says so
///      |                                            ---> withdraw: the caller has another reason
///      '------> Err: nothing is registered          ---> end_link: the link is no more
/// ```
///
/// Places are used again, with their lists: an offer allocates nothing once as many have been open.
///
/// # Example
///
/// ```
/// use cci_rendezvous::{Link, Offers};
///
/// let mut offers: Offers<u32> = Offers::default();
/// let link = Link { peer: 1, life: 1 };
/// // What a partner says is checked: there is no such offer.
/// assert_eq!((offers.done(0, link), offers.open()), (None, 0));
/// ```
#[derive(Debug)]
pub struct Offers<R> {
    all: Vec<Offer<R>>,
    free: Vec<u32>,
    /// Empty but in the midst of an offer.
    memory: Vec<Memory>,
}

impl<R> Default for Offers<R> {
    fn default() -> Self {
        Self { all: Vec::new(), free: Vec::new(), memory: Vec::new() }
    }
}

impl<R: Copy> Offers<R> {
    /// Registers the memory that `fill` appends, for the partner of a link to read. Returns the
    /// number of the offer.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::register_for`]; nothing is registered then.
    pub fn offer(
        &mut self,
        endpoint: &Endpoint,
        (connection, link): (Connection, Link),
        request: R,
        fill: impl FnOnce(&mut Vec<Memory>),
    ) -> Result<u32, RegisterError> {
        let Self { all, free, memory } = self;
        let number = free.pop().unwrap_or_else(|| {
            all.push(Offer { of: None, registered: Vec::new() });
            all.len() as u32 - 1
        });
        fill(memory);
        let offer = &mut all[number as usize];
        match register(endpoint, connection, (memory.drain(..), &mut offer.registered), Rights::READ) {
            Ok(()) => {
                offer.of = Some((request, link));
                Ok(number)
            }
            Err(why) => {
                free.push(number);
                Err(why)
            }
        }
    }

    /// Returns length and handle of each part of an offer, for the message that makes it.
    pub fn parts(&self, number: u32) -> impl ExactSizeIterator<Item = (u64, &RmaHandle)> {
        let registered = self.all.get(number as usize).map_or(&[][..], |offer| &offer.registered);
        registered.iter().map(|part| (part.len(), part.handle()))
    }

    /// The partner of a link says that it has read. Returns whose offer that was. `None`: it is not
    /// one of that link.
    pub fn done(&mut self, number: u32, link: Link) -> Option<R> {
        let (_, its) = self.all.get(number as usize)?.of?;
        if its == link { self.withdraw(number) } else { None }
    }

    /// Ends an offer whatever its partner does. Its number may be that of the next offer: who
    /// withdraws while the link is there has partners name requests, and not offers.
    pub fn withdraw(&mut self, number: u32) -> Option<R> {
        let offer = self.all.get_mut(number as usize)?;
        let (request, _) = offer.of.take()?;
        offer.registered.clear();
        self.free.push(number);
        Some(request)
    }

    /// Ends all offers of a link that is no more. Returns whose they were.
    #[must_use]
    pub fn end_link(&mut self, link: Link) -> Vec<R> {
        let is_its =
            |number: &u32| self.all.get(*number as usize).and_then(|offer| offer.of).is_some_and(|(_, of)| of == link);
        let its: Vec<u32> = (0..self.all.len() as u32).filter(is_its).collect();
        its.into_iter().filter_map(|number| self.withdraw(number)).collect()
    }

    /// Returns how many are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.all.len() - self.free.len()
    }
}
