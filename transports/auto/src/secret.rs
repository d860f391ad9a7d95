//! The secret that peers prove (`docs/design/auto.md`, Peers that prove a secret).

/// Bytes of a secret.
const LEN: usize = 32;

/// What a secret of an endpoint is derived for, so that it may serve other purposes too.
const PURPOSE: &str = "cci-auto/1/proof-of-a-connect";

/// Bits of an identity by which those who have the secret know it.
const MARK: u32 = 24;

/// A key that endpoints share. It has no debugging print.
pub(crate) struct Secret([u8; LEN]);

impl Secret {
    /// Reads the value of the key `secret`.
    pub(crate) fn parse(digits: &str) -> Option<Self> {
        let is_right = digits.len() == 2 * LEN && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let byte = |at: usize| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok();
        let bytes: Vec<u8> = (0..LEN).map_while(byte).collect();
        is_right.then(|| Self(blake3::derive_key(PURPOSE, &bytes)))
    }

    /// Marks the identity of an endpoint with this secret, so that those who have it know it.
    pub(crate) fn mark(&self, identity: u64) -> u64 {
        let rest = identity >> MARK;
        // Proofs are of twice as many bytes.
        let hash = blake3::keyed_hash(&self.0, &rest.to_le_bytes());
        let mark = hash.as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes);
        rest << MARK | mark >> (u64::BITS - MARK)
    }

    /// Whether the endpoint of this identity has this secret; of 16 million others, one seems to.
    pub(crate) fn is_of(&self, identity: u64) -> bool {
        self.mark(identity) == identity
    }

    /// The proof of a connect with this number to the endpoint of this identity.
    pub(crate) fn proof(&self, target: u64, nonce: u64) -> [u64; 2] {
        let hash = blake3::keyed_hash(&self.0, &[target.to_le_bytes(), nonce.to_le_bytes()].concat());
        let word = |at: usize| hash.as_bytes()[8 * at..].first_chunk().copied().map_or(0, u64::from_le_bytes);
        [word(0), word(1)]
    }

    /// Whether a proof is right, in constant time.
    pub(crate) fn proves(&self, target: u64, nonce: u64, given: [u64; 2]) -> bool {
        let proof = self.proof(target, nonce);
        (proof[0] ^ given[0]) | (proof[1] ^ given[1]) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(digit: char) -> Secret {
        Secret::parse(&digit.to_string().repeat(64)).expect("64 digits")
    }

    #[test]
    fn a_proof_holds_for_its_secret_target_and_number_alone() {
        let proof = secret('a').proof(7, 8);
        assert!(secret('A').proves(7, 8, proof));
        assert!(!secret('b').proves(7, 8, proof), "another secret");
        assert!(!secret('a').proves(6, 8, proof) && !secret('a').proves(7, 9, proof));
        assert!(!secret('a').proves(7, 8, [proof[0], proof[1] ^ 1]) && !secret('a').proves(7, 8, [0; 2]));
    }

    #[test]
    fn an_identity_is_known_by_its_secret_alone() {
        let (ours, other) = (secret('a'), secret('b'));
        let identities = (0..1000_u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for identity in identities {
            let marked = ours.mark(identity);
            assert_eq!(marked >> MARK, identity >> MARK, "the rest stays as it was drawn");
            assert!(ours.is_of(marked) && !other.is_of(marked) && !ours.is_of(marked ^ 1));
            assert!(!ours.is_of(marked ^ 1 << 63), "the mark is of the rest");
        }
    }

    #[test]
    fn a_secret_has_64_digits() {
        let wrong = ["", "a", &"a".repeat(63), &"a".repeat(65), &"g".repeat(64), &format!("{}+1", "a".repeat(62))];
        assert!(wrong.iter().all(|digits| Secret::parse(digits).is_none()));
    }
}
