//! Command line of `soc`: reads options and files, builds a machine, runs it, reports. Every bad input ends with one line on
//! standard error and exit code 2.
//!
//! [`run`] makes a machine out of files, [`restore`] out of a snapshot; [`watch`] holds what both can do with it. [`pair`] makes two.

mod pair;
mod restore;
mod run;
mod watch;

use clap::{Parser, Subcommand};
use pair::Two;
use restore::Restore;
use run::Run;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Exit code for a refused input.
const REFUSED: u8 = 2;

#[derive(Parser)]
#[command(name = "soc", version, about = "The deterministic virtual SoC: a RISC-V machine with user interrupts", long_about = None)]
struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Run an image or a bare executable until the guest ends the machine
    Run(Box<Run>),
    /// Run two machines whose NICs are at the two ends of one cable
    Pair(Box<Two>),
    /// Go on with a machine that soc run --snapshot has saved
    Restore(Box<Restore>),
}

/// Does what the process was asked to.
pub fn main() -> ExitCode {
    perform(std::env::args_os())
}

/// Does what `arguments` ask, name of the command first: `images run` hands its own over.
pub fn perform(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command = match Command::try_parse_from(arguments) {
        Ok(command) => command,
        Err(error) if error.use_stderr() => return refuse(&one_line(&error.to_string())),
        Err(help) => {
            // Help and version go to standard output; a closed pipe is not worth a word.
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    let done = match command.action {
        Action::Run(run) => run.go(),
        Action::Restore(restore) => restore.go(),
        Action::Pair(two) => two.go(),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(reason) => refuse(&reason),
    }
}

fn refuse(reason: &str) -> ExitCode {
    eprintln!("soc: {reason}");
    ExitCode::from(REFUSED)
}

/// The parser's message in one line, without its own prefix.
fn one_line(message: &str) -> String {
    let words = message.lines().take_while(|line| !line.starts_with("Usage:")).map(str::trim);
    let text = words.filter(|line| !line.is_empty() && !line.starts_with("For more")).collect::<Vec<_>>().join(" ");
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    format!("{text}: see soc --help")
}

fn cannot_write(path: &Path, error: &std::io::Error, option: &str) -> String {
    format!("{}: cannot be written ({error}): choose another {option}", path.display())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {}", path.display(), cannot_read(&error)))
}

fn cannot_read(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file: build the image first or check the path".to_owned(),
        _ => format!("cannot be read ({error}): check the file"),
    }
}
