//! Hands the layout of programs to the guest build of the binaries; the host build needs none.

fn main() {
    const SCRIPT: &str = "../userlib/program.ld";
    println!("cargo::rerun-if-changed={SCRIPT}");
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        let package = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts");
        println!("cargo::rustc-link-arg-bins=-T{package}/{SCRIPT}");
    }
}
