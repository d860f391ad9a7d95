//! Decimal numbers in texts.

use core::str::FromStr;

/// A decimal number as URIs, keys and services have it: digits only. The standard library's parser
/// accepts a sign too. `None`: another text, or a number that the type does not hold.
///
/// # Example
///
/// ```
/// use cci_proto::decimal;
///
/// assert_eq!(decimal("5000"), Some(5000_u16));
/// assert_eq!(["", "+1", "-0", "65536"].map(decimal::<u16>), [None; 4]);
/// ```
#[must_use]
pub fn decimal<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
