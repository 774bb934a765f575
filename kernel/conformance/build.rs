//! Passes the linker script to the guest build of the root server.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=guest.ld");
    // Cargo always sets both for a build script.
    let os = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let here = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    if os == "none" {
        println!("cargo::rustc-link-arg-bins=-T{here}/guest.ld");
    }
}
