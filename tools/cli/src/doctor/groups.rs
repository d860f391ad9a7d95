//! Limits of control groups, of the second version.

use super::host::Host;
use std::path::Path;

/// The least value that a file has in this process's group and those around it; `None` where none
/// of them limits it, or the groups cannot be read.
pub(super) fn least(host: &Host, file: &str, value: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let groups = host.text("proc/self/cgroup")?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let values = Path::new(group).ancestors().filter_map(|group| {
        let text = host.text(Path::new("sys/fs/cgroup").join(group).join(file))?;
        value(&text)
    });
    values.reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::super::host::tests::FakeHost;
    use super::*;

    #[test]
    fn the_narrowest_group_counts() {
        let fake = FakeHost::new(&[
            ("proc/self/cgroup", "1:name=x:/other\n0::/a/b\n"),
            ("sys/fs/cgroup/a/b/limit", "max\n"),
            ("sys/fs/cgroup/a/limit", "7\n"),
            ("sys/fs/cgroup/limit", "9\n"),
        ]);
        assert_eq!(least(&fake.host(), "limit", |text| text.parse().ok()), Some(7.0));
        assert_eq!(least(&fake.host(), "another", |text| text.parse().ok()), None);
        assert_eq!(least(&FakeHost::new(&[]).host(), "limit", |text| text.parse().ok()), None);
    }
}
