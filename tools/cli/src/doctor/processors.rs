//! Processors: how many, how fast, for how much of the time.

use super::finding::{Finding, Verdict};
use super::groups::least;
use super::host::Host;

pub(super) fn findings(host: &Host) -> Vec<Finding> {
    let mut all = vec![number(host), governor(host)];
    all.extend(quota(host));
    all
}

/// The number of processors in a list such as `0-3,8`.
fn counted(list: &str) -> Option<u64> {
    list.split(',').try_fold(0, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(sum + last.checked_sub(first)? + 1)
    })
}

fn number(host: &Host) -> Finding {
    const SUBJECT: &str = "processors";
    match host.status("Cpus_allowed_list").and_then(|list| counted(&list)) {
        None => Finding::with_remedy(SUBJECT, Verdict::Unknown, "/proc/self/status does not list them", "mount /proc"),
        Some(1) => Finding::with_remedy(
            SUBJECT,
            Verdict::Slow,
            "this process may use 1: two ends that poll take turns",
            "allow it a second one (taskset, cpuset), or wait by the handle instead of polling",
        ),
        Some(number) => Finding::ok(SUBJECT, format!("this process may use {number}")),
    }
}

/// Whether the processors change their speed by load, so that a message after a pause meets a slow
/// one.
fn governor(host: &Host) -> Finding {
    const SUBJECT: &str = "governor";
    let folder = "sys/devices/system/cpu";
    let is_processor = |name: &&String| {
        name.strip_prefix("cpu").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let names = host.names(folder);
    let governors = names.iter().filter(is_processor);
    let governors = governors.filter_map(|name| host.text(format!("{folder}/{name}/cpufreq/scaling_governor")));
    let (mut all, mut slow) = (0, Vec::new());
    for governor in governors {
        all += 1;
        if governor != "performance" && !slow.contains(&governor) {
            slow.push(governor);
        }
    }
    if all == 0 {
        Finding::ok(SUBJECT, "the kernel does not change the speed of processors")
    } else if slow.is_empty() {
        Finding::ok(SUBJECT, "performance")
    } else {
        let found = format!("{}: processors run slower after a pause", slow.join(", "));
        Finding::with_remedy(SUBJECT, Verdict::Slow, found, "cpupower frequency-set -g performance")
    }
}

/// A limit of processor time by control groups; none where there is no limit.
fn quota(host: &Host) -> Option<Finding> {
    const SUBJECT: &str = "processor time";
    let processors = least(host, "cpu.max", |text| {
        let (quota, period) = text.split_once(' ')?;
        let (quota, period): (f64, f64) = (quota.parse().ok()?, period.trim().parse().ok()?);
        (period > 0.0).then(|| quota / period)
    })?;
    let found = format!("the control group allows the time of {processors:.1} processors");
    Some(if processors < 2.0 {
        let found = format!("{found}: programs that poll are stopped when it is used up");
        Finding::with_remedy(SUBJECT, Verdict::Slow, found, "raise cpu.max (docker run --cpus), or wait by the handle")
    } else {
        Finding::ok(SUBJECT, found)
    })
}

#[cfg(test)]
mod tests {
    use super::super::host::tests::FakeHost;
    use super::*;

    #[test]
    fn one_processor_is_slow() {
        let of = |list: &str| {
            let status = format!("Cpus_allowed_list:\t{list}\n");
            number(&FakeHost::new(&[("proc/self/status", &*status)]).host())
        };
        assert_eq!(of("3").verdict, Verdict::Slow);
        assert_eq!(of("0-3,8").found, "this process may use 5");
        assert_eq!([of("").verdict, of("3-1").verdict], [Verdict::Unknown; 2]);
    }

    #[test]
    fn a_governor_that_saves_power_is_slow() {
        let of = |governors: [&str; 2]| {
            governor(
                &FakeHost::new(&[
                    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governors[0]),
                    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", governors[1]),
                    ("sys/devices/system/cpu/cpufreq/boost", "1"),
                ])
                .host(),
            )
        };
        assert_eq!(of(["performance\n", "performance\n"]).verdict, Verdict::Ok);
        let slow = of(["performance\n", "powersave\n"]);
        assert_eq!(slow.verdict, Verdict::Slow);
        assert!(slow.found.starts_with("powersave:") && slow.remedy.unwrap().contains("-g performance"));
        assert_eq!(governor(&FakeHost::new(&[]).host()).verdict, Verdict::Ok);
    }

    #[test]
    fn a_quota_below_two_processors_is_slow() {
        let of = |max: &str| {
            quota(&FakeHost::new(&[("proc/self/cgroup", "0::/a\n"), ("sys/fs/cgroup/a/cpu.max", max)]).host())
        };
        assert_eq!(of("150000 100000\n").unwrap().verdict, Verdict::Slow);
        assert_eq!(of("400000 100000\n").unwrap().verdict, Verdict::Ok);
        assert_eq!(of("max 100000\n"), None);
    }
}
