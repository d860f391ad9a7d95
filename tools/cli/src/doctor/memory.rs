//! Limits of memory, files and descriptors.

use super::finding::{Finding, Verdict};
use super::groups::least;
use super::host::Host;

/// Descriptors that an endpoint of the default device takes.
const OF_AN_ENDPOINT: u64 = 19;
/// Below this the receive buffers of one endpoint, 4,096 of up to 16 KiB, may not fit.
const BUFFERS: f64 = 64.0 * 1024.0 * 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

pub(super) fn findings(host: &Host) -> Vec<Finding> {
    let Some(limits) = host.text("proc/self/limits") else {
        return vec![Finding::with_remedy(
            "limits",
            Verdict::Unknown,
            "/proc/self/limits is not readable",
            "mount /proc",
        )];
    };
    let mut all = vec![descriptors(&limits)];
    all.extend(size(&limits, "Max file size", "file size", 'f'));
    all.extend(size(&limits, "Max address space", "address space", 'v'));
    all.push(group(host));
    all
}

/// A soft limit of `/proc/self/limits`; `None`: unlimited.
fn soft(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn descriptors(limits: &str) -> Finding {
    const SUBJECT: &str = "descriptors";
    let Some(number) = soft(limits, "Max open files") else {
        return Finding::ok(SUBJECT, "unlimited");
    };
    let endpoints = number / OF_AN_ENDPOINT;
    let found = format!("{number}, for at most {endpoints} endpoints of the default device");
    match endpoints {
        0 | 1 => Finding::with_remedy(SUBJECT, Verdict::Fails, found, "ulimit -n 1024"),
        2..10 => Finding::with_remedy(SUBJECT, Verdict::Slow, found, "ulimit -n 1024"),
        10..100 => {
            Finding::with_remedy(SUBJECT, Verdict::Hint, found, "ulimit -n 65536, for programs with many endpoints")
        }
        _ => Finding::ok(SUBJECT, found),
    }
}

/// A limit in bytes that shared segments come under; none where there is no limit.
fn size(limits: &str, name: &str, subject: &str, letter: char) -> Option<Finding> {
    let bytes = soft(limits, name)?;
    let found = format!("at most {:.0} MiB: larger segments of shared memory cannot be made", bytes as f64 / MIB);
    let verdict = if (bytes as f64) < BUFFERS { Verdict::Fails } else { Verdict::Hint };
    Some(Finding::with_remedy(subject, verdict, found, format!("ulimit -{letter} unlimited")))
}

fn group(host: &Host) -> Finding {
    const SUBJECT: &str = "memory";
    match least(host, "memory.max", |text| text.parse().ok()) {
        None => Finding::ok(SUBJECT, "no limit by a control group"),
        Some(bytes) if bytes < 2.0 * BUFFERS => Finding::with_remedy(
            SUBJECT,
            Verdict::Slow,
            format!("the control group allows {:.0} MiB: full receive buffers may end the process", bytes / MIB),
            "raise memory.max (docker run --memory), or open endpoints with fewer recv_buffers",
        ),
        Some(bytes) => Finding::ok(SUBJECT, format!("the control group allows {:.0} MiB", bytes / MIB)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::host::tests::FakeHost;
    use super::*;

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
                          Max file size             unlimited            unlimited            bytes     \n\
                          Max open files            FILES                524288               files     \n\
                          Max address space         unlimited            unlimited            bytes     \n";

    #[test]
    fn descriptors_bound_the_number_of_endpoints() {
        let of = |files: &str| descriptors(&LIMITS.replace("FILES", files));
        assert_eq!(of("20").verdict, Verdict::Fails);
        assert_eq!(of("100").verdict, Verdict::Slow);
        assert_eq!(of("1024").verdict, Verdict::Hint);
        assert!(of("1024").found.contains("53 endpoints"));
        assert_eq!([of("65536").verdict, of("unlimited").verdict], [Verdict::Ok; 2]);
    }

    #[test]
    fn a_limit_of_file_sizes_is_one_of_segments() {
        let of = |limits: &str| size(limits, "Max file size", "file size", 'f');
        assert_eq!(of(LIMITS), None);
        let limited = |bytes: &str| of(&LIMITS.replacen("unlimited", bytes, 1)).unwrap();
        assert_eq!(limited("1048576").verdict, Verdict::Fails);
        assert_eq!(limited("1073741824").verdict, Verdict::Hint);
        assert_eq!(limited("0").remedy.as_deref(), Some("ulimit -f unlimited"));
    }

    #[test]
    fn a_small_control_group_is_slow() {
        let of = |max: &str| {
            group(&FakeHost::new(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", max)]).host())
        };
        assert_eq!(of("67108864\n").verdict, Verdict::Slow);
        assert_eq!([of("max\n").verdict, of("8589934592\n").verdict], [Verdict::Ok; 2]);
    }

    #[test]
    fn without_proc_the_limits_are_unknown() {
        let all = findings(&FakeHost::new(&[]).host());
        assert_eq!(all.iter().map(|it| it.verdict).collect::<Vec<_>>(), [Verdict::Unknown]);
    }
}
