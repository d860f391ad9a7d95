//! Ports of the endpoints of a run: the key `port` may name one port, or a range of which each
//! endpoint takes the first that is free.

use cci_report::UserError;

/// The key that has a range.
const KEY: &str = "port";

/// The first and the last port of the range that these keys name; none where they name one port or
/// no port.
///
/// # Errors
///
/// What is meant as a range is none.
fn range(keys: &[(String, String)]) -> Result<Option<[u16; 2]>, UserError> {
    let found = keys.iter().find(|(key, _)| key == KEY).and_then(|(_, value)| Some((value, value.split_once('-')?)));
    let Some((value, (first, last))) = found else { return Ok(None) };
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if 0 < first && 0 < last => Ok(Some([first, last])),
        _ => Err(UserError(format!("{value:?} is no range of ports; write --key port=5000-5003, or one port"))),
    }
}

/// Opens an endpoint at the first port of the range that is free; `open` has the keys with one
/// port.
///
/// # Errors
///
/// Every port is in use, or another thing stands in the way.
pub(crate) fn open_in_range<E>(
    keys: &[(String, String)],
    mut open: impl FnMut(&[(String, String)]) -> Result<E, UserError>,
) -> Result<E, UserError> {
    let Some([first, last]) = range(keys)? else { return open(keys) };
    let ports = first.min(last)..=first.max(last);
    let mut ports: Vec<u16> = ports.collect();
    if first > last {
        ports.reverse();
    }
    for port in ports {
        let of_port = |(key, value): &(String, String)| {
            let value = if key == KEY { port.to_string() } else { value.clone() };
            (key.clone(), value)
        };
        match open(&keys.iter().map(of_port).collect::<Vec<_>>()) {
            Err(why) if is_in_use(&why) => {}
            opened => return opened,
        }
    }
    Err(UserError(format!("cannot open an endpoint: each port from {first} to {last} is in use; give other ports")))
}

/// The same ports, tried from the other end: two ends of a run that share a range then leave each
/// other's ports alone.
pub(crate) fn from_the_end(keys: &[(String, String)]) -> Vec<(String, String)> {
    let turned = |(key, value): &(String, String)| match value.split_once('-').filter(|_| key == KEY) {
        Some((first, last)) => (key.clone(), format!("{last}-{first}")),
        None => (key.clone(), value.clone()),
    };
    keys.iter().map(turned).collect()
}

/// Whether an endpoint was not opened because its port is taken.
pub(crate) fn is_in_use(why: &UserError) -> bool {
    why.0.contains("is in use")
}

/// Whether an endpoint was not opened because this process or the host has no descriptor left.
pub(crate) fn is_out_of_descriptors(why: &UserError) -> bool {
    // EMFILE and ENFILE.
    why.0.contains("(os error 24)") || why.0.contains("(os error 23)")
}

/// Adds how many ports a run needs, where a port was in use and the run opens several endpoints on
/// this host.
pub(crate) fn with_number(why: UserError, ends: u32) -> UserError {
    if ends < 2 || !is_in_use(&why) {
        return why;
    }
    let last = 5000 + ends - 1;
    UserError(format!("{why}. This run needs {ends} ports on this host: give as many, such as --key port=5000-{last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(port: &str) -> Vec<(String, String)> {
        vec![("ip".into(), "127.0.0.1".into()), (KEY.into(), port.into())]
    }

    #[test]
    fn a_range_has_two_ends() {
        assert_eq!(range(&keys("5000-5003")), Ok(Some([5000, 5003])));
        assert_eq!(range(&from_the_end(&keys("5000-5003"))), Ok(Some([5003, 5000])));
        assert_eq!(from_the_end(&keys("5000")), keys("5000"));
        assert_eq!(range(&keys("5000")), Ok(None));
        assert_eq!(range(&[]), Ok(None));
        for text in ["0-5", "5-", "-5", "a-b", "5000-70000"] {
            assert!(range(&keys(text)).unwrap_err().0.contains("port=5000-5003"), "{text}");
        }
    }

    #[test]
    fn the_first_free_port_is_taken_and_other_errors_end_the_search() {
        let mut tried = Vec::new();
        let opened = open_in_range(&keys("7-9"), |keys| {
            tried.push(keys[1].1.clone());
            if keys[1].1 == "7" { Err(UserError::new("port 7 is in use")) } else { Ok(keys[0].1.clone()) }
        });
        assert_eq!((opened, tried), (Ok("127.0.0.1".into()), vec!["7".into(), "8".to_owned()]));
        let all = open_in_range(&keys("7-9"), |_| Err::<(), _>(UserError::new("it is in use"))).unwrap_err();
        assert!(all.0.contains("from 7 to 9 is in use"), "{all}");
        let last = open_in_range(&from_the_end(&keys("7-9")), |keys| Ok(keys[1].1.clone()));
        assert_eq!(last, Ok("9".into()));
        let other = open_in_range(&keys("7-9"), |_| Err::<(), _>(UserError::new("no memory"))).unwrap_err();
        assert_eq!(other.0, "no memory");
    }

    #[test]
    fn who_needs_several_ports_is_told_how_many() {
        let told = |ends| with_number(UserError::new("port 5000 is in use"), ends).0;
        assert!(told(4).contains("needs 4 ports") && told(4).contains("port=5000-5003"), "{}", told(4));
        assert_eq!(told(1), "port 5000 is in use");
        assert_eq!(with_number(UserError::new("no memory"), 4).0, "no memory");
    }
}
