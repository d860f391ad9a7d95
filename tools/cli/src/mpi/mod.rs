//! `cci run --mpi` and `cci mpi-env`: what an MPI has to find in its environment.

mod elf;
mod library;

use crate::choice::choice;
use cci_launcher::Mpi;
use cci_report::names::Choice;
use cci_report::{UserError, while_doing};
use clap::Args;
use library::{Kind, Library, Places};
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The provider of libfabric by which an MPI sends over CCI.
const PROVIDER: &str = "libcci-fi.so";

/// The variable with a file for what an MPI asks.
const TRACE: &str = "CCI_MPI_TRACE";

/// What carries the messages of an MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    Cci,
    Own,
}

impl Choice for Network {
    const CHOICES: &'static [(Self, &'static str, &'static str)] =
        &[(Self::Cci, "cci", "CCI, by a provider of libfabric"), (Self::Own, "own", "what the MPI has of its own")];
}

impl Choice for Kind {
    const CHOICES: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Mpich, "mpich", "MPICH"),
        (Self::IntelMpi, "intelmpi", "Intel MPI"),
        (Self::OpenMpi, "openmpi", "Open MPI"),
    ];
}

/// Arguments of `cci mpi-env`.
#[derive(Args, Debug)]
pub(crate) struct MpiEnvArguments {
    /// The MPI; when absent that of the program, or the one that this host has
    #[arg(long, value_parser = choice::<Kind>())]
    mpi: Option<Kind>,
    /// The program that is to be started, and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// Prints what an MPI is to find in its environment, for other launchers.
pub(crate) fn mpi_env(arguments: &MpiEnvArguments) -> Result<(), UserError> {
    let kind = match arguments.mpi {
        Some(kind) => kind,
        None => {
            let found = Places::of_environment().find(arguments.program.first().map(OsString::as_os_str));
            let found = found.ok_or_else(|| {
                UserError::new("no MPI is found; name the program that loads it, or the MPI: cci mpi-env --mpi mpich")
            })?;
            can_load_providers(&found)?;
            found.kind
        }
    };
    let provider = provider().map_err(|folder| {
        UserError::new(format!("there is no {PROVIDER} in {}; see docs/mpi.md of CCI", folder.display()))
    })?;
    let lines: String = variables(kind, &provider).iter().map(|(name, value)| export(name, value)).collect();
    std::io::stdout().write_all(lines.as_bytes()).map_err(while_doing("cannot write the variables"))
}

/// How ranks of an MPI are started.
pub(crate) fn options(network: Network, is_verbose: bool, program: &OsStr) -> Result<Mpi, UserError> {
    let found = Places::of_environment().find(Some(program));
    if let Some(library) = found.as_ref().filter(|library| library.kind == Kind::OpenMpi) {
        return Err(UserError::new(format!(
            "{} is Open MPI, which its own mpirun starts; start it by that, or install MPICH: pip install mpich",
            library.path.display()
        )));
    }
    let variables = match network {
        Network::Own => Vec::new(),
        Network::Cci => over_cci(found.as_ref())?,
    };
    let trace = std::env::var_os(TRACE).filter(|path| !path.is_empty()).map(PathBuf::from);
    Ok(Mpi { variables, is_own_network: network == Network::Own, is_verbose, trace })
}

/// The variables by which this MPI sends over CCI; that of a program which shows none is MPICH.
fn over_cci(found: Option<&Library>) -> Result<Vec<(OsString, OsString)>, UserError> {
    let provider = provider().map_err(|folder| {
        let folder = folder.display();
        UserError::new(format!(
            "this build has no provider of libfabric: there is no {PROVIDER} in {folder}; write --mpi=own to use \
             the network of the MPI"
        ))
    })?;
    if let Some(other) = std::env::var_os("FI_PROVIDER").filter(|other| !other.is_empty() && other != "cci") {
        let other = other.display();
        return Err(UserError::new(format!("FI_PROVIDER is '{other}'; unset it, or write --mpi=own")));
    }
    found.map_or(Ok(()), can_load_providers)?;
    let kind = found.map_or(Kind::Mpich, |library| library.kind);
    let is_free = |name: &str| name != NO_LOCAL || std::env::var_os(name).is_none();
    let variables = variables(kind, &provider).into_iter().filter(|(name, _)| is_free(name));
    Ok(variables.map(|(name, value)| (name.into(), value)).collect())
}

fn can_load_providers(library: &Library) -> Result<(), UserError> {
    if library.has_libfabric {
        return Ok(());
    }
    let (path, name) = (library.path.display(), library.kind.name());
    Err(UserError::new(format!(
        "{path} is {name} built without libfabric, which cannot load CCI; install one that has it: pip install {}",
        if library.kind == Kind::OpenMpi { "openmpi" } else { "mpich" }
    )))
}

/// The variable by which MPICH leaves its own shared memory out. Who sets it wants it so.
const NO_LOCAL: &str = "MPIR_CVAR_NOLOCAL";

/// What an MPI needs to send over the provider in this folder.
fn variables(kind: Kind, folder: &Path) -> Vec<(&'static str, OsString)> {
    let of_kind: &[(&str, &str)] = match kind {
        Kind::Mpich => &[("MPIR_CVAR_CH4_NETMOD", "ofi"), (NO_LOCAL, "1")],
        Kind::IntelMpi => &[("I_MPI_FABRICS", "ofi"), ("I_MPI_OFI_PROVIDER", "cci")],
        Kind::OpenMpi => &[
            ("OMPI_MCA_pml", "cm"),
            ("OMPI_MCA_mtl", "ofi"),
            ("OMPI_MCA_mtl_ofi_provider_include", "cci"),
            ("OMPI_MCA_opal_common_ofi_provider_include", "cci"),
        ],
    };
    let of_libfabric = [("FI_PROVIDER_PATH", folder.into()), ("FI_PROVIDER", "cci".into())];
    of_libfabric.into_iter().chain(of_kind.iter().map(|(name, value)| (*name, (*value).into()))).collect()
}

/// The folder of the provider: that of an installed command, or of a build. The error is the first
/// of them.
fn provider() -> Result<PathBuf, PathBuf> {
    let command = std::env::current_exe().unwrap_or_default();
    provider_of(command.parent().unwrap_or(Path::new("/")))
}

fn provider_of(bin: &Path) -> Result<PathBuf, PathBuf> {
    let above = bin.parent().unwrap_or(bin);
    let folders = [above.join("lib/cci/fabric"), bin.join("fabric"), above.join("fabric")];
    folders.iter().find(|folder| folder.join(PROVIDER).is_file()).cloned().ok_or_else(|| folders[0].clone())
}

/// A line for a shell.
fn export(name: &str, value: &OsStr) -> String {
    let value = value.to_string_lossy();
    let is_plain = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+,:@%".contains(&byte));
    let value = if is_plain { value.into_owned() } else { format!("'{}'", value.replace('\'', r"'\''")) };
    format!("export {name}={value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_values_as_they_are() {
        let lines: String = [("A", "/usr/lib/cci"), ("B", "/my folder"), ("C", "it's"), ("D", "$HOME;`x`")]
            .map(|(name, value)| export(name, OsStr::new(value)))
            .concat();
        assert!(lines.starts_with("export A=/usr/lib/cci\nexport B='/my folder'\n"), "{lines}");
        let script = format!("{lines}printf '%s|' \"$A\" \"$B\" \"$C\" \"$D\"");
        let shell = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
        assert_eq!(String::from_utf8_lossy(&shell.stdout), "/usr/lib/cci|/my folder|it's|$HOME;`x`|");
    }

    #[test]
    fn the_provider_is_beside_an_installed_command_or_in_a_build() {
        let folder = tempfile::tempdir().expect("a folder");
        let bin = folder.path().join("target/debug");
        assert_eq!(provider_of(&bin), Err(folder.path().join("target/lib/cci/fabric")));
        for name in ["target/fabric", "target/debug/fabric", "target/lib/cci/fabric"] {
            let place = folder.path().join(name);
            std::fs::create_dir_all(&place).expect("a folder");
            std::fs::write(place.join(PROVIDER), "").expect("a file");
            assert_eq!(provider_of(&bin), Ok(place));
        }
    }

    #[test]
    fn each_mpi_has_its_own_variables() {
        let of = |kind| {
            let all = variables(kind, Path::new("/lib/cci/fabric"));
            let text = |(name, value): &(&str, OsString)| format!("{name}={}", value.display());
            all.iter().map(text).collect::<Vec<_>>().join(" ")
        };
        let both = "FI_PROVIDER_PATH=/lib/cci/fabric FI_PROVIDER=cci";
        assert_eq!(of(Kind::Mpich), format!("{both} MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1"));
        assert_eq!(of(Kind::IntelMpi), format!("{both} I_MPI_FABRICS=ofi I_MPI_OFI_PROVIDER=cci"));
        assert!(of(Kind::OpenMpi).starts_with(&format!("{both} OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi ")));
    }
}
