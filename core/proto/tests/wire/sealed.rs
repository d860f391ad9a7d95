//! Sealed frames, and the shares and tags of their handshakes.

use crate::frames::{self, OFFER, connect, header, resealed};
use cci_proto::wire::*;

const SEALED: Offer = Offer { features: features::SEALED | features::UNCHECKED, ..OFFER };
const NUMBER: u64 = 0xE1E2_E3E4_2122_2324;

/// A sealed frame with 5 bytes of body and 3 in memory, which nobody has encrypted.
fn sealed(kind: Kind, phase: bool) -> Vec<u8> {
    let mut frame = vec![0; HEADER + 5];
    header(kind).emit(&mut frame);
    begin_seal(&mut frame, 3, NUMBER, phase);
    frame.resize(HEADER + 5 + 3 + TAG, 7);
    frame
}

#[test]
fn a_sealed_header_comes_back() {
    for kind in [Kind::Data, Kind::Close, Kind::Confirm, Kind::Reset] {
        for phase in [false, true] {
            let frame = sealed(kind, phase);
            let parsed = SealedHeader { header: header(kind), number: NUMBER, phase };
            assert_eq!(SealedHeader::verify(&frame), Ok(parsed));
            assert!(is_sealed(&frame));
            assert_eq!(frame[1], 0x80 | if phase { 0x40 } else { 0 } | kind as u8);
            assert_eq!(verify(&frame), Err(Malformed::Kind), "whoever does not know it drops it");
            assert_eq!(verify_head(&frame), Err(Malformed::Kind));
            assert_eq!(SealedHeader::parse(&frame[..HEADER]), Some(parsed), "quoted by the network");
        }
    }
}

#[test]
fn what_is_no_sealed_frame_is_refused() {
    let frame = sealed(Kind::Data, false);
    let with = |at: usize, byte: u8| {
        let mut frame = frame.clone();
        frame[at] = byte;
        SealedHeader::verify(&frame)
    };
    assert_eq!(SealedHeader::verify(&frame[..HEADER + TAG - 1]), Err(Malformed::Short));
    assert_eq!(SealedHeader::verify(&frame[..frame.len() - 1]), Err(Malformed::Length));
    assert_eq!(with(0, 0xC1), Err(Malformed::Version));
    assert_eq!(with(1, 6), Err(Malformed::Kind), "in clear");
    // No frame of a handshake is sealed, and no message to a group.
    for kind in [0, 1, 2, 3, 4, 5, 9, 11, 63] {
        assert_eq!(with(1, 0x80 | kind), Err(Malformed::Kind), "{kind}");
    }
    for (name, bytes) in frames::all() {
        assert!(SealedHeader::verify(&bytes).is_err() && !is_sealed(&bytes), "{name}");
    }
}

#[test]
fn bodies_of_confirm_and_reset_come_back() {
    let mut frame = vec![0; 100];
    let confirm = SealedConfirm { header: header(Kind::Confirm), token: [9; TAG] };
    let len = confirm.emit(&mut frame);
    assert_eq!(SealedConfirm::parse_after(confirm.header, &frame[..len]), Some(confirm));
    assert_eq!(SealedConfirm::parse_after(confirm.header, &frame[..len - 1]), None);
    let reset = SealedReset { header: header(Kind::Reset), number: 77, token: [8; TAG] };
    let len = reset.emit(&mut frame);
    // A driver may write its check over the upper half of the number, which a RESET has not.
    let frame = resealed(frame[..len].to_vec());
    assert_eq!(SealedHeader::verify(&frame).map(|sealed| sealed.header), Ok(reset.header));
    assert_eq!(SealedReset::parse_after(reset.header, &frame), Some(reset));
    assert_eq!(SealedReset::parse_after(reset.header, &frame[..len - 1]), None);
}

#[test]
fn who_does_not_know_a_share_drops_it_or_finds_a_request_as_ever() {
    let share = [5; SHARE];
    let beside = frames::frame(|f| Connect { offer: SEALED, share: Share::Beside(&share), ..connect() }.emit(f));
    assert_eq!(beside.len(), CONNECT_SEALED_MIN);
    assert_eq!(beside[86..88], [0; 2], "its reserved field is as ever");
    let inside = Connect { offer: SEALED, payload: b"", share: Share::Inside(&share), ..connect() };
    assert_ne!(frames::frame(|f| inside.emit(f))[86..88], [0; 2], "its reserved field is not zero");
    // Without the feature there is no share.
    let mut plain = beside.clone();
    plain[33] = 0;
    assert_eq!(Connect::parse(&resealed(plain)), None, "padding that is not zero");
}

#[test]
fn shares_are_within_their_frames_and_their_limits() {
    let inside = Connect { offer: SEALED, payload: b"", share: Share::Inside(&[5; SHARE]), ..connect() };
    let bytes = frames::frame(|f| inside.emit(f));
    for (len, is_sound) in [(SHARE - 1, false), (SHARE, true), (CONNECT_SEALED_MIN - CONNECT, true), (600, false)] {
        let mut bytes = bytes.clone();
        bytes[86..88].copy_from_slice(&u16::try_from(len).expect("short").to_be_bytes());
        assert_eq!(Connect::parse(&resealed(bytes)).is_some(), is_sound, "{len}");
    }
    let accept = |len: usize, offer| {
        let share = vec![5; len];
        let accept = Accept { header: header(Kind::Accept), offer, cookie: 1, share: &share };
        Accept::parse(&frames::frame(|f| accept.emit(f))).is_some()
    };
    for (len, is_sound) in [(0, false), (SHARE - 1, false), (SHARE, true), (MAX_SHARE, true), (MAX_SHARE + 1, false)] {
        assert_eq!(accept(len, SEALED), is_sound, "{len}");
        assert_eq!(accept(len, OFFER), len == 0, "{len} without the feature");
    }
}

/// The longest answers to a sealed CONNECT.
#[test]
fn no_answer_is_longer_than_a_sealed_connect() {
    let connect = Connect { offer: SEALED, payload: b"", share: Share::Beside(&[0; SHARE]), ..connect() };
    let connect = frames::frame(|f| connect.emit(f)).len();
    let tag = Some([1; TAG]);
    let uri = [b'u'; MAX_URI];
    let redirect = Redirect { header: header(Kind::Redirect), cookie: 1, token: 2, uri: &uri, tag };
    let accept = Accept { header: header(Kind::Accept), offer: SEALED, cookie: 1, share: &[0; MAX_SHARE] };
    assert_eq!(frames::frame(|f| redirect.emit(f)).len(), connect);
    assert!(frames::frame(|f| accept.emit(f)).len() <= connect);
}

/// What a handshake authenticates of a frame: each byte that does not change when the frame is sent
/// again, and no other.
#[test]
fn fields_are_all_that_stays_when_a_frame_is_sent_again() {
    let tag = Some([1; TAG]);
    let share = [5; SHARE];
    let reject = Reject { header: header(Kind::Reject), reason: Reason::Program, cookie: 1, tag };
    let redirect = Redirect { header: header(Kind::Redirect), cookie: 1, token: 2, uri: b"there", tag };
    let beside = Connect { offer: SEALED, share: Share::Beside(&share), ..connect() };
    let accept = Accept { header: header(Kind::Accept), offer: SEALED, cookie: 1, share: &share };
    type Of = fn(&[u8]) -> Fields;
    let always = [2..8, 24..32];
    let no = 0..0;
    let frames: [(Vec<u8>, Of, [std::ops::Range<usize>; 3]); 4] = [
        (frames::frame(|f| beside.emit(f)), Connect::fields, [72..84, 86..88, 93..CONNECT_SEALED_MIN]),
        (frames::frame(|f| accept.emit(f)), Accept::fields, [64..72 + SHARE, no.clone(), no.clone()]),
        (frames::frame(|f| reject.emit(f)), Reject::fields, [36..60, no.clone(), no.clone()]),
        (frames::frame(|f| redirect.emit(f)), Redirect::fields, [36..44, 57..73, no]),
    ];
    for (frame, fields, free) in frames {
        let before = fields(&frame);
        for at in 0..frame.len() {
            let mut changed = frame.clone();
            changed[at] ^= 1;
            let is_free = always.iter().chain(&free).any(|range| range.contains(&at));
            assert_eq!(fields(&changed).bytes() == before.bytes(), is_free, "kind {}, byte {at}", frame[1]);
        }
    }
}
