//! The runs that a page is made of: their commands, what they ran on, and what became of them.

use super::{Run, unit};
use crate::environment::Environment;
use maud::{Markup, html};

/// All runs of a page.
pub(super) struct Runs<'a>(pub(super) &'a [Run]);

impl Runs<'_> {
    /// Where a figure comes from: the commands, and the way to their environments.
    pub(super) fn origin(&self, numbers: &[usize]) -> Markup {
        html! {
            @for number in numbers {
                @if let Some(run) = self.0.get(*number) {
                    p class="origin" {
                        a href={ "#run-" (number + 1) } { "Run " (number + 1) } ": " code { (command(run)) }
                        " on " (place(&run.document.environment))
                        @if !run.document.complete { " " (mark_of_partial()) }
                    }
                }
            }
        }
    }

    /// The section that has them all.
    pub(super) fn draw(&self) -> Markup {
        html! {
            ol class="runs" {
                @for (index, run) in self.0.iter().enumerate() {
                    li id={ "run-" (index + 1) } {
                        p { code { (command(run)) } @if !run.document.complete { " " (mark_of_partial()) } }
                        p class="environment" { (began(&run.document.environment)) (run.document.environment.line()) }
                        @if let Some(why) = &run.document.interrupted { p class="environment" { "Ended early: " (why) "." } }
                        @if !run.source.is_empty() { p class="environment" { "Read from " (run.source) "." } }
                    }
                }
            }
        }
    }
}

/// The command line of a run, as it was typed.
fn command(run: &Run) -> String {
    run.document.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// When a run began, if it is known.
fn began(environment: &Environment) -> String {
    if environment.began_s == 0 { String::new() } else { format!("{}. ", unit::moment(environment.began_s)) }
}

/// What a run ran on, in a few words.
fn place(environment: &Environment) -> String {
    format!("{}, {}, load {:.2}", environment.processor, environment.kernel, environment.load)
}

pub(super) fn mark_of_partial() -> Markup {
    html! { strong class="mark" { "partial" } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_a_shell_needs_it() {
        assert_eq!(quoted("--size"), "--size");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
