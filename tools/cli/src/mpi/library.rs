//! The MPI that a program loads: which one it is, and whether it can load a provider of libfabric.

use super::elf::{Needs, needs};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Whose library it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Mpich,
    IntelMpi,
    OpenMpi,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mpich => "MPICH",
            Self::IntelMpi => "Intel MPI",
            Self::OpenMpi => "Open MPI",
        }
    }
}

/// A library of MPI.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Library {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    pub(super) has_libfabric: bool,
}

/// The names by which programs need their MPI, in the order in which they are looked for.
const NAMES: [&str; 6] =
    ["libmpi.so.12", "libmpich.so.12", "libmpi.so.40", "libmpi.so.80", "libmpi_abi.so.1", "libmpi_abi.so.0"];

/// No program or library that is read is longer.
const LONGEST: u64 = 1 << 29;

/// Where libraries are found.
pub(super) struct Places {
    /// Folders of programs.
    pub(super) programs: Vec<PathBuf>,
    /// Folders that come before those of the system.
    pub(super) first: Vec<PathBuf>,
    /// Folders of the system.
    pub(super) system: Vec<PathBuf>,
}

impl Places {
    pub(super) fn of_environment() -> Self {
        let of = |name: &str| {
            let value = std::env::var_os(name).unwrap_or_default();
            std::env::split_paths(&value).filter(|path| path.is_absolute()).collect()
        };
        let triple = format!("{}-linux-gnu", std::env::consts::ARCH);
        let system = ["/usr/local/lib", "/lib64", "/usr/lib64", "/usr/lib"].map(PathBuf::from);
        let system = [format!("/usr/lib/{triple}").into()].into_iter().chain(system).collect();
        Self { programs: of("PATH"), first: of("LD_LIBRARY_PATH"), system }
    }

    fn program(&self, name: &OsStr) -> Option<PathBuf> {
        if name.as_encoded_bytes().contains(&b'/') {
            return Some(name.into());
        }
        self.programs.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
    }

    /// The MPI that a program needs; where it needs none itself, as Python does, the first one that
    /// is found where its modules look. That of the system is only taken for one that a program
    /// needs, for Python, and without a program: others may have theirs in themselves.
    pub(super) fn find(&self, program: Option<&OsStr>) -> Option<Library> {
        let is_named = program.is_some();
        let program = program.and_then(|name| self.program(name));
        let interpreter = program.as_deref().and_then(|path| self.interpreter(path));
        let program = interpreter.or(program);
        let needs = program.as_deref().and_then(|path| needs(path, &read(path)?)).unwrap_or_default();
        // As its name is written: an environment of Python has a link to the interpreter.
        let beside = program.as_deref().and_then(|path| Some(path.parent()?.parent()?.join("lib")));
        let is_needed = |name: &&str| needs.libraries.iter().any(|needed| needed == name);
        let needed: Vec<&str> = NAMES.into_iter().filter(is_needed).collect();
        let names = if needed.is_empty() { &NAMES[..] } else { &needed };
        let is_python =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"));
        let takes_any = !needed.is_empty() || !is_named || program.as_ref().is_some_and(is_python);
        let system = self.system.iter().filter(|_| takes_any).cloned();
        let all = [&needs.folders[..], &self.first].concat().into_iter().chain(beside).chain(system);
        let folders: Vec<PathBuf> = all.collect();
        let paths = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
        paths.filter(|path| path.is_file()).find_map(|path| library(&path))
    }

    /// What runs a script, by its first line.
    fn interpreter(&self, path: &Path) -> Option<PathBuf> {
        let bytes = read(path)?;
        let line = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        let mut words = str::from_utf8(line).ok()?.split_whitespace();
        let first = words.next()?;
        let is_env = Path::new(first).file_name().is_some_and(|name| name == "env");
        let name = if is_env { words.find(|word| !word.starts_with('-')) } else { Some(first) };
        self.program(OsStr::new(name?))
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let length = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
    if length > LONGEST { None } else { std::fs::read(path).ok() }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|some| some == text)
}

/// What a library is, by its name and by what it has in it.
fn library(path: &Path) -> Option<Library> {
    let bytes = read(path)?;
    let needs = needs(path, &bytes)?;
    let name = path.file_name()?.to_string_lossy();
    let kind = if name.starts_with("libmpich") {
        Kind::Mpich
    } else if contains(&bytes, b"I_MPI_FABRICS") {
        Kind::IntelMpi
    } else if contains(&bytes, b"MPIR_CVAR_") {
        Kind::Mpich
    } else {
        Kind::OpenMpi
    };
    let has_libfabric = match kind {
        // It loads its own one.
        Kind::IntelMpi => true,
        // It may have libfabric in itself, with the names of its variables.
        Kind::Mpich => needs_libfabric(&needs) || contains(&bytes, b"FI_PROVIDER_PATH"),
        Kind::OpenMpi => needs_libfabric(&needs) || has_part_for_libfabric(path),
    };
    Some(Library { path: path.to_owned(), kind, has_libfabric })
}

fn needs_libfabric(needs: &Needs) -> bool {
    needs.libraries.iter().any(|name| name.starts_with("libfabric.so"))
}

/// Whether an Open MPI that loads its parts has the one for libfabric.
fn has_part_for_libfabric(path: &Path) -> bool {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let Some(beside) = real.parent().and_then(|folder| folder.read_dir().ok()) else { return false };
    beside.filter_map(Result::ok).any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let of_library = || needs(&entry.path(), &read(&entry.path())?).filter(needs_libfabric);
        name.starts_with("openmpi") && entry.path().join("mca_mtl_ofi.so").is_file()
            || name.starts_with("libopen-pal.so") && of_library().is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Compiles a library that needs these, with this text in it.
    fn compile(path: &Path, text: &str, needs: &[&Path]) {
        let folder = path.parent().expect("a folder");
        std::fs::create_dir_all(folder).expect("a folder");
        let source = folder.join("source.c");
        std::fs::write(&source, format!("const char own_{}[] = \"{text}\";\n", needs.len())).expect("a source");
        let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        command.args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"]).arg(path).arg(&source).args(needs);
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(command.arg(format!("-Wl,-soname,{name}")).status().expect("a C compiler").success());
    }

    fn places(folder: &Path) -> Places {
        Places { programs: vec![folder.join("bin")], first: vec![], system: vec![folder.join("system")] }
    }

    #[test]
    fn an_mpi_is_told_by_what_it_has_in_it_and_by_what_it_needs() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let places = places(folder.path());
        assert_eq!(places.find(None), None);
        let fabric = at("own/libfabric.so.1");
        compile(&fabric, "", &[]);
        let found = |name: &str, text: &str, needs: &[&Path]| {
            compile(&at("system").join(name), text, needs);
            let library = places.find(None).expect("a library");
            std::fs::remove_file(&library.path).expect("a file");
            assert_eq!(library.path, at("system").join(name));
            (library.kind, library.has_libfabric)
        };
        assert_eq!(found("libmpi.so.12", "MPIR_CVAR_X", &[&fabric]), (Kind::Mpich, true));
        assert_eq!(found("libmpi.so.12", "MPIR_CVAR_X FI_PROVIDER_PATH", &[]), (Kind::Mpich, true));
        assert_eq!(found("libmpich.so.12", "", &[]), (Kind::Mpich, false));
        assert_eq!(found("libmpi.so.12", "I_MPI_FABRICS", &[]), (Kind::IntelMpi, true));
        assert_eq!(found("libmpi.so.40", "", &[]), (Kind::OpenMpi, false));
        assert_eq!(found("libmpi.so.40", "", &[&fabric]), (Kind::OpenMpi, true));
        std::fs::create_dir(at("system/openmpi")).expect("a folder");
        std::fs::write(at("system/openmpi/mca_mtl_ofi.so"), "").expect("a file");
        assert_eq!(found("libmpi.so.40", "", &[]), (Kind::OpenMpi, true));
        std::fs::write(at("system/libmpi.so.12"), "no library").expect("a file");
        assert_eq!(places.find(None), None);
    }

    #[test]
    fn a_program_has_the_mpi_that_it_needs_or_that_is_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let places = places(folder.path());
        let find = |program: &str| places.find(Some(OsStr::new(program))).map(|library| library.path);
        compile(&at("lib/libmpi.so.12"), "MPIR_CVAR_X", &[]);
        compile(&at("system/libmpi.so.40"), "", &[]);
        // A program that needs an MPI itself: a library has the same section.
        compile(&at("bin/needs"), "", &[&at("system/libmpi.so.40")]);
        compile(&at("bin/python"), "", &[]);
        assert_eq!(find("needs"), Some(at("system/libmpi.so.40")));
        assert_eq!(find("python"), Some(at("lib/libmpi.so.12")));
        compile(&at("bin/other/static"), "", &[]);
        assert_eq!(
            [find(at("bin/other/static").to_str().expect("text")), find("/nowhere/at/all"), find("nowhere")],
            [None, None, None]
        );
        std::fs::write(at("bin/script"), format!("#!{}\n", at("bin/needs").display())).expect("a script");
        std::fs::write(at("system/other"), "#!/usr/bin/env -S python -u\n").expect("a script");
        assert_eq!(find("script"), Some(at("system/libmpi.so.40")));
        assert_eq!(find(at("system/other").to_str().expect("text")), Some(at("lib/libmpi.so.12")));
    }
}
