//! The oracles see each thing that must not happen, and nothing else.

use super::messages::{Stream, Wrong};
use super::pattern;
use super::side::{CheckedHost, Oracle, Registration, Side};
use super::transfers::{Expect, Transfer, Transfers, place};
use super::violation::Rule;
use cci_proto::engine::{Host, Op, Source, Target};
use cci_proto::{Attribute, Failure};

fn bytes(index: u32, len: usize) -> Vec<u8> {
    let (head, body) = pattern::message(1, index, len);
    [&head[..if len < pattern::HEAD { 0 } else { pattern::HEAD }], body].concat()
}

fn stream(attribute: Attribute) -> Stream {
    let mut stream = Stream::new(attribute);
    for len in [10, 20, 30] {
        stream.post(len, None);
    }
    stream
}

fn rule<T>(verdict: Result<T, Wrong>) -> Option<Rule> {
    verdict.err().map(|(rule, _)| rule)
}

#[test]
fn order_and_repetition_are_seen() {
    let deliver =
        |stream: &mut Stream, index: u32| rule(stream.deliver(1, &bytes(index, 10 * (index as usize + 1)), |_| false));
    let mut ordered = stream(Attribute::ReliableOrdered);
    assert_eq!(deliver(&mut ordered, 0), None);
    assert_eq!(deliver(&mut ordered, 2), Some(Rule::Ordered), "1 is missing");
    for (attribute, broken) in
        [(Attribute::ReliableUnordered, Rule::Unordered), (Attribute::Unreliable, Rule::Unreliable)]
    {
        let mut loose = stream(attribute);
        assert_eq!((deliver(&mut loose, 2), deliver(&mut loose, 0)), (None, None));
        assert_eq!(deliver(&mut loose, 2), Some(broken), "twice");
        assert_eq!(deliver(&mut loose, 3), Some(broken), "never sent");
        let missing = rule(loose.check_rest(1, |_| false));
        assert_eq!(missing, Some(Rule::Cause), "sends have not ended");
    }
}

#[test]
fn content_is_seen() {
    let mut ordered = stream(Attribute::ReliableOrdered);
    let mut wrong = bytes(0, 10);
    wrong[9] ^= 1;
    assert_eq!(rule(ordered.deliver(1, &wrong, |_| false)), Some(Rule::Ordered));
    let mut ordered = stream(Attribute::ReliableOrdered);
    assert_eq!(rule(ordered.deliver(1, &bytes(0, 9), |_| false)), Some(Rule::Ordered), "cut short");
}

#[test]
fn a_completion_message_may_be_missing_only_if_its_rma_was_refused() {
    let make = || {
        let mut stream = Stream::new(Attribute::ReliableOrdered);
        stream.post(10, Some(0));
        stream.post(20, None);
        stream
    };
    assert_eq!(make().deliver(1, &bytes(1, 20), |_| true), Ok(1));
    assert_eq!(rule(make().deliver(1, &bytes(1, 20), |_| false)), Some(Rule::Ordered));
    assert_eq!(make().deliver(1, &bytes(0, 10), |_| true), Ok(0), "or it comes");
}

#[test]
fn ends_are_seen() {
    let mut ordered = stream(Attribute::ReliableOrdered);
    assert_eq!(rule(ordered.end(1, 0, Ok(()))), Some(Rule::CompletionAfterDelivery));
    assert_eq!(rule(ordered.end(1, 0, Ok(()))), Some(Rule::EndsOnce));
    let mut ordered = stream(Attribute::ReliableOrdered);
    for index in [0, 1] {
        assert!(ordered.deliver(1, &bytes(index, 10 * (index as usize + 1)), |_| false).is_ok());
    }
    assert_eq!(rule(ordered.end(1, 1, Ok(()))), Some(Rule::Ordered), "0 has not ended");
    let mut failed = stream(Attribute::ReliableUnordered);
    assert_eq!(rule(failed.end(1, 0, Err(Failure::Disconnected))), None);
}

fn transfer(fence: bool) -> Transfer {
    Transfer { stream: 4, fence, len: 8, ..Transfer::EMPTY }
}

#[test]
fn a_fence_is_seen_from_both_sides() {
    for (first, second) in [(true, false), (false, true)] {
        let mut transfers = Transfers::default();
        transfers.post(transfer(first), None);
        transfers.post(transfer(second), None);
        assert_eq!(rule(transfers.start(1)), Some(Rule::Fence));
        transfers.get_mut(0).done = 8;
        transfers.get_mut(1).started = false;
        assert_eq!(rule(transfers.start(1)), None);
    }
    let mut transfers = Transfers::default();
    transfers.post(transfer(false), None);
    transfers.post(transfer(false), None);
    assert_eq!(rule(transfers.start(1)), None, "without a fence there is no order");
}

#[test]
fn ends_of_rma_are_seen() {
    let end = |transfer: Transfer, outcome, delivered| {
        let mut transfers = Transfers::default();
        transfers.post(transfer, None);
        let first = rule(transfers.end(0, outcome, delivered));
        assert_eq!(rule(transfers.end(0, outcome, delivered)), Some(Rule::EndsOnce));
        first
    };
    let whole = Transfer { done: 8, ..transfer(false) };
    assert_eq!(end(whole, Ok(()), false), None);
    assert_eq!(end(Transfer { done: 7, ..whole }, Ok(()), false), Some(Rule::CompletionAfterDelivery));
    assert_eq!(end(Transfer { message: Some(0), ..whole }, Ok(()), false), Some(Rule::CompletionAfterDelivery));
    assert_eq!(end(Transfer { message: Some(0), ..whole }, Ok(()), true), None);
    let refusal = Transfer { expect: Expect::Refusal, ..transfer(false) };
    assert_eq!(end(refusal, Ok(()), false), Some(Rule::Cause));
    assert_eq!(end(refusal, Err(Failure::RemoteHandle), false), None);
    assert_eq!(end(refusal, Err(Failure::RemoteHandle), true), Some(Rule::MessageAfterData));
    assert_eq!(end(transfer(false), Err(Failure::RemoteHandle), false), Some(Rule::Cause));
}

const HANDLE: [u64; 2] = [1, 2];

/// A node whose memory a peer may write, and one write of 8 bytes to offset 16 that a peer has
/// started.
fn target() -> (Side, Oracle, Target) {
    let mut side = Side::new(0, 2, 4);
    side.registrations.push(Registration { handle: HANDLE, arena: true, read: false, write: true, alive: true });
    side.extend(64);
    let mut oracle = Oracle { over: vec![false; 6], excused: vec![false; 6], ..Oracle::default() };
    oracle.streams = vec![stream(Attribute::ReliableOrdered); 6];
    oracle.transfers.post(Transfer { to: 16, from: 100, ..transfer(false) }, Some(place(0, true, 16)));
    (side, oracle, Target { handle: HANDLE, offset: 16, len: 8 })
}

/// What a call to a node's host violates.
fn violates(call: impl FnOnce(&mut CheckedHost<'_>, &Target)) -> Option<Rule> {
    let (mut side, mut oracle, target) = target();
    call(&mut CheckedHost { side: &mut side, oracle: &mut oracle }, &target);
    oracle.violation.map(|violation| violation.rule)
}

#[test]
fn memory_is_watched() {
    let good = &pattern::bytes()[100..108];
    assert_eq!(violates(|host, target| assert!(host.write(0, target, 0, good).is_ok())), None);
    let wrong = violates(|host, target| assert!(host.write(0, target, 0, &[0; 8]).is_ok()));
    assert_eq!(wrong, Some(Rule::Memory));
    let twice = violates(|host, target| {
        for _ in 0..2 {
            let _ = host.write(0, target, 0, good);
        }
    });
    assert_eq!(twice, Some(Rule::MemoryAfterEnd));
    let ended = violates(|host, target| {
        host.oracle.over[4] = true;
        let _ = host.write(0, target, 0, good);
    });
    assert_eq!(ended, Some(Rule::MemoryAfterEnd));
    let unknown = violates(|host, target| {
        let _ = host.write(0, &Target { offset: 24, ..*target }, 0, good);
    });
    assert_eq!(unknown, Some(Rule::Memory));
    let refused = violates(|host, target| {
        for wrong in [Target { handle: [1, 3], ..*target }, Target { offset: u64::MAX, ..*target }] {
            assert_eq!(host.write(0, &wrong, 0, good), Err(Failure::RemoteHandle));
        }
        host.side.registrations[0].alive = false;
        assert_eq!(host.write(0, target, 0, good), Err(Failure::RemoteHandle));
    });
    assert_eq!(refused, None);
    assert_eq!(violates(|host, _| host.place(Op(1), 0, good)), Some(Rule::MemoryAfterEnd));
    assert_eq!(
        violates(|host, _| assert!(host.source(&Source::Local(Op(1)), 0, 1).is_err())),
        Some(Rule::MemoryAfterEnd)
    );
}

#[test]
fn slots_are_watched() {
    let take = |host: &mut CheckedHost<'_>| host.begin(0, 20).expect("a slot");
    assert_eq!(violates(|host, _| host.ended(Op(3), Ok(()))), Some(Rule::EndsOnce));
    let twice = violates(|host, _| {
        let place = take(host);
        host.abandon(place);
        host.abandon(place);
    });
    assert_eq!(twice, Some(Rule::SlotLost));
    let short = violates(|host, _| {
        let place = take(host);
        host.fill(place, 0, &[0; 19]);
        host.deliver(0, place);
    });
    assert_eq!(short, Some(Rule::Memory));
    let late = violates(|host, _| {
        host.oracle.over[1] = true;
        assert!(host.begin(0, 20).is_some());
    });
    assert_eq!(late, Some(Rule::EndsOnce));
    let empty = violates(|host, _| {
        for expected in [true, true, false] {
            assert_eq!(host.begin(0, 1).is_some(), expected);
        }
    });
    assert_eq!(empty, None);
}
