//! String literals that go on over a line, which compilers of the language's time took: what stands
//! between the lines becomes `\n`, and a line that goes on.

use std::collections::BTreeSet;

/// The lines of a file at which the preprocessor misses the end of a string, by its messages.
pub(crate) fn unterminated(file: &str, messages: &str) -> BTreeSet<usize> {
    let starts = messages.lines().filter(|line| {
        let what = line.split_once("missing terminating ").map_or("", |(_, what)| what);
        what.starts_with("\" character") || what.starts_with("'\"' character")
    });
    let number = |line: &str| line.strip_prefix(file)?.strip_prefix(':')?.split(':').next()?.parse().ok();
    starts.filter_map(number).collect()
}

/// Joins the strings that begin, without an end, in some lines, or behind such a string. The lines
/// of the text stay where they are.
pub(crate) fn joined(source: &[u8], lines: &BTreeSet<usize>) -> Vec<u8> {
    let mut out = Vec::with_capacity(source.len() + 64);
    let (mut at, mut line) = (0, 1);
    // The line in which a joined string ended.
    let mut behind = 0;
    while at < source.len() {
        let rest = &source[at..];
        let is_string = rest[0] == b'"';
        let len = match rest {
            [b'/', b'*', ..] => find(rest, 2, b"*/").map_or(rest.len(), |end| end + 2),
            [b'/', b'/', ..] => find(rest, 2, b"\n").unwrap_or(rest.len()),
            [b'\'', ..] => quoted(rest, false),
            [b'"', ..] => quoted(rest, line == behind || lines.contains(&line)),
            _ => 1,
        };
        let token = &rest[..len];
        let inside = token.iter().filter(|byte| **byte == b'\n').count();
        if is_string && inside > 0 {
            join(token, &mut out);
            behind = line + inside;
        } else {
            out.extend_from_slice(token);
        }
        at += len;
        line += inside;
    }
    out
}

fn find(text: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    let rest = text.get(from..)?;
    rest.windows(what.len()).position(|window| window == what).map(|at| at + from)
}

/// The length of a string or character. Without an end it ends with its line, unless it may go on.
fn quoted(text: &[u8], may_go_on: bool) -> usize {
    let (mut at, mut line_end) = (1, None);
    while at < text.len() {
        match text[at] {
            // A line that goes on by itself stays one.
            b'\\' => at += 1,
            b'\n' if may_go_on => line_end = line_end.or(Some(at)),
            b'\n' => return at,
            byte if byte == text[0] => return at + 1,
            _ => {}
        }
        at += 1;
    }
    line_end.unwrap_or(text.len())
}

fn join(string: &[u8], out: &mut Vec<u8>) {
    let mut is_escaped = false;
    for (at, &byte) in string.iter().enumerate() {
        let ends_line = byte == b'\n' || string[at..].starts_with(b"\r\n");
        let follows_return = byte == b'\n' && at > 0 && string[at - 1] == b'\r';
        if ends_line && !is_escaped && !follows_return {
            out.extend_from_slice(b"\\n\\");
        }
        out.push(byte);
        is_escaped = byte == b'\\' && !is_escaped || is_escaped && byte == b'\r';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, lines: &[usize]) -> String {
        String::from_utf8(joined(text.as_bytes(), &lines.iter().copied().collect())).expect("text")
    }

    #[test]
    fn a_string_goes_on_over_lines() {
        assert_eq!(of("f(\"a\nb\\\"c\nd\");\n\"e\"", &[1]), "f(\"a\\n\\\nb\\\"c\\n\\\nd\");\n\"e\"");
        // One that begins where another one ended is not one of the preprocessor's.
        assert_eq!(of("\"a\nb\" \"c\nd\" 'e' \"f\n\"", &[1, 4]), "\"a\\n\\\nb\" \"c\\n\\\nd\" 'e' \"f\\n\\\n\"");
        assert_eq!(of("\"a\r\nb\"", &[1]), "\"a\\n\\\r\nb\"");
        assert_eq!(of("\"a\\\nb\nc\"", &[1]), "\"a\\\nb\\n\\\nc\"");
    }

    #[test]
    fn everything_else_stays() {
        for (text, lines) in [
            ("\"a\nb\"", &[][..]),
            ("don't say \"hi\nf(\"a\");", &[]),
            ("/* \"a\n\" */ '\"' // \"b\n\"c\"", &[1, 2, 3]),
            ("x = \"no end\n;\n", &[1]),
            ("\"a\\\nb\"", &[]),
            ("'\n\"", &[1, 2]),
            ("\"", &[1]),
            ("\"\\", &[1]),
            ("/*", &[1]),
            ("/* \"\n", &[1]),
        ] {
            assert_eq!(of(text, lines), text);
        }
    }

    #[test]
    fn the_words_of_compilers_are_found() {
        let messages = "In file included from a.sc:2:\na.sc:3:40: warning: missing terminating \" character\n\
                        a.sc:5:4: warning: missing terminating ' character\nb.h:7:1: error: missing terminating \" character\n\
                        a.sc:9:40: warning: missing terminating '\"' character [-Winvalid-pp-token]\n";
        assert_eq!(unterminated("a.sc", messages).into_iter().collect::<Vec<_>>(), [3, 9]);
    }
}
