//! Sizes and times as people write them.

use std::time::Duration;

/// One argument of `--size`: sizes, and whether they came from a range, which may reach beyond what
/// a connection carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<u64>);

const HINT: &str = "write bytes such as 8, 4096, 64K or 1M, several as 8,64,4096, or powers of two as 1..1M";

/// Parses a list of sizes and ranges.
pub fn parse_sizes(text: &str) -> Result<Sizes, String> {
    let mut sizes = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once("..") {
            None => sizes.push(parse_size(part)?),
            Some((from, to)) => {
                let (from, to) = (parse_size(from)?, parse_size(to)?);
                if from > to {
                    return Err(format!("the range {part} ends before it begins; {HINT}"));
                }
                sizes.extend(powers(from, to));
            }
        }
    }
    sizes.dedup();
    Ok(Sizes(sizes))
}

/// `from`, doubled until `to`.
fn powers(from: u64, to: u64) -> impl Iterator<Item = u64> {
    let double = move |size: &u64| size.max(&1).checked_mul(if *size == 0 { 1 } else { 2 }).filter(|next| *next <= to);
    std::iter::successors(Some(from), double)
}

/// Parses one size.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = match unit {
        "" | "B" => 1,
        "K" | "k" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        _ => return Err(format!("{text:?} is not a size; {HINT}")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text:?} is not a size; {HINT}"))?;
    number.checked_mul(unit).ok_or_else(|| format!("{text} is larger than any memory; {HINT}"))
}

/// How many connections or peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// At most so many.
    UpTo(u32),
    /// From the least to the most.
    Range(u32, u32),
}

const COUNTS: &str = "write a count from 2 to 1M such as 1000, or a range such as 1..1M";
const MOST: u32 = 1_000_000;

/// Parses a count, or a range of counts; K and M are thousands and millions.
pub fn parse_counts(text: &str) -> Result<Counts, String> {
    let parsed = match text.split_once("..") {
        None => parse_count(text).filter(|most| *most >= 2).map(Counts::UpTo),
        Some((least, most)) => match (parse_count(least), parse_count(most)) {
            (Some(least), Some(most)) if least <= most => Some(Counts::Range(least, most)),
            _ => None,
        },
    };
    parsed.ok_or_else(|| format!("{text:?} is not a count of connections; {COUNTS}"))
}

fn parse_count(text: &str) -> Option<u32> {
    let text = text.trim();
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = match unit {
        "" => 1,
        "K" | "k" => 1000,
        "M" => 1_000_000,
        _ => return None,
    };
    digits.parse::<u32>().ok()?.checked_mul(unit).filter(|count| (1..=MOST).contains(count))
}

/// Parses a key of a device and its value.
pub fn parse_key(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().into(), value.trim().into())),
        _ => Err("write KEY=VALUE, such as port=5000".into()),
    }
}

/// Parses the time for each size: a word, or a number with a unit.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let hint = "write short, normal or long, or a time such as 250ms or 2s";
    match text {
        "short" => return Ok(Duration::from_millis(60)),
        "normal" => return Ok(Duration::from_secs(1)),
        "long" => return Ok(Duration::from_secs(4)),
        _ => {}
    }
    let (digits, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let number: f64 = digits.parse().map_err(|_| format!("{text:?} is not a time; {hint}"))?;
    let seconds = match unit {
        "" | "s" => number,
        "ms" => number / 1e3,
        _ => return Err(format!("{text:?} is not a time; {hint}")),
    };
    if !(0.001..=3600.0).contains(&seconds) {
        return Err(format!("{text} is not between 1ms and 3600s; {hint}"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Parses a part of the whole: 5% or 0.5 %.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok();
    let part = number.map(|percent| percent / 100.0).filter(|part| part.is_finite() && *part > 0.0);
    part.ok_or_else(|| format!("{text:?} is not a percentage above 0; write such as 5%"))
}

/// A size as people read it.
pub fn show_size(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_ranges_and_units() {
        let sizes = |text| parse_sizes(text).unwrap().0;
        assert_eq!(sizes("8"), [8]);
        assert_eq!(sizes("8,64, 4096"), [8, 64, 4096]);
        assert_eq!(sizes("1..16"), [1, 2, 4, 8, 16]);
        assert_eq!(sizes("0..4"), [0, 1, 2, 4]);
        assert_eq!(sizes("3..20"), [3, 6, 12]);
        assert_eq!(sizes("64K,1MiB,2G"), [64 << 10, 1 << 20, 2 << 30]);
        assert_eq!(sizes("1..1M").len(), 21);
        assert_eq!(sizes("8,8..16"), [8, 16]);
    }

    #[test]
    fn what_is_no_size_is_told_with_what_is_one() {
        for text in ["", "x", "8x", "-1", "8,,9", "1..", "16..1", "99999999999999999999", "99999999999G"] {
            let error = parse_sizes(text).unwrap_err();
            assert!(error.contains("8,64,4096"), "{text}: {error}");
        }
    }

    #[test]
    fn the_largest_range_ends() {
        assert_eq!(parse_sizes("1..17179869183G").unwrap().0.len(), 64);
    }

    #[test]
    fn counts_and_their_ranges_are_decimal() {
        assert_eq!(parse_counts("1000"), Ok(Counts::UpTo(1000)));
        assert_eq!(parse_counts("20K"), Ok(Counts::UpTo(20_000)));
        assert_eq!(parse_counts("1..1M"), Ok(Counts::Range(1, 1_000_000)));
        for text in ["", "1", "0..9", "9..1", "1..2M", "1..", "many", "5G", "-1", "4294967297K"] {
            assert!(parse_counts(text).unwrap_err().contains("1..1M"), "{text}");
        }
    }

    #[test]
    fn keys_of_devices() {
        assert_eq!(parse_key("port=5000").unwrap(), ("port".into(), "5000".into()));
        assert_eq!(parse_key(" check = remote ").unwrap(), ("check".into(), "remote".into()));
        for text in ["port", "=5", ""] {
            assert!(parse_key(text).unwrap_err().contains("port=5000"), "{text}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(parse_time("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(parse_time("2").unwrap(), Duration::from_secs(2));
        assert_eq!(parse_time("1.5s").unwrap(), Duration::from_millis(1500));
        assert!(parse_time("short").unwrap() < parse_time("normal").unwrap());
        assert!(parse_time("normal").unwrap() < parse_time("long").unwrap());
        for text in ["", "soon", "5min", "0", "-1", "NaN", "inf", "1e9"] {
            assert!(parse_time(text).unwrap_err().contains("250ms"), "{text}");
        }
    }

    #[test]
    fn percentages() {
        assert_eq!(parse_percent("5%").unwrap().to_bits(), 0.05_f64.to_bits());
        assert_eq!(parse_percent("50 %").unwrap().to_bits(), 0.5_f64.to_bits());
        for text in ["", "%", "0", "-1%", "many", "NaN", "inf%"] {
            assert!(parse_percent(text).unwrap_err().contains("such as 5%"), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_largest_unit_that_divides_them() {
        assert_eq!(show_size(8), "8 B");
        assert_eq!(show_size(4096), "4 KiB");
        assert_eq!(show_size(4097), "4097 B");
        assert_eq!(show_size(1 << 20), "1 MiB");
        assert_eq!(show_size(0), "0 B");
    }
}
