//! Who connects to whom: every policy at both ends, and peers that know nothing of it.

use super::*;

/// What became of a connect: whether it opened, and sealed at both ends; or why not, and whether
/// security was the reason.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Sealed,
    Plain,
    Refused(Failure, bool),
}

fn connect(mut pair: Pair) -> End {
    let attribute = Attribute::ReliableOrdered;
    let open = Open { to: ADDRESSES[1], attribute, payload: b"hello", host_cookie: 0, timeout: None, token: 0 };
    let client = pair.engines[0].connect(pair.now, &open).expect("connect");
    let until = pair.now.plus_micros(31_000_000);
    let mut server = None;
    while pair.now < until && pair.step() {
        if let Some(request) = pair.hosts[1].requests.pop() {
            assert_eq!(pair.hosts[1].payloads, [b"hello"], "whoever sees a request sees its payload");
            pair.engines[1].accept(pair.now, request, 0).expect("accept");
            server = Some(request);
        }
        if let Some(server) = server.filter(|_| pair.hosts.iter().all(|host| !host.opened.is_empty())) {
            pair.deliver(0, client, 1, b"there");
            pair.deliver(1, server, 1, b"and back");
            let ends = [pair.is_sealed(0, client), pair.is_sealed(1, server)];
            assert_eq!(ends[0], ends[1]);
            return if ends[0] { End::Sealed } else { End::Plain };
        }
    }
    assert_eq!(pair.hosts[1].opened, []);
    End::Refused(pair.hosts[0].refused[0], pair.hosts[0].security[0])
}

#[test]
fn who_has_a_secret_neither_accepts_nor_falls_back_to_plain_unless_told() {
    use Security::{Plain, Prefer, Sealed};
    for (client, server, expected) in [
        (Sealed, Sealed, End::Sealed),
        (Sealed, Prefer, End::Sealed),
        (Prefer, Sealed, End::Sealed),
        (Prefer, Prefer, End::Sealed),
        (Sealed, Plain, End::Refused(Failure::TimedOut, true)),
        (Plain, Sealed, End::Refused(Failure::Refused, true)),
        (Prefer, Plain, End::Plain),
        (Plain, Prefer, End::Plain),
        (Plain, Plain, End::Plain),
    ] {
        assert_eq!(connect(pair_of([client, server], 0)), expected, "{client:?}, {server:?}");
    }
}

#[test]
fn a_host_without_sealer_is_plain() {
    use Security::{Prefer, Sealed};
    for (security, side, expected) in [
        (Sealed, 0, End::Refused(Failure::TimedOut, true)),
        (Sealed, 1, End::Refused(Failure::Refused, true)),
        (Prefer, 0, End::Plain),
        (Prefer, 1, End::Plain),
    ] {
        let mut pair = pair_of([security; 2], 0);
        pair.hosts[1 - side].sealer = None;
        assert_eq!(connect(pair), expected, "{security:?} at side {side}");
    }
}

#[test]
fn two_secrets_do_not_meet() {
    use Security::{Prefer, Sealed};
    for (client, server, expected) in [
        (Sealed, Sealed, End::Refused(Failure::TimedOut, true)),
        (Prefer, Sealed, End::Refused(Failure::Refused, true)),
        (Prefer, Prefer, End::Refused(Failure::Refused, true)),
    ] {
        let mut pair = pair_of([client, server], 0);
        pair.hosts[1].sealer = Some(ToySealer::new(server, SECRET + 1, 2));
        assert_eq!(connect(pair), expected, "{client:?}, {server:?}");
    }
}

#[test]
fn a_forked_child_opens_and_seals_nothing() {
    let mut pair = pair_of([Security::Sealed; 2], 0);
    pair.hosts[0].sealer.as_mut().expect("a sealer").is_forked = true;
    assert_eq!(connect(pair), End::Refused(Failure::NoMemory, false));
    let (mut pair, [client, _]) = sealed_pair(Attribute::ReliableOrdered, 0);
    pair.hosts[0].sealer.as_mut().expect("a sealer").is_forked = true;
    pair.engines[0].set_timeouts(pair.now, client, 1_000_000, 0);
    pair.engines[0].send(pair.now, client, &[b"from a child"], Op(1), false).expect("send");
    pair.run(|pair| !pair.hosts[0].broken.is_empty());
    assert!(pair.hosts[1].received.is_empty());
}
