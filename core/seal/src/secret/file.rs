//! Files with a secret. The digits go straight to and from the arena.

use super::error::{Fault, SecretError};
use super::psk::{DIGITS, Psk};
use cci_mem::descriptors;
use cci_mem::secrets::Secret;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Bytes that are read: a few more than a secret has, so that a longer file is noticed.
const ROOM: usize = DIGITS + 16;

/// Rights of anybody but the owner.
const OTHERS: u32 = 0o077;

impl Psk {
    /// Reads a file with a secret. It is a regular file of this user or root, which nobody else may
    /// read or write; a symbolic link is followed, and the file behind it judged.
    ///
    /// # Errors
    ///
    /// One sentence says what is wrong with the file and what to do. It never shows the contents.
    ///
    /// # Example
    ///
    /// ```
    /// use cci_seal::Psk;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("secret");
    /// let made = Psk::write_new(&path)?;
    /// assert!(Psk::from_file(&path)?.is_same(&made)?);
    /// assert!(Psk::write_new(&path).is_err(), "it overwrites nothing");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_file(path: &Path) -> Result<Self, SecretError> {
        read(path)
    }

    /// Draws a secret and writes it to a new file that only this user may read. Folders that are
    /// missing are made, for this user alone.
    ///
    /// # Errors
    ///
    /// The file exists, or cannot be written.
    pub fn write_new(path: &Path) -> Result<Self, SecretError> {
        write_new(path)
    }
}

fn read(path: &Path) -> Result<Psk, SecretError> {
    let refused = |fault| SecretError::of(path, fault);
    let unreadable = |error: Errno| refused(Fault::Unreadable(error.into()));
    // A pipe without a writer is opened at once, and refused then.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let opened = rustix::fs::open(path, flags, Mode::empty()).and_then(descriptors::above_standard);
    let file = opened.map_err(unreadable)?;
    judge(&file).map_err(refused)?;
    let mut text = Secret::<[u8; ROOM]>::zeroed().map_err(unreadable)?;
    let text = text.get_mut().map_err(|wiped| refused(Fault::Refused(wiped.into())))?;
    let len = fill(&file, text).map_err(unreadable)?;
    let secret = Psk::of_digits(&text[..len]).ok_or_else(|| refused(Fault::Digits))?;
    secret.map_err(|why| refused(Fault::Refused(why)))
}

/// Judges the opened file, which nobody can exchange any more.
fn judge(file: &OwnedFd) -> Result<(), Fault> {
    let status = rustix::fs::fstat(file).map_err(|error| Fault::Unreadable(error.into()))?;
    if !FileType::from_raw_mode(status.st_mode).is_file() {
        return Err(Fault::NotRegular);
    }
    judge_owner(status.st_uid, rustix::process::geteuid().as_raw())?;
    let mode = status.st_mode & 0o7777;
    if mode & OTHERS != 0 { Err(Fault::Mode(mode)) } else { Ok(()) }
}

pub(super) fn judge_owner(owner: u32, user: u32) -> Result<(), Fault> {
    if owner == user || owner == 0 { Ok(()) } else { Err(Fault::Owner(owner)) }
}

/// Reads until the end of the file or of the room.
fn fill(file: &OwnedFd, room: &mut [u8]) -> rustix::io::Result<usize> {
    let mut len = 0;
    while len < room.len() {
        match rustix::io::read(file, &mut room[len..]) {
            Ok(0) => break,
            Ok(count) => len += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

fn write_new(path: &Path) -> Result<Psk, SecretError> {
    let refused = |fault| SecretError::of(path, fault);
    let secret = Psk::fresh().map_err(|why| refused(Fault::Refused(why)))?;
    let digits = secret.digits().map_err(|why| refused(Fault::Refused(why)))?;
    let digits = digits.get().map_err(|wiped| refused(Fault::Refused(wiped.into())))?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| refused(Fault::Unwritable(error)))?;
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(|error| {
        refused(if error == Errno::EXIST { Fault::Exists } else { Fault::Unwritable(error.into()) })
    })?;
    let written = put(&file, digits).and_then(|()| put(&file, b"\n")).and_then(|()| rustix::fs::fsync(&file));
    written.map_err(|error| {
        // It was made here, and is of no use.
        let _ = rustix::fs::unlink(path);
        refused(Fault::Unwritable(error.into()))
    })?;
    Ok(secret)
}

fn put(file: &OwnedFd, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
