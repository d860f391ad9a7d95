//! The page: its head, its sections in order, and what stands above and below them.

use super::Run;
use super::curves::{KINDS, figures};
use super::findings::{Section, sections};
use super::headline;
use super::headline::mark_of_doubt;
use super::runs::{Runs, mark_of_partial};
use super::unit;
use crate::statistics::median;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// What is to be known for reading lines over size.
const LINES: &str = "Lines: medians over blocks. Bands: from the minimum to p99, cut at 1.5 times the median. Points that \
                     are not accurate are hollow.";

/// The page of these runs: one file that needs no other. `failures` are the commands of
/// measurements that gave nothing, and why.
pub(super) fn page(runs: &[Run], failures: &[(String, String)]) -> String {
    page_beside(runs, failures, &[])
}

/// The same, with the answers of models beside the measurements.
pub fn page_beside(runs: &[Run], failures: &[(String, String)], models: &[Markup]) -> String {
    let all = Runs(runs);
    let headline = headline::draw(runs);
    let curves = KINDS.iter().map(|kind| (kind, figures(kind, runs))).map(|(kind, figures)| Section {
        anchor: kind.anchor,
        heading: kind.heading,
        text: if figures.iter().any(|figure| !figure.legend.is_empty()) { LINES } else { "" },
        figures,
    });
    let sections: Vec<_> = curves.filter(|section| !section.figures.is_empty()).chain(sections(runs)).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "cci perf: report" }
                // The style has no character that would be read as markup; a test looks.
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                header {
                    h1 { "What this machine's wire can do, and what libraries make of it" }
                    p class="subject" { (subject(runs)) }
                    (notices(runs, failures))
                    (contents(headline.is_some(), &sections, !models.is_empty()))
                }
                main {
                    @if let Some(table) = headline {
                        section id="headline" { h2 { "At a glance" } (table) }
                    }
                    @for section in &sections {
                        section id=(section.anchor) {
                            h2 { (section.heading) }
                            @if !section.text.is_empty() { p class="text" { (section.text) } }
                            div class="figures" { @for figure in &section.figures { (figure.draw(&all)) } }
                        }
                    }
                    @if !models.is_empty() {
                        section id="model" { h2 { "Model" } @for model in models { (model) } }
                    }
                    section id="runs" { h2 { "Runs" } (all.draw()) }
                    section id="reading" { h2 { "How to read this" } (reading()) }
                }
            }
        }
    };
    page.into_string()
}

/// The machines of the runs.
fn subject(runs: &[Run]) -> String {
    let mut machines: Vec<_> = runs
        .iter()
        .map(|run| {
            let environment = &run.document.environment;
            let plural = if environment.cpus == 1 { "" } else { "s" };
            format!(
                "{}, {} processor{plural}, {}, cci {}",
                environment.processor, environment.cpus, environment.kernel, environment.version
            )
        })
        .collect();
    machines.sort();
    machines.dedup();
    machines.join("; ")
}

/// What a reader must know before believing anything.
fn notices(runs: &[Run], failures: &[(String, String)]) -> Markup {
    let rows = || runs.iter().flat_map(|run| &run.document.rows);
    let spreads: Vec<_> = rows().filter(|row| !row.accurate).map(|row| row.spread).collect();
    let doubtful = spreads.len();
    let partial: Vec<_> = runs.iter().enumerate().filter(|(_, run)| !run.document.complete).collect();
    html! {
        @if doubtful > 0 {
            p class="notice" {
                (mark_of_doubt()) " " (doubtful) " of " (rows().count()) " points " (if doubtful == 1 { "is" } else { "are" })
                " not accurate: the median is uncertain by more than the bound of the run, "
                @if doubtful > 1 { "for the middle one of them " }
                "by " (unit::percent(median(&spreads))) ". They are drawn hollow."
            }
        }
        @for (number, run) in partial {
            p class="notice" {
                (mark_of_partial()) " " a href={ "#run-" (number + 1) } { "Run " (number + 1) } " ended early"
                @if let Some(why) = &run.document.interrupted { ": " (why.trim_end_matches('.')) }
                ". What it had measured by then is shown."
            }
        }
        @for (command, why) in failures {
            p class="notice" { strong class="mark" { "missing" } " " code { (command) } " gave nothing: " (why.trim_end_matches('.')) "." }
        }
        @if runs.iter().all(|run| run.document.rows.is_empty() && run.document.findings.is_empty()) {
            p class="notice" { strong class="mark" { "empty" } " Nothing was measured." }
        }
    }
}

fn contents(has_headline: bool, sections: &[Section], has_model: bool) -> Markup {
    html! {
        nav aria-label="Contents" {
            @if has_headline { a href="#headline" { "At a glance" } }
            @for section in sections { a href={ "#" (section.anchor) } { (section.heading.split(':').next().unwrap_or("")) } }
            @if has_model { a href="#model" { "Model" } }
            a href="#runs" { "Runs" }
        }
    }
}

fn reading() -> Markup {
    html! {
        dl {
            dt { "median, minimum, p99" }
            dd { "of blocks: each sample is the mean of many operations, since reading the clock costs as much as one of them. "
                "Single operations are in the distribution of the jitter only." }
            dt { "half round trip" }
            dd { "half of the time of a message there and one of the same size back." }
            dt { "bare" }
            dd { "the same done without any library between the same two processes on the same processors: a cache line, a copy, a "
                "datagram. Blocks of it alternate with the measured ones, so that the ratio means the same on a busy machine." }
            dt { (mark_of_doubt()) " not accurate" }
            dd { "the median is uncertain by more than the bound of the run, 3.5 % unless its command says otherwise (--accuracy): by so "
                "much the medians of six parts of the run, one after the other, differ from their middle. Two runs of the same "
                "command may well differ by more than 5 % there." }
            dt { (mark_of_partial()) }
            dd { "the run ended early; what it had measured by then is shown." }
        }
    }
}
