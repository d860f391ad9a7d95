//! Where an endpoint is, and how others are found.

use crate::errors::Error;
use crate::types::{Address, MAX_ENDPOINT_ID};
use cci::{Device, Endpoint, EndpointOptions, Status};
use cci_job::{Job, JobError, OpenCode, OpenFailed};
use cci_peers::{Directory, Found, HostNumbers, Name, Table, host_of};
use std::fmt;
use std::sync::Arc;

/// Ids of endpoints are these numbers of a host.
const NUMBERS: HostNumbers = HostNumbers::new(22_528, MAX_ENDPOINT_ID + 1, 0x4d58_0000);

/// Why an endpoint could not be opened.
///
/// # Example
///
/// ```
/// use cci_mx::{Error, NotOpened};
///
/// assert_eq!(NotOpened::Refused(Error::BadParameterValue).code(), Error::BadParameterValue);
/// ```
pub type NotOpened = OpenFailed<Error>;

impl OpenCode for Error {
    fn of_endpoint(why: &cci::OpenError) -> Self {
        match why.status {
            Status::AddrNotAvail => Self::Busy,
            Status::NoDev => Self::NoDevice,
            Status::NoMem | Status::NoBufs => Self::NoResources,
            _ => Self::Failure,
        }
    }

    fn of_job(_: &JobError) -> Self {
        Self::Failure
    }
}

impl From<Error> for NotOpened {
    fn from(why: Error) -> Self {
        Self::Refused(why)
    }
}

/// Where an endpoint is: the endpoint of CCI, NIC and id, and how others are found.
///
/// # Example
///
/// ```
/// let place = cci_mx::Place::by_rule(cci::Context::new()?.default_device()?, None)?;
/// assert!(place.id() <= cci_mx::MAX_ENDPOINT_ID);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Place {
    pub(crate) endpoint: Endpoint,
    pub(crate) name: u64,
    pub(crate) directory: Box<dyn Directory + Send>,
    /// The names of a job's ranks.
    pub(crate) ranks: Vec<u64>,
    /// Kept, because it may serve other ranks.
    pub(crate) job: Option<Arc<Job>>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({:#x} at {})", self.name, self.endpoint.uri())
    }
}

/// The options that the endpoint of CCI has.
///
/// # Example
///
/// ```
/// assert!(cci_mx::endpoint_options().disconnect_events);
/// ```
#[must_use]
pub fn endpoint_options() -> EndpointOptions {
    EndpointOptions::new().disconnect_events(true)
}

impl Place {
    /// At an endpoint of the program, opened with [`endpoint_options`]. The directory knows others
    /// by [`Address::name`].
    #[must_use]
    pub fn of(endpoint: Endpoint, nic: u64, id: u32, directory: Box<dyn Directory + Send>) -> Self {
        Self { endpoint, name: Address::new(nic, id, 0).name(), directory, ranks: Vec::new(), job: None }
    }

    /// At a new endpoint, which others find by NIC and id. `None`: the first id that is free.
    /// Without an address in the configuration it is on the loop-back interface, unless
    /// `CCI_LISTEN` is `network`.
    ///
    /// # Errors
    ///
    /// [`Error::BadEndpointId`]: above 2,047. Another endpoint has the id, or the endpoint cannot
    /// be opened.
    pub fn by_rule(device: &Device, id: Option<u32>) -> Result<Self, NotOpened> {
        if id.is_some_and(|id| id > MAX_ENDPOINT_ID) {
            return Err(Error::BadEndpointId.into());
        }
        let opened = NUMBERS.open(device, &endpoint_options(), id)?;
        let name = u64::from(opened.host.to_bits()) << 32 | u64::from(opened.number);
        let (endpoint, directory) = (opened.endpoint, Box::new(opened.directory));
        Ok(Self { endpoint, name, directory, ranks: Vec::new(), job: None })
    }

    /// At a new endpoint that the other ranks of a job find, and nobody else. All ranks make one,
    /// once. `None`: the id is the rank. The NIC is the IPv4 address in the URI of the endpoint, or
    /// that of the loop-back interface.
    ///
    /// # Errors
    ///
    /// [`Error::BadEndpointId`]: above 2,047; [`Error::Busy`]: two ranks of a host have one id. The
    /// endpoint cannot be opened; a rank does not come.
    pub fn of_job(job: Arc<Job>, device: &Device, id: Option<u32>) -> Result<Self, NotOpened> {
        let id = id.unwrap_or(job.rank());
        if id > MAX_ENDPOINT_ID {
            return Err(Error::BadEndpointId.into());
        }
        let endpoint = Endpoint::open(&job.device_like(device), &endpoint_options())?;
        let name = Address::new(host_of(endpoint.uri()).to_bits().into(), id, 0).name();
        let uris = job.announce(endpoint.uri())?;
        let word = |bytes: Vec<u8>| bytes.try_into().map_or(u64::MAX, u64::from_le_bytes);
        let ranks: Vec<u64> = job.exchange(&name.to_le_bytes())?.into_iter().map(word).collect();
        if ranks.iter().filter(|other| **other == name).count() > 1 {
            return Err(Error::Busy.into());
        }
        let mut table = Table::new();
        for (rank, name) in ranks.iter().enumerate() {
            let uri = uris.resolve(&format!("job:{rank}"));
            uri.into_iter().for_each(|uri| table.insert(Name::Number(*name), uri));
        }
        Ok(Self { endpoint, name, directory: Box::new(Ranks(table)), ranks, job: Some(job) })
    }

    /// NIC and id of each rank, where the place is of a job.
    pub fn ranks(&self) -> impl Iterator<Item = (u64, u32)> {
        self.ranks.iter().map(|name| (name >> 32, *name as u32))
    }

    /// The NIC.
    #[must_use]
    pub fn nic(&self) -> u64 {
        self.name >> 32
    }

    /// The endpoint id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.name as u32
    }
}

/// The ranks of a job, and nobody else.
struct Ranks(Table);

impl Directory for Ranks {
    fn find(&mut self, name: &Name) -> Found {
        match self.0.find(name) {
            Found::NotYet => Found::Unknown,
            found => found,
        }
    }
}
