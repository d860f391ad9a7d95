//! Names of sockets that other processes hold. A child of `fork` holds copies until it first runs
//! and closes them. One that was forked without the handlers of `fork` keeps them.

use rustix::io::Errno;
use std::cell::Cell;
use std::fs;
use std::time::Duration;

/// The pauses before a name that is in use is tried again: 50 ms together, for all names of an
/// endpoint.
const PAUSES: [Duration; 7] = {
    let millis = Duration::from_millis;
    [millis(1), millis(1), millis(2), millis(4), millis(8), millis(16), millis(18)]
};

thread_local! {
    /// How many pauses the endpoint has had that this thread opens.
    static PAUSED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Opens an endpoint by `open`, in which all calls of [`retry_in_use`] together wait for 50 ms: a
/// child that holds several names of this process gives them up at once.
///
/// ```
/// use rustix::io::Errno;
///
/// let mut tries = 0;
/// cci_transport::within_one_open(|| {
///     for _ in 0..100 {
///         let bound: Result<(), _> = cci_transport::retry_in_use(|| {
///             tries += 1;
///             Err(Errno::ADDRINUSE)
///         });
///         assert_eq!(bound, Err(Errno::ADDRINUSE));
///     }
/// });
/// assert!(tries < 110, "after 50 ms each name is tried once");
/// ```
pub fn within_one_open<T>(open: impl FnOnce() -> T) -> T {
    struct Outer(Option<usize>);
    impl Drop for Outer {
        fn drop(&mut self) {
            PAUSED.set(self.0);
        }
    }
    let outer = Outer(PAUSED.get());
    PAUSED.set(outer.0.or(Some(0)));
    let opened = open();
    // Those of an open within another one are that one's.
    if outer.0.is_some() {
        std::mem::forget(outer);
    }
    opened
}

/// The next pause of the endpoint that this thread opens, or of the name alone, which has had so
/// many.
fn next_pause(of_name: &mut usize) -> Option<Duration> {
    let paused = PAUSED.get().unwrap_or(*of_name);
    let pause = PAUSES.get(paused).copied()?;
    if PAUSED.get().is_some() {
        PAUSED.set(Some(paused + 1));
    } else {
        *of_name = paused + 1;
    }
    Some(pause)
}

/// Binds a name by `bind`, and tries it again for 50 ms while it is in use: a child of `fork` may
/// hold it that has not run yet. Blocks the thread for so long. Within [`within_one_open`] all
/// names share the 50 ms.
///
/// # Errors
///
/// Those of `bind`.
///
/// ```
/// use rustix::io::Errno;
///
/// let mut tries = 0;
/// let bound = cci_transport::retry_in_use(|| {
///     tries += 1;
///     if tries < 3 { Err(Errno::ADDRINUSE) } else { Ok(tries) }
/// });
/// assert_eq!(bound, Ok(3));
/// ```
pub fn retry_in_use<T, E: Copy + Into<Errno>>(mut bind: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let mut paused = 0;
    loop {
        match bind() {
            Err(error) if error.into() == Errno::ADDRINUSE => match next_pause(&mut paused) {
                Some(pause) => std::thread::sleep(pause),
                None => return Err(error),
            },
            done => return done,
        }
    }
}

/// Whether a child of this process has a socket that a table of the system (`/proc/net/udp`) lists.
/// `inode` returns the socket's inode from the columns of its line, and `None` for other lines.
/// False where the system does not tell.
#[must_use]
pub fn child_holds(table: &str, inode: impl Fn(&[&str]) -> Option<u64>) -> bool {
    let Ok(table) = fs::read_to_string(table) else { return false };
    let found = table.lines().find_map(|line| inode(&line.split_whitespace().collect::<Vec<_>>()));
    found.is_some_and(|inode| children().any(|child| has_socket(child, inode)))
}

/// As [`child_holds`], of the socket that is bound to this port, in a table of the kind of
/// `/proc/net/udp` and `/proc/net/tcp6`.
#[must_use]
pub fn child_holds_port(table: &str, port: u16) -> bool {
    let end = format!(":{port:04X}");
    child_holds(table, |columns| match columns {
        [_, local, _, _, _, _, _, _, _, inode, ..] if local.ends_with(&end) => inode.parse().ok(),
        _ => None,
    })
}

fn children() -> impl Iterator<Item = u32> {
    let own = std::process::id();
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    numbers
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(move |child| parent_of(*child) == Some(own))
}

fn parent_of(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may contain anything. State and parent follow it.
    status.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn has_socket(process: u32, inode: u64) -> bool {
    let name = format!("socket:[{inode}]");
    let links = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    links.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|link| link.as_os_str() == name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_stays_in_use_is_given_up_and_other_errors_are_no_reason_to_wait() {
        let tries = |error: Errno| {
            let mut tries = 0;
            let outcome: Result<(), _> = retry_in_use(|| {
                tries += 1;
                Err(error)
            });
            assert_eq!(outcome, Err(error));
            tries
        };
        assert_eq!([tries(Errno::ADDRINUSE), tries(Errno::ACCESS)], [PAUSES.len() + 1, 1]);
        assert_eq!(PAUSES.iter().sum::<Duration>(), Duration::from_millis(50));
    }

    #[test]
    fn all_names_of_an_open_are_waited_for_as_long_as_one() {
        let (tries, refuse) = (Cell::new(0), || -> Result<(), _> { Err(Errno::ADDRINUSE) });
        let bind = || {
            let bound = retry_in_use(|| {
                tries.set(tries.get() + 1);
                refuse()
            });
            assert_eq!(bound, refuse());
            tries.take()
        };
        let of_both = within_one_open(|| [bind(), within_one_open(bind), bind()]);
        assert_eq!(of_both, [PAUSES.len() + 1, 1, 1]);
        assert_eq!(within_one_open(bind), PAUSES.len() + 1, "the next endpoint has its own");
        let panicked = std::panic::catch_unwind(|| within_one_open(|| panic!("within an open")));
        assert!(panicked.is_err() && PAUSED.get().is_none());
        assert_eq!([bind(), bind()], [PAUSES.len() + 1; 2], "outside of an open each name has its own");
    }

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent_of(std::process::id()), Some(std::os::unix::process::parent_id()));
        assert_eq!(parent_of(u32::MAX), None);
    }

    #[test]
    fn a_socket_is_found_by_its_number() {
        use std::os::fd::AsRawFd;
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let link = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).expect("a link");
        let inode = link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        assert!(has_socket(std::process::id(), inode.expect("a number")));
        assert!(!has_socket(std::process::id(), 1));
    }
}
