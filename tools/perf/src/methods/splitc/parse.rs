//! What the measuring program prints.

use super::parts::part;
use cci_report::UserError;
use cci_report::finding::{SplitC, SplitCBulk, SplitCPair, SplitCWord};

/// Adds the lines of a job.
///
/// # Errors
///
/// A line is not one of the program's.
pub(super) fn lines(text: &str, mapping: &str, found: &mut SplitC) -> Result<(), UserError> {
    for line in text.lines() {
        add(line, mapping, found).ok_or_else(|| UserError(format!("cannot parse what was measured: {line}")))?;
    }
    Ok(())
}

fn add(line: &str, mapping: &str, found: &mut SplitC) -> Option<()> {
    let words: Vec<&str> = line.split(' ').collect();
    match *words.as_slice() {
        ["pair", name, ns, bare, difference, ratio] => found.pairs.push(SplitCPair {
            mapping: mapping.into(),
            name: name.into(),
            ns: ns.parse().ok()?,
            bare_ns: bare.parse().ok()?,
            difference_ns: difference.parse().ok()?,
            ratio: ratio.parse().ok()?,
        }),
        ["word", operation, of, ns] => found.words.push(SplitCWord {
            mapping: mapping.into(),
            operation: operation.into(),
            of: of.into(),
            ns: ns.parse().ok()?,
        }),
        ["bulk", operation, bytes, ns] => {
            let (bytes, ns): (u32, f64) = (bytes.parse().ok()?, ns.parse().ok()?);
            let mb_per_s = f64::from(bytes) / ns.max(f64::MIN_POSITIVE) * 1e3;
            let (mapping, operation) = (mapping.into(), operation.into());
            found.bulk.push(SplitCBulk { mapping, operation, bytes: bytes.into(), mb_per_s });
        }
        ["part", at, ns] => found.parts.push(part(mapping, at.parse().ok()?, ns.parse().ok()?)?),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_points_and_others_are_refused() {
        let mut found = SplitC::default();
        let text = "pair get 1.5 0.5 1.0 3.0\nword read long 2.25\nbulk put 4096 1024.0\npart 0 12.5\n";
        lines(text, "direct", &mut found).expect("the program's");
        assert_eq!((found.pairs.len(), found.words.len(), found.bulk.len()), (1, 1, 1));
        assert_eq!(found.parts[0].name, "PostSend");
        assert_eq!((&*found.pairs[0].name, &*found.words[0].of), ("get", "long"));
        assert!((found.bulk[0].mb_per_s - 4000.0).abs() < 1e-9);
        for wrong in ["pair get 1.5", "word read long two", "part 99 1.0", "trash"] {
            assert!(lines(wrong, "direct", &mut found).is_err(), "{wrong}");
        }
    }
}
