//! Pages of section 1, and completions.

use crate::page::escaped;
use clap_complete::Shell;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// What `splitcc --help` prints.
const SPLITCC: &str = include_str!("../../splitcc/src/help.txt");

pub(crate) fn write(folder: &Path) -> io::Result<()> {
    let pages = folder.join("man1");
    std::fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(cci_cli::command_line(), &pages)?;
    std::fs::write(pages.join("splitcc.1"), splitcc())?;
    for (shell, name) in [(Shell::Bash, "bash/cci"), (Shell::Zsh, "zsh/_cci"), (Shell::Fish, "fish/cci.fish")] {
        let path = folder.join("completions").join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut cci_cli::command_line(), "cci", &mut text);
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// The page of the translator, whose help has a usage, paragraphs, and lines of options.
fn splitcc() -> String {
    let (usage, rest) = SPLITCC.split_once('\n').unwrap_or((SPLITCC, ""));
    let usage = escaped(usage.trim_start_matches("usage: "));
    let mut text = format!(
        ".TH SPLITCC 1 \"\" \"cci {}\"\n.SH NAME\nsplitcc \\- translates and compiles Split\\-C\n.SH SYNOPSIS\n{usage}\n\
         .SH DESCRIPTION\n",
        env!("CARGO_PKG_VERSION")
    );
    for line in rest.lines() {
        let option = line.strip_prefix("  ").and_then(|line| line.split_once("  "));
        let _ = match option {
            Some((option, about)) => writeln!(text, ".TP\n\\fB{}\\fR\n{}", escaped(option), escaped(about.trim())),
            None if line.is_empty() => writeln!(text, ".PP"),
            None => writeln!(text, "{}", escaped(line)),
        };
    }
    text.push_str(".SH SEE ALSO\n.BR cci\\-run (1)\n");
    text.replace(".SH DESCRIPTION\n.PP\n", ".SH DESCRIPTION\n").replace(".PP\n.TP", ".TP")
}
