//! Writes manual pages and shell completions into a folder: `cci-manual DIR`.
//!
//! Pages of section 1 come from the definitions of the command line, which the help is made of;
//! pages of section 3 from the comments of `cci.h` and `ccix.h`. So neither can differ from its
//! source.

#![forbid(unsafe_code)]

mod commands;
mod header;
mod page;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        // A failure to write to standard error cannot be reported.
        let _ = writeln!(io::stderr(), "usage: cci-manual DIR");
        return ExitCode::from(2);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = writeln!(io::stderr(), "cci-manual: cannot write to {}: {why}", Path::new(&folder).display());
            ExitCode::FAILURE
        }
    }
}

/// Writes `man1`, `man3` and `completions` below a folder.
fn write(folder: &Path) -> io::Result<()> {
    commands::write(folder)?;
    let pages = folder.join("man3");
    std::fs::create_dir_all(&pages)?;
    for (name, text) in page::all() {
        std::fs::write(pages.join(format!("{name}.3")), text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn each_page_and_completion_is_written_and_groff_takes_it() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        for file in [
            "man1/cci.1",
            "man1/cci-doctor.1",
            "man1/cci-perf-pingpong.1",
            "man1/splitcc.1",
            "man3/cci.3",
            "man3/cci_send.3",
            "man3/ccix_alloc.3",
            "completions/bash/cci",
            "completions/zsh/_cci",
            "completions/fish/cci.fish",
        ] {
            assert!(std::fs::metadata(folder.path().join(file)).is_ok_and(|it| it.len() > 100), "{file}");
        }
        if Command::new("groff").arg("--version").output().is_err() {
            return;
        }
        for section in ["man1", "man3"] {
            for page in std::fs::read_dir(folder.path().join(section)).unwrap() {
                let page = page.unwrap().path();
                let output = Command::new("groff").args(["-man", "-ww", "-z", "-Tutf8"]).arg(&page).output().unwrap();
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && said.is_empty(), "{}: {said}", page.display());
            }
        }
    }
}
