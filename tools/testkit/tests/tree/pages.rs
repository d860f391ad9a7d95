//! The pages: the index and the book name each of them, their links lead somewhere, the tests that
//! they name exist, and tests take their listings. No line of a page or of a comment is wider than
//! 100 columns. The templates of transports are as short as their page states.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's directory")
}

/// Every page of the project, as a path from its root. Directories of builds and of tools have
/// none.
pub(crate) fn pages() -> Vec<PathBuf> {
    files(&[".md"])
}

/// Every file of the project whose name ends in one of these ways, as a path from its root.
pub(crate) fn files(ends: &[&str]) -> Vec<PathBuf> {
    let root = root();
    let (mut found, mut directories) = (Vec::new(), vec![root.clone()]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory of the project") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_ours = !name.starts_with('.') && !["target", "shared"].contains(&name) && !name.ends_with("-out");
            if path.is_dir() && (is_ours || name == ".github") {
                // A build directory says so itself.
                if !path.join("CACHEDIR.TAG").exists() {
                    directories.push(path);
                }
            } else if ends.iter().any(|end| name.ends_with(end)) {
                found.push(path.strip_prefix(&root).expect("below the root").to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The text without what is code: blocks between fences, indented blocks, and what stands between
/// backquotes.
fn prose(text: &str) -> String {
    let (mut prose, mut in_fence) = (String::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence && !line.starts_with("    ") {
            line.split('`').step_by(2).for_each(|part| prose.push_str(part));
        }
        // A link's text may go on in the next line.
        prose.push('\n');
    }
    prose
}

/// The targets of all links of a page, and of its pictures.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let after = |start: &str, end: char| -> Vec<&str> {
        prose.split(start).skip(1).filter_map(|rest| rest.split(end).next()).collect()
    };
    let targets = [after("](", ')'), after("src=\"", '"'), after("srcset=\"", '"')].into_iter().flatten();
    targets.map(|target| target.trim().to_owned()).collect()
}

/// The anchors that a page's headings make: small letters, hyphens for spaces, no other
/// punctuation.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut in_fence = false;
    let headings = text.lines().filter(|line| {
        in_fence ^= line.trim_start().starts_with("```");
        !in_fence && line.starts_with('#')
    });
    let slug = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        heading.chars().filter(|character| character.is_alphanumeric() || "-_".contains(*character)).collect()
    };
    headings.map(slug).collect()
}

/// A path without its `..`, which `canonicalize` would need to exist.
fn resolved(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut whole, part| {
        match part {
            Component::ParentDir => _ = whole.pop(),
            part => whole.push(part),
        }
        whole
    })
}

/// What a link of `page` names inside of the project: a path from the root, and an anchor.
fn inside(page: &Path, link: &str) -> Option<(PathBuf, Option<String>)> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor.to_owned())));
    let path = if path.is_empty() { page.to_owned() } else { resolved(&page.with_file_name("").join(path)) };
    Some((path, anchor))
}

/// What is wrong with the links of a page.
fn broken(root: &Path, page: &Path, text: &str) -> Vec<String> {
    let is_broken = |link: &String| {
        let Some((path, anchor)) = inside(page, link) else { return false };
        let target = root.join(&path);
        let lacks_anchor = |anchor: String| {
            std::fs::read_to_string(&target).is_ok_and(|text| !anchors(&text).contains(&anchor))
                && target.extension().is_some_and(|extension| extension == "md")
        };
        !target.exists() || anchor.is_some_and(lacks_anchor)
    };
    links(text).into_iter().filter(is_broken).map(|link| format!("{}: {link}", page.display())).collect()
}

#[test]
fn every_link_between_pages_resolves() {
    let root = root();
    let pages = pages();
    assert!(pages.len() > 20, "the pages are not found: {pages:?}");
    let broken: Vec<String> = pages
        .iter()
        .flat_map(|page| broken(&root, page, &std::fs::read_to_string(root.join(page)).expect("a page")))
        .collect();
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn a_broken_link_is_found() {
    let text = "# A heading: one, two\n<source srcset=\"no.svg\"><img src=\"ci.md\">\n[a](ci.md) [b](no.md) \
                [c](../Makefile#x) [d](#a-heading-one-two) [e](#no)\n\
                `[f](code.md)` [g](https://example.org/no)\n```\n[h](fenced.md)\n```\n    [i](indented.md)\n";
    let root = root();
    std::fs::read(root.join("docs/ci.md")).expect("the page that this test links to");
    assert_eq!(anchors(text), BTreeSet::from(["a-heading-one-two".to_owned()]));
    // The page exists, so that its own anchors are looked up in it, which has none of these.
    let found = broken(&root, Path::new("docs/ci.md"), text);
    assert_eq!(found, ["docs/ci.md: no.md", "docs/ci.md: #a-heading-one-two", "docs/ci.md: #no", "docs/ci.md: no.svg"]);
}

#[test]
fn the_index_names_every_page() {
    let index = Path::new("docs/README.md");
    let text = std::fs::read_to_string(root().join(index)).expect("the index");
    let named: BTreeSet<PathBuf> =
        links(&text).iter().filter_map(|link| inside(index, link)).map(|(path, _)| path).collect();
    let missing: Vec<PathBuf> = pages()
        .into_iter()
        .filter(|page| page != index && !page.starts_with(".github") && !named.contains(page))
        .collect();
    assert!(missing.is_empty(), "docs/README.md does not name {missing:?}");
}

#[test]
fn the_book_has_every_page() {
    let contents = Path::new("docs/SUMMARY.md");
    let text = std::fs::read_to_string(root().join(contents)).expect("the contents of the book");
    let named: BTreeSet<PathBuf> =
        links(&text).iter().filter_map(|link| inside(contents, link)).map(|(path, _)| path).collect();
    let is_missing = |page: &PathBuf| page.starts_with("docs") && page != contents && !named.contains(page);
    let missing: Vec<PathBuf> = pages().into_iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not name {missing:?}");
}

/// The listings of the pages: page, language, how many, and the test that takes them from there.
const LISTINGS: [(&str, &str, usize, &str); 11] = [
    ("README.md", "c", 1, "bindings/c/tests/binding/examples.rs"),
    ("README.md", "python", 1, "bindings/python/tests/test_examples.py"),
    ("README.md", "rust", 1, "examples/rust/tests/run.rs"),
    ("docs/configuration.md", "ini", 2, "cci/src/config/tests.rs"),
    ("docs/first-client.md", "c", 1, "bindings/c/tests/binding/examples.rs"),
    ("docs/first-client.md", "rust", 1, "examples/rust/tests/run.rs"),
    ("docs/how-to.md", "systemd", 1, "tools/testkit/tests/recipes.rs"),
    ("docs/how-to.md", "yaml", 1, "tools/testkit/tests/recipes.rs"),
    ("docs/python.md", "python", 5, "bindings/python/tests/test_package.py"),
    ("docs/splitc-tutorial.md", "c", 1, "tools/splitcc/tests/splitcc.rs"),
    ("docs/wire.md", "hex", 29, "core/proto/tests/wire/document.rs"),
];

/// Languages of the listings of a page, which are between fences.
fn languages(text: &str) -> Vec<&str> {
    let languages = text.lines().filter_map(|line| line.strip_prefix("```"));
    languages.filter(|language| !language.is_empty()).collect()
}

#[test]
fn every_listing_is_taken_from_its_page_by_a_test() {
    let read = |path: &Path| std::fs::read_to_string(root().join(path)).expect("a file of the project");
    let mut found = std::collections::BTreeMap::<(String, String), usize>::new();
    for page in pages() {
        for language in languages(&read(&page)) {
            *found.entry((page.display().to_string(), language.to_owned())).or_default() += 1;
        }
    }
    let known = LISTINGS.map(|(page, language, number, _)| ((page.to_owned(), language.to_owned()), number));
    assert_eq!(found, known.into(), "a listing that is not in LISTINGS, or the other way round");
    for (page, language, _, test) in LISTINGS {
        let (name, test_text) = (Path::new(page).file_name().and_then(|name| name.to_str()), read(Path::new(test)));
        assert!(name.is_some_and(|name| test_text.contains(name)), "{test} does not read {page}");
        assert!(test_text.contains(&format!("```{language}")), "{test} takes no listing in {language}");
    }
}

/// Calls of the C library in the tables of a page.
fn calls(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let codes = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let is_call = |name: &&str| {
        let rest = name.strip_prefix("cci_").or_else(|| name.strip_prefix("ccix_"));
        rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'))
    };
    codes.filter(is_call).map(str::to_owned).collect()
}

#[test]
fn the_reference_of_c_has_every_call() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a file of the project");
    let exported: BTreeSet<String> = read("bindings/c/exported.list").lines().map(str::to_owned).collect();
    assert!(exported.len() > 50, "the list of symbols is not found");
    assert_eq!(calls(&read("docs/c.md")), exported);
}

/// The text between backquotes of every paragraph that begins with *Test.*
fn named_tests(page: &str) -> Vec<String> {
    let paragraphs = page.split("\n\n").filter(|paragraph| paragraph.starts_with("*Test.*"));
    paragraphs.flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2).map(str::to_owned)).collect()
}

/// Whether a file of the sources defines a function or a module of this name, or names it in a list
/// of tests. `...` at its end stands for the rest of the name.
fn defines(source: &str, name: &str) -> bool {
    let (name, is_whole) = name.strip_suffix("...").map_or((name, true), |name| (name, false));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    source.match_indices(name).any(|(at, _)| {
        let before = &source[..at];
        let after = &source[at + name.len()..];
        let is_cut = is_whole && after.bytes().next().is_some_and(is_name);
        let is_definition = ["fn ", "mod ", "void ", "int "].iter().any(|word| before.ends_with(word));
        // As the lists of tests in `net/main.rs` and `event_loops.rs` have it.
        let in_list = before.strip_suffix('"').is_some_and(|before| before.trim_end().ends_with("Test("));
        let in_macro = before.ends_with("    ") && after.starts_with(": |");
        !is_cut && (is_definition || in_list || in_macro)
    })
}

/// What is wrong with a test that a page names as `path`, `path::name`, `::name` or `name`, if
/// something is.
fn lacks(sources: &[(PathBuf, String)], named: &str) -> Option<String> {
    let is_name =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let mut parts: Vec<&str> = named.split("::").filter(|part| !part.is_empty()).collect();
    let path = parts.first().copied().filter(|part| part.ends_with(".rs") || part.ends_with(".c"));
    if named.contains([' ', '*']) || path.is_none() && named.contains('/') {
        // A command, or files in general.
        return None;
    }
    let of_path: Vec<&(PathBuf, String)> =
        sources.iter().filter(|(file, _)| path.is_none_or(|path| file.ends_with(path))).collect();
    if of_path.is_empty() {
        return Some(format!("{named}: there is no such file"));
    }
    if path.is_some() {
        parts.remove(0);
    }
    let name = parts.last()?;
    // Lone words without an underscore are transports and the like.
    let is_test = is_name(name.trim_end_matches('.')) && (name.contains('_') || named.contains("::"));
    let is_there = of_path.iter().any(|(_, text)| defines(text, name));
    (is_test && !is_there).then(|| format!("{named}: there is no such test"))
}

fn sources() -> Vec<(PathBuf, String)> {
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(root().join(&file)).expect("a source file");
        (file, text)
    };
    files(&[".rs", ".c"]).into_iter().map(read).collect()
}

#[test]
fn every_test_that_the_page_on_robustness_names_exists() {
    let page = std::fs::read_to_string(root().join("docs/design/robustness.md")).expect("the page");
    let (named, sources) = (named_tests(&page), sources());
    assert!(named.len() > 150, "the tests are not found: {named:?}");
    let lacking: Vec<String> = named.iter().filter_map(|named| lacks(&sources, named)).collect();
    assert!(lacking.is_empty(), "docs/design/robustness.md names\n{}", lacking.join("\n"));
}

#[test]
fn a_test_that_does_not_exist_is_found() {
    let page = "*Test.* `a/b.rs`: `one_two`, `::three`,\n`b.rs::four`, `sm`\n\n`not_of_a_test`\n";
    assert_eq!(named_tests(page), ["a/b.rs", "one_two", "::three", "b.rs::four", "sm"]);
    let sources = [(PathBuf::from("x/a/b.rs"), "fn one_two() {}\nfn three_or_four() {}".to_owned())];
    for named in ["a/b.rs", "b.rs::one_two", "one_two", "one_t...", "sm", "make bench", "tests/sm_*"] {
        assert_eq!(lacks(&sources, named), None, "{named}");
    }
    for named in ["c.rs", "b.rs::three", "two_one", "three_or", "::four"] {
        assert!(lacks(&sources, named).is_some(), "{named}");
    }
}

/// The lines of a source file before its tests, which are the last thing in it.
fn lines_without_tests(source: &str) -> usize {
    source.lines().take_while(|line| *line != "#[cfg(test)]").count()
}

/// The most lines of what a new transport, or a new link, starts from
/// (`docs/design/transports.md`).
const TEMPLATES: [(&str, usize); 2] = [("transports/template/src", 1_200), ("transports/template_link/src", 300)];

#[test]
fn the_templates_are_as_short_as_their_page_states() {
    for (folder, most) in TEMPLATES {
        let sources = sources().into_iter().filter(|(file, _)| file.starts_with(folder));
        let lines: usize = sources.map(|(_, text)| lines_without_tests(&text)).sum();
        assert!((most / 2..=most).contains(&lines), "{folder} has {lines} lines, and may have {most}");
    }
    assert_eq!(lines_without_tests("//! A\n\nfn a() {}\n\n#[cfg(test)]\nmod tests {}\n"), 4);
}

/// The columns that a line of a page or of a comment may have.
const COLUMNS: usize = 100;

/// Whether a line is one of a comment, by the name of its file.
fn is_comment(file: &Path, line: &str) -> bool {
    let marks: &[&str] = match file.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => &["//"],
        Some("c" | "h") => &["/*", "* ", "//"],
        _ => &["#"],
    };
    marks.iter().any(|mark| line.trim_start().starts_with(mark))
}

/// The numbers of the lines that are too wide and could be wrapped. A table, a block of code, and a
/// line of one word cannot, nor can a URL.
fn too_wide(file: &Path, text: &str) -> Vec<usize> {
    let is_page = file.extension().is_some_and(|extension| extension == "md");
    let mut in_fence = false;
    let is_too_wide = |line: &str| {
        let body = line.trim_start().trim_start_matches(['/', '!', '*', '#']);
        let body = if is_page { line } else { body.strip_prefix(' ').unwrap_or(body) };
        in_fence ^= body.trim_start().starts_with("```");
        let is_code = in_fence || body.starts_with("    ");
        let is_one_word = !body.trim_start_matches("- ").trim_end().contains(' ');
        let can_wrap = !is_code && !is_one_word && !body.starts_with('|') && !line.contains("://");
        line.chars().count() > COLUMNS && can_wrap && (is_page || is_comment(file, line))
    };
    let lines = text.lines().map(is_too_wide).enumerate();
    lines.filter(|(_, is_too_wide)| *is_too_wide).map(|(at, _)| at + 1).collect()
}

#[test]
fn no_line_of_a_page_or_comment_is_wider_than_100_columns() {
    let scripts = files(&[""]).into_iter().filter(|file| file.starts_with("ci") && file.extension().is_none());
    let files: Vec<PathBuf> = files(&[".md", ".rs", ".c", ".h", "Makefile"]).into_iter().chain(scripts).collect();
    assert!(files.len() > 500, "the files are not found: {files:?}");
    let wide: Vec<String> = files
        .iter()
        .flat_map(|file| {
            let text = std::fs::read_to_string(root().join(file)).expect("a file of text");
            let lines = too_wide(file, &text).into_iter();
            lines.map(|line| format!("{}:{line}", file.display())).collect::<Vec<_>>()
        })
        .collect();
    assert!(wide.is_empty(), "wrap these lines at {COLUMNS} columns:\n{}", wide.join("\n"));
}

#[test]
fn a_line_that_is_too_wide_is_found() {
    let words = "word ".repeat(20);
    let source = format!(
        "// {words}\n/// {words}\nlet a = \"{words}\";\n// | {words}|\n// https://{words}\n\
         /// ```\n/// {words}\n/// ```\n//! {words}"
    );
    assert_eq!(too_wide(Path::new("a.rs"), &source), [1, 2, 9]);
    let page = format!("{words}x\n    {words}\n| {words}|\n```\n{words}x\n```\n- {words}\n");
    assert_eq!(too_wide(Path::new("a.md"), &page), [1, 7]);
    let script = format!("# {words}\necho {words}\n");
    assert_eq!(too_wide(Path::new("ci/a"), &script), [1]);
    let header = format!("/* {words}\n * {words} */\n#define A {words}\n");
    assert_eq!(too_wide(Path::new("a.h"), &header), [1, 2]);
}
