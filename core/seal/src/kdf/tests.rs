//! Known answers of HKDF: test cases 1 to 3 of RFC 5869, and what is derived for connections.

use super::{expand, hmac, mix};
use crate::sizes::KEY;

fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("two digits")).collect()
}

/// Input, salt, label, pseudo-random key, output.
type Case = (Vec<u8>, Vec<u8>, Vec<u8>, &'static str, &'static str);

fn cases() -> [Case; 3] {
    let range = |from: u8, to: u8| (from..=to).collect::<Vec<u8>>();
    [
        (
            vec![0x0b; 22],
            range(0x00, 0x0c),
            range(0xf0, 0xf9),
            "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
        ),
        (
            range(0x00, 0x4f),
            range(0x60, 0xaf),
            range(0xb0, 0xff),
            "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c\
             59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71\
             cc30c58179ec3e87c14c01d5c1f3434f1d87",
        ),
        (
            vec![0x0b; 22],
            vec![],
            vec![],
            "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
        ),
    ]
}

#[test]
fn known_answers_of_hkdf() {
    for (input, salt, label, secret, output) in cases() {
        let extracted = hmac(&salt, [&input[..]]);
        assert_eq!(extracted.to_vec(), bytes_of(secret));
        let (left, right) = label.split_at(label.len() / 2);
        let mut out = vec![0; output.len() / 2];
        expand(&extracted, &[left, right], &mut out);
        assert_eq!(out, bytes_of(output));
    }
}

#[test]
fn noise_mixes_as_hkdf_without_a_label() {
    let (chaining, input) = ([7; KEY], [9; 5]);
    let mut out = [0; 3 * KEY];
    expand(&hmac(&chaining, [&input[..]]), &[], &mut out);
    assert_eq!(mix(&chaining, &input).as_flattened(), &out);
}
