//! docs/errors.md has every message that the sources have, and none that they do not have any more.

mod messages;

use crate::sources::root;
use messages::{Take, messages, template};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Where every sentence is for the user: the library.
const SENTENCES: [&str; 29] = [
    "cci/src",
    "core/proto/src",
    "core/mem/src",
    "core/transport/src",
    "core/reliable/src",
    "core/over/src",
    "core/seal/src",
    "transports",
    "bindings/c/src",
    "bindings/fabric/src",
    "bindings/python/src",
    "interfaces/job/src",
    "interfaces/am/src",
    "interfaces/am_via/src",
    "interfaces/ground/src",
    "interfaces/peers/src",
    "interfaces/mx/src/errors.rs",
    "interfaces/mx/src/endpoint.rs",
    "bindings/mx/src/answer.rs",
    "bindings/sci/src/answer.rs",
    "interfaces/portals/src/errors.rs",
    "interfaces/sci/src/device_memory.rs",
    "interfaces/sci/src/errors.rs",
    "interfaces/sci/src/nodes.rs",
    "interfaces/splitc/src",
    "bindings/splitc/src",
    "tools/model/src/error.rs",
    "tools/model/src/fit",
    "tools/simulator/src",
];

/// The command and its libraries.
const TOOLS: [&str; 6] =
    ["tools/cli/src", "tools/launcher/src", "tools/perf/src", "tools/report/src", "tools/splitcc/src", "tools/top/src"];

/// What makes errors in these, whose other sentences are results.
const MAKERS: [&str; 9] =
    ["error", "cannot", "UserError", "UserError::new", "while_doing", "Err", "map_err", "ok_or", "ok_or_else"];

/// Every message, and a file that has it.
fn in_sources() -> BTreeMap<String, PathBuf> {
    let library = SENTENCES.iter().flat_map(|path| messages(&root().join(path), Take::Sentences));
    let tools = TOOLS.iter().flat_map(|path| messages(&root().join(path), Take::GivenTo(&MAKERS)));
    library.chain(tools).collect()
}

/// Takes a span of code from the beginning of a text: what stands in it, and the rest.
fn span(text: &str) -> Option<(String, &str)> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let fence = "`".repeat(ticks);
    let rest = &text[ticks..];
    // A fence is as many ticks as the first, no more.
    let end = rest
        .match_indices(&fence)
        .map(|(at, _)| at)
        .find(|at| !rest[..*at].ends_with('`') && !rest[at + ticks..].starts_with('`'))?;
    (ticks > 0).then(|| (rest[..end].split_whitespace().collect::<Vec<_>>().join(" "), &rest[end + ticks..]))
}

/// The messages of an item of the page, `a`, `b`: explanation.
fn item(text: &str) -> Result<Vec<String>, String> {
    let (mut found, mut rest) = (Vec::new(), text);
    loop {
        let (message, after) = span(rest).ok_or_else(|| format!("no message stands here: {rest}"))?;
        found.push(message);
        match after.trim_start() {
            more if more.starts_with(',') => rest = more[1..].trim_start(),
            more if more.starts_with(':') && more[1..].split_whitespace().count() >= 2 => return Ok(found),
            _ => return Err(format!("no explanation follows: {text}")),
        }
    }
}

/// Every message that the page explains.
fn in_page(page: &str) -> BTreeSet<String> {
    let mut items: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        match line.strip_prefix("- ") {
            Some(begin) => items.push(begin.to_owned()),
            None if is_open && line.starts_with("  ") => {
                let item = items.last_mut().expect("an item is open");
                item.push(' ');
                item.push_str(line.trim_start());
            }
            None => {
                is_open = false;
                continue;
            }
        }
        is_open = true;
    }
    let messages = items.iter().flat_map(|text| item(text).unwrap_or_else(|wrong| panic!("docs/errors.md: {wrong}")));
    messages.collect()
}

#[test]
fn the_page_has_every_message_and_no_other() {
    let page = in_page(&std::fs::read_to_string(root().join("docs/errors.md")).expect("the page"));
    let sources = in_sources();
    assert!(sources.len() > 400, "only {} messages were found in the sources", sources.len());
    let missing: Vec<String> = sources
        .iter()
        .filter(|(message, _)| !page.contains(*message))
        .map(|(message, path)| format!("  {message}   ({})", path.display()))
        .collect();
    let gone: Vec<&String> = page.iter().filter(|message| !sources.contains_key(*message)).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "docs/errors.md does not explain:\n{}\nand explains what no source has: {gone:#?}",
        missing.join("\n")
    );
}

/// The enumerations know their sentences: the search in the sources must have found the same.
#[test]
fn the_search_finds_what_the_enumerations_say() {
    let sources = in_sources();
    for status in cci_proto::Status::ALL {
        assert!(sources.contains_key(status.sentence()), "{}", status.sentence());
    }
    let refused = [
        cci_proto::SendError::NoBuffers.to_string(),
        cci_proto::ConnectError::BadUri.to_string(),
        cci_proto::RmaError::ZeroLength.to_string(),
        cci_proto::RegisterError::Busy.to_string(),
        cci_proto::Unusable::WrongThread.to_string(),
    ];
    for sentence in refused {
        assert!(sources.contains_key(&sentence), "{sentence}");
    }
}

#[test]
fn a_value_is_an_ellipsis() {
    assert_eq!(template("'{name:?}' of {} is {{x}},\n      not {value}"), "'…' of … is {x}, not …");
    assert_eq!(item("`a b`, ``c `d` e``: what it means"), Ok(vec!["a b".to_owned(), "c `d` e".to_owned()]));
    assert!(item("`a b`:").is_err() && item("text: without a message").is_err());
}
