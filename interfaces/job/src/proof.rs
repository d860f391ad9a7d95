//! The secret of a job, and how both sides of a connection prove that they have it.

use crate::error::JobError;
use std::fmt;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What one side adds to a connection so that no proof is of use twice.
pub(crate) type Nonce = [u8; 32];

/// What one side sends to prove the secret.
pub(crate) type Proof = [u8; 32];

/// The most bytes that a file with a secret may have.
const LONGEST_FILE: u64 = 4096;

/// The fewest: 128 bits written as hexadecimal digits.
const SHORTEST_FILE: usize = 32;

/// What a secret of a file is derived for, so that the file may serve other purposes too.
const FILE: &str = "cci-job/1/secret-of-a-file";

/// The 256 bits that the processes of one job share. Its debugging print does not show them.
///
/// ```
/// let secret = cci_job::Secret::fresh()?;
/// assert_eq!(format!("{secret:?}"), "Secret(..)");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// Draws a secret from the system's generator.
    ///
    /// # Errors
    ///
    /// The system has none.
    pub fn fresh() -> std::io::Result<Self> {
        random().map(Self)
    }

    /// The secret of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes: a key, and nothing to show or to pass as an argument.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Derives the secret from a file that only this user may read, as `ssh` demands of its keys.
    pub(crate) fn read(path: &Path) -> Result<Self, JobError> {
        let refused = |why: String| JobError::CannotJoin(format!("the secret file {}: {why}", path.display()));
        let file = std::fs::File::open(path).map_err(|error| refused(error.to_string()))?;
        let about = file.metadata().map_err(|error| refused(error.to_string()))?;
        let own = rustix::process::geteuid().as_raw();
        if about.uid() != own || about.mode() & 0o077 != 0 {
            return Err(refused("others may read it or own it; chown it to this user and chmod 600".into()));
        }
        let mut bytes = Vec::new();
        file.take(LONGEST_FILE + 1).read_to_end(&mut bytes).map_err(|error| refused(error.to_string()))?;
        if bytes.len() < SHORTEST_FILE || bytes.len() as u64 > LONGEST_FILE {
            return Err(refused("it has less than 32 bytes or more than 4096; write 64 random ones".into()));
        }
        Ok(Self(blake3::derive_key(FILE, &bytes)))
    }
}

/// Random bytes of the system.
pub(crate) fn random() -> std::io::Result<Nonce> {
    let mut bytes = [0; 32];
    let taken = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    // Up to 256 bytes come whole.
    if taken == bytes.len() { Ok(bytes) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

/// Who proves.
#[derive(Clone, Copy)]
pub(crate) enum Prover {
    Rank,
    Store,
}

/// What a connection's proofs are about.
#[derive(Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) challenge: Nonce,
    pub(crate) hello: Nonce,
    pub(crate) rank: u32,
    pub(crate) size: u32,
}

impl Claim {
    /// The proof of one side: zeroes where the job has no secret.
    pub(crate) fn proof(&self, prover: Prover, secret: Option<&Secret>) -> Proof {
        secret.map_or([0; 32], |secret| *self.keyed(prover, secret).as_bytes())
    }

    fn keyed(&self, prover: Prover, secret: &Secret) -> blake3::Hash {
        let (what, nonces) = match prover {
            Prover::Rank => (&b"cci-job 1 rank"[..], [self.challenge, self.hello]),
            Prover::Store => (&b"cci-job 1 store"[..], [self.hello, self.challenge]),
        };
        let numbers = [self.rank.to_le_bytes(), self.size.to_le_bytes()];
        blake3::keyed_hash(&secret.0, &[what, nonces.as_flattened(), numbers.as_flattened()].concat())
    }

    /// Whether this proof is right, in constant time.
    pub(crate) fn is_proven(&self, prover: Prover, secret: Option<&Secret>, given: &Proof) -> bool {
        // Equality of hashes takes constant time.
        blake3::Hash::from_bytes(self.proof(prover, secret)) == blake3::Hash::from_bytes(*given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const CLAIM: Claim = Claim { challenge: [1; 32], hello: [2; 32], rank: 3, size: 4 };

    #[test]
    fn a_proof_holds_for_its_secret_side_nonces_and_rank_alone() {
        let (ours, other) = (Secret([7; 32]), Secret([8; 32]));
        let proof = CLAIM.proof(Prover::Rank, Some(&ours));
        assert!(CLAIM.is_proven(Prover::Rank, Some(&ours), &proof));
        assert!(!CLAIM.is_proven(Prover::Rank, Some(&other), &proof), "another secret");
        assert!(!CLAIM.is_proven(Prover::Store, Some(&ours), &proof), "sent back");
        assert!(!CLAIM.is_proven(Prover::Rank, None, &proof), "a side without a secret");
        assert!(!CLAIM.is_proven(Prover::Rank, Some(&ours), &[0; 32]), "a peer without a secret");
        for changed in [
            Claim { challenge: [9; 32], ..CLAIM },
            Claim { hello: [9; 32], ..CLAIM },
            Claim { rank: 2, ..CLAIM },
            Claim { size: 5, ..CLAIM },
        ] {
            assert!(!changed.is_proven(Prover::Rank, Some(&ours), &proof));
        }
    }

    #[test]
    fn a_secret_file_is_private_and_long_enough() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        let with = |bytes: &[u8], mode| {
            std::fs::write(&path, bytes).expect("a file");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
            Secret::read(&path)
        };
        assert_eq!(with(&[1; 64], 0o600), with(&[1; 64], 0o400));
        assert_ne!(with(&[1; 64], 0o600).expect("a secret"), with(&[2; 64], 0o600).expect("another"));
        assert!(with(&[1; 64], 0o640).is_err(), "readable by a group");
        assert!(with(&[1; 31], 0o600).is_err() && with(&[1; 4097], 0o600).is_err());
    }
}
