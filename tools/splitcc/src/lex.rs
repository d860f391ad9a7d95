//! The lexical encoding: what Split-C adds to C becomes GNU C that a parser of C reads.
//!
//! | Split-C | encoded |
//! |---|---|
//! | `* global`, `* spread` | `* __attribute__((sc_global))`, `* __attribute__((sc_spread))` |
//! | `::` in a declarator | `[sc_here_]` |
//! | `a := b`, `a :- b` | `a = sc_get_ = b`, `a = sc_store_ = b` |
//! | a declaration without a type | `int` before it |

/// The attribute of a pointer into the global address space, as it is encoded.
pub(crate) const GLOBAL: &str = "sc_global";
/// The same of a spread pointer.
pub(crate) const SPREAD: &str = "sc_spread";
/// The dimension that stands for `::`.
pub(crate) const HERE: &str = "sc_here_";
/// What stands in the middle of a get or a put.
pub(crate) const GET: &str = "sc_get_";
/// What stands in the middle of a store.
pub(crate) const STORE: &str = "sc_store_";

/// The attribute as it stands in a text.
pub(crate) fn attribute(name: &str) -> String {
    format!("__attribute__(({name}))")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Word,
    Other,
}

/// Cuts a preprocessed text into tokens; lines that begin with `#` are space.
fn tokens(text: &str) -> impl Iterator<Item = (Kind, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        let first = *bytes.get(at)?;
        let is_line_start = at == 0 || bytes[at - 1] == b'\n';
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'$';
        let skip = |from: usize, is_in: &dyn Fn(&u8) -> bool| {
            from + bytes[from..].iter().take_while(|byte| is_in(byte)).count()
        };
        let kind = if first == b'#' && is_line_start {
            at = skip(at, &|byte| *byte != b'\n');
            Kind::Space
        } else if first.is_ascii_whitespace() {
            // One line at a time, so that a line that begins with `#` is seen.
            at = if first == b'\n' { at + 1 } else { skip(at, &|byte| byte.is_ascii_whitespace() && *byte != b'\n') };
            Kind::Space
        } else if is_word(&first) {
            at = skip(at, &is_word);
            Kind::Word
        } else if first == b'"' || first == b'\'' {
            at = quoted(bytes, at);
            Kind::Other
        } else {
            let two = [b"::", b":=", b":-"].iter().any(|pair| bytes[at..].starts_with(*pair));
            // A character of several bytes stays whole.
            at += if two { 2 } else { text[at..].chars().next().map_or(1, char::len_utf8) };
            Kind::Other
        };
        Some((kind, &text[start..at]))
    })
}

/// The end of a string or a character constant.
fn quoted(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        at += if *byte == b'\\' { 2 } else { 1 };
        if *byte == bytes[start] {
            break;
        }
    }
    at.min(bytes.len())
}

/// Whether a declaration begins with its name here, so that its type is `int`. `before` are the
/// two tokens before; `from` begins with the name.
fn lacks_type<'t>(before: [&str; 2], depth: usize, from: impl Iterator<Item = &'t (Kind, &'t str)>) -> bool {
    const STORAGE: [&str; 4] = ["static", "register", "auto", "extern"];
    const WORDS: [&str; 16] = [
        "int", "char", "short", "long", "float", "double", "signed", "unsigned", "void", "struct", "union", "enum",
        "typedef", "inline", "const", "volatile",
    ];
    let mut tokens = from.filter(|(kind, _)| *kind != Kind::Space).map(|(_, token)| *token);
    let Some(name) = tokens.next() else { return false };
    if name.starts_with('_') || WORDS.contains(&name) || STORAGE.contains(&name) {
        return false;
    }
    let (next, second) = (tokens.next().unwrap_or_default(), tokens.next().unwrap_or_default());
    let is_function = next == "(" && second != "*";
    let begins = |before: &str| matches!(before, "" | ";" | "{" | "}" | ")" | ":");
    if STORAGE.contains(&before[1]) {
        return begins(before[0]) && (is_function || matches!(next, "," | ";" | "=" | "["));
    }
    depth == 0 && matches!(before[1], "" | ";" | "}") && is_function
}

/// Encodes a preprocessed text. Its lines stay where they are.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    // The tokens before, without space.
    let (mut first, mut last) = ("", "");
    // Conditional expressions that are open, at each depth of brackets.
    let mut open = vec![0_u32];
    // Whether the statement began with `case` or `default`, whose colon is to come.
    let mut is_label = false;
    let all: Vec<(Kind, &str)> = tokens(text).collect();
    for (at, &(kind, token)) in all.iter().enumerate() {
        if kind == Kind::Space {
            out.push_str(token);
            continue;
        }
        let depth = open.len() - 1;
        if kind == Kind::Word && lacks_type([first, last], depth, all[at..].iter()) {
            out.push_str("int ");
        }
        match token {
            "(" | "[" | "{" => open.push(0),
            ")" | "]" | "}" if depth > 0 => drop(open.pop()),
            ";" => open[depth] = 0,
            "?" => open[depth] += 1,
            ":" if open[depth] > 0 => open[depth] -= 1,
            "case" | "default" => is_label = true,
            _ => {}
        }
        let follows_star = matches!(last, "*" | "const" | "volatile");
        let is_colon = matches!(token, ":-" | ":=") && (open[depth] > 0 || is_label);
        match token {
            "global" if follows_star => out.push_str(&attribute(GLOBAL)),
            "spread" if follows_star => out.push_str(&attribute(SPREAD)),
            "::" => out.push_str(&format!("[{HERE}]")),
            ":-" if is_colon => {
                open[depth] = open[depth].saturating_sub(1);
                out.push_str(token);
            }
            ":=" if !is_colon => out.push_str(&format!("= {GET} =")),
            ":-" => out.push_str(&format!("= {STORE} =")),
            _ => out.push_str(token),
        }
        if token.starts_with(':') {
            is_label = false;
        }
        (first, last) = (last, token);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn each_addition_is_encoded() {
        assert_eq!(encode("int *global p;"), "int *__attribute__((sc_global)) p;");
        assert_eq!(encode("int * const spread p;"), "int * const __attribute__((sc_spread)) p;");
        assert_eq!(encode("double A[n][m]::[q];"), "double A[n][m][sc_here_][q];");
        assert_eq!(encode("a := *g;"), "a = sc_get_ = *g;");
        assert_eq!(encode("*g :- a;"), "*g = sc_store_ = a;");
        assert_eq!(encode("f(a) { g(a); }\nmain() {}"), "int f(a) { g(a); }\nint main() {}");
        assert_eq!(
            encode("static f(); x() { register i, j = 0; }"),
            "static int f(); int x() { register int i, j = 0; }"
        );
    }

    #[test]
    fn everything_else_stays() {
        for text in [
            "{ int global = 1, spread; f(global); }",
            "x = a ? b :-1;",
            "x = a ? (b ? c :-2) :-1; y = a ?b[c?1:-1]:-d;",
            "{ switch (x) { case 1:-y; default:-z; } }",
            "char *s = \"a := b :: *global \\\" :- \"; char c = ':', d = '\\'';",
            "# 12 \"a := b\"\nint x; # no line marker: *global",
            "struct { int f : 3; } s; label: x = -1;",
            "type_t (*f)(); static type_t x; struct s { int a; } t; __attribute__((weak)) int y; int static z;",
        ] {
            assert_eq!(encode(text).replace("*__attribute__((sc_global))", "*global"), text);
        }
        // A conditional that has ended leaves a store a store.
        assert_eq!(encode("a ? b : c; *g :- d;"), "a ? b : c; *g = sc_store_ = d;");
    }
}
