//! Numbers as the page writes them: as on the terminal, with the letters that a page has.

use crate::output::table;
use crate::sizes::show_size;

/// A time of nanoseconds.
pub(super) fn time(ns: f64) -> String {
    table::time(ns).replace(" us", " µs")
}

/// Bytes per second.
pub(super) fn bandwidth(value: f64) -> String {
    table::scaled(value, "B/s")
}

/// Operations per second.
pub(super) fn rate(value: f64) -> String {
    table::scaled(value, "/s")
}

/// A size that was asked for.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size, positive and below 2^52")]
pub(super) fn size(bytes: f64) -> String {
    show_size(bytes.round() as u64)
}

/// Bytes that were measured.
pub(super) fn bytes(bytes: f64) -> String {
    match bytes.abs() {
        amount if amount < 10_240.0 => format!("{bytes:.0} B"),
        amount if amount < 10_485_760.0 => format!("{:.1} KiB", bytes / 1024.0),
        _ => format!("{:.1} MiB", bytes / 1_048_576.0),
    }
}

/// A part of a whole. One that is small is not told as nothing.
pub(super) fn percent(part: f64) -> String {
    let digits = match part.abs() {
        part if part >= 0.01 || part == 0.0 => 0,
        part if part >= 0.001 => 1,
        _ => 2,
    };
    format!("{:.digits$} %", part * 100.0)
}

/// How many times the bare operation.
pub(super) fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.2} ×") } else { format!("{ratio:.0} ×") }
}

/// A count.
pub(super) fn count(value: f64) -> String {
    format!("{value:.0}")
}

/// A moment, in seconds since 1970, as date and time of day in UTC. The date is Howard Hinnant's
/// `civil_from_days` ("chrono-Compatible Low-Level Date Algorithms", 2013), whose years begin in
/// March, so that a leap day comes last.
pub(super) fn moment(seconds: u64) -> String {
    let (days, minutes) = (seconds / 86_400 + 719_468, seconds % 86_400 / 60);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// For axes, whose numbers are round: without decimals that are all zero.
pub(super) fn short(text: &str) -> String {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}").trim_end().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_that_suit_them() {
        assert_eq!(time(2_500.0), "2.50 µs");
        assert_eq!(bandwidth(5.5e10), "55.00 GB/s");
        assert_eq!(rate(24e6), "24.00 M/s");
        assert_eq!(
            (bytes(128.0), bytes(131_072.0), bytes(52_428_800.0)),
            ("128 B".into(), "128.0 KiB".into(), "50.0 MiB".into())
        );
        assert_eq!([0.415, 0.01, 0.0042, 0.0, 0.0004].map(percent), ["42 %", "1 %", "0.4 %", "0 %", "0.04 %"]);
        assert_eq!((percent(0.415), times(1.5), times(1036.2)), ("42 %".into(), "1.50 ×".into(), "1036 ×".into()));
    }

    #[test]
    fn moments_have_the_date_of_the_calendar() {
        assert_eq!(moment(0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(moment(1_709_251_199), "2024-02-29 23:59 UTC");
        assert_eq!(moment(4_107_542_400), "2100-03-01 00:00 UTC");
    }

    #[test]
    fn axes_have_no_decimals_without_meaning() {
        assert_eq!(
            (short("2.50 µs"), short("100.0 ns"), short("8 B"), short("7.00")),
            ("2.5 µs".into(), "100 ns".into(), "8 B".into(), "7".into())
        );
    }
}
