//! Hands the linker script to the guest build of the binary; the host build needs none.

fn main() {
    const SCRIPT: &str = "src/arch/riscv64/kernel.ld";
    println!("cargo::rerun-if-changed={SCRIPT}");
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        let dir = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts");
        println!("cargo::rustc-link-arg-bin=kernel=-T{dir}/{SCRIPT}");
    }
}
