//! The syntax of configuration files: sections, keys, values, comments. What they mean is not known
//! here.

/// A mistake in a file, before the file's name is known.
#[derive(Debug)]
pub(super) struct Mistake {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) sentence: String,
}

impl Mistake {
    pub(super) fn new(line: usize, sentence: impl Into<String>) -> Self {
        Self { line, sentence: sentence.into() }
    }
}

/// `[name]` and what follows.
#[derive(Debug)]
pub(super) struct Section<'t> {
    pub(super) name: &'t str,
    pub(super) line: usize,
    /// In file order; no key twice.
    pub(super) entries: Vec<Entry<'t>>,
}

/// `key = value`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'t> {
    pub(super) line: usize,
    pub(super) key: &'t str,
    pub(super) value: &'t str,
}

impl<'t> Section<'t> {
    pub(super) fn entry(&self, key: &str) -> Option<&Entry<'t>> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

/// What one line says.
enum Line<'t> {
    Blank,
    Header(&'t str),
    Entry(&'t str, &'t str),
}

/// The sections of a file, in file order; no name twice.
pub(super) fn parse(text: &str) -> Result<Vec<Section<'_>>, Mistake> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    // Editors of other systems put a byte order mark first.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, content) in (1..).zip(text.lines()) {
        match parse_line(content).map_err(|sentence| Mistake::new(line, sentence))? {
            Line::Blank => (),
            Line::Header(name) => {
                if let Some(first) = sections.iter().find(|section| section.name == name) {
                    let sentence = format!("[{name}] is already in line {}; give each device its own name", first.line);
                    return Err(Mistake::new(line, sentence));
                }
                sections.push(Section { name, line, entries: Vec::new() });
            }
            Line::Entry(key, value) => {
                let Some(section) = sections.last_mut() else {
                    let sentence = format!("'{key}' stands before the first section; begin the device with [name]");
                    return Err(Mistake::new(line, sentence));
                };
                if let Some(first) = section.entry(key) {
                    let sentence =
                        format!("'{key}' of [{}] is already in line {}; keep one of them", section.name, first.line);
                    return Err(Mistake::new(line, sentence));
                }
                section.entries.push(Entry { line, key, value });
            }
        }
    }
    Ok(sections)
}

fn parse_line(line: &str) -> Result<Line<'_>, String> {
    let content = line.split_once('#').map_or(line, |(before, _)| before).trim();
    if content.is_empty() {
        return Ok(Line::Blank);
    }
    // C programs get names and values as strings that end with a zero byte, and print them.
    if let Some(control) = content.chars().find(|c| c.is_control() && *c != '\t') {
        return Err(format!("a control character ({}) stands in the text; remove it", control.escape_default()));
    }
    if let Some(rest) = content.strip_prefix('[') {
        return match rest.split_once(']') {
            Some((name, "")) if !name.trim().is_empty() => Ok(Line::Header(name.trim())),
            Some((_, "")) => Err("a section has no name; write [name]".into()),
            Some((_, after)) => Err(format!("'{}' follows the section's name; put it on its own line", after.trim())),
            None => Err("the section's name does not end; write [name]".into()),
        };
    }
    let (key, value) = content.split_once('=').ok_or_else(|| {
        format!("'{content}' is neither a section nor a key; write [name] for a device, or key = value")
    })?;
    match (key.trim(), value.trim()) {
        ("", _) => Err("no key stands before '='; write key = value".into()),
        (key, "") => Err(format!("'{key}' has no value; write {key} = value, or remove the line")),
        (key, value) => Ok(Line::Entry(key, value)),
    }
}
