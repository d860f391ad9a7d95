//! The engine: one thread that serves all programs in turn, and sleeps while there is nothing.

use super::rings::{AREA_AT, len_of};
use super::serving::Serving;
use super::socket::{self, Welcome};
use crate::errors::Error;
use crate::interface::Interface;
use crate::place::{NotOpened, Place};
use crate::types::Limits;
use cci_mem::barrier::{Pairing, prepare};
use cci_mem::fork::Mark;
use cci_mem::inherited::close_in_children;
use cci_mem::segment::Segment;
use cci_mem::sync::spin;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::fmt;
use std::time::{Duration, Instant};

/// Programs at once, with those that have not said hello.
const MOST: usize = 16;
/// How long the engine looks before it sleeps.
const SPIN: Duration = Duration::from_micros(20);
/// Turns with something to do between two looks at the sockets.
const TURNS: u32 = 256;
/// How long a program may take to say hello.
const PATIENCE: Duration = Duration::from_secs(5);

/// Gives the place of a program: its endpoint, and the number that its process asks for.
type Places = Box<dyn FnMut(Option<u32>) -> Result<Place, NotOpened> + Send>;

/// An engine for programs of this host and user. It has an interface for each, which ends when the
/// program does.
///
/// # Example
///
/// ```
/// use cci_portals::{Place, shared::Engine};
///
/// let device = cci::Context::new()?.default_device()?.clone();
/// let name = format!("an example {}", std::process::id());
/// let engine = Engine::open(&name, move |pid| Place::by_rule(&device, pid))?;
/// assert_eq!(engine.programs(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine {
    mark: Mark,
    /// Always there, but for the drop in a child.
    listener: Option<OwnedFd>,
    places: Places,
    pairing: Pairing,
    strangers: Vec<(OwnedFd, Instant)>,
    programs: Vec<Serving>,
    /// Programs that have ever been served.
    served: u64,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({} programs)", self.programs.len())
    }
}

impl Engine {
    /// An engine that programs of this user find by this name. `places` opens the endpoint of a
    /// program, in the thread that serves.
    ///
    /// # Errors
    ///
    /// Another engine has the name, or the system has no descriptor.
    pub fn open(
        name: &str,
        places: impl FnMut(Option<u32>) -> Result<Place, NotOpened> + Send + 'static,
    ) -> Result<Self, cci::OpenError> {
        let system = |source| cci::OpenError::system("cannot listen for programs of an engine", source);
        let mark = Mark::new().map_err(system)?;
        let listener = socket::listen_at(name).map_err(system)?;
        close_in_children(&listener);
        let (strangers, programs) = (Vec::new(), Vec::new());
        Ok(Self {
            mark,
            listener: Some(listener),
            places: Box::new(places),
            pairing: prepare(),
            strangers,
            programs,
            served: 0,
        })
    }

    /// How many programs it has now.
    #[must_use]
    pub fn programs(&self) -> usize {
        self.programs.len()
    }

    /// Serves until programs have come and the last one has gone. Blocks; sleeps while there is
    /// nothing to do.
    ///
    /// # Errors
    ///
    /// [`Error::NotInitialised`]: this is a child of a fork, whose parent has the engine.
    pub fn serve(&mut self) -> Result<(), Error> {
        if !self.mark.is_here() {
            return Err(Error::NotInitialised);
        }
        let (mut begun, mut turns) = (Instant::now(), 0_u32);
        while self.served == 0 || !self.programs.is_empty() || !self.strangers.is_empty() {
            if self.turn() {
                begun = Instant::now();
                turns = turns.wrapping_add(1);
                if turns.is_multiple_of(TURNS) {
                    self.look(Some(Duration::ZERO));
                }
            } else if begun.elapsed() < SPIN && !cci::is_oversubscribed() {
                spin();
            } else {
                self.sleep();
                begun = Instant::now();
            }
        }
        Ok(())
    }

    /// A turn of each program. Those that have failed or break the rules end.
    fn turn(&mut self) -> bool {
        let mut has_worked = false;
        self.programs.retain_mut(|program| match program.turn() {
            Ok(worked) => {
                has_worked |= worked;
                true
            }
            Err(_) => {
                has_worked = true;
                false
            }
        });
        has_worked
    }

    fn sleep(&mut self) {
        self.programs.iter().for_each(Serving::arm);
        // One fence for all; a heavy one serves those who have agreed on light ones.
        let is_asymmetric = self.programs.iter().any(|program| program.pairing() == Pairing::Asymmetric);
        (if is_asymmetric { Pairing::Asymmetric } else { Pairing::Symmetric }).heavy();
        if !self.programs.iter_mut().any(Serving::has_work) {
            let of_programs = self.programs.iter().filter_map(Serving::left).min();
            let oldest = self.strangers.iter().map(|(_, since)| PATIENCE.saturating_sub(since.elapsed())).min();
            self.look([of_programs, oldest].into_iter().flatten().min());
        }
        self.programs.iter().for_each(Serving::disarm);
    }

    /// Waits for something at the descriptors, at most for so long, and takes what the sockets
    /// have.
    fn look(&mut self, limit: Option<Duration>) {
        // Nobody is taken in while there is no place.
        let has_place = self.strangers.len() + self.programs.len() < MOST;
        let listener = self.listener.iter().filter(|_| has_place);
        let mut on: Vec<BorrowedFd<'_>> = listener.map(AsFd::as_fd).collect();
        on.extend(self.strangers.iter().map(|(socket, _)| socket.as_fd()));
        on.extend(self.programs.iter().map(|of| of.socket.as_fd()));
        // Armed for this sleep only. One that cannot be armed is closed, which its program is told.
        let sleeps = self.programs.iter().filter(|_| limit != Some(Duration::ZERO));
        let sleepers: Vec<_> = sleeps.filter_map(|of| of.endpoint().sleeper().ok()).collect();
        on.extend(sleepers.iter().map(AsFd::as_fd));
        let is_ready = socket::sleep(&on, limit);
        drop(sleepers);
        if is_ready {
            self.programs.retain_mut(|program| {
                let is_here = socket::take_wakes(&program.socket);
                // What it has said before it went is done.
                if !is_here {
                    program.finish();
                }
                is_here
            });
        }
        self.meet_strangers();
    }

    /// Takes in programs that have come and have said hello.
    fn meet_strangers(&mut self) {
        // Those of other users are closed at once. They take no place, and no more than their turn.
        for _ in self.strangers.len() + self.programs.len()..MOST {
            let Some(stranger) = self.listener.as_ref().and_then(socket::accept) else { break };
            stranger.iter().for_each(close_in_children);
            self.strangers.extend(stranger.map(|socket| (socket, Instant::now())));
        }
        for (socket, since) in std::mem::take(&mut self.strangers) {
            match socket::take_hello(&socket) {
                None if since.elapsed() < PATIENCE => self.strangers.push((socket, since)),
                None | Some(Err(_)) => {}
                Some(Ok((hello, segment))) => self.take_in(socket, hello, segment),
            }
        }
    }

    fn take_in(&mut self, socket: OwnedFd, hello: socket::Hello, segment: OwnedFd) {
        let pairing = if hello.pairing == self.pairing { self.pairing } else { Pairing::Symmetric };
        let opened = attach(segment, hello.len).and_then(|segment| {
            let place = (self.places)(hello.pid).map_err(|why| why.code())?;
            let ni = Interface::new(place, 0, Limits::default()).map_err(|why| why.code())?;
            Ok((ni.id(), ni, segment))
        });
        let answer = opened.as_ref().map(|(own, ..)| *own).map_err(|why| *why);
        socket::send_welcome(&socket, &Welcome { pairing, answer });
        if let Ok((_, ni, segment)) = opened {
            self.served += 1;
            self.programs.extend(Serving::new(socket, pairing, segment, ni));
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A child's copies were closed when it was forked, and their numbers may be of others now.
        if !self.mark.is_here() {
            std::mem::forget(self.listener.take());
            self.strangers.drain(..).for_each(|(socket, _)| std::mem::forget(socket));
            self.programs.drain(..).for_each(|program| std::mem::forget(program.socket));
        }
    }
}

/// Maps a program's segment, all of whose pages are there before the engine touches any.
fn attach(segment: OwnedFd, len: u64) -> Result<Segment, Error> {
    let len = usize::try_from(len).map_err(|_| Error::IllegalMemory)?;
    let area = len.checked_sub(AREA_AT).ok_or(Error::IllegalMemory)?;
    if len_of(area) != Some(len) {
        return Err(Error::IllegalMemory);
    }
    let mut segment = Segment::attach(segment, len).map_err(|_| Error::IllegalMemory)?;
    segment.reserve(0, len).map_err(|_| Error::NoSpace)?;
    segment.close_file();
    Ok(segment)
}
