//! Both ciphers: known answers, that they agree, and that they release nothing that is forged.

use super::{Expanded, Key, LONG, Nonce};
#[cfg(feature = "aws-lc")]
use crate::cipher::AwsLc;
use crate::cipher::{Cipher, Portable};
use crate::{KEY, Refused, TAG};
use cci_mem::source::Source;

/// Test cases 13 to 16 of "The Galois/Counter Mode of Operation" (McGrew, Viega): key, nonce,
/// associated data, text, sealed text and tag.
const KNOWN: [[&str; 5]; 4] = [
    [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "000000000000000000000000",
        "",
        "",
        "530f8afbc74536b9a963b4f1c4cb738b",
    ],
    [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "000000000000000000000000",
        "",
        "00000000000000000000000000000000",
        "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919",
    ],
    [
        "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        "cafebabefacedbaddecaf888",
        "",
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
         1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
         8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad\
         b094dac5d93471bdec1a502270e3cc6c",
    ],
    [
        "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        "cafebabefacedbaddecaf888",
        "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
         1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
         8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662\
         76fc6ece0f4e1768cddf8853bb2d551b",
    ],
];

pub(crate) fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("two digits")).collect()
}

fn known_answers<C: Cipher>() {
    for [key, nonce, aad, text, sealed] in KNOWN {
        let [key, nonce, aad, text, sealed] = [key, nonce, aad, text, sealed].map(bytes_of);
        let key = Expanded::<C>::new(&key.try_into().expect("32 bytes")).expect("memory");
        let nonce = Nonce(nonce.try_into().expect("12 bytes"));
        let mut made = vec![0; sealed.len()];
        key.seal(nonce, &aad, &[Source::from(&text[..])], &mut made).expect("sealed");
        assert_eq!(made, sealed);
        let (opened, tag) = made.split_last_chunk_mut::<TAG>().expect("a tag");
        assert_eq!((key.open(nonce, &aad, opened, tag), &*opened), (Ok(()), &text[..]));
    }
}

#[test]
fn known_answers_of_the_portable_cipher() {
    known_answers::<Portable>();
}

#[cfg(feature = "aws-lc")]
#[test]
fn known_answers_of_aws_lc() {
    known_answers::<AwsLc>();
}

/// Seals parts by one implementation and opens them by the other.
fn agree<A: Cipher, B: Cipher>(random: &mut fastrand::Rng) {
    let mut secret = [0; KEY];
    random.fill(&mut secret);
    let (ours, theirs) = (Expanded::<A>::new(&secret).expect("memory"), Expanded::<B>::new(&secret).expect("memory"));
    let longest = if random.u8(..) < 8 { 65_000 } else { 2 * LONG };
    let mut part = || {
        let mut bytes = vec![0; random.usize(..longest)];
        random.fill(&mut bytes);
        bytes
    };
    let parts: Vec<Vec<u8>> = [part(), part(), part()].into_iter().take(secret[0] as usize % 4).collect();
    let sources: Vec<Source<'_>> = parts.iter().map(|part| Source::from(&part[..])).collect();
    let aad: Vec<u8> = vec![random.u8(..); random.usize(0..80)];
    let nonce = Nonce::salted([random.u8(..); 4], random.u64(..));
    let text = parts.concat();
    let mut sealed = vec![0; text.len() + TAG];
    ours.seal(nonce, &aad, &sources, &mut sealed).expect("sealed");

    let mut in_place = [&text[..], &[0; TAG]].concat();
    theirs.seal_in_place(nonce, &aad, &mut in_place).expect("sealed");
    assert_eq!(sealed, in_place);
    let mut opened = vec![0; text.len()];
    assert_eq!((theirs.open_to(nonce, &aad, &sealed, &mut opened), &opened), (Ok(()), &text));
    let (opened, tag) = sealed.split_last_chunk_mut::<TAG>().expect("a tag");
    assert_eq!((theirs.open(nonce, &aad, opened, tag), &*opened), (Ok(()), &text[..]));
}

#[cfg(feature = "aws-lc")]
#[test]
fn both_ciphers_seal_alike() {
    let mut random = fastrand::Rng::with_seed(51);
    for _ in 0..300 {
        agree::<AwsLc, Portable>(&mut random);
        agree::<Portable, AwsLc>(&mut random);
    }
}

#[test]
fn parts_are_sealed_as_one_text() {
    let mut random = fastrand::Rng::with_seed(52);
    (0..100).for_each(|_| agree::<Portable, Portable>(&mut random));
}

/// Changes, cuts or moves something of a sealed buffer, its header or its nonce.
fn forge(random: &mut fastrand::Rng, sealed: &mut Vec<u8>, aad: &mut Vec<u8>, number: &mut u64) {
    match random.u8(0..6) {
        0 => *number ^= 1 << random.u32(..64),
        1 => aad.truncate(random.usize(..aad.len())),
        2 => {
            let at = random.usize(..aad.len());
            aad[at] ^= 1 << random.u32(..8);
        }
        3 => sealed.truncate(random.usize(TAG..sealed.len())),
        4 => sealed.push(random.u8(..)),
        _ => {
            let at = random.usize(..sealed.len());
            sealed[at] ^= 1 << random.u32(..8);
        }
    }
}

fn forgeries<C: Cipher>(seed: u64, count: u32) {
    let mut random = fastrand::Rng::with_seed(seed);
    let key = Expanded::<C>::new(&[9; KEY]).expect("memory");
    for number in 0..u64::from(count) {
        let text = vec![0xaa; random.usize(1..300)];
        let (mut aad, mut used) = (vec![3; 32], number);
        let mut sealed = vec![0; text.len() + TAG];
        key.seal(Nonce::salted(*b"salt", number), &aad, &[Source::from(&text[..])], &mut sealed).expect("sealed");
        forge(&mut random, &mut sealed, &mut aad, &mut used);
        let mut out = vec![1; sealed.len() - TAG];
        assert_eq!(key.open_to(Nonce::salted(*b"salt", used), &aad, &sealed, &mut out), Err(Refused::Forged));
        assert!(out.iter().all(|byte| *byte == 0), "something of a forged buffer was released");
        let (left, tag) = sealed.split_last_chunk_mut::<TAG>().expect("a tag");
        assert_eq!(key.open(Nonce::salted(*b"salt", used), &aad, left, tag), Err(Refused::Forged));
        assert!(left.iter().all(|byte| *byte == 0), "something is left of a forged buffer");
    }
}

#[cfg(feature = "aws-lc")]
#[test]
fn no_forged_buffer_of_100_000_is_opened() {
    forgeries::<AwsLc>(53, 100_000);
}

#[test]
fn no_forged_buffer_is_opened_by_the_portable_cipher() {
    forgeries::<Portable>(54, if cfg!(feature = "aws-lc") { 5_000 } else { 100_000 });
}

#[test]
fn impossible_lengths_are_refused() {
    let key = Key::new(&[1; KEY]).expect("memory");
    let nonce = Nonce::salted([0; 4], 1);
    for wrong in [0, TAG - 1, TAG + 4, TAG + 6] {
        let parts = [Source::from(&b"12345"[..])];
        assert_eq!(key.seal(nonce, &[], &parts, &mut vec![0; wrong]), Err(Refused::Length));
    }
    assert_eq!(key.seal_in_place(nonce, &[], &mut [0; TAG - 1]), Err(Refused::Length));
    assert_eq!(key.open(nonce, &[], &mut [0; TAG - 1]).err(), Some(Refused::Length));
    assert_eq!(key.open_to(nonce, &[], &[0; TAG - 1], &mut []), Err(Refused::Length));
    assert_eq!(key.open_to(nonce, &[], &[0; TAG + 1], &mut [0; 2]), Err(Refused::Length));
}

#[test]
fn a_wiped_key_seals_and_opens_nothing() {
    let mut key = Key::new(&[1; KEY]).expect("memory");
    let nonce = Nonce::salted([0; 4], 1);
    let mut sealed = [0; TAG];
    key.seal(nonce, &[], &[], &mut sealed).expect("sealed");
    key.wipe();
    assert_eq!(key.seal(nonce, &[], &[], &mut [0; TAG]), Err(Refused::NoKey));
    assert_eq!(key.open(nonce, &[], &mut sealed.clone()).err(), Some(Refused::NoKey));
    key.replace(&[1; KEY]).expect("memory");
    assert_eq!(key.open(nonce, &[], &mut sealed), Ok(&mut [][..]));
}
