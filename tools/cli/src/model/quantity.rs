//! Times, sizes and rates with their units.

use cci_report::UserError;

/// A time such as `7ns` or `1.5us`, in ns.
pub(crate) fn time_ns(text: &str) -> Result<f64, UserError> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    with_unit(text, &units).ok_or_else(|| UserError(format!("`{text}` is no time: give one such as 7ns or 1.5us")))
}

/// A rate of links such as `3.2Gb/s` or `400MB/s`, in bytes per ns.
pub(crate) fn bytes_per_ns(text: &str) -> Result<f64, UserError> {
    let units = [
        ("kB/s", 1e-6),
        ("MB/s", 1e-3),
        ("GB/s", 1.0),
        ("TB/s", 1e3),
        ("kb/s", 0.125e-6),
        ("Mb/s", 0.125e-3),
        ("Gb/s", 0.125),
        ("Tb/s", 125.0),
    ];
    with_unit(text, &units)
        .ok_or_else(|| UserError(format!("`{text}` is no rate: give one such as 3.2Gb/s or 400MB/s")))
}

/// A number of bytes.
pub(crate) fn bytes(text: &str) -> Result<f64, UserError> {
    let whole = text.parse::<u32>().ok().map(f64::from);
    whole.ok_or_else(|| UserError(format!("`{text}` is no size: give a number of bytes such as 64, below 2^32")))
}

/// A number, as in nanoseconds per byte, with or without this unit.
pub(crate) fn ns_per_byte(text: &str) -> Result<f64, UserError> {
    let units = [("ns/B", 1.0), ("ns", 1.0), ("", 1.0)];
    with_unit(text, &units).ok_or_else(|| UserError(format!("`{text}` is no time per byte: give one such as 11.6ns")))
}

/// The number in front of one of the units, in the unit's measure.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    units.iter().find_map(|(unit, measure)| {
        let number: f64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
        number.is_finite().then_some(number * measure)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_and_needed() {
        assert_eq!(time_ns("7ns"), Ok(7.0));
        assert_eq!(time_ns("1.5us"), Ok(1500.0));
        assert_eq!(time_ns("2s"), Ok(2e9));
        assert_eq!(bytes_per_ns("3.2Gb/s"), Ok(0.4));
        assert_eq!(bytes_per_ns("1GB/s"), Ok(1.0));
        assert_eq!(ns_per_byte("11.6"), Ok(11.6));
        assert_eq!(bytes("64"), Ok(64.0));
        for wrong in ["7", "ns", "sevenns", "infns", "nanns", ""] {
            assert!(time_ns(wrong).unwrap_err().0.contains("7ns"), "{wrong}");
        }
        for wrong in ["3.2", "3.2G", "fast"] {
            assert!(bytes_per_ns(wrong).unwrap_err().0.contains("3.2Gb/s"), "{wrong}");
        }
        assert!(bytes("-1").unwrap_err().0.contains("64") && bytes("18446744073709551616").is_err());
    }
}
