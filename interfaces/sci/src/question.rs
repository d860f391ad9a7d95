//! Questions of other hosts about names of this one, and answers to them, as they are sent
//! (`docs/design/sci-mirror.md`, Finding a node of another host).

use crate::claims::{Members, Membership, Named, Owner};
use crate::errors::Error;

const QUESTION: &[u8; 8] = b"ccisciq1";
const ANSWER: &[u8; 8] = b"cciscia1";
/// Bytes of a question, and of an answer at most.
pub(crate) const LEN: usize = 512;
/// Bytes of an answer before the owner.
const HEAD: usize = 24;

/// What an answer says.
const NOBODY: u32 = 0;
const OWNER: u32 = 1;
const HERE: u32 = 2;
const ANOTHER_USER: u32 = 3;

/// What is answered, to whomever has asked.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    says: u32,
    /// Members of a group before the one that is introduced, which have not answered.
    mute: u32,
    introduction: Vec<u8>,
}

impl Answer {
    pub(crate) const HERE: Self = Self { says: HERE, mute: 0, introduction: Vec::new() };

    /// Who has a name. `None`: the owner does not answer, and who asks tries again.
    pub(crate) fn of_owner(found: Result<Option<Owner>, Error>) -> Option<Self> {
        let (says, introduction) = match found {
            Ok(Some(owner)) => (OWNER, owner.emit()),
            Ok(None) => (NOBODY, Vec::new()),
            Err(Error::Access) => (ANOTHER_USER, Vec::new()),
            Err(_) => return None,
        };
        Some(Self { says, mute: 0, introduction })
    }

    /// The first of these members.
    pub(crate) fn of_members(members: &Members) -> Self {
        let first = members.found.first().map(|(member, _)| member);
        let is_before = |place: &&u32| first.is_none_or(|first| **place < first.place);
        let mute = members.mute.iter().filter(is_before).count() as u32;
        let says = if first.is_some() { OWNER } else { NOBODY };
        Self { says, mute, introduction: first.map(Membership::emit).unwrap_or_default() }
    }

    /// `None`: it is longer than a question.
    pub(crate) fn emit(&self, cookie: u64) -> Option<Vec<u8>> {
        let words = [self.says.to_le_bytes(), self.mute.to_le_bytes()];
        let bytes = [&ANSWER[..], &cookie.to_le_bytes(), words.as_flattened(), &self.introduction].concat();
        (bytes.len() <= LEN).then_some(bytes)
    }
}

/// A question: who has claimed a name; without one, whether anybody is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) cookie: u64,
    pub(crate) node: u32,
    pub(crate) what: Option<Named>,
}

impl Question {
    pub(crate) fn emit(self) -> [u8; LEN] {
        let (kind, number) = match self.what {
            None => (0_u32, 0_u32),
            Some(Named::Segment(id)) => (1, id),
            Some(Named::Interrupt(number)) => (2, number),
            Some(Named::Member(group, _)) => (4, group),
            // Hosts share it without asking, or never: nobody answers.
            Some(Named::Room(..) | Named::Joining(_)) => (3, 0),
        };
        // Groups are of no node.
        let node = if let Some(Named::Member(_, place)) = self.what { place } else { self.node };
        let mut bytes = [0; LEN];
        bytes[..8].copy_from_slice(QUESTION);
        bytes[8..16].copy_from_slice(&self.cookie.to_le_bytes());
        for (at, word) in (16..).step_by(4).zip([node, kind, number]) {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        // No shorter one: the answer is never longer than the question.
        let rest = bytes.strip_prefix(QUESTION).filter(|_| bytes.len() == LEN)?;
        let (cookie, rest) = rest.split_first_chunk()?;
        let word = |at: usize| rest[4 * at..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        let what = match (word(1)?, word(2)?) {
            (0, _) => None,
            (1, id) => Some(Named::Segment(id)),
            (2, number) => Some(Named::Interrupt(number)),
            (4, group) => Some(Named::Member(group, word(0)?)),
            _ => return None,
        };
        Some(Self { cookie: u64::from_le_bytes(*cookie), node: word(0)?, what })
    }

    /// The introduction in an answer to this question, read by `parse`, and how many members before
    /// it are mute; `None`: it is no answer.
    pub(crate) fn read<R>(
        self,
        bytes: &[u8],
        parse: impl Fn(&[u8]) -> Option<R>,
    ) -> Option<Result<(Option<R>, u32), Error>> {
        let (head, rest) = bytes.strip_prefix(ANSWER)?.split_at_checked(HEAD - ANSWER.len())?;
        if head[..8] != self.cookie.to_le_bytes() {
            return None;
        }
        let mute = u32::from_le_bytes(head[12..16].try_into().ok()?);
        match u32::from_le_bytes(head[8..12].try_into().ok()?) {
            NOBODY | HERE => Some(Ok((None, mute))),
            OWNER => parse(rest).map(|found| Ok((Some(found), mute))),
            ANOTHER_USER => Some(Err(Error::Access)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_question_or_no_answer_is_ignored() {
        let question = Question { cookie: 9, node: 4, what: Some(Named::Segment(7)) };
        let bytes = question.emit();
        assert!(Question::parse(&bytes).is_some() && Question::parse(&bytes[..LEN - 1]).is_none());
        let mut wrong = bytes;
        wrong[20] = 3;
        assert!(Question::parse(&wrong).is_none() && Question::parse(&[0; LEN]).is_none());
        let answer = Answer::HERE.emit(9).expect("short");
        assert_eq!(question.read(&answer, Owner::parse), Some(Ok((None, 0))));
        assert_eq!(Question { cookie: 8, ..question }.read(&answer, Owner::parse), None);
        for len in 0..answer.len() {
            assert_eq!(question.read(&answer[..len], Owner::parse), None, "cut to {len}");
        }
    }
}
