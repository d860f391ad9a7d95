//! Keys of connections: phases, numbers, and a bounded number of expanded keys.

use super::{Counts, MOST_FRAMES, Phase, Vault};
use crate::aead::Direction;
use crate::sizes::{KEY, TAG};
use crate::{Refused, Session};

fn sessions(first: u8) -> [Session; 2] {
    [Direction::FromInitiator, Direction::FromResponder].map(|sending| {
        Session::of(sending, |secrets| *secrets = [[first; KEY], [first.wrapping_add(1); KEY]]).expect("memory")
    })
}

/// Two vaults with a connection of this index each.
fn pair(index: u32, most: u16) -> [Vault; 2] {
    sessions(index as u8).map(|session| {
        let mut vault = Vault::new(most);
        vault.insert(index, &session).expect("memory");
        vault
    })
}

fn sealed(vault: &mut Vault, index: u32, number: u64) -> Vec<u8> {
    let mut frame = [&number.to_be_bytes()[..], &[0; TAG]].concat();
    vault.seal_in_place(index, number, b"header", &mut frame).expect("sealed");
    frame
}

fn open(vault: &mut Vault, index: u32, phase: Phase, number: u64, frame: &[u8]) -> Result<(), Refused> {
    let mut copy = frame.to_vec();
    let text = vault.open(index, phase, number, b"header", &mut copy)?;
    assert_eq!(text, number.to_be_bytes());
    Ok(())
}

#[test]
fn each_side_opens_what_the_other_seals_and_not_its_own() {
    let [mut client, mut server] = pair(3, 8);
    let (asked, answered) = (sealed(&mut client, 3, 1), sealed(&mut server, 3, 1));
    assert_eq!(open(&mut server, 3, Phase::Present, 1, &asked), Ok(()));
    assert_eq!(open(&mut client, 3, Phase::Present, 1, &answered), Ok(()));
    assert_eq!(open(&mut client, 3, Phase::Present, 1, &asked), Err(Refused::Forged), "reflected");
    assert_eq!(open(&mut server, 3, Phase::Present, 2, &asked), Err(Refused::Forged), "renumbered");
    assert_eq!(open(&mut server, 4, Phase::Present, 1, &asked), Err(Refused::NoKey));
    assert_eq!(open(&mut server, 300, Phase::Present, 1, &asked), Err(Refused::NoKey));
    assert_eq!(server.counts(), Counts { sealed: 1, opened: 1, forged: 1, expanded: 2 });
}

#[test]
fn no_number_is_sealed_twice_not_even_in_another_phase() {
    let [mut client, _] = pair(0, 8);
    let mut seal = |number| client.seal(0, number, &[], &[], &mut [0; TAG]);
    assert_eq!((seal(5), seal(5), seal(4), seal(6)), (Ok(()), Err(Refused::Reused), Err(Refused::Reused), Ok(())));
    assert_eq!(seal(u64::MAX), Err(Refused::Reused), "nothing could follow it");
    client.advance_sending(0).expect("a key");
    assert_eq!(client.seal(0, 6, &[], &[], &mut [0; TAG]), Err(Refused::Reused));
    assert_eq!((client.seal(0, 7, &[], &[], &mut [0; TAG]), client.sealed(0)), (Ok(()), Ok(1)));
}

#[test]
fn a_key_seals_its_share_of_frames() {
    let [mut client, mut server] = pair(0, 8);
    client.slot_mut(0).expect("a slot").set_sealed(MOST_FRAMES - 1);
    let last = sealed(&mut client, 0, 1);
    assert_eq!(client.seal(0, 2, &[], &[], &mut [0; TAG]), Err(Refused::WornOut));
    assert_eq!(open(&mut server, 0, Phase::Present, 1, &last), Ok(()));
    client.advance_sending(0).expect("a key");
    let next = sealed(&mut client, 0, 2);
    assert_eq!(open(&mut server, 0, Phase::Next, 2, &next), Ok(()));
}

#[test]
fn phases_follow_each_other_on_both_sides() {
    let [mut client, mut server] = pair(7, 8);
    let mut late = sealed(&mut client, 7, 1);
    for phase in 1..20 {
        let at = 2 * phase;
        client.advance_sending(7).expect("a key");
        let first = sealed(&mut client, 7, at);
        assert_eq!(open(&mut server, 7, Phase::Present, at, &first), Err(Refused::Forged));
        assert_eq!(open(&mut server, 7, Phase::Next, at, &first), Ok(()));
        server.advance_receiving(7).expect("a key");
        assert_eq!(open(&mut server, 7, Phase::Present, at, &first), Ok(()));
        // The key of the phase before was expanded only where a frame of it had come.
        assert_eq!(open(&mut server, 7, Phase::Previous, at - 1, &late), Ok(()));
        server.forget_previous(7);
        assert_eq!(open(&mut server, 7, Phase::Previous, at - 1, &late), Err(Refused::NoKey));
        late = sealed(&mut client, 7, at + 1);
    }
}

/// What opens nothing moves no phase: only the caller does.
#[test]
fn forged_frames_of_the_next_phase_change_nothing() {
    let [mut client, mut server] = pair(0, 8);
    for _ in 0..100 {
        assert_eq!(open(&mut server, 0, Phase::Next, 9, &[7; 24]), Err(Refused::Forged));
    }
    assert_eq!(server.counts(), Counts { forged: 100, expanded: 1, ..Counts::default() });
    let right = sealed(&mut client, 0, 1);
    assert_eq!(open(&mut server, 0, Phase::Present, 1, &right), Ok(()));
}

#[test]
fn a_connection_that_rests_goes_on_with_the_same_keys() {
    let [mut client, mut server] = pair(5, 8);
    for number in 1..10 {
        let frame = sealed(&mut client, 5, number);
        assert_eq!(open(&mut server, 5, Phase::Present, number, &frame), Ok(()));
        client.rest(5);
        server.rest(5);
    }
    assert_eq!((client.counts().expanded, client.entries.len()), (9, 1), "the room is used again");
}

#[test]
fn no_more_keys_are_expanded_than_the_vault_is_made_for() {
    const MOST: u16 = 8;
    let (mut client, mut server) = (Vault::new(MOST), Vault::new(MOST));
    for index in 0..100 {
        let [ours, theirs] = sessions(index);
        client.insert(index.into(), &ours).expect("memory");
        server.insert(index.into(), &theirs).expect("memory");
    }
    let mut random = fastrand::Rng::with_seed(71);
    for number in 1..5_000 {
        let index = random.u32(..100);
        let frame = sealed(&mut client, index, number);
        assert_eq!(open(&mut server, index, Phase::Present, number, &frame), Ok(()));
        let reply = sealed(&mut server, index, number);
        assert_eq!(open(&mut client, index, Phase::Present, number, &reply), Ok(()));
    }
    assert_eq!([client.entries.len(), server.entries.len()], [usize::from(MOST); 2]);
}

#[test]
fn an_index_that_is_used_again_has_the_new_keys_alone() {
    let [mut client, mut server] = pair(2, 8);
    let old = sealed(&mut client, 2, 1);
    assert_eq!(open(&mut server, 2, Phase::Present, 1, &old), Ok(()));
    server.remove(2);
    assert_eq!(open(&mut server, 2, Phase::Present, 1, &old), Err(Refused::NoKey));
    server.remove(2);
    let [ours, theirs] = sessions(200);
    client.insert(2, &ours).expect("memory");
    server.insert(2, &theirs).expect("memory");
    assert_eq!(open(&mut server, 2, Phase::Present, 1, &old), Err(Refused::Forged));
    let new = sealed(&mut client, 2, 1);
    assert_eq!(open(&mut server, 2, Phase::Present, 1, &new), Ok(()));
}

/// Compares with keys that never expire, over random operations.
#[test]
fn random_operations_agree_with_a_vault_that_keeps_every_key() {
    let mut random = fastrand::Rng::with_seed(72);
    let (mut client, mut small, mut large) = (Vault::new(400), Vault::new(4), Vault::new(400));
    for index in 0..20 {
        let [ours, theirs] = sessions(index);
        client.insert(index.into(), &ours).expect("memory");
        small.insert(index.into(), &theirs).expect("memory");
        large.insert(index.into(), &theirs).expect("memory");
    }
    for number in 1..4_000 {
        let index = random.u32(..20);
        let is_next = random.u8(..8) == 0;
        if is_next {
            client.advance_sending(index).expect("a key");
        }
        let phase = if is_next { Phase::Next } else { Phase::Present };
        let frame = sealed(&mut client, index, number);
        for vault in [&mut small, &mut large] {
            assert_eq!(open(vault, index, phase, number, &frame), Ok(()));
            if is_next {
                vault.advance_receiving(index).expect("a key");
            }
        }
        if random.u8(..10) == 0 {
            small.rest(random.u32(..20));
        }
    }
    assert_eq!(small.entries.len(), 4);
}

#[test]
fn a_connection_that_rests_takes_86_bytes() {
    const COUNT: u32 = 10_000;
    let (mut vault, [session, _]) = (Vault::new(8), sessions(1));
    (0..COUNT).for_each(|index| vault.insert(index, &session).expect("memory"));
    assert!(vault.cells.len() * 4096 <= 86 * COUNT as usize && vault.entries.is_empty());
}
