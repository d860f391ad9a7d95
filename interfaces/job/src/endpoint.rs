//! The endpoint of a rank, and the names of all others (`docs/design/jobs.md`, Endpoints of a job).

use crate::error::JobError;
use crate::job::Job;
use crate::open_failed::OpenFailed;
use crate::secret::Secret;
use cci::{Context, Device, Driver, Endpoint, EndpointOptions, Names};
use std::sync::Arc;

/// The key that a rank publishes the URI of its endpoint under.
pub const URI: &str = "uri";

/// The keys of a device that say what its peers prove, and who may reach it.
const SECRET: &str = "secret";
const LISTEN: &str = "listen";
/// The key that names another secret, which then counts.
const SECRET_FILE: &str = "secret_file";
/// The key with which a device asks for less than that.
const SECURITY: &str = "security";
/// Its value for connections in clear.
const OFF: &str = "off";

/// Those that say of which address an endpoint is, if a device has them.
const PLACES: [&str; 3] = [LISTEN, "ip", "interface"];

/// The URIs of all ranks, in their order.
struct Ranks(Vec<String>);

impl Names for Ranks {
    fn resolve(&self, name: &str) -> Option<String> {
        let rank = name.strip_prefix("job:").filter(|rank| rank.bytes().all(|byte| byte.is_ascii_digit()))?;
        self.0.get(rank.parse::<usize>().ok()?).cloned()
    }
}

impl Job {
    /// Opens the endpoint of this rank on the default device of `context`, announces it
    /// ([`Job::announce`]), and sets the URIs of all ranks as the names of `context`: from then on
    /// endpoints on its devices connect to `job:0` and so on. All ranks call it, once.
    ///
    /// # Errors
    ///
    /// The endpoint cannot be opened, or as [`Job::announce`].
    ///
    /// ```no_run
    /// use cci::{Connect, Context, EndpointOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let job = cci_job::Job::join()?;
    /// let endpoint = job.open(&Context::new()?, &EndpointOptions::new())?;
    /// endpoint.connect(&Connect::to(&format!("job:{}", (job.rank() + 1) % job.size())))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(&self, context: &Context, options: &EndpointOptions) -> Result<Endpoint, OpenFailed> {
        let endpoint = Endpoint::open(&self.device(context)?, options)?;
        context.set_names(self.announce(endpoint.uri())?);
        Ok(endpoint)
    }

    /// Returns the device that endpoints of this rank are opened on: the default one of `context`.
    /// Where the job has a secret and the device can check it, peers prove it, and connections over
    /// a network are sealed with it unless the device has `security = off`. Where the job
    /// [is plain](Job::is_plain), a device without the key `security` gets that. Then endpoints of
    /// a job on several hosts listen on the network, and otherwise on the loop-back interface,
    /// unless the device or `CCI_LISTEN` states something else. For programs and interfaces that
    /// open and announce an endpoint themselves.
    ///
    /// # Errors
    ///
    /// No device is usable.
    pub fn device(&self, context: &Context) -> Result<Device, cci::OpenError> {
        Ok(self.device_like(context.default_device()?))
    }

    /// Returns what [`Job::device`] makes of the default device, of another one.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (job, context) = (cci_job::Job::join()?, cci::Context::new()?);
    /// let memory = context.devices().iter().find(|device| device.transport == "sm").ok_or("no shared memory")?;
    /// let endpoint = cci::Endpoint::open(&job.device_like(memory), &cci::EndpointOptions::new())?;
    /// job.announce(endpoint.uri())?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn device_like(&self, device: &Device) -> Device {
        let mut device = device.clone();
        if let Some(driver) = cci::driver(&device.transport) {
            let listen = std::env::var("CCI_LISTEN").ok().filter(|value| !value.is_empty());
            let is_spread = self.local().size < self.size();
            let secret = self.secret().map(|secret| (secret, self.is_plain()));
            device.arguments.extend(keys(driver, &device.arguments, listen.as_deref(), secret, is_spread));
        }
        device
    }

    /// Publishes `uri` as that of this rank's endpoint, under the key [`URI`], waits until all
    /// ranks have announced theirs, and returns these as names `job:RANK`, for
    /// [`Context::set_names`]. They are a table: who connects asks nobody.
    ///
    /// # Errors
    ///
    /// This rank has announced an endpoint before, ranks did not come or have gone, or the store is
    /// gone.
    pub fn announce(&self, uri: &str) -> Result<Arc<dyn Names>, JobError> {
        self.publish(URI, uri.as_bytes())?;
        let uris = self.exchange(uri.as_bytes())?;
        let text = |uri: Vec<u8>| String::from_utf8_lossy(&uri).into_owned();
        Ok(Arc::new(Ranks(uris.into_iter().map(text).collect())))
    }
}

/// What a job adds to the keys of a device. `listen`: the value of `CCI_LISTEN`; `secret`: that of
/// the job, and whether connections are in clear all the same; `is_spread`: the job has ranks on
/// other hosts.
fn keys(
    driver: &Driver,
    given: &[(String, String)],
    listen: Option<&str>,
    secret: Option<(&Secret, bool)>,
    is_spread: bool,
) -> Vec<(String, String)> {
    let own =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let given = driver.with_environment(given);
    let is_said = given.iter().any(|(key, _)| PLACES.contains(&key.as_str()));
    let has_file = given.iter().any(|(key, _)| key == SECRET_FILE);
    let said = given.iter().find(|(key, _)| key == SECURITY).map(|(_, value)| &**value);
    // What the device says of itself counts before what the whole job was told.
    let is_plain = driver.key(SECURITY).is_some() && said.is_none() && secret.is_some_and(|(_, is_plain)| is_plain);
    let security = if is_plain { Some(OFF) } else { said };
    let mut keys = if is_plain { own(&[(SECURITY, OFF)]) } else { Vec::new() };
    let checks = driver.key(SECRET).is_some()
        && match security {
            Some(OFF) => driver.over.is_some(),
            // Who does not have the secret of the file proves nothing, and is let in.
            Some("prefer") => driver.over.is_some() && !has_file,
            _ => true,
        };
    let Some((secret, _)) = secret.filter(|_| checks) else {
        // Whoever reaches it may connect.
        let is_open = is_said || listen == Some("network");
        keys.extend(if is_open { Vec::new() } else { own(driver.loopback) });
        return keys;
    };
    // A device over others has its peers prove that key in clear too. With `off` it reads no file.
    if security == Some(OFF) || !has_file {
        keys.extend(own(&[(SECRET, &secret.digits())]));
    }
    if is_spread && !is_said && listen.is_none() && driver.key(LISTEN).is_some() {
        keys.extend(own(&[(LISTEN, "network")]));
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::ranks;
    use cci::{Connect, ConnectError, Event};
    use std::time::Duration;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn a_name_is_a_number_below_the_size() {
        let ranks = Ranks(vec!["sm://1/1".into(), "sm://1/2".into()]);
        assert_eq!(ranks.resolve("job:1").as_deref(), Some("sm://1/2"));
        for name in
            ["job:2", "job:", "job:+1", "job: 1", "job:-1", "job:0x1", "job://1", "1", "job:99999999999999999999"]
        {
            assert_eq!(ranks.resolve(name), None, "{name}");
        }
    }

    #[test]
    fn the_network_reaches_only_endpoints_that_check_a_secret_or_shall_do_without() {
        let (auto, sock) = (cci::driver("auto").expect("one"), cci::driver("sock").expect("one"));
        let secret = Secret::from_bytes(&[0x1f; 32]).expect("memory");
        let keys = |driver, given: &[_], listen, secret: Option<&_>, is_spread| {
            keys(driver, given, listen, secret.map(|secret| (secret, false)), is_spread)
        };
        let pair = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
        let proven = pair("secret", &"1f".repeat(32));
        let spread = [&proven[..], &pair("listen", "network")].concat();
        // With a secret that the device checks.
        assert_eq!(keys(auto, &[], None, Some(&secret), true), spread);
        assert_eq!(keys(auto, &[], None, Some(&secret), false), proven);
        assert_eq!(keys(auto, &[], Some("local"), Some(&secret), true), proven);
        assert_eq!(keys(auto, &pair("listen", "local"), None, Some(&secret), true), proven);
        // Without, or on a device that checks none.
        assert_eq!(keys(auto, &[], None, None, true), pair("listen", "local"));
        assert_eq!(keys(auto, &[], Some("local"), None, true), pair("listen", "local"));
        assert_eq!(keys(sock, &[], None, Some(&secret), true), spread, "it is sealed");
        let file = pair("secret_file", "/etc/secret");
        assert_eq!(keys(auto, &file, None, Some(&secret), true), pair("listen", "network"), "one secret");
        for lax in ["off", "prefer"] {
            assert_eq!(keys(sock, &pair("security", lax), None, Some(&secret), true), pair("interface", "lo"), "{lax}");
            assert_eq!(keys(auto, &pair("security", lax), None, Some(&secret), true), spread, "{lax}: it is proven");
        }
        let off = [&file[..], &pair("security", "off")].concat();
        assert_eq!(keys(auto, &off, None, Some(&secret), true), spread, "it is proven, and the file is not read");
        let prefer = [&file[..], &pair("security", "prefer")].concat();
        assert_eq!(keys(auto, &prefer, None, Some(&secret), true), pair("listen", "local"), "strangers are let in");
        assert_eq!(keys(sock, &[], None, None, true), pair("interface", "lo"));
        // Unless somebody says so.
        for driver in [auto, sock] {
            assert_eq!(keys(driver, &[], Some("network"), None, true), []);
        }
        assert_eq!(keys(auto, &pair("listen", "network"), None, None, true), []);
        assert_eq!(keys(sock, &pair("ip", "192.0.2.1"), None, None, true), []);
    }

    #[test]
    fn a_job_in_clear_says_so_to_each_device_that_says_nothing_itself() {
        let [auto, sock, sm] = ["auto", "sock", "sm"].map(|name| cci::driver(name).expect("one"));
        let secret = Secret::from_bytes(&[0x1f; 32]).expect("memory");
        let pair = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
        let off = pair("security", "off");
        let keys = |driver, given: &[_], listen| keys(driver, given, listen, Some((&secret, true)), true);
        let proven = [&off[..], &pair("secret", &"1f".repeat(32)), &pair("listen", "network")].concat();
        assert_eq!(keys(auto, &[], None), proven, "peers prove the secret in clear");
        // A device that has no proof in clear is not for the network unless somebody says so.
        assert_eq!(keys(sock, &[], None), [&off[..], &pair("interface", "lo")].concat());
        assert_eq!(keys(sock, &[], Some("network")), off);
        assert_eq!(keys(sm, &[], None), [], "it has nothing to seal");
        for said in ["psk", "required", "prefer"] {
            let given = pair("security", said);
            let added = keys(auto, &given, None);
            assert!(added.iter().all(|(key, _)| key != SECURITY), "the device says {said}: {added:?}");
        }
    }

    /// Each rank connects to the next one, takes the request of the one before, and sends its own
    /// number on.
    fn pass_on(job: &Job) -> u8 {
        let context = Context::new().expect("devices");
        let endpoint = job.open(&context, &EndpointOptions::new()).expect("an endpoint");
        let next = format!("job:{}", (job.rank() + 1) % job.size());
        endpoint.connect(&Connect::to(&next).timeout(LIMIT)).expect("a name");
        let beyond = format!("job:{}", job.size());
        assert_eq!(endpoint.connect(&Connect::to(&beyond)), Err(ConnectError::NoRank));
        assert_eq!(job.look_up(job.rank(), URI), Ok(endpoint.uri().into()));
        let mut got = None;
        let mut is_sent = false;
        while got.is_none() || !is_sent {
            match endpoint.wait(Some(LIMIT)).expect("an endpoint").expect("an event") {
                Event::Request(request) => request.accept(0).expect("room"),
                Event::Connected(connected) => {
                    let rank = u8::try_from(job.rank()).expect("small");
                    endpoint.send(connected.connection().expect("open"), &[rank], 1).expect("room");
                }
                Event::Completed(_) => is_sent = true,
                Event::Received(message) => got = Some(message.to_vec()[0]),
                event => event.outcome().expect("nothing fails"),
            }
        }
        // Nobody closes before all have what they wait for.
        job.exchange(&[]).expect("all come");
        got.expect("the loop has it")
    }

    #[test]
    fn ranks_connect_to_each_other_by_their_numbers() {
        let got = ranks(4, |job| pass_on(&job));
        assert_eq!(got, [3, 0, 1, 2]);
    }

    #[test]
    fn a_second_endpoint_is_not_announced() {
        ranks(1, |job| {
            let context = Context::new().expect("devices");
            let _first = job.open(&context, &EndpointOptions::new()).expect("an endpoint");
            let second = job.open(&context, &EndpointOptions::new()).expect_err("it has one");
            assert!(second.to_string().contains("published that key before"), "{second}");
        });
    }

    #[test]
    fn without_a_job_a_name_is_refused() {
        let context = Context::new().expect("devices");
        let endpoint = Endpoint::open(context.default_device().expect("a device"), &EndpointOptions::new());
        let endpoint = endpoint.expect("an endpoint");
        assert_eq!(endpoint.connect(&Connect::to("job:0")), Err(ConnectError::NoJob));
    }
}
