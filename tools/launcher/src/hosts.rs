//! Hosts and their slots, and which ranks each gets.

use cci_report::{UserError, while_doing};
use std::net::Ipv6Addr;
use std::path::Path;

/// A host that takes ranks.
///
/// ```
/// let hosts = cci_launcher::parse_hosts("a:2,b")?;
/// assert_eq!((hosts[0].slots, hosts[1].name.as_str(), hosts[1].slots), (2, "b", 1));
/// # Ok::<(), cci_report::UserError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it is what the command line says")]
pub struct Host {
    /// The name, as the command that starts programs there takes it.
    pub name: String,
    /// How many ranks it gets before the next host gets some.
    pub slots: u32,
}

/// Hosts between commas, each with `:` and its slots, or with one slot. Brackets stand around an
/// IPv6 address with slots: `[::1]:2`.
///
/// # Errors
///
/// A name is empty or begins with `-`, or a number of slots is none.
pub fn parse_hosts(text: &str) -> Result<Vec<Host>, UserError> {
    text.split(',').map(|host| with_slots(host, parse_host(host)?)).collect()
}

/// Hosts of a file, one a line: `NAME`, `NAME:SLOTS` or `NAME slots=SLOTS`. `#` begins a comment.
///
/// # Errors
///
/// The file cannot be read, a line is malformed, or none names a host.
pub fn parse_hostfile(path: &Path) -> Result<Vec<Host>, UserError> {
    let text =
        std::fs::read_to_string(path).map_err(while_doing(&format!("cannot read the hostfile {}", path.display())))?;
    hosts_of(&text, path)
}

/// The hosts in the text of a hostfile.
pub(crate) fn hosts_of(text: &str, path: &Path) -> Result<Vec<Host>, UserError> {
    let mut hosts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        if !line.trim().is_empty() {
            hosts.push(parse_line(line).map_err(while_doing(&format!("{}:{number}", path.display())))?);
        }
    }
    if hosts.is_empty() {
        return Err(UserError::new(format!(
            "the hostfile {} names no host; write one a line, NAME:SLOTS",
            path.display()
        )));
    }
    Ok(hosts)
}

/// A line of a file. What other launchers write there and this one does not have is refused: a
/// limit such as `max_slots=3` is no number of slots.
fn parse_line(line: &str) -> Result<Host, UserError> {
    let mut words = line.split_whitespace();
    let host = words.next().unwrap_or_default();
    let (name, mut slots) = parse_host(host)?;
    for word in words {
        let number = word.strip_prefix("slots=").unwrap_or(word);
        let is_number = number != word || number.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return Err(UserError::new(format!(
                "'{word}' of {name} is nothing that cci run has; write NAME slots=SLOTS, or NAME:SLOTS"
            )));
        }
        if slots.replace(number).is_some() {
            return Err(UserError::new(format!("{name} has slots twice; write NAME slots=SLOTS, or NAME:SLOTS")));
        }
    }
    with_slots(host, (name, slots))
}

/// A name, and the text of its slots.
type NameAndSlots<'a> = (&'a str, Option<&'a str>);

/// Splits the slots from a name: not at a colon of an IPv6 address.
fn parse_host(text: &str) -> Result<NameAndSlots<'_>, UserError> {
    if let Some((address, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        let slots = rest.strip_prefix(':');
        if !is_ipv6(address) || slots.is_none() && !rest.is_empty() {
            return Err(UserError::new(format!("'{text}' names no host; write an IPv6 address as [ADDRESS]:SLOTS")));
        }
        return Ok((address, slots));
    }
    if is_ipv6(text) {
        return Ok((text, None));
    }
    let (name, slots) = text.split_once(':').map_or((text, None), |(name, slots)| (name, Some(slots)));
    if slots.is_some_and(|slots| slots.contains(':')) {
        return Err(UserError::new(format!("'{text}' names no host; write an IPv6 address as [ADDRESS]:SLOTS")));
    }
    Ok((name, slots))
}

/// Whether a text is an IPv6 address, also one with the interface that it is of: `fe80::1%eth0`.
fn is_ipv6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    address.parse::<Ipv6Addr>().is_ok() && zone.is_none_or(|zone| !zone.is_empty() && zone.bytes().all(is_plain))
}

fn with_slots(text: &str, (name, slots): NameAndSlots<'_>) -> Result<Host, UserError> {
    // A name that begins so would be an option of ssh.
    if name.is_empty() || name.starts_with('-') {
        return Err(UserError::new(format!("'{text}' names no host; write NAME or NAME:SLOTS")));
    }
    let slots = slots.unwrap_or("1");
    match slots.parse() {
        Ok(slots) if slots > 0 => Ok(Host { name: name.into(), slots }),
        _ => Err(UserError::new(format!("'{slots}' is no number of slots of {name}; write 1 or more"))),
    }
}

/// The ranks of each host: hosts are filled in order, and around again if there are more ranks.
pub(crate) fn place(ranks: u32, hosts: &[Host]) -> Vec<Vec<u32>> {
    let mut placed = vec![Vec::new(); hosts.len()];
    let round = hosts.iter().enumerate().flat_map(|(at, host)| std::iter::repeat_n(at, host.slots as usize));
    for (rank, at) in (0..ranks).zip(round.cycle()) {
        placed[at].push(rank);
    }
    placed
}

/// Whether a name is that of the host which runs this.
pub(crate) fn is_this(name: &str) -> bool {
    name == "localhost" || rustix::system::uname().nodename().to_str() == Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_filled_in_order_and_around_again() {
        let hosts = parse_hosts("a:2,b").expect("hosts");
        assert_eq!(place(5, &hosts), [vec![0, 1, 3, 4], vec![2]]);
        assert_eq!(place(1, &hosts), [vec![0], vec![]]);
    }

    #[test]
    fn malformed_hosts_are_refused_with_the_reason() {
        let refused = |text| parse_hosts(text).expect_err("a refusal").0;
        assert!(refused("a,,b").contains("names no host"));
        assert!(refused("-oProxyCommand=x").contains("names no host"));
        assert!(refused("a:0").contains("'0' is no number of slots of a"));
        assert!(refused("a:b").contains("'b' is no number of slots of a"));
    }

    #[test]
    fn a_host_may_be_an_ipv6_address() {
        let hosts = parse_hosts("::1,[::1]:2,fe80::1%eth0,[fe80::1%eth0],a:3").expect("hosts");
        let found: Vec<_> = hosts.iter().map(|host| (host.name.as_str(), host.slots)).collect();
        assert_eq!(found, [("::1", 1), ("::1", 2), ("fe80::1%eth0", 1), ("fe80::1%eth0", 1), ("a", 3)]);
        for wrong in ["[::1", "[::1]2", "[a]:2", "a:b:2", "fe80::1%", "[fe80::1%a b]:2"] {
            let why = parse_hosts(wrong).expect_err("a refusal").0;
            assert!(why.contains("write an IPv6 address as [ADDRESS]:SLOTS"), "{wrong}: {why}");
        }
        assert!(parse_hosts("[::1]:x").expect_err("a refusal").0.contains("'x' is no number of slots of ::1"));
    }

    fn hosts_of(text: &str) -> Result<Vec<(String, u32)>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hosts");
        std::fs::write(&path, text).expect("a file");
        let hosts = parse_hostfile(&path).map_err(|why| why.0)?;
        Ok(hosts.into_iter().map(|host| (host.name, host.slots)).collect())
    }

    #[test]
    fn a_hostfile_has_three_forms_and_comments() {
        let hosts = hosts_of("# mine\na\nb:2 # two\n\nc slots=3\n::1 slots=4\n[::2]:5\n d 6\n").expect("hosts");
        let expected = [("a", 1), ("b", 2), ("c", 3), ("::1", 4), ("::2", 5), ("d", 6)];
        assert_eq!(hosts, expected.map(|(name, slots)| (name.to_owned(), slots)));
        assert!(hosts_of("# none\n").expect_err("no host").contains("names no host"));
        assert!(hosts_of("a\nb:x\n").expect_err("no number").contains("hosts:2: 'x' is no number"));
    }

    #[test]
    fn a_line_of_another_launchers_hostfile_is_refused_with_the_form() {
        for (line, word) in [
            ("a max_3", "max_3"),
            ("a max_slots=3", "max_slots=3"),
            ("a slots=2 max-slots=3", "max-slots=3"),
            ("a:2 binding=user", "binding=user"),
        ] {
            let why = hosts_of(line).expect_err("a refusal");
            assert!(why.contains(&format!("'{word}' of a is nothing that cci run has; write NAME slots=")), "{why}");
        }
        assert!(hosts_of("a:2 slots=3").expect_err("a refusal").contains("a has slots twice"));
        assert!(hosts_of("a slots=").expect_err("a refusal").contains("'' is no number of slots of a"));
    }
}
