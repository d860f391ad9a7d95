//! A text and what is changed in it, by its spans.

use lang_c::loc::get_location_for_offset;
use lang_c::span::Span;

/// The encoded text, and replacements in it that do not overlap.
pub(crate) struct Edits {
    source: String,
    edits: Vec<(usize, usize, String)>,
}

/// Changes of some moment.
pub(crate) struct Saved(Vec<(usize, usize, String)>);

impl Edits {
    pub(crate) fn new(source: String) -> Self {
        Self { source, edits: Vec::new() }
    }

    pub(crate) fn whole(&self) -> Span {
        Span::span(0, self.source.len())
    }

    /// The changes so far, to come back to by [`Edits::restore`].
    pub(crate) fn saved(&self) -> Saved {
        Saved(self.edits.clone())
    }

    pub(crate) fn restore(&mut self, saved: Saved) {
        self.edits = saved.0;
    }

    /// What stands in a span, changed as it has been so far.
    pub(crate) fn text(&self, span: Span) -> String {
        let mut inside: Vec<_> =
            self.edits.iter().filter(|(start, end, _)| *start >= span.start && *end <= span.end).collect();
        inside.sort_by_key(|(start, end, _)| (*start, *end));
        let mut out = String::new();
        let mut at = span.start;
        for (start, end, text) in inside {
            out.push_str(&self.source[at..*start]);
            out.push_str(text);
            at = *end;
        }
        out.push_str(&self.source[at..span.end]);
        out
    }

    /// Puts a text in place of a span and of all that has been changed in it. The text becomes one
    /// line, and as many lines follow as the span had, so that those behind it keep their numbers.
    pub(crate) fn replace(&mut self, span: Span, text: String) {
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let mut text = lines.join(" ");
        let old = &self.source[span.start..span.end];
        if old.contains("\n#") {
            let (location, _) = get_location_for_offset(&self.source, span.end);
            text += &format!("\n# {} \"{}\"\n", location.line, location.file);
        } else {
            text += &"\n".repeat(old.matches('\n').count());
        }
        self.edits.retain(|(start, end, _)| !(*start >= span.start && *end <= span.end));
        self.edits.push((span.start, span.end, text));
    }

    /// Puts a text behind a span.
    pub(crate) fn insert_after(&mut self, span: Span, text: String) {
        self.edits.push((span.end, span.end, text));
    }

    /// Where the first character of a span stood in the program: file and line.
    pub(crate) fn place(&self, span: Span) -> String {
        place(&self.source, span.start)
    }
}

/// Where a character of a preprocessed text stood: file and line.
pub(crate) fn place(source: &str, offset: usize) -> String {
    let (location, _) = get_location_for_offset(source, offset.min(source.len()));
    format!("{}:{}", location.file, location.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_behind_a_replacement_keep_their_numbers() {
        let source = "# 1 \"a.sc\"\none(a,\nb) two\nthree(c,\n# 7 \"a.sc\"\nd) four";
        let mut edits = Edits::new(source.to_owned());
        let of =
            |text: &str| Span::span(source.find(text).expect("there"), source.find(text).expect("there") + text.len());
        let line = |edits: &Edits, word: &str| {
            let text = edits.text(edits.whole());
            place(&text, text.find(word).expect("there"))
        };
        assert_eq!((line(&edits, "two"), line(&edits, "four")), ("a.sc:2".to_owned(), "a.sc:7".to_owned()));
        edits.replace(of("a,\nb"), "x,\ny,\n# 9 \"b\"\nz".to_owned());
        edits.replace(of("one(a,\nb)"), edits.text(of("one(a,\nb)")).repeat(2));
        edits.replace(of("three(c,\n# 7 \"a.sc\"\nd)"), "w".to_owned());
        assert_eq!((line(&edits, "two"), line(&edits, "four")), ("a.sc:2".to_owned(), "a.sc:7".to_owned()));
        assert!(edits.text(edits.whole()).contains("one(x, y, z )one(x, y, z )"));
    }
}
