//! The transports that CCI knows, whether or not this build has them.

use crate::transports::RMA_RIGHTS;

/// The keys that every device has.
pub(super) const CORE_KEYS: [&str; 4] = ["transport", "priority", "default", RMA_RIGHTS];

/// A transport.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    /// Whether endpoints can be opened with it in this build.
    pub(super) built: bool,
    /// Priority of its devices unless the file says otherwise.
    pub(super) priority: u32,
    /// Its keys; `None`: not known here, every key is passed on.
    pub(super) keys: Option<&'static [&'static str]>,
}

const SOCKET_KEYS: &[&str] = &["ip", "interface", "port", "mtu", "bufsize"];

const fn absent(name: &'static str, priority: u32, keys: Option<&'static [&'static str]>) -> Known {
    Known { name, built: false, priority, keys }
}

const fn built(name: &'static str, priority: u32, keys: &'static [&'static str]) -> Known {
    Known { name, built: true, priority, keys: Some(keys) }
}

/// Every transport of CCI.
pub(super) const TRANSPORTS: [Known; 11] = [
    built("sm", 20, &cci_sm::KEYS),
    built("sock", 30, &cci_sock::KEYS),
    built("sim", 10, &cci_sim::KEYS),
    absent("tcp", 30, Some(SOCKET_KEYS)),
    absent("ofi", 50, None),
    absent("verbs", 50, None),
    absent("gni", 50, None),
    absent("eth", 50, None),
    absent("e2e", 50, None),
    absent("mx", 50, None),
    absent("portals", 50, None),
];

/// The transport of this name.
pub(super) fn transport(name: &str) -> Option<&'static Known> {
    TRANSPORTS.iter().find(|known| known.name == name)
}

/// Completes a sentence about a word that is not known: the nearest that is, or all of them when none is near.
pub(super) fn advice(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(nearest) => format!("did you mean '{nearest}'?"),
        None => format!("known are {}", known.join(", ")),
    }
}

/// The known word that was probably meant.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    // Beyond this length nothing is near, and the distance costs time in proportion to it.
    if word.len() > 64 {
        return None;
    }
    let word = word.to_lowercase();
    // A word that was cut short is far from the whole one by its letters. One letter alone says too little.
    let mut begun = known.iter().filter(|known| word.len() > 1 && known.starts_with(&word));
    if let (Some(only), None) = (begun.next(), begun.next()) {
        return Some(only);
    }
    let (distance, nearest) =
        known.iter().map(|known| (strsim::damerau_levenshtein(&word, known), *known)).min_by_key(|(d, _)| *d)?;
    (distance <= 1 + nearest.len() / 3).then_some(nearest)
}

/// The names of those in this build.
pub(super) fn built_names() -> Vec<&'static str> {
    TRANSPORTS.iter().filter(|known| known.built).map(|known| known.name).collect()
}

/// The names of all transports.
pub(super) fn names() -> Vec<&'static str> {
    TRANSPORTS.iter().map(|known| known.name).collect()
}
