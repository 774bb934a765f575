//! Hands the layout of programs to the guest builds of all binaries but the root task, which is loaded as one piece.

use std::env;
use std::fs;

fn main() {
    const SCRIPT: &str = "../userlib/program.ld";
    println!("cargo::rerun-if-changed={SCRIPT}");
    println!("cargo::rerun-if-changed=src/bin");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("none") {
        return;
    }
    let package = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts");
    for entry in fs::read_dir("src/bin").expect("the package has binaries") {
        let path = entry.expect("a folder that can be opened can be read").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("binaries have plain names");
        if name != "root-task" {
            println!("cargo::rustc-link-arg-bin={name}=-T{package}/{SCRIPT}");
        }
    }
}
