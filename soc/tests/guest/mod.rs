//! Builds the programs of `soc/guest` and runs them on a machine in this process.

#![allow(dead_code, reason = "each test file uses its part of this module")]

use soc::{Config, Machine, Outcome};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::OnceLock;

/// Path of a guest program, built on first use. The target directory is its own, so that no lock of an outer cargo is waited for.
pub fn program(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let directory = BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guest-tests");
        let status = Command::new(env!("CARGO"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["build", "--quiet", "--release", "--package", "soc-guest"])
            .args(["--target", "riscv64imac-unknown-none-elf", "--target-dir"])
            .arg(&target)
            // Flags for host builds (loom, sanitizers) must not reach the guest.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .status()
            .expect("cargo can be started: it runs this test");
        assert!(status.success(), "building soc-guest failed");
        target.join("riscv64imac-unknown-none-elf/release")
    });
    directory.join(name)
}

/// What a run left.
pub struct Run {
    pub outcome: Outcome,
    pub console: String,
    pub digest: [u8; 32],
}

/// Runs a guest program to its end.
pub fn run(name: &str, config: Config) -> Run {
    let elf = std::fs::read(program(name)).expect("the program was just built");
    let mut machine = Machine::new(config).expect("a good configuration");
    machine.load_elf(&elf).expect("a good program");
    let console = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&console);
    machine.set_console(move |bytes| sink.borrow_mut().extend_from_slice(bytes));
    let outcome = machine.run();
    let console = String::from_utf8_lossy(&console.borrow()).into_owned();
    Run { outcome, console, digest: machine.digest() }
}
