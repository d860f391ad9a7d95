//! Network name spaces: made, joined by cables, entered.

use crate::sys::unshare;
use crate::{device_of, open};
use cci::Endpoint;
use rustix::process::{getgid, getuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};

/// Puts this process, which has one thread yet, into a network name space of its own, and where it
/// is not the superuser's into a user name space in which it is.
///
/// # Errors
///
/// The system does not let us: why, as a sentence.
pub fn enter() -> Result<(), String> {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    let user = if uid == 0 { UnshareFlags::empty() } else { UnshareFlags::NEWUSER };
    unshare(user | UnshareFlags::NEWNET)
        .map_err(|error| format!("this user may not make network name spaces ({error})"))?;
    if uid != 0 {
        let written = fs::write("/proc/self/setgroups", "deny")
            .and_then(|()| fs::write("/proc/self/uid_map", format!("0 {uid} 1")))
            .and_then(|()| fs::write("/proc/self/gid_map", format!("0 {gid} 1")));
        written.map_err(|error| format!("this user may not become the superuser of a name space ({error})"))?;
    }
    Ok(())
}

/// Whether there is such a program.
#[must_use]
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(Into::into);
    std::env::split_paths(&path).chain(system).any(|folder| folder.join(program).is_file())
}

/// Whether the process that asks may make network name spaces; says so where it may not.
#[expect(clippy::print_stderr, reason = "a test that cannot run says so")]
#[must_use]
pub fn may_be_made() -> bool {
    let can = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
    let may = can.is_ok_and(|status| status.success());
    if !may {
        eprintln!("skipped: this user may not make network name spaces");
    }
    may
}

/// A network name space, which ends with this value and what was opened in it.
pub struct Net(File);

impl Net {
    /// A new one, with its loop-back interface up.
    ///
    /// # Panics
    ///
    /// The system does not let us.
    #[expect(clippy::new_without_default, reason = "it asks the system for something")]
    #[must_use]
    pub fn new() -> Self {
        let made = std::thread::spawn(|| {
            unshare(UnshareFlags::NEWNET).expect("a name space");
            File::open("/proc/thread-self/ns/net").expect("the thread's name space")
        });
        let net = Self(made.join().expect("a thread that makes a name space"));
        net.run(&["ip link set lo up"]);
        net
    }

    /// Runs something in here.
    ///
    /// # Panics
    ///
    /// The system does not let us, or `act` does.
    pub fn enter<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network)).expect("entering");
                act()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// As [`Net::enter`], with these lines in place of the host's table of names (`/etc/hosts`).
    /// The threads that the first one starts see them too.
    ///
    /// # Errors
    ///
    /// This user may not mount files: why, as a sentence.
    ///
    /// # Panics
    ///
    /// The system does not let us enter, or `act` does.
    pub fn enter_with_hosts<T: Send>(&self, lines: &str, act: impl FnOnce() -> T + Send) -> Result<T, String> {
        let path = std::env::temp_dir().join(format!("cci-hosts-{}", std::process::id()));
        fs::write(&path, lines).expect("a file");
        let (target, done) = (path.display().to_string(), path.clone());
        let result = self.enter(move || {
            unshare(UnshareFlags::NEWNS).map_err(|error| format!("no name space of mounts ({error})"))?;
            for words in [&["--make-rprivate", "/"][..], &["--bind", &target, "/etc/hosts"]] {
                let output = Command::new("mount").args(words).output().map_err(|error| error.to_string())?;
                if !output.status.success() {
                    return Err(format!("no mount: {}", String::from_utf8_lossy(&output.stderr).trim()));
                }
            }
            Ok(act())
        });
        let _ = fs::remove_file(done);
        result
    }

    /// A path by which other processes find it while this one lives.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Runs many commands of `ip` in here at once, one a line, without the word `ip`.
    ///
    /// # Panics
    ///
    /// One fails.
    pub fn batch(&self, lines: &str) {
        let output = self.enter(|| {
            let mut child = Command::new("ip")
                .args(["-batch", "-"])
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("ip");
            // Its end tells if it did not read them.
            let _ = child.stdin.take().map(|mut input| input.write_all(lines.as_bytes()));
            child.wait_with_output().expect("the end of ip")
        });
        assert!(output.status.success(), "ip: {}", String::from_utf8_lossy(&output.stderr).trim());
    }

    /// Runs commands in here, words between single spaces.
    ///
    /// # Panics
    ///
    /// One fails.
    pub fn run(&self, commands: &[&str]) {
        self.enter(|| {
            for command in commands {
                let mut words = command.split(' ');
                let output = Command::new(words.next().unwrap_or("")).args(words).output().expect("a command");
                assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
            }
        });
    }

    /// Sets a variable of IPv4 in here, a path below `/proc/sys/net/ipv4`.
    ///
    /// # Panics
    ///
    /// There is no such variable, or it cannot have this value.
    pub fn set(&self, variable: &str, value: &str) {
        // Which one this names depends on where the thread is that opens it.
        self.enter(|| fs::write(format!("/proc/sys/net/ipv4/{variable}"), value).expect("a variable of the system"));
    }

    /// Sets a variable by its whole path, if the kernel has it.
    pub fn set_if_there(&self, path: &str, value: &str) {
        // One that is not there needs no value.
        self.enter(|| drop(fs::write(path, value)));
    }

    /// Loads rules of nftables in here.
    ///
    /// # Panics
    ///
    /// The rules are wrong, or nft is missing.
    pub fn rules(&self, rules: &str) {
        self.enter(|| {
            let output = Command::new("nft").arg(rules).output().expect("nft");
            assert!(output.status.success(), "{rules}: {}", String::from_utf8_lossy(&output.stderr));
        });
    }

    /// How many frames the rules with a counter in this chain of a table of IPv4 were applied to.
    ///
    /// # Panics
    ///
    /// nft is missing.
    #[must_use]
    pub fn counted(&self, table: &str, chain: &str) -> u64 {
        let output =
            self.enter(|| Command::new("nft").args(["list", "chain", "ip", table, chain]).output().expect("nft"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let counts = text.split("packets ").skip(1).filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        counts.sum()
    }

    /// Joins this one to another by a cable of this MTU: names of the ends, and their addresses
    /// with lengths of prefixes; no address where the text is empty. Frames leave one by one, as on
    /// a wire, so that each can be lost by itself.
    ///
    /// # Panics
    ///
    /// An end of that name is there already, or an address is wrong.
    pub fn join(&self, end: (&str, &str), other: &Self, other_end: (&str, &str), mtu: u32) {
        let there = other.path();
        let [(near, _), (far, _)] = [end, other_end];
        self.run(&[&format!("ip link add {near} mtu {mtu} type veth peer name {far} mtu {mtu} netns {there}")]);
        for (net, (name, address)) in [(self, end), (other, other_end)] {
            if !address.is_empty() {
                net.run(&[&format!("ip addr add {address} dev {name}")]);
            }
            net.run(&[&format!("ip link set {name} gso_max_segs 1 up")]);
        }
    }

    /// An endpoint of `sock` in here, on this interface.
    ///
    /// # Panics
    ///
    /// There is no such interface.
    #[must_use]
    pub fn endpoint(&self, interface: &str) -> Endpoint {
        self.enter(|| open(&device_of("sock", &[("interface", interface)])))
    }
}

/// Two of them, joined: `v0` with 10.0.0.1 there, `v1` with 10.0.0.2 here.
///
/// # Panics
///
/// The system does not let us.
#[must_use]
pub fn pair(mtu: u32) -> [Net; 2] {
    let nets = [Net::new(), Net::new()];
    nets[0].join(("v0", "10.0.0.1/24"), &nets[1], ("v1", "10.0.0.2/24"), mtu);
    nets
}

/// Gives two name spaces the names a and b for `ip netns exec`, in a mount name space that ends
/// with the command.
const NAMED: &str = "mount -t tmpfs none /run && mkdir /run/netns || exit 1
    for name in a b; do touch /run/netns/$name && mount --bind $1 /run/netns/$name || exit 1; shift; done
    exec \"$@\"";

/// A command whose arguments are another one with its arguments, for which `ip netns exec` knows
/// these two as a and b.
#[must_use]
pub fn named(nets: [&Net; 2]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", NAMED, "sh"]).args(nets.map(Net::path));
    command
}
