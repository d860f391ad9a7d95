//! The oracle of messages: what was sent on each stream, what was delivered, and how its sends
//! ended.

use super::pattern;
use super::violation::Rule;
use cci_proto::{Attribute, Failure};

/// How far an operation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not ended.
    Open,
    /// Ended.
    Ended(Result<(), Failure>),
}

/// A message that was sent, or that is to be delivered after an RMA.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Bytes.
    pub(super) len: u32,
    /// The RMA that it completes.
    pub(super) transfer: Option<u32>,
    /// How far its send has come; that of a completion message is not used.
    pub(super) state: State,
    /// It was delivered.
    pub(super) delivered: bool,
}

/// What one side of a connection sends.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    attribute: Attribute,
    /// In the order of posting.
    sent: Vec<Sent>,
    /// RO: the first that has not been delivered.
    next: usize,
    /// RO: the first send that has not ended.
    ended: usize,
}

/// What was wrong.
pub(super) type Wrong = (Rule, String);

impl Stream {
    /// A stream on which nothing has been sent.
    #[must_use]
    pub(super) fn new(attribute: Attribute) -> Self {
        Self { attribute, sent: Vec::new(), next: 0, ended: 0 }
    }

    /// The index of the next message.
    #[must_use]
    pub(super) fn next_index(&self) -> u32 {
        u32::try_from(self.sent.len()).unwrap_or(u32::MAX)
    }

    /// A message has been posted.
    pub(super) fn post(&mut self, len: u32, transfer: Option<u32>) {
        self.sent.push(Sent { len, transfer, state: State::Open, delivered: false });
    }

    /// The engine has refused the message that was posted last.
    pub(super) fn withdraw(&mut self) {
        self.sent.pop();
    }

    /// A message that was posted.
    #[must_use]
    pub(super) fn get(&self, index: u32) -> &Sent {
        &self.sent[index as usize]
    }

    fn rule(&self) -> Rule {
        match self.attribute {
            Attribute::ReliableOrdered => Rule::Ordered,
            Attribute::ReliableUnordered => Rule::Unordered,
            _ => Rule::Unreliable,
        }
    }

    /// These bytes were delivered on this stream. `may_miss`: whether a completion message may not
    /// come, since its RMA was refused. Says which message it was.
    ///
    /// # Errors
    ///
    /// No message of this stream is due with this content.
    pub(super) fn deliver(&mut self, key: u32, bytes: &[u8], may_miss: impl Fn(u32) -> bool) -> Result<u32, Wrong> {
        let index = if self.attribute == Attribute::ReliableOrdered {
            let is_this = |index: usize, sent: &Sent| {
                let number = u32::try_from(index).unwrap_or(u32::MAX);
                bytes.len() == sent.len as usize && pattern::is_message(key, number, bytes.len(), bytes)
            };
            while let Some(sent) = self.sent.get(self.next)
                && sent.transfer.is_some_and(&may_miss)
                && !is_this(self.next, sent)
            {
                self.next += 1;
            }
            self.next += 1;
            u32::try_from(self.next - 1).unwrap_or(u32::MAX)
        } else {
            pattern::index(bytes).unwrap_or(u32::MAX)
        };
        let wrong =
            |how: &str| Err((self.rule(), format!("stream {key}, message {index} of {} bytes {how}", bytes.len())));
        let said = pattern::index(bytes);
        let Some(sent) = self.sent.get(index as usize) else { return wrong("was never sent") };
        if sent.delivered {
            return wrong("was delivered before");
        }
        if bytes.len() != sent.len as usize || !pattern::is_message(key, index, bytes.len(), bytes) {
            return wrong(&format!("was sent with {} bytes; what came says it is {said:?}", sent.len));
        }
        self.sent[index as usize].delivered = true;
        Ok(index)
    }

    /// The send of a message has ended.
    ///
    /// # Errors
    ///
    /// It had ended before, or success came before the delivery, or out of order.
    pub(super) fn end(&mut self, key: u32, index: u32, outcome: Result<(), Failure>) -> Result<(), Wrong> {
        let sent = &mut self.sent[index as usize];
        let wrong = |rule, how: &str| Err((rule, format!("stream {key}, message {index}: {how}")));
        if sent.state != State::Open {
            return wrong(Rule::EndsOnce, "its send has ended already");
        }
        sent.state = State::Ended(outcome);
        if outcome.is_err() || !self.attribute.is_reliable() {
            return Ok(());
        }
        if !sent.delivered {
            return wrong(Rule::CompletionAfterDelivery, "its send succeeded before the message was delivered");
        }
        if self.attribute == Attribute::ReliableOrdered {
            let is_due = |sent: &Sent| sent.state == State::Open && sent.transfer.is_none();
            while self.sent.get(self.ended).is_some_and(|sent| !is_due(sent)) {
                self.ended += 1;
            }
            if self.ended < index as usize {
                return wrong(Rule::Ordered, "its send succeeded before an earlier one ended");
            }
        }
        Ok(())
    }

    /// Everything that was sent has been delivered and has ended, as it must on a reliable
    /// connection that lived to the end.
    ///
    /// # Errors
    ///
    /// The first that has not.
    pub(super) fn check_rest(&self, key: u32, may_miss: impl Fn(u32) -> bool) -> Result<(), Wrong> {
        for (index, sent) in self.sent.iter().enumerate() {
            if sent.transfer.is_none() && sent.state != State::Ended(Ok(())) {
                return Err((Rule::Cause, format!("stream {key}, message {index}: {:?}", sent.state)));
            }
            let missed = sent.transfer.is_some_and(&may_miss);
            if self.attribute.is_reliable() && !sent.delivered && !missed {
                return Err((self.rule(), format!("stream {key}, message {index} was never delivered")));
            }
        }
        Ok(())
    }

    /// Sends that have not ended.
    #[must_use]
    pub(super) fn open(&self) -> usize {
        self.sent.iter().filter(|sent| sent.transfer.is_none() && sent.state == State::Open).count()
    }
}
