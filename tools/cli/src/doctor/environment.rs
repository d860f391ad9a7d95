//! Variables of the environment that are probably misspelt.

use super::finding::{Finding, Verdict};

const SUBJECT: &str = "environment";

/// One finding for each sentence of `cci::unknown_variables`; one that all is well without any.
pub(super) fn findings(sentences: Vec<String>) -> Vec<Finding> {
    if sentences.is_empty() {
        return vec![Finding::ok(SUBJECT, "each variable that begins with CCI_ has a meaning")];
    }
    let judge = |sentence: String| {
        let (found, remedy) = sentence.split_once("; ").unwrap_or((&sentence, "unset it"));
        Finding::with_remedy(SUBJECT, Verdict::Hint, found, remedy)
    };
    sentences.into_iter().map(judge).collect()
}
