//! Memory of this process, as the kernel tells it.

use cci_report::{UserError, while_doing};
use std::fs;

/// Bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Usage {
    /// In pages that are there.
    pub(crate) resident: f64,
    /// In pages that it has written to, and shares with nobody. Those that it only read are of the
    /// program's file, and are private or shared as other processes of the same program come and
    /// go.
    pub(crate) private: f64,
    /// In pages of its own: not of a file, and not shared.
    pub(crate) own: f64,
}

impl Usage {
    /// Of this process now. The first reading takes memory itself.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub(crate) fn now() -> Result<Self, UserError> {
        let text =
            fs::read_to_string("/proc/self/smaps_rollup").map_err(while_doing("cannot read the memory in use"))?;
        Self::parse(&text).ok_or_else(|| UserError::new("the kernel does not report resident and private memory"))
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches("kB").trim().parse::<f64>().ok().map(|kilobytes| 1024.0 * kilobytes)
        };
        Some(Self { resident: bytes("Rss:")?, private: bytes("Private_Dirty:")?, own: bytes("Anonymous:")? })
    }

    /// What has been added since; never less than nothing.
    pub(crate) fn since(self, before: Self) -> Self {
        let added = |of: fn(&Self) -> f64| (of(&self) - of(&before)).max(0.0);
        Self { resident: added(|it| it.resident), private: added(|it| it.private), own: added(|it| it.own) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_of_its_own() {
        let usage = Usage::now().unwrap();
        assert!(usage.private > 100_000.0 && usage.resident >= usage.private, "{usage:?}");
        assert!(usage.own > 100_000.0 && usage.resident >= usage.own, "{usage:?}");
    }

    #[test]
    fn the_kernels_lines_are_read() {
        let text = "Rss:  12 kB\nAnonymous:  2 kB\nPrivate_Clean:  3 kB\nPrivate_Dirty:  7 kB\n";
        let usage = Usage::parse(text).unwrap();
        assert_eq!(usage, Usage { resident: 12.0 * 1024.0, private: 7.0 * 1024.0, own: 2048.0 });
        assert_eq!(Usage::parse("Rss: 12 kB\n"), None);
        assert_eq!(
            usage.since(Usage { resident: 1e9, private: 1024.0, own: 0.0 }),
            Usage { resident: 0.0, private: 6.0 * 1024.0, own: 2048.0 }
        );
    }
}
