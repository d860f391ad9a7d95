//! `cci run --mpi` and `cci mpi-env`: PMI as its clients see it, MPICH where it can be had, and
//! MPICH over CCI.

#[path = "../command_line/mod.rs"]
mod command_line;
mod mpich;
mod over_cci;
mod pmi;

use command_line::cci;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A job of an MPI with a network of its own.
pub(crate) fn own(arguments: &[&str]) -> Command {
    let mut command = cci(&["run", "--mpi=own"]);
    for variable in ["CCI_MPI_TRACE", "CCI_PMI", "FI_PROVIDER", "PYTHONUNBUFFERED"] {
        command.env_remove(variable);
    }
    command.args(arguments);
    command
}

pub(crate) fn output(command: &mut Command) -> Output {
    command.output().expect("the command")
}

/// Tells people why a test does less here.
pub(crate) fn skipped(why: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// A command that stands for `ssh`: it forgets the host and runs the rest here.
pub(crate) fn rsh(folder: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("rsh");
    std::fs::write(&path, "#!/bin/sh\nshift; exec \"$@\"\n").expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    path.to_str().expect("text").to_owned()
}

/// The command as it is installed, with or without a provider beside it.
pub(crate) fn installed(folder: &Path, has_provider: bool) -> PathBuf {
    let (bin, fabric) = (folder.join("bin"), folder.join("lib/cci/fabric"));
    let command = bin.join("cci");
    std::fs::create_dir_all(&bin).expect("a folder");
    std::fs::create_dir_all(&fabric).expect("a folder");
    if !command.exists() {
        std::fs::hard_link(env!("CARGO_BIN_EXE_cci"), &command).expect("one file system");
    }
    if has_provider {
        std::fs::write(fabric.join("libcci-fi.so"), "").expect("a file");
    }
    command
}
