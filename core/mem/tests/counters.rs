//! The page of counters: where it is, and what others can do to it.
#![cfg(not(loom))]

use cci_mem::counters::{Home, LEN, MAGIC, NAME, Page, VERSION, WAITS};
use cci_mem::sync::{AtomicU64, Ordering};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Descriptors of this process that are pages with this URI.
fn published(uri: &str) -> Vec<PathBuf> {
    let name = format!("/memfd:{NAME} (deleted)");
    let all = std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
    let mut found = Vec::new();
    for entry in all {
        let path = entry.path();
        if std::fs::read_link(&path).is_ok_and(|target| target.as_os_str() == name.as_str())
            && try_read(&path).is_ok_and(|bytes| Home::copy_of(&bytes).is_some_and(|page| page.uri.get() == uri))
        {
            found.push(path);
        }
    }
    found
}

fn read(path: &PathBuf) -> Vec<u8> {
    try_read(path).expect("readable")
}

/// Fails where another test has closed the descriptor meanwhile.
fn try_read(path: &PathBuf) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; LEN + 1];
    let len = File::open(path)?.read_at(&mut bytes, 0)?;
    bytes.truncate(len);
    Ok(bytes)
}

fn value(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

#[test]
fn what_was_counted_before_and_after_publishing_is_found_through_the_descriptor() {
    let mut home = Home::new().expect("memory");
    home.uri.set("sm://test/1");
    home.transport.set("sm");
    home.on_sent(8);
    home.on_sent(56);
    home.on_sent(57);
    assert!(!home.is_published() && published("sm://test/1").is_empty());
    home.publish().expect("a memfd");
    assert!(home.is_published());
    home.on_received(1000);
    home.on_rma(1 << 40);
    let files = published("sm://test/1");
    assert_eq!(files.len(), 1);
    let copy = Home::copy_of(&read(&files[0])).expect("a page");
    assert_eq!(copy.head(), (MAGIC, VERSION, u32::try_from(LEN).expect("small")));
    assert_eq!((copy.pid(), copy.transport.get().as_str()), (std::process::id(), "sm"));
    assert_eq!((value(&copy.sent), value(&copy.sent_long_bytes)), (3, 57));
    assert_eq!((value(&copy.received), value(&copy.received_long_bytes)), (1, 1000));
    assert_eq!((value(&copy.rma), value(&copy.rma_bytes)), (1, 1 << 40));
    drop(home);
    assert!(published("sm://test/1").is_empty(), "the file goes with the page");
}

#[test]
fn others_can_neither_write_nor_cut_the_file() {
    let mut home = Home::new().expect("memory");
    home.uri.set("sm://test/2");
    home.publish().expect("a memfd");
    let files = published("sm://test/2");
    let file = OpenOptions::new().read(true).write(true).open(&files[0]).expect("open");
    assert!(file.write_at(b"x", 0).is_err());
    assert!(file.set_len(0).is_err() && file.set_len(2 * LEN as u64).is_err());
    let hole = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    assert!(rustix::fs::fallocate(&file, hole, 0, LEN as u64).is_err());
    home.on_sent(1);
    assert_eq!(Home::copy_of(&read(&files[0])).map(|page| value(&page.sent)), Some(1));
}

#[test]
fn text_is_cut_and_loses_what_could_move_a_cursor() {
    let page = Home::new().expect("memory");
    page.uri.set("\u{1b}[2J\u{e9}");
    assert_eq!(page.uri.get(), "?[2J?");
    page.uri.set("x".repeat(500));
    assert_eq!(page.uri.get(), "x".repeat(192));
    page.uri.set("short");
    assert_eq!(page.uri.get(), "short", "what was there is gone");
    page.transport.set("a name that is longer than that");
    assert_eq!(page.transport.get().len(), 16);
}

#[test]
fn any_bytes_are_a_page_and_fewer_are_none() {
    for byte in [0, 0x55, 0xff] {
        let page = Home::copy_of(&[byte; LEN]).expect("a page");
        assert_eq!(page.head().0, u64::from_ne_bytes([byte; 8]));
        assert!(page.uri.get().len() <= 3 * 192);
        assert_eq!(page.waits.iter().filter(|wait| wait.get().is_some()).count(), if byte == 0 { 0 } else { WAITS });
    }
    assert!(Home::copy_of(&[0; LEN - 1]).is_none());
}

#[test]
fn an_entry_says_whether_it_is_being_written() {
    let page: &Page = &Home::new().expect("memory");
    let wait = &page.waits[3];
    assert_eq!((wait.generation(), wait.get()), (0, None));
    wait.show((2, 5, 7), "sm://1/0");
    let shown = wait.get().expect("somebody");
    assert_eq!((shown.kind, shown.since, shown.operations, shown.peer.as_str()), (2, 5, 7, "sm://1/0"));
    assert_eq!(wait.generation(), 2);
    wait.clear();
    assert_eq!((wait.generation(), wait.get()), (4, None));
}
