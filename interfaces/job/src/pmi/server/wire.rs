//! Commands of ranks: cut from what has arrived, and read; and the answers to them.

use crate::pmi::manager::{PLACES, Version, emit};

/// The longest command, all lines of a spawn together.
pub(super) const LONGEST: usize = 65_536;

/// Lengths that are told to ranks, with a terminating zero: of the space, of keys, and of values.
pub(super) const LONGEST_SPACE: usize = 256;
pub(super) const LONGEST_KEY: usize = 64;
pub(super) const LONGEST_VALUE: usize = 1024;

/// How a command of several lines begins, and how it ends.
const LINES: &[u8] = b"mcmd=";
const END_OF_LINES: &[u8] = b"\nendcmd\n";

/// What a rank has sent that is no command: its connection is of no use any more.
pub(super) type Wrong = &'static str;

/// What has arrived of a rank, and is not handled yet.
#[derive(Default)]
pub(super) struct Inbound {
    bytes: Vec<u8>,
    /// Where the next command begins.
    next: usize,
}

impl Inbound {
    /// Adds what has arrived.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.next));
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.next
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The next whole command, without its length or its line end. `None`: it has not come whole.
    pub(super) fn command(&mut self, version: Version) -> Result<Option<&str>, Wrong> {
        let found = match version {
            Version::One => line(&self.bytes[self.next..])?,
            Version::Two => counted(&self.bytes[self.next..])?,
        };
        let Some((begin, end, next)) = found else { return Ok(None) };
        let text = &self.bytes[self.next..][begin..end];
        self.next += next;
        str::from_utf8(text).map(Some).map_err(|_| "a command that is no text")
    }
}

/// Where a command begins, where it ends, and where the next one begins.
type Span = (usize, usize, usize);

/// A command of PMI-1: a line, or several.
fn line(bytes: &[u8]) -> Result<Option<Span>, Wrong> {
    let end = match bytes.starts_with(LINES) {
        true => bytes.windows(END_OF_LINES.len()).position(|some| some == END_OF_LINES).map(|at| (at, END_OF_LINES)),
        false => bytes.iter().position(|byte| *byte == b'\n').map(|at| (at, &b"\n"[..])),
    };
    match end {
        Some((end, _)) if end > LONGEST => Err("a command longer than 65536 bytes"),
        Some((end, mark)) => Ok(Some((0, end, end + mark.len()))),
        None if bytes.len() > LONGEST => Err("a command longer than 65536 bytes"),
        None => Ok(None),
    }
}

/// A command of PMI-2: behind its length.
fn counted(bytes: &[u8]) -> Result<Option<Span>, Wrong> {
    let Some(length) = bytes.get(..PLACES) else { return Ok(None) };
    let is_number = length.iter().all(|byte| byte.is_ascii_digit() || *byte == b' ');
    let length = str::from_utf8(length).ok().filter(|_| is_number).and_then(|length| length.trim().parse().ok());
    let length: usize = length.ok_or("a false length")?;
    if length > LONGEST {
        return Err("a command longer than 65536 bytes");
    }
    let end = PLACES + length;
    Ok((bytes.len() >= end).then_some((PLACES, end, end)))
}

/// A command with its words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command<'a> {
    pub(super) name: &'a str,
    words: Vec<(&'a str, &'a str)>,
}

impl<'a> Command<'a> {
    pub(super) fn parse(version: Version, text: &'a str) -> Result<Self, Wrong> {
        let words = match version {
            Version::One if text.as_bytes().starts_with(LINES) => text[1..].split('\n').filter_map(word).collect(),
            Version::One => spaced(text),
            Version::Two => text.split(';').filter_map(word).collect(),
        };
        let mut words = words.into_iter();
        match words.next() {
            Some(("cmd", name)) if is_key(name) => Ok(Self { name, words: words.collect() }),
            _ => Err("what is no command of PMI"),
        }
    }

    /// The value of a word, unless it is missing or empty.
    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find(|(known, _)| *known == key).map(|(_, value)| *value).filter(|value| !value.is_empty())
    }
}

fn word(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(key, _)| is_key(key))
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// The words of a line. What has no key belongs to the value before it, since names of services may
/// have spaces.
fn spaced(text: &str) -> Vec<(&str, &str)> {
    let mut begins: Vec<usize> = Vec::new();
    let mut at = 0;
    for part in text.split(' ') {
        if word(part).is_some() {
            begins.push(at);
        }
        at += part.len() + 1;
    }
    let ends = begins.iter().skip(1).map(|next| next - 1).chain([text.len()]);
    begins.iter().zip(ends).filter_map(|(begin, end)| word(text[*begin..end].trim_end_matches(' '))).collect()
}

/// Whether a word of a command of this version can have this value, and still be one word.
pub(super) fn fits(version: Version, value: &str) -> bool {
    let separates = |byte: u8| byte.is_ascii_control() || version == Version::Two && byte == b';';
    !value.bytes().any(separates)
}

/// How an answer of PMI is called, and the thread that asked, of PMI-2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) version: Version,
    pub(super) name: String,
    pub(super) thread: Option<String>,
}

/// The words of an answer, or why there is none.
pub(super) type Outcome = Result<Vec<(&'static str, String)>, String>;

impl Reply {
    pub(super) fn emit(&self, outcome: &Outcome) -> Vec<u8> {
        let mut words: Vec<(&str, &str)> = self.thread.iter().map(|thread| ("thrid", thread.as_str())).collect();
        let reason;
        match outcome {
            Ok(answer) => {
                words.push(("rc", "0"));
                words.extend(answer.iter().map(|(key, value)| (*key, value.as_str())));
            }
            Err(why) if self.version == Version::One => {
                // A space would end the word.
                reason = why.replace(' ', "_");
                words.extend([("rc", "1"), ("msg", reason.as_str())]);
            }
            Err(why) => words.extend([("rc", "1"), ("errmsg", why.as_str())]),
        }
        emit(self.version, &self.name, &words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(version: Version, text: &str) -> (String, Vec<(String, String)>) {
        let command = Command::parse(version, text).expect("a command");
        let words = command.words.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        (command.name.to_owned(), words)
    }

    #[test]
    fn a_value_goes_to_the_next_word_that_has_a_key() {
        let of = |text| parsed(Version::One, text);
        let words = |all: &[(&str, &str)]| all.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        assert_eq!(of("cmd=get_maxes "), ("get_maxes".into(), vec![]));
        assert_eq!(
            of("cmd=publish_name service=my own  service port=tag#0$entry#76=$ "),
            ("publish_name".into(), words(&[("service", "my own  service"), ("port", "tag#0$entry#76=$")]))
        );
        assert_eq!(
            of("cmd=put key=-allgather-1-0-seg-1/9 value==a =b [2]x=y"),
            ("put".into(), words(&[("key", "-allgather-1-0-seg-1/9"), ("value", "=a =b [2]x=y")]))
        );
        assert_eq!(
            of("mcmd=spawn\nnprocs=1\nexecname=/bin/a b\narg1=c=d e"),
            ("spawn".into(), words(&[("nprocs", "1"), ("execname", "/bin/a b"), ("arg1", "c=d e")]))
        );
        assert_eq!(
            parsed(Version::Two, "cmd=kvs-put;key=a b;value=c=d;;nonsense;"),
            ("kvs-put".into(), words(&[("key", "a b"), ("value", "c=d")]))
        );
        for wrong in ["", "cmd", "cmd=", "=put", "put key=a", " cmd", "key=a cmd=put", "cmd=a b"] {
            assert_eq!(Command::parse(Version::One, wrong), Err("what is no command of PMI"), "{wrong:?}");
        }
        let empty = Command::parse(Version::One, "cmd=put key= value=").expect("a command");
        assert_eq!((empty.get("key"), empty.get("value"), empty.get("other")), (None, None, None));
    }

    #[test]
    fn commands_are_cut_however_they_arrive() {
        let lines = "mcmd=spawn\nnprocs=1\nendcmd\ncmd=get_maxes\n";
        for step in 1..lines.len() {
            let (mut inbound, mut found) = (Inbound::default(), Vec::new());
            for piece in lines.as_bytes().chunks(step) {
                inbound.push(piece);
                while let Some(text) = inbound.command(Version::One).expect("right") {
                    found.push(text.to_owned());
                }
            }
            assert_eq!(found, ["mcmd=spawn\nnprocs=1", "cmd=get_maxes"], "{step}");
            assert_eq!(inbound.len(), 0);
        }
        let mut inbound = Inbound::default();
        for byte in b"    13cmd=kvs-fence" {
            assert_eq!(inbound.command(Version::Two), Ok(None));
            inbound.push(&[*byte]);
        }
        assert_eq!(inbound.command(Version::Two), Ok(Some("cmd=kvs-fence")));
    }

    #[test]
    fn what_is_no_command_or_too_long_is_wrong() {
        let cut = |version, bytes: &[u8]| {
            let mut inbound = Inbound::default();
            inbound.push(bytes);
            inbound.command(version).map(|found| found.map(str::len))
        };
        let too_long = Err("a command longer than 65536 bytes");
        assert_eq!(cut(Version::One, &[b'a'; LONGEST]), Ok(None));
        assert_eq!(cut(Version::One, &[&[b'a'; LONGEST][..], b"\n"].concat()), Ok(Some(LONGEST)));
        assert_eq!(cut(Version::One, &[b'a'; LONGEST + 1]), too_long);
        assert_eq!(cut(Version::One, &[&[b'a'; LONGEST + 1][..], b"\n"].concat()), too_long);
        assert_eq!(cut(Version::One, &[LINES, &[b'\n'; LONGEST]].concat()), too_long);
        assert_eq!(cut(Version::One, b"cmd=\xff\n"), Err("a command that is no text"));
        assert_eq!(cut(Version::Two, b" 65536"), Ok(None));
        assert_eq!(cut(Version::Two, b" 65537"), too_long);
        for wrong in ["abcdef", "-00001", "+00001", "      ", "1 1   "] {
            assert_eq!(cut(Version::Two, wrong.as_bytes()), Err("a false length"), "{wrong}");
        }
    }

    #[test]
    fn an_answer_is_one_line_or_has_its_length() {
        let reply = |version| Reply { version, name: "get_result".into(), thread: Some("0x7f".into()) };
        let (one, two) = (Reply { thread: None, ..reply(Version::One) }, reply(Version::Two));
        let found: Outcome = Ok(vec![("value", "(vector,(0,1,2))".into())]);
        assert_eq!(one.emit(&found), b"cmd=get_result rc=0 value=(vector,(0,1,2))\n");
        assert_eq!(two.emit(&found), b"    54cmd=get_result;thrid=0x7f;rc=0;value=(vector,(0,1,2));");
        let none: Outcome = Err("no such key".into());
        assert_eq!(one.emit(&none), b"cmd=get_result rc=1 msg=no_such_key\n");
        assert_eq!(two.emit(&none), b"    50cmd=get_result;thrid=0x7f;rc=1;errmsg=no such key;");
        assert!(fits(Version::One, "a;b c=d") && !fits(Version::One, "a\nb") && !fits(Version::One, "a\0"));
        assert!(fits(Version::Two, "a b") && !fits(Version::Two, "a;b"));
    }
}
