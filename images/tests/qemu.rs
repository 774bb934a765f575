//! Every job of `make qemu`, if QEMU is installed.

use images::Builder;
use images::qemu::{self, JOBS};
use std::io::Write;

#[test]
fn images_run_on_stock_qemu() {
    if qemu::version().is_none() {
        let missing = qemu::PROGRAM;
        // Not by the print macros: the test runner hides those of a test that passes.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: {missing} is not installed (Debian package qemu-system-misc or qemu-system-riscv); no image ran on QEMU's virt"
        );
        return;
    }
    let mut builder = Builder::new().unwrap_or_else(|error| panic!("{error}"));
    for job in JOBS {
        job.run(&mut builder).unwrap_or_else(|failure| panic!("{}: {failure}", job.name));
    }
}
