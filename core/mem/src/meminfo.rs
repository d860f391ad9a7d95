//! What the kernel counts of this host's memory: `/proc/meminfo`.

/// Bytes that the kernel counts under this name. `None`: it does not tell.
///
/// ```
/// let all = cci_mem::meminfo::counted("MemTotal").expect("Linux");
/// assert!(all >= cci_mem::meminfo::available().unwrap_or(0));
/// assert_eq!(cci_mem::meminfo::counted("Mem"), None);
/// ```
#[must_use]
pub fn counted(name: &str) -> Option<u64> {
    counted_in(&std::fs::read_to_string("/proc/meminfo").ok()?, name)
}

/// Bytes that this host can still give to programs. `None`: it does not tell.
#[must_use]
pub fn available() -> Option<u64> {
    counted("MemAvailable")
}

fn counted_in(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_name_with_a_number_of_kilobytes_counts() {
        let text = "MemTotal:       16000 kB\nMem: 1 kB\nHugePages_Total:       7\nShmem:  none kB\n";
        assert_eq!(counted_in(text, "MemTotal"), Some(16_000 << 10));
        assert_eq!(counted_in(text, "Mem"), Some(1 << 10));
        for other in ["Total", "HugePages_Total", "Shmem", "Swap"] {
            assert_eq!(counted_in(text, other), None, "{other}");
        }
    }
}
