//! A forked child has no key of its parent, and makes keys of its own.

use cci_mem::secrets::Secret;
use cci_seal::aead::{Direction, Key, Nonce};
use cci_seal::noise::{Initiator, Responder};
use cci_seal::{KEY, Phase, Psk, Refused, Session, TAG, Vault};

/// Runs `child` in a forked child and says whether it returned true.
fn in_child(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls `child`, which takes no lock that another thread could hold but the
    // allocator's, which the C library keeps usable, and then ends without running anything of the
    // parent.
    let id = unsafe { libc::fork() };
    if id == 0 {
        let code = i32::from(!child());
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code) };
    }
    assert!(id > 0, "no child");
    let mut status = -1;
    // SAFETY: `status` is ours; the child is ours and not waited for yet.
    let waited = unsafe { libc::waitpid(id, &raw mut status, 0) };
    assert_eq!(waited, id);
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

fn sessions(psk: &Psk) -> [Session; 2] {
    let initiator = Initiator::begin(psk, &[], b"").expect("begun");
    let responder = Responder::read(psk, &[], initiator.message(), &mut []).expect("read");
    let (answer, session) = responder.answer(&[], b"").expect("answered");
    [initiator.finish(&[], &answer, &mut []).expect("finished"), session]
}

fn exchange(sender: &mut Vault, receiver: &mut Vault, number: u64) -> Result<(), Refused> {
    let mut frame = [0; TAG + 4];
    sender.seal_in_place(0, number, b"", &mut frame)?;
    receiver.open(0, Phase::Present, number, b"", &mut frame).map(|_| ())
}

#[test]
fn a_child_seals_and_opens_nothing_with_the_keys_of_its_parent() {
    let psk = Psk::fresh().expect("a secret");
    let sessions = sessions(&psk);
    let (mut client, mut server) = (Vault::new(8), Vault::new(8));
    client.insert(0, &sessions[0]).expect("memory");
    server.insert(0, &sessions[1]).expect("memory");
    exchange(&mut client, &mut server, 1).expect("in the parent");
    let key = Key::new(&[1; KEY]).expect("memory");
    let asking = Initiator::begin(&psk, &[], b"").expect("begun");
    let asked = Responder::read(&psk, &[], asking.message(), &mut []).expect("read");

    let mut frame = [0; TAG];
    let nonce = Nonce::new(Direction::FromInitiator, 1);
    let forked = Err(Refused::Forked);
    assert!(in_child(|| client.seal_in_place(0, 2, b"", &mut frame) == forked && frame == [0; TAG]));
    assert!(in_child(|| server.open(0, Phase::Present, 1, b"", &mut [1; TAG]).err() == forked.err()));
    assert!(in_child(|| client.advance_sending(0) == forked && server.advance_receiving(0) == forked));
    assert!(in_child(|| client.insert(1, &sessions[0]) == forked && client.sealed(0) == Err(Refused::Forked)));
    assert!(in_child(|| key.seal_in_place(nonce, b"", &mut [0; TAG]) == forked));
    assert!(in_child(|| key.open(nonce, b"", &mut [0; TAG]).err() == forked.err()));
    assert!(in_child(|| psk.label().is_err() && psk.digits().is_err() && psk.reset_token(b"", [0; 2]).is_err()));
    assert!(in_child(|| psk.is_same(&psk) == Err(Refused::Forked)));
    assert!(in_child(|| sessions[0].stream(1).is_err() && sessions[0].export(b"").is_err()));
    assert!(in_child(|| Initiator::begin(&psk, &[], b"").is_err()));
    assert!(in_child(|| asking.finish(&[], &[0; 48], &mut []).err() == forked.err()));
    assert!(in_child(|| asked.deny(&[]).err() == forked.err()));
    exchange(&mut client, &mut server, 2).expect("in the parent, as before");
}

#[test]
fn a_child_has_an_arena_of_its_own() {
    let parents = Psk::fresh().expect("a secret");
    let vault = Vault::new(8);
    assert!(in_child(move || {
        // Dropping what it has inherited touches nothing.
        drop((parents, vault));
        let psk = Psk::fresh().expect("a secret");
        let [ours, theirs] = sessions(&psk);
        let (mut client, mut server) = (Vault::new(8), Vault::new(8));
        client.insert(0, &ours).expect("memory");
        server.insert(0, &theirs).expect("memory");
        exchange(&mut client, &mut server, 1).is_ok()
    }));
}

/// What the kernel wipes is wiped by it alone: the words before and after are noticed as one.
#[test]
fn a_wiped_cell_is_noticed_at_each_use() {
    let mut secret = Secret::<[u8; KEY]>::zeroed().expect("memory");
    secret.get_mut().expect("here").fill(9);
    assert!(in_child(|| secret.get().is_err()));
    assert!(in_child(|| secret.get_mut().is_err()));
    assert_eq!(secret.get(), Ok(&[9; KEY]));
}
