//! What keys are derived for: the labels of HKDF-Expand. `keys.rs` has the table.

pub(crate) const CIPHER: &[u8] = b"cci ke";
pub(crate) const UPDATE: &[u8] = b"cci ku";
pub(crate) const STREAM: &[u8] = b"cci st";
pub(crate) const EXPORT: &[u8] = b"cci ex";
pub(crate) const LABEL: &[u8] = b"cci lb";
pub(crate) const RESET: &[u8] = b"cci rt";
pub(crate) const DENIAL: &[u8] = b"cci dn";
