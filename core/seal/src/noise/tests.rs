//! The handshake: known answers, the crate `snow` on the other side, and forged messages.

use super::{Handshake, Initiator, OVERHEAD, Responder};
use crate::aead::{Direction, Key, Nonce};
use crate::sizes::{KEY, TAG};
use crate::{Psk, Refused, Session};

const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";

fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("two digits")).collect()
}

fn key_of(digits: &str) -> [u8; KEY] {
    bytes_of(digits).try_into().expect("32 bytes")
}

fn random<const N: usize>(random: &mut fastrand::Rng) -> [u8; N] {
    let mut bytes = [0; N];
    random.fill(&mut bytes);
    bytes
}

fn some(random: &mut fastrand::Rng, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; random.usize(..=most)];
    random.fill(&mut bytes);
    bytes
}

/// Seals a text as Noise does once a handshake is over.
fn transport(session: &Session, from: Direction, number: u64, text: &[u8]) -> Vec<u8> {
    let [initiators, responders] = session.secrets().expect("here");
    let secret = if from == Direction::FromInitiator { initiators } else { responders };
    let mut sealed = [text, &[0; TAG]].concat();
    let nonce = Nonce::salted([0; 4], number);
    Key::new(secret).expect("memory").seal_in_place(nonce, &[], &mut sealed).expect("sealed");
    sealed
}

/// Of the vectors of the library cacophony, which other implementations have taken up.
#[test]
fn known_answers() {
    let psk = key_of("54686973206973206d7920417573747269616e20706572737065637469766521");
    let psk = Psk::from_bytes(&psk).expect("memory");
    let prologue: &[&[u8]] = &[b"John ", b"Galt"];
    let ephemeral = |digits| {
        move |private: &mut [u8; KEY]| {
            *private = key_of(digits);
            Ok(())
        }
    };
    let ours = ephemeral("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a");
    let theirs = ephemeral("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b");

    let initiator = Initiator::begin_with(&psk, prologue, b"Ludwig von Mises", ours).expect("begun");
    let first = "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944\
                 7c37a89fc17813788d30df2d59501d6066f5f8aecc3406bbd9829f2d24a531b1";
    assert_eq!(initiator.message(), bytes_of(first));
    let mut payload = [0; 16];
    let responder = Responder::read(&psk, prologue, initiator.message(), &mut payload).expect("read");
    assert_eq!(&payload, b"Ludwig von Mises");

    let (answer, session) = responder.answer_with(&[], b"Murray Rothbard", theirs).expect("answered");
    let second = "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088432f29d79368ef9de4e1\
                  ae7a362fb05bf0ad668e026bf5714554497b3a720461";
    assert_eq!(&*answer, bytes_of(second));
    let mut payload = [0; 15];
    let at_initiator = initiator.finish(&[], &answer, &mut payload).expect("finished");
    assert_eq!(&payload, b"Murray Rothbard");

    for session in [&session, &at_initiator] {
        let third = transport(session, Direction::FromInitiator, 0, b"F. A. Hayek");
        assert_eq!(third, bytes_of("7c01e898a6201f36aecee532e29cd0b7f8ffa29d3366ad0dce39a6"));
        let fourth = transport(session, Direction::FromResponder, 0, b"Carl Menger");
        assert_eq!(fourth, bytes_of("a9ff535aace3db6a1da1a7fb00fe2de2622bb373abad9fb42c00e0"));
    }
}

/// What both sides of a handshake with `snow` know.
struct Known {
    psk: [u8; KEY],
    prologue: Vec<u8>,
    payloads: [Vec<u8>; 2],
}

impl Known {
    fn new(random_source: &mut fastrand::Rng) -> Self {
        let payloads = [some(random_source, 1_056), some(random_source, 200)];
        Self { psk: random(random_source), prologue: some(random_source, 300), payloads }
    }

    fn snow(&self, is_initiator: bool) -> snow::HandshakeState {
        let builder = snow::Builder::new(PATTERN.parse().expect("a pattern"));
        let builder = builder.psk(0, &self.psk).and_then(|builder| builder.prologue(&self.prologue)).expect("set");
        let built = if is_initiator { builder.build_initiator() } else { builder.build_responder() };
        built.expect("a state")
    }

    fn psk(&self) -> Psk {
        Psk::from_bytes(&self.psk).expect("memory")
    }
}

/// Reads a message by `snow`.
fn reads(state: &mut snow::HandshakeState, message: &[u8], payload: &[u8]) {
    let mut read = vec![0; message.len()];
    let len = state.read_message(message, &mut read).expect("snow reads it");
    assert_eq!(&read[..len], payload);
}

/// Writes a message by `snow`.
fn writes(state: &mut snow::HandshakeState, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![0; payload.len() + OVERHEAD];
    let len = state.write_message(payload, &mut message).expect("snow writes it");
    assert_eq!(len, message.len());
    message
}

/// Both sides have the same keys afterwards, of each direction.
fn talk(session: &Session, snow: snow::HandshakeState) {
    let mut snow = snow.into_transport_mode().expect("finished");
    let mut read = [0; 32];
    let ours = transport(session, session.sending(), 0, b"ours");
    let len = snow.read_message(&ours, &mut read).expect("snow opens it");
    assert_eq!(&read[..len], b"ours");
    let len = snow.write_message(b"theirs", &mut read).expect("snow seals it");
    assert_eq!(&read[..len], transport(session, session.sending().reversed(), 0, b"theirs"));
}

#[test]
fn snow_answers_us() {
    let mut source = fastrand::Rng::with_seed(61);
    for _ in 0..100 {
        let known = Known::new(&mut source);
        let mut snow = known.snow(false);
        let (begin, end) = known.prologue.split_at(known.prologue.len() / 2);
        let ours = Initiator::begin(&known.psk(), &[begin, end], &known.payloads[0]).expect("begun");
        reads(&mut snow, ours.message(), &known.payloads[0]);
        let answer = writes(&mut snow, &known.payloads[1]);
        let mut payload = vec![0; known.payloads[1].len()];
        let session = ours.finish(&[], &answer, &mut payload).expect("finished");
        assert_eq!((payload, session.sending()), (known.payloads[1].clone(), Direction::FromInitiator));
        talk(&session, snow);
    }
}

#[test]
fn we_answer_snow() {
    let mut source = fastrand::Rng::with_seed(62);
    for _ in 0..100 {
        let known = Known::new(&mut source);
        let mut snow = known.snow(true);
        let message = writes(&mut snow, &known.payloads[0]);
        let mut payload = vec![0; known.payloads[0].len()];
        let ours = Responder::read(&known.psk(), &[&known.prologue], &message, &mut payload).expect("read");
        assert_eq!(payload, known.payloads[0]);
        let (answer, session) = ours.answer(&[], &known.payloads[1]).expect("answered");
        reads(&mut snow, &answer, &known.payloads[1]);
        assert_eq!(session.sending(), Direction::FromResponder);
        talk(&session, snow);
    }
}

/// A first message, and what reads it.
fn begun() -> (Psk, Initiator) {
    let psk = Psk::from_bytes(&[3; KEY]).expect("memory");
    let initiator = Initiator::begin(&psk, &[b"prologue"], b"payload").expect("begun");
    (psk, initiator)
}

fn responder(psk: &Psk, initiator: &Initiator) -> Responder {
    Responder::read(psk, &[b"prologue"], initiator.message(), &mut [0; 7]).expect("read")
}

#[test]
fn a_first_message_is_refused_whatever_is_changed_in_it() {
    let (psk, initiator) = begun();
    let read = |psk: &Psk, prologue: &[u8], message: &[u8]| {
        let mut payload = vec![1; message.len().saturating_sub(OVERHEAD)];
        let refused = Responder::read(psk, &[prologue], message, &mut payload).err();
        assert!(refused.is_none() || refused == Some(Refused::Length) || payload.iter().all(|byte| *byte == 0));
        refused
    };
    assert_eq!(read(&psk, b"prologue", initiator.message()), None);
    assert_eq!(read(&psk, b"Prologue", initiator.message()), Some(Refused::Forged));
    let other = Psk::from_bytes(&[4; KEY]).expect("memory");
    assert_eq!(read(&other, b"prologue", initiator.message()), Some(Refused::Forged));
    for bit in 0..8 * initiator.message().len() {
        let mut message = initiator.message().to_vec();
        message[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(read(&psk, b"prologue", &message), Some(Refused::Forged), "bit {bit}");
    }
    for len in 0..initiator.message().len() {
        let expected = if len < OVERHEAD { Refused::Length } else { Refused::Forged };
        assert_eq!(read(&psk, b"prologue", &initiator.message()[..len]), Some(expected), "{len} bytes");
    }
}

#[test]
fn a_forged_answer_changes_nothing_and_the_right_one_still_counts() {
    let (psk, initiator) = begun();
    let (answer, session) = responder(&psk, &initiator).answer(&[b"fields"], b"yes").expect("answered");
    let finish = |bound: &[&[u8]], answer: &[u8]| {
        let mut payload = vec![1; answer.len().saturating_sub(OVERHEAD)];
        initiator.finish(bound, answer, &mut payload).map(|session| (session, payload))
    };
    for bit in 0..8 * answer.len() {
        let mut forged = answer.to_vec();
        forged[bit / 8] ^= 1 << (bit % 8);
        let refused = finish(&[b"fields"], &forged).err();
        // X25519 does not look at the highest bit of a public key, but the hash does.
        assert_eq!(refused, Some(Refused::Forged), "bit {bit}");
    }
    for bound in [&[][..], &[&b"Fields"[..]]] {
        assert_eq!(finish(bound, &answer).err(), Some(Refused::Forged), "other fields");
    }
    let (at_initiator, payload) = finish(&[b"fie", b"lds"], &answer).expect("the right one");
    assert_eq!((payload, at_initiator.secrets()), (b"yes".to_vec(), session.secrets()));
}

#[test]
fn an_answer_to_another_first_message_is_forged() {
    let (psk, first) = begun();
    let (_, second) = begun();
    let (answer, _) = responder(&psk, &first).answer(&[], b"").expect("answered");
    assert_eq!(second.finish(&[], &answer, &mut []).err(), Some(Refused::Forged));
}

/// The points of small order make the shared secret zero, whatever the private key.
#[test]
fn a_public_key_that_shares_nothing_is_refused() {
    let (psk, initiator) = begun();
    let mut one = [0; KEY];
    one[0] = 1;
    for weak in [[0; KEY], one] {
        let mut payload = [0; TAG];
        assert_eq!(
            initiator.finish(&[], &[&weak[..], &[0; 2 * TAG]].concat(), &mut payload).err(),
            Some(Refused::Forged)
        );
        let mut peer = responder(&psk, &initiator);
        peer.state.get_mut().expect("here").ephemeral = weak;
        assert_eq!(peer.answer(&[], b"").err(), Some(Refused::Forged));
    }
}

#[test]
fn only_who_has_read_the_first_message_can_deny() {
    let (psk, initiator) = begun();
    let tag = responder(&psk, &initiator).deny(&[b"reason ", b"2"]).expect("here");
    assert_eq!(initiator.check_denial(&[b"reason 2"], &tag), Ok(()));
    assert_eq!(initiator.check_denial(&[b"reason 3"], &tag), Err(Refused::Forged));
    for bit in 0..8 * TAG {
        let mut forged = tag;
        forged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(initiator.check_denial(&[b"reason 2"], &forged), Err(Refused::Forged));
    }
    let (_, other) = begun();
    assert_eq!(other.check_denial(&[b"reason 2"], &tag), Err(Refused::Forged), "of another connect");
}

#[test]
fn the_name_is_hashed_as_it_is() {
    assert_eq!(super::NAME, PATTERN.as_bytes());
    assert_eq!(size_of::<Handshake>(), 4 * KEY);
}
