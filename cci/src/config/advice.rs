//! What was probably meant by a word that is not known.

/// Completes a sentence about a word that is not known: the nearest that is, or all of them when
/// none is near.
pub(super) fn advice(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(nearest) => format!("did you mean '{nearest}'?"),
        None => format!("known are {}", known.join(", ")),
    }
}

/// The known word that was probably meant.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    // Beyond this length nothing is near, and the distance costs time in proportion to it.
    if word.len() > 64 {
        return None;
    }
    let word = word.to_lowercase();
    // A word that was cut short is far from the whole one by its letters. One letter alone says too
    // little.
    let mut begun = known.iter().filter(|known| word.len() > 1 && known.starts_with(&word));
    if let (Some(only), None) = (begun.next(), begun.next()) {
        return Some(only);
    }
    let (distance, nearest) =
        known.iter().map(|known| (strsim::damerau_levenshtein(&word, known), *known)).min_by_key(|(d, _)| *d)?;
    (distance <= 1 + nearest.len() / 3).then_some(nearest)
}
