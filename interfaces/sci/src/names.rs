//! The names of this host for other hosts (`docs/design/sci-mirror.md`, Finding a node of another
//! host).

use crate::claims::{Membership, Named, Owner, Until};
use crate::errors::Error;
use crate::lookups;
use crate::nodes::Place;
use crate::question::{LEN, Question};
use cci_mem::descriptors;
use cci_mem::inherited::close_in_children;
use cci_mem::lookup::{Lookup, LookupError, Wait, by_system};
use cci_mem::quiet_thread;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseport};
use rustix::net::{AddressFamily, SocketType, bind};
use std::io::{Error as IoError, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The pause before a question is asked again.
const AGAIN: Duration = Duration::from_millis(50);
/// How long a host that does not answer is asked, while this process runs; and for members of a
/// group.
const REACH: Duration = Duration::from_secs(5);
const GROUP_REACH: Duration = Duration::from_secs(1);

/// A socket that all processes of this user may have at once.
fn socket(port: u16) -> Result<OwnedFd, Errno> {
    let of = |family| {
        let socket = descriptors::socket(family, SocketType::DGRAM)?;
        close_in_children(&socket);
        set_socket_reuseport(&socket, true)?;
        Ok(socket)
    };
    let both = of(AddressFamily::INET6).and_then(|socket: OwnedFd| {
        set_ipv6_v6only(&socket, false)?;
        bind(&socket, &SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0))?;
        Ok(socket)
    });
    match both {
        Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) => {
            let socket = of(AddressFamily::INET)?;
            bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
            Ok(socket)
        }
        other => other,
    }
}

/// Answers other hosts until it is dropped, on a thread of its own.
pub(crate) struct Names {
    stop: std::sync::Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Names {
    pub(crate) fn serve(port: u16) -> std::io::Result<Self> {
        let socket = UdpSocket::from(socket(port)?);
        let stop = std::sync::Arc::new(descriptors::eventfd(0)?);
        let stopped = std::sync::Arc::clone(&stop);
        let thread = quiet_thread::spawn("cci-sci-names", quiet_thread::STACK, move || {
            lookups::serve(&socket, &stopped);
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // It runs nothing of the program.
            let _ = thread.join();
        }
    }
}

/// Asks once, from a new port.
fn ask_once<R>(
    address: SocketAddr,
    question: Question,
    parse: impl Fn(&[u8]) -> Option<R>,
    limit: Duration,
) -> std::io::Result<Result<(Option<R>, u32), Error>> {
    let own: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = descriptors::udp(own)?;
    socket.connect(address)?;
    socket.send(&question.emit())?;
    let begun = Instant::now();
    let mut bytes = [0; LEN];
    loop {
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let len = socket.recv(&mut bytes)?;
        if let Some(answer) = question.read(&bytes[..len], &parse) {
            return Ok(answer);
        }
    }
}

/// The address of a place.
fn address_of(place: &Place, lookup: Lookup, (reach, until): (Duration, Until<'_>)) -> Result<SocketAddr, Error> {
    let wait = Wait { limit: reach, deadline: until.deadline, is_over: until.is_over };
    let found = wait.addresses_by(lookup, &place.host, place.port).map_err(|why| match why {
        LookupError::NoThread(_) => Error::System,
        LookupError::Cancelled => Error::Cancelled,
        LookupError::TimedOut if until.deadline.is_some_and(|deadline| deadline <= Instant::now()) => Error::Timeout,
        LookupError::TimedOut | LookupError::Failed(_) => Error::NodeNotResponding,
    })?;
    found.first().copied().ok_or(Error::NodeNotResponding)
}

/// Asks a host who has claimed a name there. `Ok(None)`: nobody.
fn ask<R>(
    place: &Place,
    (node, what): (u32, Option<Named>),
    parse: impl Fn(&[u8]) -> Option<R>,
    (reach, until): (Duration, Until<'_>),
) -> Result<(Option<R>, u32), Error> {
    let address = address_of(place, by_system, (reach, until))?;
    let mut waited = Duration::ZERO;
    loop {
        let mut cookie = [0; 8];
        // So few bytes come whole.
        rustix::rand::getrandom(&mut cookie, rustix::rand::GetRandomFlags::empty()).map_err(|_| Error::System)?;
        let question = Question { cookie: u64::from_ne_bytes(cookie), node, what };
        let begun = Instant::now();
        let left = until.deadline.map(|deadline| deadline.saturating_duration_since(begun));
        let pause = left.map_or(AGAIN, |left| AGAIN.min(left));
        match ask_once(address, question, &parse, pause) {
            Ok(answer) => return answer,
            // Nobody has the port.
            Err(why) if why.kind() == ErrorKind::ConnectionRefused => return Ok((None, 0)),
            Err(why) if is_final(&why) => return Err(Error::System),
            Err(_) => {}
        }
        if until.is_over() {
            return Err(Error::Cancelled);
        }
        if left.is_some_and(|left| begun.elapsed() >= left) {
            return Err(Error::Timeout);
        }
        // A route that is missing is reported at once.
        std::thread::sleep(pause.saturating_sub(begun.elapsed()));
        // While this process was stopped an answer may have come too late for its question.
        waited += begun.elapsed().min(2 * AGAIN);
        if waited >= reach {
            return Err(Error::NodeNotResponding);
        }
    }
}

/// Whether asking again is of no use.
fn is_final(why: &IoError) -> bool {
    matches!(Errno::from_io_error(why), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// As [`crate::claims::find`], on another host.
pub(crate) fn find(place: &Place, node: u32, what: Named, until: Until<'_>) -> Result<Option<Owner>, Error> {
    ask(place, (node, Some(what)), Owner::parse, (REACH, until)).map(|(owner, _)| owner)
}

/// Asks a host for the first member of a group from a place on, and how many before it are mute.
pub(crate) fn find_member(
    place: &Place,
    (group, at): (u32, u32),
    deadline: Option<Instant>,
) -> Result<(Option<Membership>, u32), Error> {
    ask(place, (0, Some(Named::Member(group, at))), Membership::parse, (GROUP_REACH, &deadline.into()))
}

/// Whether a host can be reached.
pub(crate) fn probe(place: &Place, node: u32) -> Result<(), Error> {
    let limit = Instant::now().checked_add(Duration::from_secs(1));
    match ask(place, (node, None), Owner::parse, (REACH, &limit.into())) {
        Err(Error::Timeout) => Err(Error::NodeNotResponding),
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::{self, Limit};
    use crate::question::Answer;

    fn place(port: u16) -> Place {
        Place { host: "127.0.0.1".to_owned(), port, is_here: false }
    }

    /// A port that nobody has.
    fn port() -> u16 {
        UdpSocket::bind("[::]:0").and_then(|socket| socket.local_addr()).expect("a port").port()
    }

    #[test]
    fn a_name_is_looked_up_within_the_limit_though_the_name_servers_are_silent() {
        fn silent(_: &str, _: u16) -> std::io::Result<Vec<SocketAddr>> {
            std::thread::sleep(Duration::from_secs(60));
            Ok(Vec::new())
        }
        let named = Place { host: "a-host".to_owned(), ..place(7) };
        let short = Duration::from_millis(100);
        let ask = |reach, until: &Limit<'_>| {
            let begun = Instant::now();
            let found = address_of(&named, silent, (reach, until));
            assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
            found
        };
        assert_eq!(ask(REACH, &Limit::from(Instant::now() + short)), Err(Error::Timeout));
        assert_eq!(ask(short, &Limit::from(None)), Err(Error::NodeNotResponding));
        assert_eq!(ask(REACH, &Limit { deadline: None, is_over: Some(&|| true) }), Err(Error::Cancelled));
        assert_eq!(address_of(&place(7), silent, (REACH, &None.into())), Ok(([127, 0, 0, 1], 7).into()));
    }

    #[test]
    fn several_processes_answer_at_one_port_and_nobody_at_a_closed_one() {
        let (port, node) = (port(), 0x7100_0000 | std::process::id());
        let limit = || Limit::from(Instant::now() + Duration::from_secs(20));
        let what = Named::Segment(3);
        assert_eq!(find(&place(port), node, what, &limit()), Ok(None), "nobody has the port");
        assert_eq!(probe(&place(port), node), Ok(()), "its host is there");
        let first = Names::serve(port).expect("a port");
        let second = Names::serve(port).expect("the same port");
        for names in [first, second] {
            assert_eq!(find(&place(port), node, what, &limit()), Ok(None), "nobody has the name");
            let socket = claims::claim(node, what).expect("free");
            let owner = Owner { number: 7, uri: "x://y".into() };
            let found = std::thread::scope(|scope| {
                let finding = scope.spawn(|| find(&place(port), node, what, &limit()));
                while !finding.is_finished() {
                    let _ = claims::introduce(&socket, &owner.emit());
                    std::thread::yield_now();
                }
                finding.join().expect("no panic")
            });
            assert_eq!(found, Ok(Some(owner)));
            // The other one goes on.
            drop(names);
        }
    }

    #[test]
    fn who_does_not_answer_is_asked_until_the_time_is_over() {
        let mute = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let place = place(mute.local_addr().expect("an address").port());
        let limit = Limit::from(Instant::now() + Duration::from_millis(120));
        assert_eq!(find(&place, 4, Named::Interrupt(1), &limit), Err(Error::Timeout));
        mute.set_nonblocking(true).expect("a socket");
        let questions = std::iter::from_fn(|| mute.recv_from(&mut [0; LEN]).ok());
        assert!(questions.map(|(_, from)| from).collect::<std::collections::BTreeSet<_>>().len() >= 2);
    }

    #[test]
    fn a_question_without_a_limit_is_asked_again() {
        let other = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let place = place(other.local_addr().expect("an address").port());
        let answering = std::thread::spawn(move || {
            other.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
            let mut bytes = [0; LEN];
            other.recv(&mut bytes).expect("a question, which is lost");
            let (_, from) = other.recv_from(&mut bytes).expect("the question again");
            let cookie = Question::parse(&bytes).expect("a question").cookie;
            other.send_to(&Answer::HERE.emit(cookie).expect("short"), from).expect("room");
        });
        assert_eq!(find(&place, 4, Named::Interrupt(1), &Limit::from(None)), Ok(None));
        answering.join().expect("no panic");
    }

    /// The first member of a group is stopped: it says nothing.
    #[test]
    fn a_member_that_is_stopped_hides_no_other() {
        let (port, group) = (port(), fastrand::u32(..));
        let _names = Names::serve(port).expect("a port");
        let _stopped = claims::claim(0, Named::Member(group, 0)).expect("free");
        let second = claims::claim(0, Named::Member(group, 1)).expect("free");
        let memory = cci_mem::segment::Segment::create("test", 4096).expect("memory");
        let owner = Owner { number: 7, uri: "x://y".into() };
        let told = claims::introduction_of_member((3, 4096), (true, 1), &owner.emit());
        let limit = || Instant::now().checked_add(Duration::from_secs(20));
        let (found, members) = std::thread::scope(|scope| {
            let finding = scope.spawn(|| find_member(&place(port), (group, 0), limit()));
            // What is mute is waited for until the limit.
            let here = scope.spawn(|| claims::members(group, 0, AGAIN, None));
            while !(finding.is_finished() && here.is_finished()) {
                let _ = claims::introduce_member(&second, &told, memory.file_of().expect("a file"));
                std::thread::yield_now();
            }
            (finding.join().expect("no panic"), here.join().expect("no panic").expect("asked"))
        });
        let member = Membership { memory: 3, len: 4096, is_published: true, place: 1, owner };
        assert_eq!(found, Ok((Some(member.clone()), 1)));
        assert_eq!((members.found.len(), &members.found[0].0), (1, &member));
        assert_eq!((members.mute, members.free), (vec![0], Some(2)));
    }
}
