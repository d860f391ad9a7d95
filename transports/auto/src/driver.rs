//! The record of this transport, and how the ways of an endpoint are opened.

use crate::auto::Auto;
use crate::host::Place;
use crate::protection::Protection;
use crate::secret::Secret;
use crate::uri::{LONGEST, Uri};
use crate::way::{CONNECTS, MOST_WAYS, Way};
use cci_proto::{Status, decimal};
use cci_transport::{
    Arguments, Check, Condition, Core, Discovered, Driver, Drivers, Key, LocalAddress, NameCall, OpenError, Over,
    Protect, Scope, Security, Service, Transport, TransportOptions, random,
};
use std::net::{IpAddr, SocketAddr};

/// One endpoint over several transports.
pub static DRIVER: Driver = Driver {
    name: "auto",
    scope: Scope::Network,
    rank: 0,
    priority: 15,
    is_link: false,
    uses_library: false,
    example_uri: "cci://q2Vb0c_S1xk.Jf83kQpa.x9E,sm=4711/0,sock=192.0.2.1:5000",
    keys: &[
        Key { name: "ways", check: Check::By(ways) },
        Key { name: "listen", check: Check::OneOf(&["local", "network"]) },
        LocalAddress::IP,
        Key { name: PORT, check: Check::Number(0, 65_535) },
        Key { name: "secret", check: Check::Secret(secret) },
        Security::SECURITY,
        Security::SECRET_FILE,
    ],
    loopback: &[("listen", "local")],
    discover: || vec![Discovered { name: "auto0".into(), arguments: Vec::new() }],
    inspect: |_| Condition { up: false, reason: "no other transport is in this build".into(), max_send_size: 0 },
    open,
    over: Some(Over {
        key: "ways",
        ways: |arguments, drivers| candidates(arguments, drivers).iter().map(|driver| driver.name).collect(),
        most,
        inspect,
    }),
};

/// The key of a port: of this transport, and of ways.
const PORT: &str = "port";

/// The most addresses at which the ways of the network listen.
const MOST_ADDRESSES: usize = 3;

fn secret(value: &str) -> Result<(), String> {
    Secret::parse(value).map(drop).ok_or_else(|| "write 64 hexadecimal digits, of 256 random bits".into())
}

fn ways(value: &str) -> Result<(), String> {
    let names: Vec<_> = value.split(',').map(str::trim).collect();
    let is_fine = |at: usize| !names[at].is_empty() && !names[..at].contains(&names[at]);
    if (0..names.len()).all(is_fine) { Ok(()) } else { Err("write names of transports, such as sm,sock".into()) }
}

/// The names in the key `ways`, if a device has it.
fn named(arguments: &[(String, String)]) -> Option<Vec<&str>> {
    let (_, value) = arguments.iter().rfind(|(key, _)| key == "ways")?;
    Some(value.split(',').map(str::trim).collect())
}

/// The transports that are ways, in order: as the key names them, or by scope and rank.
fn candidates(arguments: &[(String, String)], drivers: Drivers<'_>) -> Vec<&'static Driver> {
    let mut found: Vec<&'static Driver> = match named(arguments) {
        Some(names) => {
            let of = |name: &&str| drivers.iter().find(|driver| driver.name == *name && driver.over.is_none()).copied();
            names.iter().filter_map(of).collect()
        }
        None => {
            let mut found: Vec<_> =
                drivers.iter().filter(|driver| driver.rank > 0 && driver.over.is_none()).copied().collect();
            found.sort_by_key(|driver| (driver.scope, u8::MAX - driver.rank));
            found
        }
    };
    found.truncate(MOST_WAYS);
    found
}

/// The most ways that an endpoint opens: those of the network at each of its addresses.
fn most(arguments: &[(String, String)], drivers: Drivers<'_>, service: Option<&str>) -> usize {
    let candidates = candidates(arguments, drivers);
    let networks = candidates.iter().filter(|driver| takes_address(driver)).count();
    let listen = Arguments::check(&DRIVER, arguments).and_then(|arguments| Listen::new(arguments, service));
    // What is wrong is said when the endpoint is opened.
    let others = listen.map_or(0, |listen| listen.other_addresses(&candidates).len());
    (candidates.len() + others * networks).min(MOST_WAYS)
}

/// Whether a way of this transport listens at an address that it is told.
fn takes_address(driver: &Driver) -> bool {
    driver.scope == Scope::Network && driver.key("ip").is_some()
}

/// Whether the environment says where a way listens.
fn says_where(driver: &Driver, own: &[(String, String)]) -> bool {
    driver.with_environment(own).iter().any(|(key, _)| key == "ip" || key == "interface")
}

/// Up if a way is. The largest message is that of the smallest way, because programs size by it.
fn inspect(arguments: &[(String, String)], drivers: Drivers<'_>) -> Condition {
    let (mut up, mut down) = (Vec::new(), absent(arguments, drivers));
    let mut most = None::<u32>;
    for driver in candidates(arguments, drivers) {
        let condition = (driver.inspect)(&keys_of(driver, false));
        if condition.up {
            up.push(driver.name);
            most = Some(most.map_or(condition.max_send_size, |most| most.min(condition.max_send_size)));
        } else {
            down.push(format!("{}: {}", driver.name, condition.reason));
        }
    }
    let mut reason = if up.is_empty() { "no way is usable".into() } else { format!("the best of {}", up.join(", ")) };
    for why in down {
        reason = format!("{reason}; {why}");
    }
    Condition { up: !up.is_empty(), reason, max_send_size: most.unwrap_or(0) }
}

/// A sentence about each name in the key that is no way.
fn absent(arguments: &[(String, String)], drivers: Drivers<'_>) -> Vec<String> {
    let is_way = |name: &&str| drivers.iter().any(|driver| driver.name == *name && driver.over.is_none());
    let names = named(arguments).unwrap_or_default().into_iter().filter(|name| !is_way(name));
    names.map(|name| format!("{name}: this build has no such transport")).collect()
}

/// The keys of a way.
fn keys_of(driver: &Driver, is_network: bool) -> Vec<(String, String)> {
    if is_network || driver.scope != Scope::Network {
        return Vec::new();
    }
    let connects = driver.key(CONNECTS.0).is_some().then_some(&CONNECTS);
    driver.loopback.iter().chain(connects).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// The keys of a way of an endpoint that listens so. A way within this host has the port too where
/// it takes one: `cci://HOST:PORT` leads to it ([`crate::port`]).
fn keys_for(driver: &Driver, listen: &Listen) -> Vec<(String, String)> {
    if driver.scope < Scope::Network {
        let port = listen.port.as_deref().filter(|port| *port != "0" && driver.key(PORT).is_some());
        return port.map(|port| (PORT.to_owned(), port.to_owned())).into_iter().collect();
    }
    let mut own = keys_of(driver, listen.is_network);
    if let Some(ip) = listen.ip.filter(|_| !listen.is_network && takes_address(driver)) {
        own.retain(|(key, _)| key != "ip" && key != "interface");
        own.push(("ip".to_owned(), ip.to_string()));
    }
    own
}

/// The keys of a way of the network, with the address of the way before, or that by which this host
/// is reached. A transport may listen on the loop-back interface unless it is told otherwise.
fn with_address(
    mut own: Vec<(String, String)>,
    driver: &Driver,
    listen: &Listen,
    before: Option<SocketAddr>,
) -> Vec<(String, String)> {
    let is_said = !listen.is_named && says_where(driver, &own);
    if listen.is_network && takes_address(driver) && !is_said {
        // Without an address the transport says what it lacks.
        let ip = before.map(|before| before.ip()).or_else(|| listen.first_address());
        own.extend(ip.map(|ip| ("ip".to_owned(), ip.to_string())));
    }
    own
}

/// What a service, a device and the environment say of who may reach an endpoint.
struct Listen {
    is_network: bool,
    port: Option<String>,
    /// The service names the address.
    is_named: bool,
    /// The only address; where the network is not open, one of the loop-back interface.
    ip: Option<IpAddr>,
}

impl Listen {
    fn new(arguments: Arguments<'_>, service: Option<&str>) -> Result<Self, OpenError> {
        let refused = |what: String| OpenError::new(Status::Inval, what);
        let (named, port) = match service {
            Some(text) => {
                let Service { ip, port } = Service::parse(text)?;
                let port: u16 = decimal(port).ok_or_else(|| Service::refusal(text))?;
                (ip, Some(port.to_string()))
            }
            None => (None, arguments.text(PORT).map(str::to_owned)),
        };
        let variable = std::env::var("CCI_LISTEN").ok().filter(|value| !value.is_empty());
        let said = match (arguments.text("listen"), variable.as_deref()) {
            (Some(value), _) => Some(value == "network"),
            (None, Some("network")) => Some(true),
            (None, Some("local")) => Some(false),
            (None, Some(other)) => {
                return Err(refused(format!("CCI_LISTEN: '{other}' is not a value; write network or local")));
            }
            (None, None) => None,
        };
        let Some(ip) = named else {
            let is_network = said.unwrap_or(service.is_some());
            let ip = LocalAddress::given_ip(&arguments)?.filter(|_| is_network);
            return Ok(Self { is_network, port, is_named: false, ip });
        };
        let is_network = !ip.is_loopback();
        if is_network && said == Some(false) {
            return Err(refused(format!(
                "the service names the address {ip}, but listen is local; name a loop-back address such as 127.0.0.1, \
                 or set listen = network"
            )));
        }
        Ok(Self { is_network, port, is_named: true, ip: Some(ip) })
    }

    /// The address at which each way of the network listens.
    fn first_address(&self) -> Option<IpAddr> {
        let found = || LocalAddress::of_network().first().copied();
        let here = || LocalAddress::choose(None, None).ok().map(|local| local.ip);
        self.ip.or_else(found).or_else(here)
    }

    /// Other addresses at which they listen, as far as the URI has room.
    fn other_addresses(&self, candidates: &[&'static Driver]) -> Vec<IpAddr> {
        let is_said =
            self.ip.is_some() || candidates.iter().any(|driver| takes_address(driver) && says_where(driver, &[]));
        if !self.is_network || is_said {
            return Vec::new();
        }
        LocalAddress::of_network().into_iter().take(MOST_ADDRESSES).skip(1).collect()
    }
}

fn open(core: &Core, options: &TransportOptions<'_>) -> Result<Box<dyn Transport>, OpenError> {
    let arguments = Arguments::check(&DRIVER, options.arguments)?;
    let listen = Listen::new(arguments, options.service)?;
    let system = |refused| OpenError::call("cannot open an auto endpoint", refused);
    let (mut ways, mut down) = (Vec::new(), absent(options.arguments, options.drivers));
    let protection = Protection::of(&arguments)?;
    let candidates = protection.offered(candidates(options.arguments, options.drivers), &mut down);
    let most = usize::from(core.way_count());
    for driver in candidates.iter().copied().take(most) {
        let before = ways.iter().rev().find_map(Way::address);
        let mut own = with_address(keys_for(driver, &listen), driver, &listen, before);
        protection.extend(&mut own, driver);
        let service = listen.port.as_deref().filter(|_| driver.scope == Scope::Network);
        let open = |service: Option<&str>| open_way(core, (driver, &own, service), options, ways.len());
        // One port for all ways, where nobody has it: firewalls and people know one number.
        let same_port = before.filter(|_| service.is_none() && driver.scope == Scope::Network);
        let opened = same_port.and_then(|before| open(Some(&before.port().to_string())).ok());
        match opened.map_or_else(|| open(service), Ok) {
            Ok(transport) => ways.push(Way::new(driver, transport)),
            // The port is what the program gives to others.
            Err(error) if service.is_some() && error.status != Status::Inval => return Err(error),
            Err(error) => down.push(format!("{}: {error}", driver.name)),
        }
    }
    if ways.is_empty() {
        let what = format!("no way can be opened; {}", down.join("; "));
        return Err(OpenError::new(Status::NoDev, what));
    }
    let place = Place::here();
    let secret = arguments.text("secret").and_then(Secret::parse);
    let [drawn] = random().by("getrandom").map_err(system)?;
    let identity = secret.as_ref().map_or(drawn, |secret| secret.mark(drawn));
    let first_count = ways.len();
    let mut more = Vec::new();
    for ip in listen.other_addresses(&candidates) {
        let rests = ways.iter().take(first_count).map(|way| (way.name, way.rest())).collect();
        let all = more.iter().copied().chain([ip]).collect();
        if !(Uri { identity, place, ways: rests, more: all }).write().ends_with(&format!("+{ip}")) {
            continue;
        }
        for at in 0..first_count {
            let Way { driver, .. } = ways[at];
            let port = ways[at].address().filter(|_| takes_address(driver)).map(|at| at.port().to_string());
            let Some(port) = port.filter(|_| ways.len() < most) else { continue };
            let mut own = vec![("ip".to_owned(), ip.to_string())];
            protection.extend(&mut own, driver);
            match open_way(core, (driver, &own, Some(&port)), options, ways.len()) {
                Ok(transport) => ways.push(Way::new(driver, transport)),
                Err(error) => down.push(format!("{} {ip}: {error}", driver.name)),
            }
        }
        if ways.iter().skip(first_count).any(|way| way.address().is_some_and(|at| at.ip() == ip)) {
            more.push(ip);
        }
    }
    let rests = ways.iter().take(first_count).map(|way| (way.name, way.rest())).collect();
    let uri = Uri { identity, place, ways: rests, more }.write();
    debug_assert!(uri.len() <= LONGEST);
    Ok(Box::new(Auto::new(ways, uri, (identity, place), down, secret).map_err(system)?))
}

/// Opens a way with these keys and this service, as the one of this number.
fn open_way(
    core: &Core,
    (driver, own, service): (&'static Driver, &[(String, String)], Option<&str>),
    options: &TransportOptions<'_>,
    number: usize,
) -> Result<Box<dyn Transport>, OpenError> {
    core.set_opening_way(u8::try_from(number).unwrap_or(u8::MAX));
    let options = TransportOptions {
        service,
        threading: options.threading,
        ..TransportOptions::new(own, (driver.inspect)(own).max_send_size)
    };
    let transport = (driver.open)(core, &options)?;
    if driver.scope == Scope::Network && !driver.seals() {
        core.note_protection(Protect::Plain);
    }
    Ok(transport)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::way::connects_outward;

    fn refuse(_: &Core, _: &TransportOptions<'_>) -> Result<Box<dyn Transport>, OpenError> {
        Err(OpenError::new(Status::NoDev, "there is none"))
    }

    const fn driver(name: &'static str, scope: Scope, rank: u8, most: fn(&[(String, String)]) -> Condition) -> Driver {
        Driver {
            name,
            scope,
            rank,
            priority: 0,
            is_link: true,
            uses_library: false,
            example_uri: "none://1",
            keys: &[],
            loopback: &[("interface", "lo")],
            discover: Vec::new,
            inspect: most,
            open: refuse,
            over: None,
        }
    }

    fn of(max_send_size: u32) -> Condition {
        Condition { up: max_send_size > 0, reason: "it is so".into(), max_send_size }
    }

    static NEAR: Driver = driver("near", Scope::Host, 5, |_| of(9000));
    static FAR: Driver = driver("far", Scope::Network, 5, |_| of(8000));
    static BEST: Driver =
        Driver { keys: &[Key { name: "connect", check: Check::Text }], ..driver("best", Scope::Network, 9, |_| of(0)) };
    static NONE: Driver = driver("none", Scope::Process, 0, |_| of(1));
    static ALL: [&Driver; 5] = [&FAR, &BEST, &NONE, &NEAR, &DRIVER];

    fn keys(ways: &str) -> Vec<(String, String)> {
        vec![("ways".into(), ways.into())]
    }

    fn names(arguments: &[(String, String)]) -> Vec<&'static str> {
        candidates(arguments, &ALL).iter().map(|driver| driver.name).collect()
    }

    #[test]
    fn ways_come_in_the_order_of_scope_and_rank_or_of_the_key() {
        assert_eq!(names(&[]), ["near", "best", "far"]);
        assert_eq!(names(&keys("far, near")), ["far", "near"]);
        assert_eq!(names(&keys("none,auto,other")), ["none"], "a rank does not exclude what is named");
        let over = DRIVER.over.expect("it stands over others");
        assert_eq!((over.ways)(&[], &ALL), ["near", "best", "far"]);
        assert!(DRIVER.key(over.key).is_some());
    }

    #[test]
    fn a_device_is_up_if_a_way_is_and_takes_what_each_way_takes() {
        let condition = inspect(&[], &ALL);
        assert_eq!(
            condition,
            Condition { up: true, reason: "the best of near, far; best: it is so".into(), max_send_size: 8000 }
        );
        let condition = inspect(&keys("best,pigeon"), &ALL);
        assert!(!condition.up);
        assert_eq!(condition.reason, "no way is usable; pigeon: this build has no such transport; best: it is so");
    }

    #[test]
    fn the_key_takes_names_once() {
        let key = DRIVER.key("ways").expect("a key");
        assert!(["sm", "sm,sock", " sm , sock "].iter().all(|value| key.check.accept(value).is_ok()));
        assert!(["", ",", "sm,", "sm,sm"].iter().all(|value| key.check.accept(value).is_err()));
    }

    #[test]
    fn the_network_opens_only_if_somebody_says_so() {
        let listen_at = |pairs: &[(&str, &str)], service: &str| {
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            Listen::new(Arguments::check(&DRIVER, &pairs).expect("right"), Some(service))
        };
        let listen = |pairs: &[(&str, &str)], service| {
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let arguments = Arguments::check(&DRIVER, &pairs).expect("right");
            Listen::new(arguments, service).map(|listen| (listen.is_network, listen.port))
        };
        let port = |port: &str| Some(port.to_owned());
        assert_eq!(listen(&[], None).expect("fine"), (false, None));
        assert_eq!(listen(&[("port", "5")], None).expect("fine"), (false, port("5")));
        assert_eq!(listen(&[], Some("5000")).expect("fine"), (true, port("5000")));
        assert_eq!(listen(&[("listen", "local")], Some("5000")).expect("fine"), (false, port("5000")));
        assert_eq!(listen(&[("listen", "network")], None).expect("fine"), (true, None));
        let at = |service| {
            let listen = listen_at(&[], service).expect(service);
            (listen.is_network, listen.port, listen.ip.map(|ip| ip.to_string()))
        };
        let address = |ip: &str| Some(ip.to_owned());
        assert_eq!(at("127.0.0.1:5000"), (false, port("5000"), address("127.0.0.1")));
        assert_eq!(at("[::1]:5000"), (false, port("5000"), address("::1")));
        assert_eq!(at("localhost:0"), (false, port("0"), address("127.0.0.1")));
        assert_eq!(at("192.0.2.1:5000"), (true, port("5000"), address("192.0.2.1")));
        let contradiction = listen(&[("listen", "local")], Some("192.0.2.1:5000")).expect_err("a contradiction");
        assert!(contradiction.to_string().contains("listen is local"), "{contradiction}");
        for service in ["1234/0", "", "65536", "localhost", "tcp://127.0.0.1:5000", "127.0.0.1", "127.0.0.1:"] {
            let error = listen(&[], Some(service)).expect_err("no port");
            assert_eq!(error.status, Status::Inval);
            assert!(error.to_string().contains(&format!("'{service}'")), "{error}");
            assert!(error.to_string().contains("such as 127.0.0.1:5000"), "{error}");
        }
        let pairs = [("listen", "network"), ("ip", "192.0.2.7")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let only = Listen::new(Arguments::check(&DRIVER, &pairs).expect("right"), None).expect("fine");
        assert_eq!(only.first_address(), Some(IpAddr::from([192, 0, 2, 7])));
        assert!(only.other_addresses(&[]).is_empty());
        assert_eq!((most(&keys("near,far"), &ALL, None), most(&keys("near,far"), &ALL, Some("x"))), (2, 2));
        assert!(keys_of(&FAR, true).is_empty() && keys_of(&NEAR, false).is_empty());
        let pairs = |pairs: &[(&str, &str)]| -> Vec<_> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(keys_of(&FAR, false), pairs(&[("interface", "lo")]));
        assert_eq!(keys_of(&BEST, false), pairs(&[("interface", "lo"), ("connect", "network")]));
        assert!(!connects_outward(&FAR) && connects_outward(&BEST));
    }
}
