//! What RMA needs of addresses and lengths.

/// Alignments that RMA needs, in bytes; 0 = none (`cci_alignment_t`).
///
/// # Example
///
/// ```
/// # use cci_proto as cci;
/// use cci::Alignment;
///
/// fn may_write_at(needed: Alignment, address: u64) -> bool {
///     address.is_multiple_of(u64::from(needed.write_local_addr.max(1)))
/// }
/// assert!(may_write_at(Alignment::default(), 3), "no alignment is needed");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[repr(C)]
pub struct Alignment {
    /// Local address of a write.
    pub write_local_addr: u32,
    /// Remote address of a write.
    pub write_remote_addr: u32,
    /// Length of a write.
    pub write_length: u32,
    /// Local address of a read.
    pub read_local_addr: u32,
    /// Remote address of a read.
    pub read_remote_addr: u32,
    /// Length of a read.
    pub read_length: u32,
}
