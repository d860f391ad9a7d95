//! The names of options, with the numbers of the C contract.

/// Options of an endpoint, with the values of `cci_opt_name_t`. All are `u32` but `Uri` and
/// `RmaAlign`.
///
/// Rust programs set and read them by methods of an endpoint; the numbers are those of the C
/// library.
///
/// # Example
///
/// ```
/// use cci::EndpointOption;
///
/// assert_eq!(EndpointOption::Uri as u32, 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum EndpointOption {
    /// Default send timeout of its connections, microseconds; 0 = none.
    SendTimeout = 0,
    /// Number of receive buffers.
    RecvBufCount = 1,
    /// Number of send buffers.
    SendBufCount = 2,
    /// Default keepalive timeout of its connections, microseconds; 0 = none.
    KeepaliveTimeout = 3,
    /// The URI that others connect to (get only).
    Uri = 4,
    /// Alignment that RMA needs (get only).
    RmaAlign = 5,
}

/// Options of a connection, `u32` microseconds, with the values of `cci_opt_name_t`.
///
/// # Example
///
/// ```
/// use cci::ConnectionOption;
///
/// // `Endpoint::set_option` takes one with a `Duration`.
/// let options = [ConnectionOption::SendTimeout, ConnectionOption::KeepaliveTimeout];
/// assert_eq!(options.map(|option| option as u32), [6, 7]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum ConnectionOption {
    /// How long a send may stay open; 0 = no limit.
    SendTimeout = 6,
    /// Silence of the peer after which a keepalive event is raised; 0 = never.
    KeepaliveTimeout = 7,
}
