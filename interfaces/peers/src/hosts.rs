//! Endpoints that are found by an IPv4 address and a small number, without a job or a table.

use crate::directory::{Directory, Found};
use crate::name::Name;
use cci::{Device, Endpoint, EndpointOptions, OpenError, Status};
use cci_mem::sync::{AtomicU32, Ordering};
use std::net::Ipv4Addr;

/// How many numbers are tried for one that is free.
const TRIES: u32 = 256;

/// Numbers that this process has been given, or passed over. Publishes nothing.
static GIVEN: AtomicU32 = AtomicU32::new(0);

/// Where a process begins to look that has been given so many numbers. Processes that a launcher
/// has begun one after the other begin far from each other: each may have many endpoints.
fn begin(process: u32, given: u32, count: u32) -> u32 {
    /// 2^32 by the golden ratio.
    const SPREAD: u32 = 0x9e37_79b9;
    let at = (u64::from(process.wrapping_mul(SPREAD)) * u64::from(count)) >> 32;
    ((at + u64::from(given)) % u64::from(count)) as u32
}

/// The numbers of an interface: number `n` of a host is at the port `first + n` where services are
/// ports, and at a service of the host elsewhere. The name of a peer is
/// [`Name::Number`]`(address << 32 | n)`.
///
/// # Example
///
/// ```
/// use cci::{Context, EndpointOptions};
/// use cci_peers::HostNumbers;
///
/// let numbers = HostNumbers::new(30_100, 16, 0x5445_5354);
/// let context = Context::new()?;
/// let options = EndpointOptions::new().disconnect_events(true);
/// let opened = numbers.open(context.default_device()?, &options, None)?;
/// assert!(opened.number < 16);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostNumbers {
    first: u16,
    count: u32,
    host_wide: u32,
}

/// An endpoint that was opened by its number.
///
/// # Example
///
/// ```
/// /// As others name it.
/// fn name(opened: &cci_peers::OpenedNumber) -> cci_peers::Name {
///     cci_peers::Name::Number(u64::from(opened.host.to_bits()) << 32 | u64::from(opened.number))
/// }
/// ```
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the parts of a place")]
pub struct OpenedNumber {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The IPv4 address by which peers find it.
    pub host: Ipv4Addr,
    /// Its number.
    pub number: u32,
    /// Where others are.
    pub directory: Hosts,
}

impl HostNumbers {
    /// Numbers 0 to `count - 1`, from port `first` on. `host_wide` tells interfaces apart where
    /// services are no ports: the number of no process of the system.
    #[must_use]
    pub const fn new(first: u16, count: u32, host_wide: u32) -> Self {
        Self { first, count, host_wide }
    }

    /// Opens the endpoint of a number, or of the first that is free. Without an address in the
    /// configuration it is on the loop-back interface, unless `CCI_LISTEN` is `network`.
    ///
    /// # Errors
    ///
    /// [`Status::Inval`]: the number is too large. [`Status::AddrNotAvail`]: another endpoint has
    /// it, or none is free. Others as [`Endpoint::open`].
    pub fn open(
        &self,
        device: &Device,
        options: &EndpointOptions,
        number: Option<u32>,
    ) -> Result<OpenedNumber, OpenError> {
        let device = local(device);
        let (endpoint, number) = match number {
            Some(number) if number >= self.count => {
                let text = format!("the number {number} is too large; choose one up to {}", self.count - 1);
                return Err(OpenError::new(Status::Inval, text));
            }
            Some(number) => (self.open_at(&device, options, number)?, number),
            None => {
                // Behind what this process has been given already: who tries a number in use waits
                // for it, since a forked child may hold it for a moment.
                let begin = begin(std::process::id(), GIVEN.fetch_add(1, Ordering::Relaxed), self.count);
                let mut found = None;
                for step in 0..TRIES.min(self.count) {
                    let number = (begin + step) % self.count;
                    if let Some(endpoint) = self.open_at(&device, options, number)? {
                        GIVEN.fetch_add(step, Ordering::Relaxed);
                        found = Some((endpoint, number));
                        break;
                    }
                }
                found.map_or((None, 0), |(endpoint, number)| (Some(endpoint), number))
            }
        };
        let taken = || OpenError::new(Status::AddrNotAvail, "another endpoint has this number; choose another one");
        let endpoint = endpoint.ok_or_else(taken)?;
        let host = host_of(endpoint.uri());
        let directory = Hosts::of(*self, endpoint.uri(), host, number).ok_or_else(|| {
            let text = format!("no rule leads from {} to other numbers; choose another device", endpoint.uri());
            OpenError::new(Status::Inval, text)
        })?;
        Ok(OpenedNumber { endpoint, host, number, directory })
    }

    /// The endpoint of a number; `None`: another one has it.
    fn open_at(&self, device: &Device, options: &EndpointOptions, number: u32) -> Result<Option<Endpoint>, OpenError> {
        let services = [(u32::from(self.first) + number).to_string(), format!("{}/{number}", self.host_wide)];
        let mut refused = None;
        for service in services {
            match Endpoint::open(device, &options.clone().service(service)) {
                Ok(endpoint) => return Ok(Some(endpoint)),
                // A service of another form.
                Err(why) if why.status == Status::Inval => refused = Some(why),
                Err(why) if why.status == Status::AddrNotAvail => return Ok(None),
                Err(why) => return Err(why),
            }
        }
        refused.map_or(Ok(None), Err)
    }
}

/// The device, within this host unless somebody has said otherwise.
fn local(device: &Device) -> Device {
    let mut device = device.clone();
    let is_open = std::env::var("CCI_LISTEN").is_ok_and(|value| value == "network");
    if let Some(driver) = cci::driver(&device.transport) {
        let given = driver.with_environment(&device.arguments);
        let is_said = given.iter().any(|(key, _)| ["listen", "ip", "interface"].contains(&key.as_str()));
        if !is_open && !is_said {
            let own = driver.loopback.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            device.arguments.extend(own);
        }
    }
    device
}

/// Returns the IPv4 address in a URI. An endpoint that has none reaches its host alone, and has
/// that of the loop-back interface.
///
/// # Example
///
/// ```
/// use std::net::Ipv4Addr;
///
/// assert_eq!(cci_peers::host_of("x://192.0.2.1:5000"), Ipv4Addr::new(192, 0, 2, 1));
/// assert_eq!(cci_peers::host_of("sm://4711/0"), Ipv4Addr::LOCALHOST);
/// ```
#[must_use]
pub fn host_of(uri: &str) -> Ipv4Addr {
    let parts = uri.split(|symbol: char| !symbol.is_ascii_digit() && symbol != '.');
    let mut found = parts.filter_map(|part| part.parse::<Ipv4Addr>().ok());
    found.find(|address| !address.is_unspecified()).unwrap_or(Ipv4Addr::LOCALHOST)
}

/// URIs by addresses of hosts and numbers: the directory of [`HostNumbers`].
///
/// # Example
///
/// ```
/// use cci_peers::{Directory, Found, HostNumbers, Hosts, Name};
///
/// let numbers = HostNumbers::new(30_100, 16, 7);
/// let own = "127.0.0.1".parse()?;
/// let mut hosts = Hosts::of(numbers, "x://127.0.0.1:30102", own, 2).ok_or("no rule")?;
/// let peer = Name::Number(0x0a00_0009 << 32 | 3);
/// assert_eq!(hosts.find(&peer), Found::Uri("x://10.0.0.9:30103".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    numbers: HostNumbers,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// A port of a host: what stands before its address.
    Port(String),
    /// This host, and what stands before the number.
    Here(u32, String),
}

impl Hosts {
    /// The rule by which an endpoint with this URI was opened. `None`: there is none.
    #[must_use]
    pub fn of(numbers: HostNumbers, uri: &str, host: Ipv4Addr, number: u32) -> Option<Self> {
        let (scheme, rest) = uri.split_once("://")?;
        let port = format!(":{}", u32::from(numbers.first) + number);
        let rule = if rest.contains(',') {
            // Of several ways the last one that has a port: a way without text has that of the
            // way before it.
            let (mut text, mut found) = ("", None);
            for way in rest.split(',').skip(1).filter(|way| !way.starts_with('+')) {
                let name;
                (name, text) = way.split_once('=').unwrap_or((way, text));
                found = if text.ends_with(&port) { Some(name) } else { found };
            }
            Rule::Port(format!("{}://", found?))
        } else if rest.ends_with(&port) {
            Rule::Port(format!("{scheme}://"))
        } else {
            Rule::Here(host.to_bits(), uri.strip_suffix(&number.to_string())?.to_owned())
        };
        Some(Self { numbers, rule })
    }

    /// Whether peers of other hosts can be named.
    #[must_use]
    pub fn reaches(&self, host: Ipv4Addr) -> bool {
        match &self.rule {
            Rule::Port(_) => true,
            Rule::Here(own, _) => *own == host.to_bits(),
        }
    }
}

impl Directory for Hosts {
    fn find(&mut self, name: &Name) -> Found {
        let Name::Number(word) = name else { return Found::Unknown };
        let (host, number) = ((*word >> 32) as u32, *word as u32);
        match &self.rule {
            _ if number >= self.numbers.count => Found::Unknown,
            Rule::Port(before) => {
                let port = u32::from(self.numbers.first) + number;
                Found::Uri(format!("{before}{}:{port}", Ipv4Addr::from_bits(host)))
            }
            Rule::Here(own, before) if *own == host => Found::Uri(format!("{before}{number}")),
            Rule::Here(..) => Found::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: HostNumbers = HostNumbers::new(10_240, 12_288, 7);

    /// Each try of a number in use would wait 50 ms.
    #[test]
    fn a_process_is_given_another_number_each_time() {
        const FEW: HostNumbers = HostNumbers::new(22_000, 512, 8);
        let device = cci_conformance::device_of("sm", &[]);
        let open = || FEW.open(&device, &EndpointOptions::new(), None).expect("a number").number;
        let numbers: std::collections::HashSet<u32> = (0..8).map(|_| open()).collect();
        assert_eq!(numbers.len(), 8, "each endpoint is closed before the next one is opened");
    }

    /// Those of a process would be in the way of the next one's.
    #[test]
    fn processes_begun_one_after_the_other_look_far_from_each_other() {
        const COUNT: u32 = 12_288;
        let begins: Vec<u32> = (4_000..4_064).map(|process| begin(process, 0, COUNT)).collect();
        for (at, one) in begins.iter().enumerate() {
            let away = begins[..at].iter().map(|other| one.abs_diff(*other));
            let nearest = away.map(|away| away.min(COUNT - away)).min();
            assert!(nearest.is_none_or(|nearest| nearest > 64), "{begins:?}");
        }
        assert_eq!((begin(7, COUNT - 1, COUNT) + 1) % COUNT, begin(7, 0, COUNT));
        assert!(begin(u32::MAX, u32::MAX, 1) == 0);
    }

    #[test]
    fn a_partner_is_found_where_this_side_would_be() {
        let here = Ipv4Addr::LOCALHOST;
        let far = Ipv4Addr::new(10, 0, 0, 9);
        let name = |host: Ipv4Addr, number: u32| Name::Number(u64::from(host.to_bits()) << 32 | u64::from(number));
        let several = "cci://q2Vb0c_S1xk.Jf83kQpa.x9E,a=4711/0,b=192.0.2.1:10247,c,+10.0.1.1";
        for (uri, found) in [
            ("x://127.0.0.1:10247", "x://10.0.0.9:10249"),
            (several, "c://10.0.0.9:10249"),
            ("cci://q2Vb0c_S1xk.Jf83kQpa.x9E,a=4711/0,b=192.0.2.1:10247", "b://10.0.0.9:10249"),
        ] {
            let mut hosts = Hosts::of(NUMBERS, uri, here, 7).expect("a rule");
            assert_eq!(hosts.find(&name(far, 9)), Found::Uri(found.into()));
            assert_eq!(hosts.find(&name(far, 12_288)), Found::Unknown);
            assert!(hosts.reaches(far));
        }
        let mut hosts = Hosts::of(NUMBERS, "h://1345519616/7", here, 7).expect("a rule");
        assert_eq!(hosts.find(&name(here, 9)), Found::Uri("h://1345519616/9".into()));
        assert_eq!((hosts.find(&name(far, 9)), hosts.reaches(far)), (Found::Unknown, false));
        assert_eq!(hosts.find(&Name::Rank(9)), Found::Unknown);
        assert_eq!(Hosts::of(NUMBERS, "cci://q2Vb0c_S1xk.Jf83kQpa.x9E,a=4711/0", here, 7), None);
        assert_eq!(host_of(several), Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(host_of("h://1345519616/7"), here);
    }
}
