//! By what endpoints of one host, and of one user there, know each other.

use cci_proto::Status;
use cci_transport::OpenError;
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

impl Place {
    /// Where this process runs. Its sockets are in the network name space of the thread that opens
    /// them.
    ///
    /// # Errors
    ///
    /// The system does not tell.
    pub(crate) fn here() -> Result<Self, OpenError> {
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id");
        let boot = boot.map_err(|source| OpenError::system("cannot read the boot identifier in /proc", source))?;
        let space = std::fs::metadata("/proc/thread-self/ns/net").map(|space| (space.dev(), space.ino()));
        // A sandbox without that file has one name space, as far as anyone inside can say.
        let (device, inode) = space.unwrap_or_default();
        if boot.is_empty() {
            return Err(OpenError::new(Status::Error, "the system has no boot identifier"));
        }
        let user = rustix::process::geteuid().as_raw();
        Ok(Self {
            host: hash(&boot, &[device, inode]) >> (u64::BITS - HOST_BITS),
            user: hash(&boot, &[user.into()]) >> (u64::BITS - USER_BITS),
        })
    }
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
        let here = Place::here().expect("proc");
        assert_eq!(here, Place::here().expect("proc"));
        assert!(here.host < 1 << HOST_BITS && here.user < 1 << USER_BITS);
    }

    #[test]
    fn another_boot_space_or_user_is_another_place() {
        let all = [hash(b"boot", &[1, 2]), hash(b"boos", &[1, 2]), hash(b"boot", &[1, 3]), hash(b"boot", &[2])];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
