//! By what endpoints of one host, and of one user there, know each other.

use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::os::unix::fs::MetadataExt;

/// Bits of a hash that a URI has of the host, and of the user.
const HOST_BITS: u32 = 48;
const USER_BITS: u32 = 18;

/// Where a process runs. A hash hides nothing from who knows the host; it only keeps URIs short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// One boot of a host, and one network name space of it: abstract sockets do not cross it.
    pub(crate) host: u64,
    /// A user of that boot.
    pub(crate) user: u64,
}

/// The identifier of this boot of the host; `None`: the system has none, for want of /proc.
fn boot() -> Option<Vec<u8>> {
    std::fs::read("/proc/sys/kernel/random/boot_id").ok().filter(|boot| !boot.is_empty())
}

/// Whether this process sees no identifier of its boot, so that its place is made of what else
/// there is.
pub(crate) fn is_guessed() -> bool {
    boot().is_none()
}

impl Place {
    /// Where this process runs. Its sockets are in the network name space of the thread that opens
    /// them.
    pub(crate) fn here() -> Self {
        let space = std::fs::metadata("/proc/thread-self/ns/net").map(|space| (space.dev(), space.ino()));
        // A sandbox without that file has one name space, as far as anyone inside can say.
        let (device, inode) = space.unwrap_or_default();
        Self::of(boot(), [device, inode])
    }

    /// The place of a process in this network name space, by the identifier of the boot.
    fn of(boot: Option<Vec<u8>>, space: [u64; 2]) -> Self {
        let boot = boot.unwrap_or_else(likeness);
        let user = rustix::process::geteuid().as_raw();
        Self {
            host: hash(&boot, &space) >> (u64::BITS - HOST_BITS),
            user: hash(&boot, &[user.into()]) >> (u64::BITS - USER_BITS),
        }
    }
}

/// What all processes of this host find alike without /proc: its name, its kernel and its memory.
/// Another host may have the same: then what is tried there meets nobody, or an endpoint of another
/// identity, and the next way is tried.
fn likeness() -> Vec<u8> {
    let names = rustix::system::uname();
    let about = rustix::system::sysinfo();
    let memory = (about.totalram as u64).wrapping_mul(about.mem_unit.into());
    let words = [names.nodename(), names.release(), names.version(), names.machine()];
    let mut all: Vec<u8> = b"likeness".to_vec();
    for word in words {
        all.extend_from_slice(word.to_bytes_with_nul());
    }
    all.extend_from_slice(&memory.to_ne_bytes());
    all
}

fn hash(boot: &[u8], words: &[u64]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(boot);
    words.iter().for_each(|word| hasher.write_u64(*word));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_finds_itself_where_it_is() {
        let here = Place::here();
        assert_eq!((here, is_guessed()), (Place::here(), false));
        assert!(here.host < 1 << HOST_BITS && here.user < 1 << USER_BITS);
    }

    #[test]
    fn without_proc_processes_of_a_host_still_find_each_other() {
        let guessed = Place::of(None, [0, 0]);
        assert_eq!(guessed, Place::of(None, [0, 0]));
        assert!(guessed.host != Place::of(None, [1, 2]).host && guessed.host != Place::here().host);
    }

    #[test]
    fn another_boot_space_or_user_is_another_place() {
        let all = [hash(b"boot", &[1, 2]), hash(b"boos", &[1, 2]), hash(b"boot", &[1, 3]), hash(b"boot", &[2])];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
