//! The recipes of `docs/how-to.md`, read by the tools that users give them to.

#![forbid(unsafe_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The listing of the page in this language.
fn recipe(start: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to.md");
    let text = std::fs::read_to_string(page).expect("the page");
    text.split(start).nth(1).and_then(|rest| rest.split("```").next()).expect("a listing").to_owned()
}

/// What the command says; nothing, and the reason on standard error, where it is missing.
fn said(command: &mut Command) -> Option<Output> {
    let ended = command.output();
    if ended.is_err() {
        // Without a standard error there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "skipped: there is no {}", command.get_program().display());
    }
    ended.ok()
}

fn written(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let file = folder.path().join(name);
    std::fs::write(&file, text).expect("a file");
    file
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_unit_of_systemd_is_one() {
    let unit = recipe("```systemd\n");
    assert!(unit.contains("ExecStart=/usr/local/bin/store 5000\n"), "{unit}");
    let folder = tempfile::tempdir().expect("a folder");
    // The program is there on no machine that tests.
    let file = written(&folder, "store.service", &unit.replace("/usr/local/bin/store", "/bin/true"));
    let Some(ended) = said(Command::new("systemd-analyze").arg("verify").arg(&file)) else { return };
    // It names what is wrong with other units too.
    let complaints = text(&ended.stderr);
    let of_ours: Vec<&str> = complaints.lines().filter(|line| line.contains("store.service")).collect();
    assert!(of_ours.is_empty(), "{complaints}");
    let wrong = written(&folder, "store.service", &unit.replace("LimitNOFILE", "LimitNoFiles"));
    let ended = said(Command::new("systemd-analyze").arg("verify").arg(&wrong)).expect("it was there");
    assert!(text(&ended.stderr).contains("LimitNoFiles"), "a mistake is not found");
}

/// The command decodes the objects by their types, and needs no cluster for that.
#[test]
fn the_objects_of_kubernetes_are_read_whole() {
    let (folder, objects) = (tempfile::tempdir().expect("a folder"), recipe("```yaml\n"));
    let (deployment, service) = objects.split_once("---\n").expect("two objects");
    let read = |object: &str, arguments: &[&str]| {
        let file = written(&folder, "object.yaml", object);
        let ended = said(Command::new("kubectl").args(arguments).arg("-f").arg(file).args(["--local", "-o", "json"]))?;
        assert!(ended.status.success(), "{}", text(&ended.stderr));
        Some(text(&ended.stdout))
    };
    let Some(read_back) = read(deployment, &["set", "image", "store=registry.example/store:2"]) else { return };
    for part in ["store:2", "runAsNonRoot", "\"Recreate\"", "\"512Mi\"", "\"UDP\"", "\"TCP\"", "\"5000\""] {
        assert!(read_back.contains(part), "{part}: {read_back}");
    }
    let read_back = read(service, &["set", "selector", "app=store"]).expect("it was there");
    for part in ["\"clusterIP\": \"None\"", "\"app\": \"store\"", "\"port\": 5000", "\"UDP\"", "\"TCP\""] {
        assert!(read_back.contains(part), "{part}: {read_back}");
    }
}
