//! The engine: one thread that serves all programs in turn, and sleeps while there is nothing.

use super::rings::{AREA_AT, len_of};
use super::serving::Serving;
use super::socket::{self, Welcome};
use crate::errors::Error;
use crate::interface::Interface;
use crate::place::{NotOpened, Place};
use crate::types::Limits;
use cci_admission::{self as admission, Admission, Arrival, BURST, Failed, Origin};
use cci_ground::may_spin;
use cci_mem::barrier::{Pairing, prepare};
use cci_mem::fork::Mark;
use cci_mem::inherited::close_in_children;
use cci_mem::segment::Segment;
use cci_mem::sync::spin;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::fmt;
use std::time::{Duration, Instant};

/// Programs at once, with those that have not said hello.
const MOST: usize = 16;
/// Turns with something to do between two looks at the sockets.
const TURNS: u32 = 256;
/// Programs that have not said hello. A hello is one packet, so bytes need no count.
const STRANGERS: admission::Limits =
    admission::Limits { places: MOST, patience: Duration::from_secs(5), bytes: usize::MAX };

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
    /// Those that have connected, by their names in `admission`.
    strangers: Vec<(u64, OwnedFd)>,
    admission: Admission<u64>,
    /// The last name that was given.
    last: u64,
    opened: Instant,
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
            admission: Admission::new(STRANGERS),
            last: 0,
            opened: Instant::now(),
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
    /// nothing to do. A program that has sent its hello by then is served too; the end waits for no
    /// other.
    ///
    /// # Errors
    ///
    /// [`Error::NotInitialised`]: this is a child of a fork, whose parent has the engine.
    pub fn serve(&mut self) -> Result<(), Error> {
        if !self.mark.is_here() {
            return Err(Error::NotInitialised);
        }
        let (mut begun, mut turns) = (Instant::now(), 0_u32);
        while self.served == 0 || self.is_needed() {
            if self.turn() {
                begun = Instant::now();
                turns = turns.wrapping_add(1);
                if turns.is_multiple_of(TURNS) {
                    self.look(Some(Duration::ZERO));
                }
            } else if may_spin(begun, Instant::now()) {
                spin();
            } else {
                self.sleep();
                begun = Instant::now();
            }
        }
        Ok(())
    }

    /// Whether a program is there, or asks to be.
    fn is_needed(&mut self) -> bool {
        if self.programs.is_empty() {
            self.meet_strangers();
        }
        !self.programs.is_empty()
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
            let of_strangers = self.admission.poll_timeout().map(|at| at.saturating_sub(self.opened.elapsed()));
            self.look([of_programs, of_strangers].into_iter().flatten().min());
        }
        self.programs.iter().for_each(Serving::disarm);
    }

    /// Waits for something at the descriptors, at most for so long, and takes what the sockets
    /// have.
    fn look(&mut self, limit: Option<Duration>) {
        // While nobody can be taken in, programs wait in the backlog.
        let may_accept = self.may_accept();
        let listener = self.listener.iter().filter(|_| may_accept);
        let mut on: Vec<BorrowedFd<'_>> = listener.map(AsFd::as_fd).collect();
        on.extend(self.strangers.iter().map(|(_, socket)| socket.as_fd()));
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

    /// Whether a newcomer may have a place, and a descriptor.
    fn may_accept(&mut self) -> bool {
        self.programs.len() < MOST && self.admission.may_accept(self.opened.elapsed())
    }

    /// Takes in programs that have come and have said hello.
    fn meet_strangers(&mut self) {
        // Who has said hello is served before newcomers need room.
        let names: Vec<u64> = self.strangers.iter().map(|(name, _)| *name).collect();
        for name in names {
            self.hear(name);
        }
        while let Some(late) = self.admission.poll_late(self.opened.elapsed()) {
            self.end(late);
        }
        for _ in 0..BURST {
            if !self.may_accept() || !self.accept() {
                break;
            }
        }
    }

    /// Accepts one program. False: nobody is to be accepted now.
    fn accept(&mut self) -> bool {
        let Some(listener) = &self.listener else { return false };
        let now = self.opened.elapsed();
        // Programs and strangers are no more than `MOST` together.
        self.admission.set_places(MOST.saturating_sub(self.programs.len()));
        let socket = match socket::accept(listener) {
            Ok(Some(socket)) => socket,
            // One of another user takes no place.
            Ok(None) => return true,
            Err(why) => {
                return match self.admission.handle_failed_accept(now, &why.into()) {
                    Failed::Again => true,
                    Failed::Later => false,
                    Failed::Close(name) => {
                        self.hear(name);
                        self.end(name);
                        true
                    }
                };
            }
        };
        close_in_children(&socket);
        self.last += 1;
        let name = self.last;
        match self.admission.handle_arrival(now, name, Origin::Here) {
            Arrival::Admitted => {}
            Arrival::Replaces(other) => {
                if self.hear(other) {
                    // It was served just now, and has the place. The newcomer asks again.
                    self.admission.remove(&name);
                    return true;
                }
                self.end(other);
            }
            Arrival::Refused => return true,
        }
        self.strangers.push((name, socket));
        self.hear(name);
        true
    }

    /// Reads what a stranger has sent. True: it was a hello, and is answered.
    fn hear(&mut self, name: u64) -> bool {
        let Some((_, socket)) = self.strangers.iter().find(|(of, _)| *of == name) else { return false };
        let Some(taken) = socket::take_hello(socket) else { return false };
        let Some(socket) = self.end(name) else { return false };
        match taken {
            Ok((hello, segment)) => {
                self.take_in(socket, hello, segment);
                true
            }
            Err(why) => {
                if why == Errno::PROTO {
                    // A program that only lost its connection would come again and again.
                    socket::send_welcome(&socket, &Welcome { pairing: self.pairing, answer: Err(Error::Failed) });
                }
                false
            }
        }
    }

    /// Forgets a stranger.
    fn end(&mut self, name: u64) -> Option<OwnedFd> {
        self.admission.remove(&name);
        let at = self.strangers.iter().position(|(of, _)| *of == name)?;
        Some(self.strangers.swap_remove(at).1)
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
            self.strangers.drain(..).for_each(|(_, socket)| std::mem::forget(socket));
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
