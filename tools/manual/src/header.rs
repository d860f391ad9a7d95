//! The functions of a C header, each with the comment above it.

/// A function of the C contract.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// As it stands in the header, without the macro that exports it.
    pub(crate) declaration: String,
    /// The comment, without its frame: paragraphs are apart by an empty line.
    pub(crate) comment: String,
}

/// Precedes each function that the library exports.
const EXPORTED: &str = "CCI_DECLSPEC ";

/// The functions of a header, in their order.
///
/// # Panics
///
/// If a function has no comment: the header is part of this source.
pub(crate) fn functions(header: &str) -> Vec<Function> {
    let mut rest = header;
    let mut found = Vec::new();
    while let Some(at) = rest.find(&format!("\n{EXPORTED}")) {
        let before = &rest[..at];
        let after = &rest[at + 1 + EXPORTED.len()..];
        let end = after.find(';').expect("a declaration ends with a semicolon");
        let declaration = after[..=end].to_owned();
        let name = name(&declaration).to_owned();
        let comment = above(before).unwrap_or_else(|| panic!("{name} has no comment"));
        found.push(Function { name, comment, declaration: unindented(&declaration) });
        rest = &after[end..];
    }
    found
}

/// What the header says about itself: its first comment.
pub(crate) fn introduction(header: &str) -> String {
    let end = header.find("*/").expect("a header begins with a comment");
    let text = without_frame(&header[2..end]);
    text.split("\n\nSPDX").next().unwrap_or_default().to_owned()
}

/// The name of a declared function: what stands before its first parenthesis.
fn name(declaration: &str) -> &str {
    let before = declaration.split('(').next().unwrap_or_default();
    before.rsplit([' ', '*']).next().unwrap_or_default()
}

/// The comment that ends a piece of header.
fn above(before: &str) -> Option<String> {
    let inside = before.trim_end().strip_suffix("*/")?;
    Some(without_frame(&inside[inside.rfind("/*")? + 2..]))
}

/// A comment without the stars that begin its lines.
fn without_frame(comment: &str) -> String {
    let line = |line: &str| {
        let text = line.trim_start();
        text.strip_prefix("* ").or_else(|| text.strip_prefix('*')).unwrap_or(text).trim_end().to_owned()
    };
    comment.lines().map(line).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Continuation lines start below the first parameter, which the macro has shifted.
fn unindented(declaration: &str) -> String {
    let shift = |line: &str| line.strip_prefix(&" ".repeat(EXPORTED.len())).unwrap_or(line).to_owned();
    declaration.lines().map(shift).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_its_comment_and_its_declaration() {
        let header = "/*\n * The header.\n *\n * SPDX-License-Identifier: X\n */\n\n/* Of a type. */\ntypedef int t;\n\n\
                      /*\n * Does it.\n *\n * a  first\n */\nCCI_DECLSPEC const char *f(int a,\n                            int b);\n";
        assert_eq!(introduction(header), "The header.");
        let f = Function {
            name: "f".into(),
            declaration: "const char *f(int a,\n               int b);".into(),
            comment: "Does it.\n\na  first".into(),
        };
        assert_eq!(functions(header), [f]);
    }
}
