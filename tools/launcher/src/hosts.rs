//! Hosts and their slots, and which ranks each gets.

use cci_report::{UserError, while_doing};
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

/// Hosts between commas, each with `:` and its slots, or with one slot.
///
/// # Errors
///
/// A name is empty or begins with `-`, or a number of slots is none.
pub fn parse_hosts(text: &str) -> Result<Vec<Host>, UserError> {
    text.split(',').map(parse_host).collect()
}

/// Hosts of a file, one a line: `NAME`, `NAME:SLOTS` or `NAME slots=SLOTS`. `#` begins a comment.
///
/// # Errors
///
/// The file cannot be read, a line is malformed, or none names a host.
pub fn parse_hostfile(path: &Path) -> Result<Vec<Host>, UserError> {
    let text =
        std::fs::read_to_string(path).map_err(while_doing(&format!("cannot read the hostfile {}", path.display())))?;
    let mut hosts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            let host = parse_host(&line.split_whitespace().collect::<Vec<_>>().join(":").replace("slots=", ""));
            hosts.push(host.map_err(while_doing(&format!("{}:{number}", path.display())))?);
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

fn parse_host(text: &str) -> Result<Host, UserError> {
    let (name, slots) = text.split_once(':').unwrap_or((text, "1"));
    // A name that begins so would be an option of ssh.
    if name.is_empty() || name.starts_with('-') {
        return Err(UserError::new(format!("'{text}' names no host; write NAME or NAME:SLOTS")));
    }
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
    fn a_hostfile_has_three_forms_and_comments() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hosts");
        std::fs::write(&path, "# mine\na\nb:2 # two\n\nc slots=3\n").expect("a file");
        let hosts = parse_hostfile(&path).expect("hosts");
        let found: Vec<_> = hosts.iter().map(|host| (host.name.as_str(), host.slots)).collect();
        assert_eq!(found, [("a", 1), ("b", 2), ("c", 3)]);
        std::fs::write(&path, "# none\n").expect("a file");
        assert!(parse_hostfile(&path).expect_err("no host").0.contains("names no host"));
        std::fs::write(&path, "a\nb:x\n").expect("a file");
        assert!(parse_hostfile(&path).expect_err("no number").0.contains("hosts:2: 'x' is no number"));
    }
}
