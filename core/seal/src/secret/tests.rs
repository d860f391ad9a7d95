//! Secrets, their files, and where they are found.

use super::error::SecretError;
use super::file::judge_owner;
use super::search::search_in;
use super::{Given, Origin, Psk};
use crate::sizes::KEY;
use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const DIGITS: &str = "00112233445566778899aabbccddeeffFFEEDDCCBBAA99887766554433221100";

fn write(path: &Path, text: &[u8], mode: u32) {
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

/// The sentence by which a file is refused.
fn sentence(read: Result<Psk, SecretError>) -> String {
    read.expect_err("refused").to_string()
}

#[test]
fn digits_of_either_case_are_read_and_written_back() {
    let secret = Psk::parse(DIGITS).expect("a secret");
    let bytes = secret.bytes().expect("here");
    assert_eq!((bytes[0], bytes[1], bytes[15], bytes[16], bytes[31]), (0, 0x11, 0xff, 0xff, 0));
    let digits = secret.digits().expect("memory");
    let digits = std::str::from_utf8(digits.get().expect("here")).expect("digits");
    assert_eq!(digits, DIGITS.to_ascii_lowercase());
    for byte in 0..=u8::MAX {
        let secret = Psk::from_bytes(&[byte; KEY]).expect("memory");
        let digits = secret.digits().expect("memory");
        assert_eq!(digits.get().expect("here")[..2], *format!("{byte:02x}").as_bytes());
    }
}

#[test]
fn only_64_digits_and_one_newline_are_a_secret() {
    let sentence = "cannot use the secret: it is not 64 hexadecimal digits and at most a newline; make one with \
                    `cci key new`";
    let with = |end: &str| format!("{DIGITS}{end}");
    let wrong = [
        String::new(),
        "correct horse battery staple".to_owned(),
        DIGITS[1..].to_owned(),
        with("0"),
        with("\n\n"),
        with("\r\n"),
        with(" "),
        format!(" {}", &DIGITS[1..]),
        format!("+{}", &DIGITS[1..]),
        format!("0x{}", &DIGITS[2..]),
        DIGITS.replace('a', "g"),
        "é".repeat(32),
    ];
    for text in wrong {
        let refused = Psk::parse(&text).expect_err("refused").to_string();
        assert_eq!(refused, sentence, "{text:?}");
    }
    assert!(Psk::parse(&with("\n")).is_ok());
}

#[test]
fn each_bad_file_is_refused_in_a_sentence_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    let start = |path: &Path| format!("cannot use the secret file {}: ", path.display());
    let refused = |text: &[u8], mode| {
        write(&path, text, mode);
        let sentence = sentence(Psk::from_file(&path));
        let rest = sentence.strip_prefix(&start(&path)).expect("the file is named");
        rest.to_owned()
    };
    let no_digits = "it is not 64 hexadecimal digits and at most a newline; make one with `cci key new`";
    for text in [&b""[..], b"short", &[b'0'; 63], &[b'0'; 65], &[b'0'; 100_000], &[0xff; 64]] {
        assert_eq!(refused(text, 0o600), no_digits);
    }
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o666] {
        let expected = format!("its mode {mode:04o} lets others use it; chmod 600 it");
        assert_eq!(refused(DIGITS.as_bytes(), mode), expected);
    }
    let gone = folder.path().join("gone");
    let expected = "No such file or directory (os error 2); name another file, or make one with `cci key new`";
    assert_eq!(sentence(Psk::from_file(&gone)), start(&gone) + expected);
    let expected = "it is no regular file; name a regular file";
    assert_eq!(sentence(Psk::from_file(folder.path())), start(folder.path()) + expected);
    let null = Path::new("/dev/null");
    assert_eq!(sentence(Psk::from_file(null)), start(null) + expected);
}

/// Nobody writes to the pipe: opening it must not wait.
#[test]
fn a_pipe_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe");
    assert!(sentence(Psk::from_file(&pipe)).ends_with("it is no regular file; name a regular file"));
}

#[test]
fn a_file_is_this_users_or_roots() {
    assert!(judge_owner(1000, 1000).is_ok() && judge_owner(0, 1000).is_ok());
    let fault = judge_owner(1001, 1000).expect_err("another user");
    let expected = "cannot use the secret file /s: user 1001 owns it; chown it to this user or to root";
    assert_eq!(SecretError::of(Path::new("/s"), fault).to_string(), expected);
    assert!(judge_owner(1000, 0).is_err(), "root reads no file that a user may write");
}

/// As Kubernetes mounts secrets: a link to a folder that is exchanged, and read-only files.
#[test]
fn a_link_is_followed_and_the_file_behind_it_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    write(&real, DIGITS.as_bytes(), 0o400);
    symlink(&real, &link).expect("a link");
    let secret = Psk::from_file(&link).expect("a secret");
    assert!(secret.is_same(&Psk::parse(DIGITS).expect("a secret")).expect("here"));
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o444)).expect("a mode");
    assert!(sentence(Psk::from_file(&link)).ends_with("its mode 0444 lets others use it; chmod 600 it"));
}

#[test]
fn a_new_file_is_private_and_never_in_place_of_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new").join("cci").join("secret");
    let made = Psk::write_new(&path).expect("written");
    let text = std::fs::read(&path).expect("a file");
    assert!(text.len() == 65 && text.ends_with(b"\n"));
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
    assert!(Psk::from_file(&path).expect("a secret").is_same(&made).expect("here"));

    let exists =
        format!("cannot write the secret file {}: it exists; remove it first, or name another file", path.display());
    assert_eq!(sentence(Psk::write_new(&path)), exists);
    assert_eq!(std::fs::read(&path).expect("a file"), text, "it is as it was");
    let link = folder.path().join("link");
    symlink(folder.path().join("nowhere"), &link).expect("a link");
    assert!(sentence(Psk::write_new(&link)).ends_with("it exists; remove it first, or name another file"));
    let below = path.join("file");
    let sentence = sentence(Psk::write_new(&below));
    assert!(sentence.ends_with("; name a file in a folder of this user"), "{sentence}");
}

#[test]
fn no_sentence_or_print_shows_a_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    write(&path, format!("{DIGITS}77").as_bytes(), 0o600);
    let error = Psk::from_file(&path).expect_err("too long");
    let secret = Psk::parse(DIGITS).expect("a secret");
    let prints = format!("{error} {error:?} {secret:?} {:?}", Psk::parse("4455 6677").expect_err("no secret"));
    assert!(!prints.contains("4455") && !prints.contains("68, 85"), "{prints}");
}

#[test]
fn a_label_is_of_its_secret_alone_and_known() {
    let label = |byte| Psk::from_bytes(&[byte; KEY]).expect("memory").label().expect("here");
    assert_eq!(label(1), label(1));
    assert_ne!(label(1), label(2));
    // HMAC-SHA-256 of `cci lb` and 1, by `openssl mac`, under 32 bytes of 0x01.
    assert_eq!(label(1).to_string(), "f395eb0a");
}

#[test]
fn a_reset_token_is_of_its_endpoint_and_connection_alone() {
    let token = |byte, endpoint: &[u8], identifiers| {
        Psk::from_bytes(&[byte; KEY]).expect("memory").reset_token(endpoint, identifiers).expect("here")
    };
    let right = token(1, b"host:1", [5, 6]);
    assert_eq!(right, token(1, b"host:1", [5, 6]), "the same after a restart");
    let others = [
        token(2, b"host:1", [5, 6]),
        token(1, b"host:2", [5, 6]),
        token(1, b"host:1", [6, 5]),
        token(1, b"host:1", [5, 7]),
    ];
    assert!(others.iter().all(|other| *other != right));
}

/// An environment of these variables, and a folder with a secret in each place.
struct Places {
    folder: tempfile::TempDir,
}

impl Places {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let places = Self { folder };
        for (at, name) in ["key", "variable", "xdg/cci/secret", "home/.config/cci/secret"].into_iter().enumerate() {
            let path = places.path(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            write(&path, format!("{at}").repeat(64).as_bytes(), 0o600);
        }
        places
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn search(
        &self,
        given: Option<Given<'_>>,
        job: Option<Psk>,
        variables: &[(&str, PathBuf)],
    ) -> Result<Option<Origin>, SecretError> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        Ok(search_in(given, job, variable)?.map(|found| found.origin))
    }
}

#[test]
fn the_first_place_with_a_secret_counts() {
    let places = Places::new();
    let job = || Some(Psk::from_bytes(&[9; KEY]).expect("memory"));
    let all = [
        ("CCI_SECRET_FILE", places.path("variable")),
        ("XDG_CONFIG_HOME", places.path("xdg")),
        ("HOME", places.path("home")),
    ];
    let search = |given, job, variables| places.search(given, job, variables).expect("usable").expect("found");
    let key = places.path("key");
    assert_eq!(search(Some(Given::Digits(DIGITS)), job(), &all), Origin::Digits);
    assert_eq!(search(Some(Given::File(&key)), job(), &all), Origin::File(key.clone()));
    assert_eq!(search(None, job(), &all), Origin::Variable(places.path("variable")));
    assert_eq!(search(None, job(), &all[1..]), Origin::Job);
    assert_eq!(search(None, None, &all[1..]), Origin::Home(places.path("xdg/cci/secret")));
    let home = Origin::Home(places.path("home/.config/cci/secret"));
    assert_eq!(search(None, None, &all[2..]), home);
    let relative = [("XDG_CONFIG_HOME", PathBuf::from("relative")), all[2].clone()];
    assert_eq!(search(None, None, &relative), home, "a relative path is none");
    let empty = [("CCI_SECRET_FILE", PathBuf::new()), all[2].clone()];
    assert_eq!(search(None, None, &empty), home);
    assert!(places.search(None, None, &[]).expect("nothing is wrong").is_none());
}

#[test]
fn what_is_named_and_unusable_is_an_error_and_never_passed_over() {
    let places = Places::new();
    let home = ("HOME", places.path("home"));
    let gone = places.path("gone");
    let fails = |given, variables: &[_]| places.search(given, None, variables).is_err();
    assert!(fails(Some(Given::File(&gone)), std::slice::from_ref(&home)));
    assert!(fails(Some(Given::Digits("a passphrase")), std::slice::from_ref(&home)));
    assert!(fails(None, &[("CCI_SECRET_FILE", gone.clone()), home.clone()]));
    let own = places.path("home/.config/cci/secret");
    write(&own, DIGITS.as_bytes(), 0o644);
    assert!(fails(None, std::slice::from_ref(&home)), "readable by others");
    std::fs::remove_file(own).expect("removed");
    assert!(!fails(None, std::slice::from_ref(&home)), "the user has none");
    assert!(!fails(None, &[("HOME", places.path("key"))]), "a home that is no folder");
}

#[test]
fn a_place_prints_as_a_noun() {
    let path = PathBuf::from("/run/s");
    let nouns =
        [Origin::Digits, Origin::File(path.clone()), Origin::Variable(path.clone()), Origin::Job, Origin::Home(path)];
    let nouns = nouns.map(|origin| origin.to_string());
    assert_eq!(
        nouns,
        ["the key secret", "the key secret_file (/run/s)", "CCI_SECRET_FILE (/run/s)", "the job", "/run/s"]
    );
}
