//! Interfaces and sockets: what `sock` and `tcp` meet.

use super::finding::{Finding, Verdict};
use super::host::Host;

/// Number of the capability to exceed the limits of socket buffers.
const CAP_NET_ADMIN: u32 = 12;
/// What `sock` asks for as the size of its socket buffers.
const BUFFER: u64 = 4 << 20;
/// What every path of `sock` must carry.
const LEAST_MTU: u64 = 1280;
const LOOPBACK_MTU: u64 = 65_536;
/// From this speed on, in Mbit/s, large frames save more than they cost to arrange.
const FAST: u64 = 10_000;
const LARGE_FRAMES: u64 = 9_000;
/// An interrupt this many microseconds late is as long as a short message's whole way.
const LATE: u64 = 20;

/// An interface that is up: the loop-back, or one of a device.
#[derive(Debug)]
struct Interface {
    name: String,
    mtu: u64,
    /// In Mbit/s, where the driver says so.
    speed: Option<u64>,
    is_loopback: bool,
}

pub(super) fn findings(host: &Host) -> Vec<Finding> {
    let interfaces = interfaces(host);
    let mut all = Vec::new();
    for interface in &interfaces {
        all.push(mtu(interface));
        all.extend(offload(host, interface));
        if !interface.is_loopback {
            all.push(coalescing(host, interface));
        }
    }
    all.extend(
        [("rmem_max", "receive buffers"), ("wmem_max", "send buffers")]
            .map(|(key, subject)| buffers(host, key, subject)),
    );
    if interfaces.iter().any(|interface| !interface.is_loopback) {
        all.push(busy_polling(host));
    }
    all
}

fn interfaces(host: &Host) -> Vec<Interface> {
    const FOLDER: &str = "sys/class/net";
    let of = |name: String| {
        let at = format!("{FOLDER}/{name}");
        let flags = host.text(format!("{at}/flags"))?;
        let is_up = u64::from_str_radix(flags.strip_prefix("0x")?, 16).ok()? & 1 == 1;
        // The kernel's number of loop-back interfaces.
        let is_loopback = host.number(format!("{at}/type")) == Some(772);
        let is_shown = is_up && (is_loopback || host.path(format!("{at}/device")).exists());
        is_shown.then_some(())?;
        Some(Interface {
            mtu: host.number(format!("{at}/mtu"))?,
            // A driver that does not know it writes -1.
            speed: host.number(format!("{at}/speed")),
            is_loopback,
            name,
        })
    };
    host.names(FOLDER).into_iter().filter_map(of).collect()
}

fn mtu(interface: &Interface) -> Finding {
    let Interface { name, mtu, speed, is_loopback } = interface;
    let subject = format!("{name} MTU");
    let found = format!("{mtu} bytes");
    if *mtu < LEAST_MTU {
        let found = format!("{found}: sock needs {LEAST_MTU}");
        let remedy = format!("ip link set dev {name} mtu 1500, or use tcp (CCI_CTP=^sock)");
        Finding::with_remedy(subject, Verdict::Fails, found, remedy)
    } else if *is_loopback && *mtu < LOOPBACK_MTU {
        let remedy = format!("ip link set dev {name} mtu {LOOPBACK_MTU}");
        Finding::with_remedy(subject, Verdict::Slow, format!("{found}: bulk is cut into small frames"), remedy)
    } else if let Some(speed) = speed.filter(|speed| *speed >= FAST && *mtu < LARGE_FRAMES) {
        let found = format!("{found} on a link of {} Gbit/s: bulk is cut into small frames", speed / 1000);
        let remedy = format!("ip link set dev {name} mtu {LARGE_FRAMES}, if every switch and peer takes it");
        Finding::with_remedy(subject, Verdict::Slow, found, remedy)
    } else {
        Finding::ok(subject, found)
    }
}

/// The value of a key in what `ethtool` prints: `key: value [fixed]`.
fn value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(':'))?;
    line.split_whitespace().next()
}

/// Whether the kernel and the interface take and give many frames in one call.
fn offload(host: &Host, interface: &Interface) -> Vec<Finding> {
    let name = &interface.name;
    let Some(text) = host.output("ethtool", &["-k", name]) else {
        return vec![without_ethtool(format!("{name} GSO"))];
    };
    let is_off = |key| value(&text, key) == Some("off");
    let sending = if is_off("generic-segmentation-offload") || is_off("tx-checksumming") {
        Finding::with_remedy(
            format!("{name} GSO"),
            Verdict::Slow,
            "off, or without checksums: each frame of bulk is a system call's work of its own",
            format!("ethtool -K {name} tx on gso on"),
        )
    } else {
        Finding::ok(format!("{name} GSO"), "on")
    };
    let receiving = if is_off("generic-receive-offload") {
        Finding::with_remedy(
            format!("{name} GRO"),
            Verdict::Slow,
            "off: each frame of bulk arrives alone",
            format!("ethtool -K {name} gro on"),
        )
    } else {
        Finding::ok(format!("{name} GRO"), "on")
    };
    vec![sending, receiving]
}

fn without_ethtool(subject: String) -> Finding {
    Finding::with_remedy(subject, Verdict::Unknown, "only ethtool knows", "install ethtool and run this again")
}

/// How long the interface and the kernel hold interrupts back.
fn coalescing(host: &Host, interface: &Interface) -> Finding {
    let name = &interface.name;
    let subject = format!("{name} interrupts");
    let of = |key: &str| host.number(format!("sys/class/net/{name}/{key}")).unwrap_or(0);
    let deferred = of("gro_flush_timeout") / 1000;
    if of("napi_defer_hard_irqs") > 0 && deferred >= LATE {
        let found = format!("the kernel defers them by up to {deferred} us");
        let remedy = format!("echo 0 > /sys/class/net/{name}/napi_defer_hard_irqs");
        return Finding::with_remedy(subject, Verdict::Slow, found, remedy);
    }
    let Some(text) = host.output("ethtool", &["-c", name]) else {
        return without_ethtool(subject);
    };
    let late = value(&text, "rx-usecs").and_then(|late| late.parse::<u64>().ok());
    let is_adaptive = text.lines().any(|line| line.starts_with("Adaptive RX: on"));
    let remedy = format!("ethtool -C {name} adaptive-rx off rx-usecs 0, where latency matters more than load");
    match late {
        Some(late) if late >= LATE => {
            Finding::with_remedy(subject, Verdict::Slow, format!("the interface holds them back for {late} us"), remedy)
        }
        _ if is_adaptive => {
            Finding::with_remedy(subject, Verdict::Hint, "the interface adapts them to the load", remedy)
        }
        Some(late) => Finding::ok(subject, format!("at most {late} us late")),
        None => Finding::ok(subject, "not held back by the interface"),
    }
}

/// How large the buffers of sockets may be.
fn buffers(host: &Host, key: &str, subject: &str) -> Finding {
    let Some(most) = host.number(format!("proc/sys/net/core/{key}")) else {
        // A network name space other than the first does not show it.
        return Finding::with_remedy(
            subject,
            Verdict::Unknown,
            format!("net.core.{key} is not shown here"),
            format!("read it by `sysctl net.core.{key}` outside this container; {BUFFER} is enough"),
        );
    };
    if most >= BUFFER {
        Finding::ok(subject, format!("net.core.{key} is {most} bytes"))
    } else if host.is_capable(CAP_NET_ADMIN) {
        Finding::ok(subject, format!("net.core.{key} is {most} bytes, and this process may exceed it"))
    } else {
        Finding::with_remedy(
            subject,
            Verdict::Slow,
            format!("net.core.{key} is {most} bytes: bursts of bulk are lost, and sent again"),
            format!("sysctl -w net.core.{key}={BUFFER}"),
        )
    }
}

fn busy_polling(host: &Host) -> Finding {
    const SUBJECT: &str = "busy polling";
    let of = |key: &str| host.number(format!("proc/sys/net/core/{key}"));
    match (of("busy_poll"), of("busy_read")) {
        (None, _) | (_, None) => Finding::ok(SUBJECT, "not in this kernel, or not shown here"),
        (Some(0), _) | (_, Some(0)) => Finding::with_remedy(
            SUBJECT,
            Verdict::Hint,
            "off: whoever sleeps waits for an interrupt",
            "sysctl -w net.core.busy_poll=50 net.core.busy_read=50, for shorter wake-ups at the cost of processor time",
        ),
        (Some(poll), Some(read)) => Finding::ok(SUBJECT, format!("{poll} us in waits, {read} us in reads")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::host::tests::FakeHost;
    use super::*;

    fn interface(name: &str, mtu: u64, speed: Option<u64>) -> Interface {
        Interface { name: name.into(), mtu, speed, is_loopback: name == "lo" }
    }

    #[test]
    fn interfaces_are_those_that_are_up_and_have_a_device() {
        let up = |name: &str, flags: &str, kind: &str| {
            [("flags", flags), ("type", kind), ("mtu", "1500\n"), ("speed", "-1\n")]
                .map(|(file, text)| (format!("sys/class/net/{name}/{file}"), text.to_owned()))
        };
        let all =
            [up("eth0", "0x1003", "1"), up("eth1", "0x1002", "1"), up("lo", "0x9", "772"), up("br0", "0x1003", "1")];
        let fake = all.iter().flatten().fold(FakeHost::new(&[]), |fake, (path, text)| fake.with(path, text));
        let fake = fake.with("sys/class/net/eth0/device/vendor", "").with("sys/class/net/eth1/device/vendor", "");
        let found = interfaces(&fake.host());
        assert_eq!(
            found.iter().map(|it| (&*it.name, it.is_loopback)).collect::<Vec<_>>(),
            [("eth0", false), ("lo", true)]
        );
        assert_eq!(found[0].speed, None, "-1 is no speed");
    }

    #[test]
    fn an_mtu_is_too_small_for_its_link() {
        assert_eq!(mtu(&interface("lo", 65_536, None)).verdict, Verdict::Ok);
        assert_eq!(mtu(&interface("lo", 1500, None)).remedy.as_deref(), Some("ip link set dev lo mtu 65536"));
        assert_eq!(mtu(&interface("eth0", 1500, Some(1000))).verdict, Verdict::Ok);
        assert_eq!(mtu(&interface("eth0", 1500, None)).verdict, Verdict::Ok);
        assert_eq!(mtu(&interface("eth0", 1500, Some(25_000))).verdict, Verdict::Slow);
        assert_eq!(mtu(&interface("eth0", 9000, Some(25_000))).verdict, Verdict::Ok);
        assert_eq!(mtu(&interface("tun0", 1279, None)).verdict, Verdict::Fails);
        assert_eq!(mtu(&interface("tun0", 1280, None)).verdict, Verdict::Ok);
    }

    #[test]
    fn offloads_that_are_off_are_slow() {
        let of = |features: &str| {
            let fake = FakeHost::new(&[]).with_program("ethtool", "-k eth0", features);
            offload(&fake.host(), &interface("eth0", 1500, None)).iter().map(|it| it.verdict).collect::<Vec<_>>()
        };
        let on =
            "Features for eth0:\ntx-checksumming: on\ngeneric-segmentation-offload: on\ngeneric-receive-offload: on";
        assert_eq!(of(on), [Verdict::Ok, Verdict::Ok]);
        assert_eq!(
            of(&on.replace("tx-checksumming: on", "tx-checksumming: off [fixed]")),
            [Verdict::Slow, Verdict::Ok]
        );
        assert_eq!(
            of(&on.replace("segmentation-offload: on", "segmentation-offload: off")),
            [Verdict::Slow, Verdict::Ok]
        );
        assert_eq!(of(&on.replace("receive-offload: on", "receive-offload: off")), [Verdict::Ok, Verdict::Slow]);
        let missing = offload(&FakeHost::new(&[]).host(), &interface("eth0", 1500, None));
        assert_eq!(missing[0].verdict, Verdict::Unknown);
    }

    #[test]
    fn interrupts_held_back_are_slow() {
        let of = |text: &str| {
            let fake = FakeHost::new(&[]).with_program("ethtool", "-c eth0", text);
            coalescing(&fake.host(), &interface("eth0", 1500, None)).verdict
        };
        assert_eq!(of("Adaptive RX: off  TX: off\nrx-usecs:\t50"), Verdict::Slow);
        assert_eq!(of("Adaptive RX: on  TX: on\nrx-usecs:\t8"), Verdict::Hint);
        assert_eq!(of("Adaptive RX: off  TX: off\nrx-usecs:\t8"), Verdict::Ok);
        assert_eq!(of("Adaptive RX: n/a  TX: n/a\nrx-usecs:\tn/a"), Verdict::Ok);
        let kernel = |timeout: &str, deferred: &str| {
            let files = [
                ("sys/class/net/eth0/gro_flush_timeout", timeout),
                ("sys/class/net/eth0/napi_defer_hard_irqs", deferred),
            ];
            let fake = FakeHost::new(&files).with_program("ethtool", "-c eth0", "rx-usecs: 0");
            coalescing(&fake.host(), &interface("eth0", 1500, None)).verdict
        };
        assert_eq!((kernel("200000", "2"), kernel("200000", "0")), (Verdict::Slow, Verdict::Ok));
    }

    #[test]
    fn small_socket_buffers_are_slow_unless_the_process_may_exceed_them() {
        let of = |most: &str, capabilities: &str| {
            let status = format!("CapEff:\t{capabilities}\n");
            let files = [("proc/sys/net/core/rmem_max", most), ("proc/self/status", &*status)];
            buffers(&FakeHost::new(&files).host(), "rmem_max", "receive buffers")
        };
        assert_eq!(of("212992\n", "0").remedy.as_deref(), Some("sysctl -w net.core.rmem_max=4194304"));
        assert_eq!([of("212992\n", "1000").verdict, of("4194304\n", "0").verdict], [Verdict::Ok; 2]);
        assert_eq!(buffers(&FakeHost::new(&[]).host(), "rmem_max", "receive buffers").verdict, Verdict::Unknown);
    }

    #[test]
    fn busy_polling_is_a_hint() {
        let of = |poll: &str, read: &str| {
            let files = [("proc/sys/net/core/busy_poll", poll), ("proc/sys/net/core/busy_read", read)];
            busy_polling(&FakeHost::new(&files).host()).verdict
        };
        assert_eq!([of("0", "0"), of("50", "0"), of("50", "50")], [Verdict::Hint, Verdict::Hint, Verdict::Ok]);
    }
}
