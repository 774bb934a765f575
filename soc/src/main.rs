//! The `soc` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    soc::cli::main()
}
