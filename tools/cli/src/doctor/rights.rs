//! What the kernel is, and what it lets a process do.

use super::finding::{Finding, Verdict};
use super::host::Host;

/// Number of the capability to copy from and to any process.
const CAP_SYS_PTRACE: u32 = 19;
/// The oldest kernel with what the library needs: pidfds that can be polled.
const OLDEST: (u64, u64) = (5, 3);

pub(super) fn findings(host: &Host) -> Vec<Finding> {
    vec![kernel(host), yama(host), seccomp(host)]
}

fn kernel(host: &Host) -> Finding {
    let Some(release) = host.text("proc/sys/kernel/osrelease") else {
        return Finding::with_remedy("kernel", Verdict::Fails, "/proc is not readable", "mount /proc");
    };
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let found = format!("Linux {release}");
    if version < OLDEST {
        Finding::with_remedy("kernel", Verdict::Fails, found, "update the kernel to Linux 5.3 or newer")
    } else {
        Finding::ok("kernel", found)
    }
}

/// Whether processes of one user may copy from each other's memory, which RMA over `sm` does.
fn yama(host: &Host) -> Finding {
    const SUBJECT: &str = "yama";
    let path = "proc/sys/kernel/yama/ptrace_scope";
    match host.number(path) {
        None => Finding::ok(SUBJECT, "not in this kernel"),
        Some(0) => Finding::ok(SUBJECT, "ptrace_scope is 0: RMA copies from process to process"),
        Some(scope @ (1 | 2)) if host.is_capable(CAP_SYS_PTRACE) => {
            Finding::ok(SUBJECT, format!("ptrace_scope is {scope}, and this process has CAP_SYS_PTRACE"))
        }
        Some(scope) => Finding::with_remedy(
            SUBJECT,
            Verdict::Slow,
            format!("ptrace_scope is {scope}: sm copies RMA twice unless the memory is the library's"),
            if scope < 3 {
                "sysctl -w kernel.yama.ptrace_scope=0, or register memory of ccix_alloc"
            } else {
                "register memory of ccix_alloc; a ptrace_scope of 3 lasts until the next boot"
            },
        ),
    }
}

fn seccomp(host: &Host) -> Finding {
    const SUBJECT: &str = "seccomp";
    match host.status("Seccomp").as_deref() {
        Some("0") => Finding::ok(SUBJECT, "no filter of system calls"),
        None => Finding::ok(SUBJECT, "not in this kernel"),
        Some(_) => Finding::with_remedy(
            SUBJECT,
            Verdict::Unknown,
            "a filter of system calls is in force; it may refuse process_vm_readv or membarrier",
            "see by `cci explain URI` which way RMA takes; in a container allow these calls by its seccomp profile",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::host::tests::FakeHost;
    use super::*;

    #[test]
    fn an_old_kernel_fails() {
        let of = |release: &str| kernel(&FakeHost::new(&[("proc/sys/kernel/osrelease", release)]).host()).verdict;
        assert_eq!([of("5.2.21-generic"), of("4.18.0")], [Verdict::Fails; 2]);
        assert_eq!([of("5.3.0-1"), of("6.18.44-fc\n"), of("10.0")], [Verdict::Ok; 3]);
        assert_eq!(kernel(&FakeHost::new(&[]).host()).verdict, Verdict::Fails);
    }

    #[test]
    fn yama_slows_processes_without_the_capability() {
        let of = |scope: &str, capabilities: &str| {
            let status = format!("CapEff:\t{capabilities}\n");
            let files = [("proc/sys/kernel/yama/ptrace_scope", scope), ("proc/self/status", &*status)];
            yama(&FakeHost::new(&files).host())
        };
        let (none, ptrace) = ("0000000000000000", "0000000000080000");
        assert_eq!([of("0", none).verdict, of("1", ptrace).verdict], [Verdict::Ok; 2]);
        assert_eq!(of("1", none).verdict, Verdict::Slow);
        assert!(of("1", none).remedy.unwrap().contains("kernel.yama.ptrace_scope=0"));
        assert!(of("3", ptrace).remedy.unwrap().contains("next boot"));
        assert_eq!(yama(&FakeHost::new(&[]).host()).verdict, Verdict::Ok);
    }

    #[test]
    fn a_filter_of_system_calls_is_named() {
        let of = |mode: &str| {
            let status = format!("Name:\tx\nSeccomp:\t{mode}\nSeccomp_filters:\t1\n");
            seccomp(&FakeHost::new(&[("proc/self/status", &*status)]).host()).verdict
        };
        assert_eq!((of("0"), of("2")), (Verdict::Ok, Verdict::Unknown));
    }
}
