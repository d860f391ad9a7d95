//! Variables of the environment whose names begin with `CCI_`: those that have a meaning, and those
//! that were probably misspelt.

use crate::config::nearest;
use crate::transports;
use std::ffi::OsString;

/// What the names of the variables begin with.
const PREFIX: &str = "CCI_";

/// Variables that the library, its interfaces and its commands read. The keys of transports come
/// beside these.
static KNOWN: &[&str] = &[
    "CCI_AM_START_LIMIT",
    "CCI_APPNUM",
    "CCI_CONFIG",
    "CCI_COUNTERS",
    "CCI_CTP",
    "CCI_DEBUG",
    "CCI_JOB_FD",
    "CCI_JOB_SOCKET",
    "CCI_LISTEN",
    "CCI_LOG",
    "CCI_MPI_TRACE",
    "CCI_MX_DEVICE",
    "CCI_PMI",
    "CCI_PORTALS_DEVICE",
    "CCI_PORTALS_MODE",
    "CCI_SECRET_FILE",
    "CCI_SPLITC_MALLOC",
    "CCI_SPLITC_MAPPING",
    "CCI_STORE",
];

/// The variables of the environment whose names begin with `CCI_` and that nothing reads, each as a
/// sentence that gives the nearest name that has a meaning. Empty variables do not count.
///
/// It may be called from any thread, makes no progress and does not block.
///
/// # Example
///
/// ```
/// for sentence in cci::unknown_variables() {
///     eprintln!("{sentence}"); // CCI_CPT is set, and nothing reads it; did you mean CCI_CTP?
/// }
/// ```
#[must_use]
pub fn unknown_variables() -> Vec<String> {
    unknown(std::env::vars_os())
}

fn unknown(environment: impl Iterator<Item = (OsString, OsString)>) -> Vec<String> {
    let names = environment.filter(|(_, value)| !value.is_empty());
    let mut ours =
        names.filter_map(|(name, _)| name.into_string().ok()).filter(|name| name.starts_with(PREFIX)).peekable();
    if ours.peek().is_none() {
        return Vec::new();
    }
    let (keys, others) = keys_of_transports();
    let is_known = |name: &str| {
        KNOWN.contains(&name)
            || keys.iter().any(|key| key == name)
            || others.iter().any(|prefix| name.starts_with(prefix.as_str()))
    };
    let mut unknown: Vec<_> = ours.filter(|name| !is_known(name)).collect();
    unknown.sort();
    unknown.into_iter().map(|name| sentence(&name, &keys)).collect()
}

/// The variables that stand for keys of transports, and the beginnings of those of transports whose
/// keys this build does not know.
fn keys_of_transports() -> (Vec<String>, Vec<String>) {
    let (mut keys, mut others) = (Vec::new(), Vec::new());
    for name in transports::names() {
        let prefix = format!("{PREFIX}{name}_").to_ascii_uppercase();
        let driver = transports::driver(name);
        // None is read there.
        let is_secret = |key: &str| driver.and_then(|it| it.key(key)).is_some_and(|key| key.check.is_secret());
        match transports::Known::of(name).and_then(transports::Known::keys) {
            Some(own) => {
                let readable = own.iter().filter(|key| !is_secret(key));
                keys.extend(readable.map(|key| format!("{prefix}{}", key.to_ascii_uppercase())));
            }
            None => others.push(prefix),
        }
    }
    (keys, others)
}

fn sentence(name: &str, keys: &[String]) -> String {
    let known = KNOWN.iter().copied().chain(keys.iter().map(String::as_str));
    // What all names share says nothing about which one was meant.
    let ends: Vec<String> = known.filter_map(|name| name.strip_prefix(PREFIX)).map(str::to_lowercase).collect();
    let ends: Vec<&str> = ends.iter().map(String::as_str).collect();
    let advice = match name.strip_prefix(PREFIX).and_then(|end| nearest(end, &ends)) {
        Some(end) => format!("did you mean {PREFIX}{}?", end.to_ascii_uppercase()),
        None => "unset it, or see docs/configuration.md for the names that have a meaning".to_owned(),
    };
    format!("{name} is set, and nothing reads it; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[(&str, &str)]) -> Vec<String> {
        unknown(names.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))))
    }

    #[test]
    fn a_misspelt_variable_is_named_with_the_nearest_right_name() {
        for (wrong, right) in [
            ("CCI_CPT", "CCI_CTP"),
            ("CCI_CONFG", "CCI_CONFIG"),
            ("CCI_LISTENS", "CCI_LISTEN"),
            ("CCI_SECRET", "CCI_SECRET_FILE"),
            #[cfg(feature = "sock")]
            ("CCI_SOCK_PROT", "CCI_SOCK_PORT"),
            #[cfg(feature = "tcp")]
            ("CCI_TCP_PROT", "CCI_TCP_PORT"),
        ] {
            let expected = format!("{wrong} is set, and nothing reads it; did you mean {right}?");
            assert_eq!(of(&[(wrong, "1"), ("CCI_LOG", "warn"), ("HOME", "/")]), [expected]);
        }
    }

    #[cfg(feature = "sock")]
    #[test]
    fn a_secret_in_the_environment_is_not_read() {
        let sentences = of(&[("CCI_SOCK_SECRET", "0123")]);
        assert!(matches!(&sentences[..], [one] if one.contains("nothing reads it")), "{sentences:?}");
    }

    #[test]
    fn a_variable_that_resembles_none_is_named_too() {
        let sentences = of(&[("CCI_WEATHER_REPORT_OF_TODAY", "sun")]);
        assert!(matches!(&sentences[..], [one] if one.contains("unset it")), "{sentences:?}");
    }

    #[test]
    fn what_has_a_meaning_is_empty_or_is_not_ours_is_not_named() {
        assert_eq!(of(&[("CCI_CPT", ""), ("CCIX", "1"), ("CCI_VERBS_PORT", "1"), ("MY_CCI_CPT", "1")]), [""; 0]);
        let known: Vec<_> = KNOWN.iter().map(|name| (*name, "1")).collect();
        assert_eq!(of(&known), [""; 0]);
    }
}
