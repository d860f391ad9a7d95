//! The secret that peers prove (`docs/design/auto.md`, Peers that prove a secret).

/// Bytes of a secret.
const LEN: usize = 32;

/// What a secret of an endpoint is derived for, so that it may serve other purposes too.
const PURPOSE: &str = "cci-auto/1/proof-of-a-connect";

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
    fn a_secret_has_64_digits() {
        let wrong = ["", "a", &"a".repeat(63), &"a".repeat(65), &"g".repeat(64), &format!("{}+1", "a".repeat(62))];
        assert!(wrong.iter().all(|digits| Secret::parse(digits).is_none()));
    }
}
