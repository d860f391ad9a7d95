//! Processes of a test that have one secret, and strangers: whether an interface is sealed, as its
//! users have it.
//!
//! ```text
//!  test --+--> server    CCI_SECRET_FILE             opens, prints its address, serves
//!         +--> stranger  another secret              is refused
//!         +--> stranger  none                        is refused: the server takes nothing in clear
//!         '--> member    $XDG_CONFIG_HOME/cci/secret is served
//! ```
//!
//! An interface does not report what protects a connection. But an endpoint that has refused
//! whoever speaks in clear, and then has served a member, has a sealed connection with that member.

use crate::{LIMIT, Peer, readable};
use cci::{Context, Device};
use std::fs::{OpenOptions, create_dir_all};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// The transports that cross a network, and that can seal.
pub const TRANSPORTS: [&str; 2] = ["sock", "tcp"];

/// How long a server sleeps that looks now and then whether its test is over.
pub const PAUSE: Duration = Duration::from_millis(1);

/// The variables that make a run of a test one of its processes: `serve`, or `call` and whom.
const ROLE: &str = "CCI_TEST_SEALED";
const SERVER: &str = "CCI_TEST_SEALED_SERVER";
/// How lines of such a process begin, among those of the harness.
const MARK: &str = "sealed: ";
/// How long a stranger tries: the answers of this host take a fraction of it.
const SHORT: Duration = Duration::from_secs(1);

/// Which secret a process finds, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secret {
    /// That of the group, by `CCI_SECRET_FILE`.
    Named,
    /// That of the group, in the file of the user.
    Home,
    /// Another one, by `CCI_SECRET_FILE`.
    Other,
    /// There is none.
    Missing,
}

/// Two secrets, in files of mode 0600, and the homes of users with and without one.
#[derive(Debug)]
pub struct Secrets(TempDir);

impl Secrets {
    /// Writes the files.
    ///
    /// # Panics
    ///
    /// They cannot be written.
    #[must_use]
    pub fn new() -> Self {
        let secrets = Self(tempfile::tempdir().expect("a folder"));
        create_dir_all(secrets.path("home/cci")).expect("a folder");
        create_dir_all(secrets.path("nobody")).expect("a folder");
        for (name, digits) in [("named", "5e"), ("home/cci/secret", "5e"), ("other", "07")] {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(secrets.path(name));
            file.and_then(|mut file| file.write_all(digits.repeat(32).as_bytes())).expect("a file");
        }
        secrets
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("a path of letters").to_owned()
    }

    /// Variables of the environment for a process that has this secret, and whose default device is
    /// that of a transport on the loop-back interface with more lines in its section.
    ///
    /// # Panics
    ///
    /// The configuration cannot be written.
    #[must_use]
    pub fn variables(&self, secret: Secret, transport: &str, lines: &str) -> Vec<(&'static str, String)> {
        let configuration = tempfile::Builder::new().prefix(transport).suffix(".ini").tempfile_in(self.0.path());
        let (_, configuration) = configuration.expect("a file").keep().expect("its folder goes with this");
        let text = format!("[device]\ntransport = {transport}\nip = 127.0.0.1\n{lines}");
        std::fs::write(&configuration, text).expect("a configuration");
        let file = match secret {
            Secret::Named => self.text("named"),
            Secret::Other => self.text("other"),
            Secret::Home | Secret::Missing => String::new(),
        };
        let home = if secret == Secret::Home { "home" } else { "nobody" };
        let configuration = configuration.to_str().expect("a path of letters").to_owned();
        // Empty ones count as unset.
        let unset = ["CCI_CTP", "CCI_LISTEN"].map(|name| (name, String::new()));
        let set = [("CCI_CONFIG", configuration), ("CCI_SECRET_FILE", file), ("XDG_CONFIG_HOME", self.text(home))];
        unset.into_iter().chain(set).collect()
    }
}

impl Default for Secrets {
    fn default() -> Self {
        Self::new()
    }
}

/// The process of a test that serves.
#[derive(Debug)]
pub struct Serving(());

impl Serving {
    /// Prints where the process is found, in words of the interface.
    ///
    /// # Panics
    ///
    /// The test has ended.
    pub fn announce(&self, address: &str) {
        say(address);
    }

    /// Sleeps at most that long. False: the test is over.
    ///
    /// # Panics
    ///
    /// Standard input cannot be polled.
    #[must_use]
    pub fn goes_on(&self, sleep: Duration) -> bool {
        !readable(std::io::stdin(), sleep)
    }
}

/// Runs the test `name` of the calling program as a server, a member and two strangers, over each
/// of [`TRANSPORTS`].
///
/// `serve` opens the interface on a device, announces where, and serves while the test goes on. It
/// returns how often it has served the exchange of `call`. `call` opens the interface on a device
/// too, and makes one exchange with the server at that place within a time. It asserts what comes
/// back, and returns the sentence with which it was refused.
///
/// # Panics
///
/// A member is refused, a stranger is not, or a process does not know that it is sealed.
pub fn check(
    name: &str,
    serve: fn(&Device, &Serving) -> usize,
    call: fn(&Device, &str, Duration) -> Result<(), String>,
) {
    let Ok(role) = std::env::var(ROLE) else {
        TRANSPORTS.iter().for_each(|transport| check_over(name, transport));
        return;
    };
    let context = Context::new().expect("devices");
    let device = context.default_device().expect("a device");
    say(&device.protection().expect("a secret that can be used, or none"));
    if role == "serve" {
        say(&serve(device, &Serving(())).to_string());
        return;
    }
    let server = std::env::var(SERVER).expect("whom to call");
    let limit = if role == "stranger" { SHORT } else { LIMIT };
    say(&call(device, &server, limit).err().unwrap_or_default());
}

fn check_over(name: &str, transport: &str) {
    let secrets = Secrets::new();
    let program = std::env::current_exe().expect("this program");
    let program = program.to_str().expect("a path of letters");
    let start = |secret, role: &str, server: &str| {
        let mut variables = secrets.variables(secret, transport, "");
        variables.extend([(ROLE, role.to_owned()), (SERVER, server.to_owned())]);
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut process = Peer::spawn_with(program, "--exact", &[name, "--nocapture"], &variables);
        let protection = said(&mut process);
        let expected = match secret {
            Secret::Named => secrets.text("named"),
            Secret::Home => secrets.text("home/cci/secret"),
            Secret::Other => secrets.text("other"),
            Secret::Missing => "plain, since there is no secret".to_owned(),
        };
        assert!(protection.contains(&expected), "{name} over {transport}, {secret:?}: {protection}");
        process
    };
    let mut server = start(Secret::Named, "serve", "");
    let address = said(&mut server);
    let call = |secret, role| said(&mut start(secret, role, &address));
    for secret in [Secret::Other, Secret::Missing] {
        assert_ne!(call(secret, "stranger"), "", "{name} over {transport}: {secret:?} is not refused");
    }
    assert_eq!(call(Secret::Home, "member"), "", "{name} over {transport}: a member is refused");
    server.tell("over");
    assert_eq!(said(&mut server), "1", "{name} over {transport}: exchanges that the server has served");
    assert!(server.wait().success(), "{name} over {transport}");
}

/// A line for the test.
fn say(line: &str) {
    let mut output = std::io::stdout();
    // The harness may have begun a line.
    writeln!(output, "\n{MARK}{line}").and_then(|()| output.flush()).expect("the test reads");
}

/// The next line that a process of the test has for it.
fn said(process: &mut Peer) -> String {
    loop {
        let line = process.line();
        if let Some(line) = line.strip_prefix(MARK.trim_end()) {
            return line.trim_start().to_owned();
        }
    }
}
