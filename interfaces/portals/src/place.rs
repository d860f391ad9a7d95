//! Where an interface is: its endpoint, its process, and how others are found.

use crate::errors::Error;
use crate::types::ProcessId;
use cci::{Context, Device, Endpoint, EndpointOptions, Status};
use cci_job::{Job, JobError, OpenCode, OpenFailed};
use cci_mem::mutex::lock;
use cci_peers::{Directory, Found, HostNumbers, Name, Table, host_of};
use std::fmt;
use std::sync::{Arc, Mutex};

/// The largest number of a process without a job.
pub(crate) const MAX_PID: u32 = 22_527;
/// Processes without a job are these numbers of a host, and ports from 10,240 on.
const NUMBERS: HostNumbers = HostNumbers::new(10_240, MAX_PID + 1, 0x5033_0000);

/// Why an interface could not be opened.
///
/// # Example
///
/// ```
/// use cci_portals::{Error, NotOpened};
///
/// assert_eq!(NotOpened::Refused(Error::ProcessNumber).code(), Error::ProcessNumber);
/// ```
pub type NotOpened = OpenFailed<Error>;

impl OpenCode for Error {
    fn of_endpoint(_: &cci::OpenError) -> Self {
        Self::Failed
    }

    fn of_job(_: &JobError) -> Self {
        Self::Failed
    }
}

/// Where an interface is: an endpoint, which process this is, and how others are found.
///
/// # Example
///
/// ```
/// use cci_portals::Place;
///
/// let place = Place::by_rule(cci::Context::new()?.default_device()?, None)?;
/// assert!(place.own().is_definite());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Place {
    pub(crate) endpoint: Endpoint,
    pub(crate) own: ProcessId,
    pub(crate) directory: Box<dyn Directory + Send>,
    /// The processes of a job, and which of them this is.
    pub(crate) ranks: Option<Ranks>,
    /// Kept, because it may serve other ranks.
    pub(crate) job: Option<Arc<Job>>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({:?} at {})", self.own, self.endpoint.uri())
    }
}

/// The options that the endpoint of an interface has.
///
/// # Example
///
/// ```
/// assert!(cci_portals::endpoint_options().disconnect_events);
/// ```
#[must_use]
pub fn endpoint_options() -> EndpointOptions {
    EndpointOptions::new().disconnect_events(true)
}

impl Place {
    /// At an endpoint of the program, opened with [`endpoint_options`].
    #[must_use]
    pub fn of(endpoint: Endpoint, own: ProcessId, directory: Box<dyn Directory + Send>) -> Self {
        Self { endpoint, own, directory, ranks: None, job: None }
    }

    /// At a new endpoint, which others find by node and number. `None`: the first number that is
    /// free. Without an address in the configuration it is on the loop-back interface, unless
    /// `CCI_LISTEN` is `network`.
    ///
    /// # Errors
    ///
    /// The number is above 22,527, or another process has it; the endpoint cannot be opened.
    pub fn by_rule(device: &Device, pid: Option<u32>) -> Result<Self, NotOpened> {
        if pid.is_some_and(|pid| pid > MAX_PID) {
            return Err(NotOpened::Refused(Error::ProcessNumber));
        }
        let opened = NUMBERS.open(device, &endpoint_options(), pid).map_err(|why| match why.status {
            Status::AddrNotAvail => NotOpened::Refused(Error::ProcessNumber),
            _ => NotOpened::Endpoint(why),
        })?;
        let own = ProcessId { nid: opened.host.to_bits(), pid: opened.number };
        Ok(Self { endpoint: opened.endpoint, own, directory: Box::new(opened.directory), ranks: None, job: None })
    }

    /// In a job, whose ranks all make one. `None`: the number of the process is its rank.
    ///
    /// # Errors
    ///
    /// Two interfaces of a host have one number; the endpoint cannot be opened; a rank does not
    /// come.
    pub fn of_job(job: Arc<Job>, context: &Context, pid: Option<u32>) -> Result<Self, NotOpened> {
        Self::exchanged(job, context, pid, None)
    }

    /// In a job, beside another interface of this process if there is one.
    pub(crate) fn exchanged(
        job: Arc<Job>,
        context: &Context,
        pid: Option<u32>,
        other: Option<&Sibling<'_>>,
    ) -> Result<Self, NotOpened> {
        let endpoint = Endpoint::open(&job.device(context)?, &endpoint_options())?;
        let is_free = |pid: &u32| other.is_none_or(|other| other.id.pid != *pid);
        let by_rank = || [job.rank(), job.rank() + job.size()].into_iter().find(is_free).unwrap_or(job.rank());
        let own = ProcessId { nid: host_of(endpoint.uri()).to_bits(), pid: pid.unwrap_or_else(by_rank) };
        let mut card = Vec::new();
        write_entry(own, endpoint.uri(), &mut card);
        other.iter().for_each(|other| write_entry(other.id, other.uri, &mut card));
        let cards: Vec<_> = job.exchange(&card)?.iter().map(|card| entries(card)).collect();
        let named = cards.iter().flatten().filter(|(id, _)| *id == own).count();
        if named > 1 {
            return Err(NotOpened::Refused(Error::ProcessNumber));
        }
        // A rank has its new interface first.
        let of_rank = |card: &Vec<(ProcessId, String)>| card.first().map(|(id, _)| *id);
        let ids: Option<Vec<ProcessId>> = cards.iter().map(of_rank).collect();
        let ids = ids.ok_or(NotOpened::Refused(Error::Failed))?;
        let mut table = Table::new();
        for (id, uri) in cards.into_iter().flatten() {
            table.insert(Name::Number(id.word()), uri);
        }
        other.iter().filter_map(|other| other.names).for_each(|names| names.set(table.clone()));
        let names = Known(Arc::new(Mutex::new(table)));
        let ranks = Some(Ranks { rank: job.rank(), ids, names: names.clone() });
        Ok(Self { endpoint, own, directory: Box::new(names), ranks, job: Some(job) })
    }

    /// Which process this is.
    #[must_use]
    pub fn own(&self) -> ProcessId {
        self.own
    }
}

/// Another interface of this process.
pub(crate) struct Sibling<'a> {
    pub(crate) id: ProcessId,
    pub(crate) uri: &'a str,
    /// Where it finds partners of its job.
    pub(crate) names: Option<&'a Known>,
}

/// The ranks of a job, as an interface has them.
pub(crate) struct Ranks {
    pub(crate) rank: u32,
    /// By ranks: the process of the interface that a rank has opened when this one was.
    pub(crate) ids: Vec<ProcessId>,
    pub(crate) names: Known,
}

/// A process and its URI, as ranks exchange them: word u64, length u32, bytes.
fn write_entry(id: ProcessId, uri: &str, card: &mut Vec<u8>) {
    card.extend(id.word().to_le_bytes());
    card.extend(u32::try_from(uri.len()).unwrap_or(u32::MAX).to_le_bytes());
    card.extend(uri.as_bytes());
}

/// All that a rank has told of itself.
pub(crate) fn entries(mut card: &[u8]) -> Vec<(ProcessId, String)> {
    let mut found = Vec::new();
    while let Some((word, rest)) = card.split_first_chunk::<8>()
        && let Some((len, rest)) = rest.split_first_chunk::<4>()
        && let Some((uri, rest)) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)
    {
        let id = ProcessId::of_word(u64::from_le_bytes(*word));
        found.push((id, String::from_utf8_lossy(uri).into_owned()));
        card = rest;
    }
    found
}

/// The processes of a job, and nobody else. They may have more interfaces later.
#[derive(Clone)]
pub(crate) struct Known(Arc<Mutex<Table>>);

impl Known {
    fn set(&self, table: Table) {
        *lock(&self.0) = table;
    }
}

impl Directory for Known {
    fn find(&mut self, name: &Name) -> Found {
        match lock(&self.0).find(name) {
            Found::NotYet => Found::Unknown,
            found => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cci_peers::Hosts;
    use std::net::Ipv4Addr;

    #[test]
    fn what_a_rank_tells_of_itself_comes_back() {
        let mut card = Vec::new();
        let told = [(ProcessId { nid: 1, pid: 2 }, "x://1".to_owned()), (ProcessId::ANY, String::new())];
        told.iter().for_each(|(id, uri)| write_entry(*id, uri, &mut card));
        assert_eq!(entries(&card), told);
        assert_eq!((entries(&card[..card.len() - 1]).len(), entries(&card[..16]).len(), entries(&[])), (1, 0, vec![]));
    }

    #[test]
    fn a_partner_is_found_where_this_side_would_be() {
        let here = Ipv4Addr::LOCALHOST;
        let far = Ipv4Addr::new(10, 0, 0, 9);
        let name = |host: Ipv4Addr, pid| Name::Number(ProcessId { nid: host.to_bits(), pid }.word());
        let mut ports = Hosts::of(NUMBERS, "x://127.0.0.1:10247", here, 7).expect("a rule");
        assert_eq!(ports.find(&name(far, 9)), Found::Uri("x://10.0.0.9:10249".into()));
        assert_eq!(ports.find(&name(far, MAX_PID)), Found::Uri("x://10.0.0.9:32767".into()));
        assert_eq!(ports.find(&name(far, MAX_PID + 1)), Found::Unknown);
        let mut services = Hosts::of(NUMBERS, "h://1345519616/7", here, 7).expect("a rule");
        assert_eq!(services.find(&name(here, 9)), Found::Uri("h://1345519616/9".into()));
        assert_eq!(services.find(&name(far, 9)), Found::Unknown);
    }
}
