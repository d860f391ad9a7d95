//! Names of hosts, looked up within a limit.
//!
//! The system's lookup takes as long as a silent name server lets it, and cannot be called back. So
//! a thread of its own makes it, which nobody waits for beyond the limit. An address that is
//! written as one needs no lookup, and no thread.

use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

/// Looks a name up, with a port.
type Lookup = fn(&str, u16) -> std::io::Result<Vec<SocketAddr>>;

fn by_system(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}

/// The addresses of a host.
pub(crate) fn addresses(host: &str, port: u16, deadline: Instant) -> std::io::Result<Vec<SocketAddr>> {
    match host.parse::<IpAddr>() {
        Ok(address) => Ok(vec![(address, port).into()]),
        Err(_) => within(by_system, host, port, deadline),
    }
}

/// The addresses of `HOST:PORT`.
pub(crate) fn addresses_of(text: &str, deadline: Instant) -> std::io::Result<Vec<SocketAddr>> {
    let wrong = || Error::new(ErrorKind::InvalidInput, "invalid socket address; write HOST:PORT");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    addresses(host, port.parse().map_err(|_| wrong())?, deadline)
}

fn within(lookup: Lookup, host: &str, port: u16, deadline: Instant) -> std::io::Result<Vec<SocketAddr>> {
    let ((end, ended), host) = (channel(), host.to_owned());
    let run = move || {
        // Whoever asked may have gone.
        let _ = end.send(lookup(&host, port));
    };
    std::thread::Builder::new().name("cci-job-names".into()).spawn(run)?;
    match ended.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(found) => found,
        Err(RecvTimeoutError::Timeout) => {
            Err(Error::new(ErrorKind::TimedOut, "no name server answers within the limit; check the name servers"))
        }
        Err(RecvTimeoutError::Disconnected) => Err(Error::other("the lookup of the name has failed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_lookup_ends_at_its_limit_though_the_name_servers_are_silent() {
        fn silent(_: &str, _: u16) -> std::io::Result<Vec<SocketAddr>> {
            std::thread::sleep(Duration::from_secs(60));
            Ok(Vec::new())
        }
        let begin = Instant::now();
        let why = within(silent, "host", 1, begin + Duration::from_millis(100)).expect_err("nobody answers");
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
        assert_eq!(why.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn addresses_are_read_without_a_lookup() {
        // No lookup would have an answer in no time.
        let now = Instant::now();
        assert_eq!(addresses_of("127.0.0.1:7", now).ok(), Some(vec![([127, 0, 0, 1], 7).into()]));
        assert_eq!(addresses_of("[::1]:7", now).ok(), "[::1]:7".parse().ok().map(|address| vec![address]));
        for wrong in ["x", "", "127.0.0.1:", "127.0.0.1:70000"] {
            assert!(addresses_of(wrong, now).is_err(), "{wrong}");
        }
    }
}
