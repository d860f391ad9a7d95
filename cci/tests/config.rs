//! Configuration files as programs meet them: on disk, and named by the environment.

use cci::{Context, Endpoint, EndpointOptions, Status};
use std::path::Path;
use std::process::Command;

/// Set in a child process of a test: the file into which it writes what [`Context::new`] says.
const CHILD: &str = "CCI_TEST_CHILD";

fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("written");
    file
}

#[test]
fn a_mistake_names_the_file_as_it_was_given() {
    let file = file(b"[sm0]\ntransport = sm\n\nprioritty = 3\n");
    let error = Context::from_file(file.path()).expect_err("a mistake");
    let name = file.path().display();
    assert_eq!(error.to_string(), format!("{name}:4: unknown key 'prioritty' of [sm0]; did you mean 'priority'?"));
    assert_eq!(error.status, Status::Inval);
}

#[test]
fn a_file_that_cannot_be_read_says_so() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for path in [directory.path().to_owned(), directory.path().join("missing.ini")] {
        let error = Context::from_file(&path).expect_err("unreadable");
        let start = format!("cannot read the configuration file {}; ", path.display());
        assert!(error.to_string().starts_with(&start), "{error}");
        assert_eq!(error.status, Status::Inval);
    }
}

#[test]
fn an_endless_file_is_refused() {
    let error = Context::from_file(Path::new("/dev/zero")).expect_err("endless");
    assert!(error.to_string().contains("too long for a configuration file"), "{error}");
}

#[test]
fn binary_files_are_refused() {
    let file = file(b"[sm0]\n\x7fELF\xff\xfe");
    let error = Context::from_file(file.path()).expect_err("binary");
    assert!(error.to_string().starts_with(&format!("{}:2: not UTF-8 text; ", file.path().display())), "{error}");
}

#[test]
fn a_device_of_another_build_cannot_be_opened_and_says_why() {
    let file = file(b"[eth0]\ntransport = ofi\ninterface = eth0\n");
    let context = Context::from_file(file.path()).expect("valid");
    let [device] = context.devices() else { panic!("one device, not {:?}", context.devices()) };
    let error = Endpoint::open(device, &EndpointOptions::new()).expect_err("down");
    assert_eq!(
        error.to_string(),
        "the device eth0 is not usable: the transport ofi is not in this build; only sm, sock, tcp, auto, sim, mx and portals are"
    );
    assert_eq!(error.status, Status::NoDev);
    assert_eq!(context.default_device().expect_err("none up").status, Status::NoDev);
}

/// What `Context::new` says with these variables.
fn with_environment(variables: &[(&str, &Path)]) -> String {
    let output = tempfile::NamedTempFile::new().expect("a temporary file");
    let child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "the_environment_names_file_and_transports"])
        .env_remove("CCI_CONFIG")
        .env_remove("CCI_CTP")
        .env(CHILD, output.path())
        .envs(variables.iter().copied())
        .output()
        .expect("the child ran");
    assert!(child.status.success(), "{child:?}");
    std::fs::read_to_string(output.path()).expect("read")
}

#[test]
fn the_environment_names_file_and_transports() {
    if let Some(output) = std::env::var_os(CHILD) {
        let names = |context: Context| context.devices().iter().map(|device| device.name.clone()).collect::<Vec<_>>();
        let text = Context::new().map_or_else(|error| error.to_string(), |context| names(context).join(","));
        return std::fs::write(output, text).expect("written");
    }
    let file = file(b"[slow]\ntransport = ofi\n[quick]\ntransport = sm\n");
    let config = ("CCI_CONFIG", file.path());
    assert_eq!(with_environment(&[]), "auto0,sock0,tcp0,sm0");
    assert_eq!(with_environment(&[("CCI_CONFIG", Path::new(""))]), "auto0,sock0,tcp0,sm0");
    assert_eq!(with_environment(&[config]), "quick,slow");
    assert_eq!(with_environment(&[config, ("CCI_CTP", Path::new("^sm"))]), "slow");
    let refusal = "CCI_CTP: unknown transport 'smm'; did you mean 'sm'?";
    assert_eq!(with_environment(&[config, ("CCI_CTP", Path::new("smm"))]), refusal);
}
