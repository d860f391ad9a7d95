//! What an exchange over the VI Architecture consists of: the paper's Tables 3 and 4, then and now.

use super::table::{align, time};
use crate::finding::MappingPart;

/// A table of then, percent. The paper had a call for each completion queue and one for each work
/// queue; here one call takes both.
pub(super) struct Then {
    /// What the parts are of.
    of: &'static str,
    /// By which implementation.
    by: &'static str,
    categories: [(&'static str, &'static str); 4],
    parts: [(&'static str, &'static str); 11],
}

/// Table 3: a request of Active Messages and its reply.
pub(super) const REQUEST: Then = Then {
    of: "A short request and its reply",
    by: "then, v3",
    categories: [("Base VI", "32.5"), ("Event notification", "44.2"), ("Flow control", "14.4"), ("Semantics", "8.9")],
    parts: [
        ("PostSend", "6.1"),
        ("PostRecv", "4.8"),
        ("recycle send descriptor", "1.7"),
        ("recycle receive descriptor", "2.0"),
        ("build send descriptor", "3.5"),
        ("CQDone and SendDone", "22.1 + 7.0"),
        ("CQDone and RecvDone", "22.1 + 7.4"),
        ("send bookkeeping", "5.7"),
        ("process received message", "8.7"),
        ("read data from message", "6.3"),
        ("act on message", "2.6"),
    ],
};

/// Table 4: a get of Split-C.
pub(super) const GET: Then = Then {
    of: "A get of a word",
    by: "then",
    categories: [("Base VI", "36.1"), ("Event notification", "46.9"), ("Flow control", "11.6"), ("Semantics", "5.4")],
    parts: [
        ("PostSend", "9.4"),
        ("PostRecv", "5.6"),
        ("recycle send descriptor", "1.8"),
        ("recycle receive descriptor", "1.8"),
        ("build send descriptor", "2.4"),
        ("CQDone and SendDone", "24.4 + 7.1"),
        ("CQDone and RecvDone", "22.5 + 8.0"),
        ("send bookkeeping", "4.9"),
        ("process received message", "6.7"),
        ("read data from message", "3.6"),
        ("act on message", "1.8"),
    ],
};

/// A table for each mapping.
pub(super) fn table(parts: &[MappingPart], cycle_ns: f64, then: &Then) -> String {
    let mut mappings: Vec<&str> = parts.iter().map(|part| part.mapping.as_str()).collect();
    mappings.dedup();
    let mut text = String::new();
    for mapping in mappings {
        let of = |part: &&MappingPart| part.mapping == mapping;
        let all: f64 = parts.iter().filter(of).map(|part| part.ns).sum();
        let cells = |ns: f64, then: String| {
            let cycles = format!("{:.0}", ns / cycle_ns.max(f64::MIN_POSITIVE));
            let percent = format!("{:.1} %", 100.0 * ns / all.max(f64::MIN_POSITIVE));
            [time(ns), cycles, percent, then]
        };
        let mut rows = vec![["category", "operation", "time", "cycles", "of all", then.by].map(String::from).to_vec()];
        for (category, percent) in then.categories {
            let its: Vec<_> = parts.iter().filter(of).filter(|part| part.category == category).collect();
            let sum = its.iter().map(|part| part.ns).sum();
            // The calls that take a descriptor stood under Base VI.
            let cells_of_all = cells(sum, format!("{percent} %"));
            rows.push([vec![category.into(), String::new()], cells_of_all.to_vec()].concat());
            for part in its {
                let known = then.parts.iter().find(|(name, _)| *name == part.name);
                let cells = cells(part.ns, known.map_or_else(|| "-".into(), |(_, percent)| format!("{percent} %")));
                rows.push([vec![String::new(), part.name.clone()], cells.to_vec()].concat());
            }
        }
        text += &format!(
            "\n{} by {mapping}: {} at both ends; SendDone and RecvDone stood under Base VI then\n{}",
            then.of,
            time(all),
            align(&rows, &[0, 1])
        );
    }
    text
}
