//! `cci key`: secrets for sealed connections.

use cci::{Context, Device};
use cci_report::{UserError, while_doing};
use cci_seal::Psk;
use cci_seal::secret::{default_path, search};
use clap::{Args, Subcommand};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The variable that names a file with a secret.
const VARIABLE: &str = "CCI_SECRET_FILE";
/// The variable that `cci run` gives to ranks.
const JOB: &str = "CCI_JOB_FD";

/// Arguments of `cci key`.
#[derive(Args, Debug)]
pub(crate) struct KeyArguments {
    #[command(subcommand)]
    command: KeyCommand,
}

/// What `cci key` does.
#[derive(Subcommand, Debug)]
enum KeyCommand {
    /// Draw a secret and write it to a new file that only this user may read
    New(NewArguments),
    /// Show the label of a secret; without a file, where this process finds its secret
    Show(ShowArguments),
}

#[derive(Args, Debug)]
struct NewArguments {
    /// The file, which must not exist; $XDG_CONFIG_HOME/cci/secret or ~/.config/cci/secret when
    /// absent
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct ShowArguments {
    /// The file
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the 64 digits of the secret instead, and nothing else
    #[arg(long)]
    secret: bool,
}

/// Makes or shows a secret.
pub(crate) fn key(arguments: &KeyArguments) -> Result<(), UserError> {
    match &arguments.command {
        KeyCommand::New(arguments) => new(arguments),
        KeyCommand::Show(arguments) if arguments.secret => show_digits(arguments),
        KeyCommand::Show(arguments) => show(arguments),
    }
}

fn new(arguments: &NewArguments) -> Result<(), UserError> {
    let path = arguments.file.clone().or_else(default_path);
    let path = path.ok_or_else(|| {
        UserError::new("no file is named, and there is no home folder; name a file: cci key new FILE")
    })?;
    let psk = Psk::write_new(&path).map_err(explained)?;
    let mut text = format!("wrote the secret {} to {}\n", label(&psk)?, path.display());
    text.push_str("only this user may read it; copy it to each host whose programs connect to each other\n");
    if Some(&path) != default_path().as_ref() {
        let _ = writeln!(text, "name it by the key secret_file of a device, or by {VARIABLE}");
    }
    put(text.as_bytes())
}

fn show(arguments: &ShowArguments) -> Result<(), UserError> {
    let text = match &arguments.file {
        Some(path) => format!("{}  {}\n", label(&Psk::from_file(path).map_err(explained)?)?, path.display()),
        None => places()?,
    };
    put(text.as_bytes())
}

fn show_digits(arguments: &ShowArguments) -> Result<(), UserError> {
    let psk = match &arguments.file {
        Some(path) => Psk::from_file(path).map_err(explained)?,
        None => {
            let found = search(None, None).map_err(explained)?;
            found.ok_or_else(|| UserError::new("there is no secret; make one with `cci key new`"))?.psk
        }
    };
    let digits = psk.digits().map_err(explained)?;
    put(digits.get().map_err(|wiped| explained(cci_seal::Refused::from(wiped)))?)?;
    put(b"\n")
}

/// A line for each place where a secret is searched, in this order, and the one that counts.
fn places() -> Result<String, UserError> {
    let context = Context::new().map_err(explained)?;
    let mut text = of_devices(context.devices());
    let variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = variable.as_deref().map_or_else(|| Ok("not set".into()), label_of)?;
    let _ = writeln!(text, "{state:<8}  {VARIABLE}{}", behind(variable.as_deref()));
    let is_in_job = std::env::var_os(JOB).is_some();
    if is_in_job {
        let _ = writeln!(text, "{:<8}  the job of `cci run` that this process belongs to", "not read");
    }
    let home = default_path();
    let state = match home.as_deref() {
        Some(path) if path.exists() => label_of(path)?,
        Some(_) => "missing".into(),
        None => "no home".into(),
    };
    let _ = writeln!(text, "{state:<8}  the file of the user{}", behind(home.as_deref()));
    text.push_str("devices without a key of their own use ");
    let found = search(None, None).map_err(explained)?;
    match found {
        _ if is_in_job && variable.is_none() => text.push_str("the secret of the job\n"),
        Some(found) => {
            let _ = writeln!(text, "{}, of {}", label(&found.psk)?, found.origin);
        }
        None => text.push_str("none: make one with `cci key new`\n"),
    }
    Ok(text)
}

/// A line for each device whose configuration has a secret.
fn of_devices(devices: &[Device]) -> String {
    let mut text = String::new();
    for device in devices {
        for (key, value) in &device.arguments {
            let psk = match key.as_str() {
                "secret" => Psk::parse(value),
                "secret_file" => Psk::from_file(value.as_ref()),
                _ => continue,
            };
            let shown = psk.map_err(|error| error.to_string()).and_then(|psk| label(&psk).map_err(|error| error.0));
            let _ = match shown {
                Ok(label) => writeln!(text, "{label:<8}  the key {key} of the device {}", device.name),
                Err(why) => writeln!(text, "{:<8}  the key {key} of the device {}: {why}", "unusable", device.name),
            };
        }
    }
    text
}

fn label_of(path: &Path) -> Result<String, UserError> {
    label(&Psk::from_file(path).map_err(explained)?)
}

fn label(psk: &Psk) -> Result<String, UserError> {
    psk.label().map(|label| label.to_string()).map_err(explained)
}

fn behind(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!(" ({})", path.display()))
}

fn explained(error: impl std::fmt::Display) -> UserError {
    UserError(error.to_string())
}

fn put(bytes: &[u8]) -> Result<(), UserError> {
    std::io::stdout().write_all(bytes).map_err(while_doing("cannot write what was asked for"))
}
