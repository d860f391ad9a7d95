//! Network name spaces: made, joined by cables, entered.

use cci::Endpoint;
use cci_testkit::{device_of, open};
use rustix::process::{getgid, getuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;

/// Puts this process, which has one thread yet, into a network name space of its own, and where it is not the superuser's into a
/// user name space in which it is.
///
/// # Errors
///
/// The system does not let us: why, as a sentence.
pub(crate) fn enter() -> Result<(), String> {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    let user = if uid == 0 { UnshareFlags::empty() } else { UnshareFlags::NEWUSER };
    // SAFETY: descriptors are not unshared.
    unsafe { rustix::thread::unshare_unsafe(user | UnshareFlags::NEWNET) }
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
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(Into::into);
    std::env::split_paths(&path).chain(system).any(|folder| folder.join(program).is_file())
}

/// A network name space, which ends with this value and what was opened in it.
pub(crate) struct Net(File);

impl Net {
    /// A new one, with its loop-back interface up.
    pub(crate) fn new() -> Self {
        let made = std::thread::spawn(|| {
            // SAFETY: descriptors are not unshared.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.expect("a name space");
            File::open("/proc/thread-self/ns/net").expect("the thread's name space")
        });
        let net = Self(made.join().expect("a thread that makes a name space"));
        net.run(&["ip link set lo up"]);
        net
    }

    /// Runs something in here.
    pub(crate) fn enter<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network)).expect("entering");
                act()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs commands in here, words between single spaces.
    pub(crate) fn run(&self, commands: &[&str]) {
        self.enter(|| {
            for command in commands {
                let mut words = command.split(' ');
                let output = Command::new(words.next().unwrap_or("")).args(words).output().expect("a command");
                assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
            }
        });
    }

    /// Sets a variable of IPv4 in here, a path below `/proc/sys/net/ipv4`.
    pub(crate) fn set(&self, variable: &str, value: &str) {
        // Which one this names depends on where the thread is that opens it.
        self.enter(|| fs::write(format!("/proc/sys/net/ipv4/{variable}"), value).expect("a variable of the system"));
    }

    /// Loads rules of nftables in here.
    pub(crate) fn rules(&self, rules: &str) {
        self.enter(|| {
            let output = Command::new("nft").arg(rules).output().expect("nft");
            assert!(output.status.success(), "{rules}: {}", String::from_utf8_lossy(&output.stderr));
        });
    }

    /// How many frames the rules with a counter in this chain of a table of IPv4 were applied to.
    pub(crate) fn counted(&self, table: &str, chain: &str) -> u64 {
        let output =
            self.enter(|| Command::new("nft").args(["list", "chain", "ip", table, chain]).output().expect("nft"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let counts = text.split("packets ").skip(1).filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        counts.sum()
    }

    /// Joins this one to another by a cable of this MTU: names of the ends, and their addresses with lengths of prefixes; no
    /// address where the text is empty. Frames leave one by one, as on a wire, so that each can be lost by itself.
    pub(crate) fn join(&self, end: (&str, &str), other: &Self, other_end: (&str, &str), mtu: u32) {
        let there = format!("/proc/{}/fd/{}", std::process::id(), other.0.as_raw_fd());
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
    pub(crate) fn endpoint(&self, interface: &str) -> Endpoint {
        self.enter(|| open(&device_of("sock", &[("interface", interface)])))
    }
}

/// Two of them, joined: `v0` with 10.0.0.1 there, `v1` with 10.0.0.2 here.
pub(crate) fn pair(mtu: u32) -> [Net; 2] {
    let nets = [Net::new(), Net::new()];
    nets[0].join(("v0", "10.0.0.1/24"), &nets[1], ("v1", "10.0.0.2/24"), mtu);
    nets
}
