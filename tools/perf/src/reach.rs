//! Errors about an unknown transport or an endpoint that does not answer.

use cci::{Context, Failure, Scope};
use cci_report::UserError;
use std::net::IpAddr;
use std::time::Duration;

/// How far a transport reaches, if it is in this build.
pub fn scope(transport: &str) -> Option<Scope> {
    cci::driver(transport).map(|driver| driver.scope)
}

/// No device has this transport: which there are, and the one that is meant if it resembles one.
pub(crate) fn no_transport(name: &str) -> UserError {
    let context = Context::new();
    let devices = context.as_ref().map_or(&[][..], Context::devices);
    no_transport_of(name, devices.iter().map(|device| device.transport.as_str()))
}

/// The same as an error, where `known` are the transports that devices have.
pub fn no_transport_of<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> UserError {
    let mut known: Vec<&str> = known.collect();
    known.dedup();
    if known.is_empty() {
        return UserError(format!(
            "no device has the transport {name}: there is no device at all; see CCI_CONFIG and CCI_CTP"
        ));
    }
    let meant = known.iter().map(|word| (distance(name, word), word)).min();
    let meant = meant.filter(|(distance, word)| 2 * distance <= word.len());
    let meant = meant.map_or_else(String::new, |(_, word)| format!("; did you mean {word}?"));
    let begin = if meant.is_empty() { "; " } else { " " };
    UserError(format!("no device has the transport {name}{meant}{begin}there is {}: see `cci info`", known.join(", ")))
}

/// Letters to change, add, leave out or swap with their neighbour to make one word the other.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let changed = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

/// Why an endpoint may not have answered, by its transport, and what to do.
pub fn advice(uri: &str, failure: Failure, timeout: Duration) -> String {
    advice_on(uri, failure, None, timeout)
}

/// The same where the library may have given a reason.
pub fn advice_on(uri: &str, failure: Failure, reason: Option<&str>, timeout: Duration) -> String {
    let (scheme, place) = uri.split_once("://").unwrap_or(("", uri));
    let place = place.split('?').next().unwrap_or(place);
    let (host, port) = place.rsplit_once(':').unwrap_or((place, "?"));
    let bare = host.trim_matches(['[', ']']);
    if is_unresolved(reason) {
        return format!("see that a name server answers for {host} (getent hosts {host}), or use an IP address");
    }
    let is_over = cci::driver_for_scheme(scheme).is_some_and(|driver| driver.over.is_some());
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let is_name = !is_over && bare.chars().all(is_of_name) && bare.parse::<IpAddr>().is_err();
    match (scope(scheme), failure) {
        (_, failure) if is_over && failure != Failure::TimedOut => {
            "no way leads there: start its program, and give it a port if it is on another host".into()
        }
        (Some(Scope::Host), Failure::Refused | Failure::Protocol) => {
            "its program must run on this host, as the same user as this one".into()
        }
        (Some(Scope::Host | Scope::Process), Failure::TimedOut) => {
            format!("no answer within {timeout:?}: its program must call cci_get_event and accept, or is stopped")
        }
        (_, Failure::Refused) if is_name => format!(
            "{host} is no name of a host (see getent hosts {host}), or it rejects the request or has no endpoint at \
             port {port}: correct the name, or start its program there"
        ),
        (_, Failure::Refused) => {
            format!(
                "{host} answers, but rejects the request or has no endpoint at port {port}: start its program there"
            )
        }
        (_, Failure::Protocol) => "its program must use a version of cci that understands this one".into(),
        (_, Failure::TimedOut) => {
            let (named, to) = if is_name {
                (format!("the name {host} is resolved (getent hosts {host}), that "), "ADDRESS")
            } else {
                (String::new(), bare)
            };
            let protocol = protocol(scheme);
            format!(
                "no answer within {timeout:?}: see that {named}{host} is up, that there is a route to it (ip route get {to}), that no \
                 firewall drops {protocol}port {port}, and that its program calls cci_get_event and accepts"
            )
        }
        (_, other) => other.to_string(),
    }
}

/// Whether the library says that a host's name has no address.
pub(crate) fn is_unresolved(reason: Option<&str>) -> bool {
    reason.is_some_and(|reason| reason.contains("resolved"))
}

/// The protocol of the ports of a scheme, as a firewall names it. It is left out where it is not
/// one for all.
fn protocol(scheme: &str) -> &'static str {
    match scheme {
        "sock" => "UDP ",
        "tcp" => "TCP ",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_that_resembles_one_is_told_with_it() {
        let told = |name| no_transport_of(name, ["sm", "sock", "sock"].into_iter()).0;
        assert_eq!(
            told("scok"),
            "no device has the transport scok; did you mean sock? there is sm, sock: see `cci info`"
        );
        assert_eq!(told("pigeon"), "no device has the transport pigeon; there is sm, sock: see `cci info`");
        assert!(told("sn").contains("did you mean sm?"), "{}", told("sn"));
        assert!(no_transport_of("sm", [].into_iter()).0.contains("CCI_CONFIG"));
    }

    #[test]
    fn words_differ_by_letters() {
        for (left, right, letters) in [("sock", "scok", 1), ("sock", "sock", 0), ("", "ab", 2), ("sock", "socks", 1)] {
            assert_eq!(distance(left, right), letters, "{left} {right}");
            assert_eq!(distance(right, left), letters, "{right} {left}");
        }
    }

    #[test]
    fn advice_is_that_of_the_transport() {
        let patience = Duration::from_secs(5);
        let lost = advice("sock://192.0.2.7:5000", Failure::TimedOut, patience);
        for word in ["192.0.2.7 is up", "ip route get 192.0.2.7", "firewall", "UDP port 5000", "within 5s"] {
            assert!(lost.contains(word), "{word} in {lost}");
        }
        let lost = advice("sock://[2001:db8::1]:7", Failure::TimedOut, patience);
        assert!(lost.contains("ip route get 2001:db8::1)") && lost.contains("UDP port 7"), "{lost}");
        let lost = advice("tcp://192.0.2.7:5000", Failure::TimedOut, patience);
        assert!(lost.contains("drops TCP port 5000") && !lost.contains("UDP"), "{lost}");
        let refused = advice("sock://192.0.2.7:5000", Failure::Refused, patience);
        assert!(refused.contains("port 5000") && !refused.contains("user"), "{refused}");
        let refused = advice("sm://1/2", Failure::Refused, patience);
        assert!(refused.contains("same user") && !refused.contains("port"), "{refused}");
        assert!(!advice("sm://1/2", Failure::TimedOut, patience).contains("firewall"));
    }

    #[test]
    fn a_host_by_name_may_not_be_resolved() {
        let patience = Duration::from_secs(5);
        for failure in [Failure::TimedOut, Failure::Refused] {
            for uri in ["tcp://silent.example:5000", "sock://silent.example:5000?x=1"] {
                let text = advice(uri, failure, patience);
                assert!(text.contains("name") && text.contains("getent hosts silent.example)"), "{text}");
                assert!(!text.contains("ip route get silent.example"), "{text}");
                // What the library knows is not guessed.
                for reason in
                    ["the host's name was not resolved within the timeout", "the host name 'x' cannot be resolved: y"]
                {
                    let text = advice_on(uri, failure, Some(reason), patience);
                    assert!(text.contains("name server") && text.contains("getent hosts silent.example)"), "{text}");
                    assert!(!text.contains("firewall") && !text.contains("answers, but"), "{text}");
                }
            }
        }
        for uri in ["sock://[fe80::1%eth0]:7", "sock://[::1]:7", "tcp://192.0.2.7:7"] {
            let text = advice(uri, Failure::TimedOut, patience);
            assert!(!text.contains("name"), "{text}");
        }
    }
}
