//! Names of hosts, looked up within a limit ([`cci_mem::lookup`]).

use cci_mem::lookup::{Lookup, Wait, by_system};
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::time::Instant;

/// The addresses of a host.
pub(crate) fn addresses(host: &str, port: u16, deadline: Instant) -> std::io::Result<Vec<SocketAddr>> {
    addresses_by(by_system, host, port, deadline)
}

fn addresses_by(lookup: Lookup, host: &str, port: u16, deadline: Instant) -> std::io::Result<Vec<SocketAddr>> {
    Ok(Wait::from(deadline).addresses_by(lookup, host, port)?)
}

/// The addresses of `HOST:PORT`.
pub(crate) fn addresses_of(text: &str, deadline: Instant) -> std::io::Result<Vec<SocketAddr>> {
    let wrong = || Error::new(ErrorKind::InvalidInput, "invalid socket address; write HOST:PORT");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    addresses(host, port.parse().map_err(|_| wrong())?, deadline)
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
        let why = addresses_by(silent, "host", 1, begin + Duration::from_millis(100)).expect_err("nobody answers");
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
        assert_eq!(why.kind(), ErrorKind::TimedOut);
        assert!(why.to_string().contains("check the name servers"), "{why}");
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
