//! Sealed frames, and the shares and tags of their handshakes, as tshark shows them.

use super::Capture;
use crate::frames::{self, OFFER, connect, header, resealed};
use cci_proto::wire::*;

const OFFER_SEALED: Offer = Offer { features: features::SEALED | features::UNCHECKED, ..OFFER };
/// The upper half of the number of each frame.
const UPPER: u64 = 0x6162_6364;
/// Bytes of the heads of plain DATA and CLOSE.
const DATA: usize = 56;
const CLOSE: usize = 44;
/// An ephemeral key, three bytes of payload, and a tag.
const SHARE_OF_3: [u8; SHARE + 3] = share_of_3();
const KEY: &str = "0101010101010101010101010101010101010101010101010101010101010101";
const TAG_OF_SHARE: &str = "03030303030303030303030303030303";
const TAG_OF_FRAME: &str = "09090909090909090909090909090909";

const fn share_of_3() -> [u8; SHARE + 3] {
    let mut share = [1; SHARE + 3];
    let mut at = SHARE - TAG;
    while at < share.len() {
        share[at] = if at < SHARE - TAG + 3 { 2 } else { 3 };
        at += 1;
    }
    share
}

/// A sealed frame of this kind whose body has `len` bytes.
fn sealed(kind: Kind, phase: bool, len: usize) -> Vec<u8> {
    let mut frame = vec![8; HEADER + len];
    header(kind).emit(&mut frame);
    begin_seal(&mut frame, 0, UPPER << 32 | u64::from(header(kind).number), phase);
    frame.resize(HEADER + len + TAG, 9);
    frame
}

/// The shortest of each kind.
fn shortest() -> [(Kind, Vec<u8>); 4] {
    let mut reset = vec![0; SealedReset::LEN];
    SealedReset { header: header(Kind::Reset), number: 77, token: [9; TAG] }.emit(&mut reset);
    let lens = [(Kind::Data, DATA - HEADER), (Kind::Close, CLOSE - HEADER), (Kind::Confirm, TAG)];
    let [data, close, confirm] = lens.map(|(kind, len)| (kind, sealed(kind, false, len)));
    [data, close, confirm, (Kind::Reset, reset)]
}

#[test]
fn sealed_frames_are_named_and_show_what_is_in_clear() {
    let mut datagrams: Vec<_> = shortest().into_iter().map(|(_, frame)| frame).collect();
    datagrams.push(sealed(Kind::Data, true, DATA - HEADER + 3));
    let capture = Capture::of("sealed", &datagrams);
    let fields = ["_ws.col.Info", "cci.sealed", "cci.phase", "cci.kind", "cci.length", "cci.check", "cci.number.whole"];
    let shown = capture.fields(&[], &fields);
    let whole = (UPPER << 32 | 0x2122_2324).to_string();
    assert_eq!(
        shown,
        [
            ["sealed DATA", "1", "0", "6", "72", "", &whole],
            ["sealed CLOSE", "1", "0", "7", "60", "", &whole],
            ["sealed CONFIRM", "1", "0", "10", "64", "", &whole],
            ["sealed RESET", "1", "0", "8", "52", "", ""],
            ["sealed DATA", "1", "1", "6", "75", "", &whole],
        ]
    );
    let fields = ["cci.to", "cci.from", "cci.number", "cci.time", "cci.number.upper", "cci.tag", "_ws.expert.message"];
    let clear = ["0x0102030405060708", "0x1112131415161718", "555885348", "825373492", "1633837924", TAG_OF_FRAME, ""];
    let shown = capture.fields(&[], &fields);
    for at in [0, 1, 2, 4] {
        assert_eq!(shown[at], clear, "{at}");
    }
    let reset = capture.fields(&[], &["cci.answered_number", "cci.reset_token", "cci.body", "cci.tag", "cci.seq"]);
    assert_eq!(reset[3], ["77", TAG_OF_FRAME, "", "", ""]);
    assert_eq!(reset[4], ["", "", &"08".repeat(27), TAG_OF_FRAME, ""], "nothing of the body is read");
}

#[test]
fn shares_and_tags_of_a_handshake_are_shown() {
    let share = &SHARE_OF_3;
    let tag = Some([9; TAG]);
    let inside = Connect { offer: OFFER_SEALED, payload: b"", share: Share::Inside(share), ..connect() };
    let beside = Connect { offer: OFFER_SEALED, share: Share::Beside(&share[3..]), ..connect() };
    let accept = Accept { header: header(Kind::Accept), offer: OFFER_SEALED, cookie: 1, share };
    let reject = Reject { header: header(Kind::Reject), reason: Reason::Security, cookie: 1, tag };
    let redirect = Redirect { header: header(Kind::Redirect), cookie: 1, token: 2, uri: b"there", tag };
    let datagrams = [
        frames::frame(|f| inside.emit(f)),
        frames::frame(|f| beside.emit(f)),
        frames::frame(|f| accept.emit(f)),
        frames::frame(|f| reject.emit(f)),
        frames::frame(|f| redirect.emit(f)),
    ];
    let capture = Capture::of("shares", &datagrams);
    let fields = ["_ws.col.Info", "cci.sealed", "cci.features.sealed", "cci.check.status", "_ws.expert.message"];
    assert_eq!(
        capture.fields(&[], &fields),
        [
            ["CONNECT", "0", "1", "1", ""],
            ["CONNECT", "0", "1", "1", ""],
            ["ACCEPT", "0", "1", "1", ""],
            ["REJECT", "0", "", "1", ""],
            ["REDIRECT", "0", "", "1", ""],
        ]
    );
    let fields = ["cci.share_length", "cci.payload", "cci.share.key", "cci.share.payload", "cci.share.tag", "cci.tag"];
    let beside_key = format!("{}020202", &KEY[6..]);
    assert_eq!(
        capture.fields(&[], &fields),
        [
            ["51", "", KEY, "020202", TAG_OF_SHARE, ""],
            ["0", "68656c6c6f", &beside_key, "", TAG_OF_SHARE, ""],
            ["", "", KEY, "020202", TAG_OF_SHARE, ""],
            ["", "", "", "", "", TAG_OF_FRAME],
            ["", "", "", "", "", TAG_OF_FRAME],
        ]
    );
    assert_eq!(capture.field("cci.reject_reason")[3], "4");
    assert_eq!(capture.field("cci.uri")[4], "there", "without the tag");
}

#[test]
fn sealed_frames_that_nobody_sends_are_complained_about() {
    let with = |mut frame: Vec<u8>, at: usize, byte: u8| {
        frame[at] = byte;
        frame
    };
    let [(_, data), (_, close), (_, confirm), (_, reset)] = shortest();
    let share = &SHARE_OF_3;
    let inside = Connect { offer: OFFER_SEALED, payload: b"", share: Share::Inside(share), ..connect() };
    let inside = frames::frame(|f| inside.emit(f));
    let accept = Accept { header: header(Kind::Accept), offer: OFFER_SEALED, cookie: 1, share };
    let accept = frames::frame(|f| accept.emit(f));
    let reject = Reject { header: header(Kind::Reject), reason: Reason::Program, cookie: 1, tag: Some([9; TAG]) };
    let reject = frames::frame(|f| reject.emit(f));
    let resized = |frame: &[u8], len: usize| {
        let mut frame = frame.to_vec();
        frame.resize(len, 0);
        frame[2..4].copy_from_slice(&u16::try_from(len).expect("short").to_be_bytes());
        if is_sealed(&frame) { frame } else { resealed(frame) }
    };
    let length = "not of its kind's length";
    let cases = [
        (resized(&data, 71), length),
        (resized(&close, 59), length),
        (resized(&confirm, 65), length),
        (resized(&reset, 53), length),
        (with(data.clone(), 4, 0x80), "a number that no sender reaches"),
        (resized(&inside, 564), "shorter than a sealed CONNECT may be"),
        (resealed(with(inside.clone(), 87, 47)), "a share of a wrong length"),
        (resealed(with(inside.clone(), 86, 3)), "a share of a wrong length"),
        (resealed(with(inside, 33, 0)), "a share without the feature SEALED"),
        (resized(&accept, 72 + 47), "a share of a wrong length"),
        (resized(&accept, 72 + 257), "a share of a wrong length"),
        (resealed(with(accept, 33, 0)), length),
        (resized(&reject, 59), length),
    ];
    let datagrams: Vec<_> = cases.iter().map(|(frame, _)| frame.clone()).collect();
    let shown = Capture::of("sealed, broken", &datagrams).field("_ws.expert.message");
    for ((frame, why), complaint) in cases.iter().zip(shown) {
        assert_eq!(complaint, format!("Malformed frame: {why}"), "kind {}", frame[1]);
    }
}

#[test]
fn no_other_kind_is_sealed() {
    let [(_, data), ..] = shortest();
    // CONNECT, MULTICAST, none, one that there is not; and the bit of the phase without that of a
    // sealed frame.
    let datagrams: Vec<_> = [0x81, 0x89, 0x80, 0xBF, 0x46]
        .into_iter()
        .map(|kind| {
            let mut frame = data.clone();
            frame[1] = kind;
            frame
        })
        .collect();
    let capture = Capture::of("other kinds", &datagrams);
    assert!(capture.field("cci.kind").iter().all(String::is_empty), "left alone");
}
