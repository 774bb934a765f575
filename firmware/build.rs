//! Hands the linker script to the guest build of the binary; the host build needs none.

fn main() {
    println!("cargo::rerun-if-changed=firmware.ld");
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        let dir = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts");
        println!("cargo::rustc-link-arg-bin=firmware=-T{dir}/firmware.ld");
    }
}
