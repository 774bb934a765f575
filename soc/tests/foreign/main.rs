//! Other people's software, unmodified: OpenSBI and U-Boot as Debian's packages `opensbi` and `u-boot-qemu` install them reach
//! their banner and prompt, and Debian's Linux its shell ([`linux`]). Where a file is not installed its test says so in one line and
//! passes.

mod cpio;
mod linux;

use std::io::Write;
use std::path::Path;
use std::process::Command;

const OPENSBI: &str = "/usr/lib/riscv64-linux-gnu/opensbi/generic";
const U_BOOT: &str = "/usr/lib/u-boot";

/// Says why a test does nothing. Not by the print macros: the test runner hides those of a test that passes.
fn skip(reason: &str) {
    // In one piece: tests run side by side.
    let _ = std::io::stderr().write_all(format!("SKIPPED: {reason}\n").as_bytes());
}

/// Boots with `options`, paths of needed files among them, and gives what the console showed; none if a file is not there.
fn boot(options: &[&str], max_cycles: &str) -> Option<String> {
    if let Some(missing) = options.iter().find(|option| option.starts_with('/') && !Path::new(option).exists()) {
        skip(&format!("{missing} is not installed (Debian packages opensbi and u-boot-qemu)"));
        return None;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_soc"))
        .args(["run", "--max-cycles", max_cycles])
        .args(options)
        .output()
        .expect("the command was built with this test");
    let console = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_ne!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    Some(format!("{console}\n{}", String::from_utf8_lossy(&output.stderr)))
}

#[track_caller]
fn shows(console: Option<String>, expected: &[&str]) {
    let Some(console) = console else { return };
    for text in expected {
        assert!(console.contains(text), "no {text:?} in:\n{console}");
    }
}

#[test]
fn opensbi_starts_from_every_file_of_its_package() {
    for name in ["fw_jump.bin", "fw_jump.elf", "fw_dynamic.bin", "fw_dynamic.elf"] {
        let firmware = format!("{OPENSBI}/{name}");
        // The payload: a supervisor that prints "!" by the legacy call and spins.
        let payload = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.payload"));
        let code: [u32; 4] = [0x0210_0513, 0x0010_0893, 0x0000_0073, 0x0000_006f];
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        std::fs::write(&payload, bytes).expect("the target directory can be written");
        let payload = payload.to_str().expect("the target directory has a plain name");
        let console = boot(&["--firmware", &firmware, "--kernel", payload, "--harts", "2"], "20000000");
        shows(console, &["OpenSBI v", "Platform Name", "Wakeline virtual SoC", "\n!"]);
    }
}

#[test]
fn u_boot_as_machine_mode_firmware_reaches_its_prompt() {
    let firmware = format!("{U_BOOT}/qemu-riscv64/u-boot.bin");
    let typed = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typed.txt");
    std::fs::write(&typed, "echo wake${nothing}line\r").expect("the target directory can be written");
    let typed = typed.to_str().expect("the target directory has a plain name");
    let options = ["--firmware", &firmware, "--input", typed, "--input-at", "450000000"];
    shows(boot(&options, "550000000"), &["U-Boot 20", "DRAM:  128 MiB", "\n=> ", "\nwakeline"]);
}

#[test]
fn u_boot_under_opensbi_reaches_its_prompt() {
    let kernel = format!("{U_BOOT}/qemu-riscv64_smode/u-boot.bin");
    for name in ["fw_jump.bin", "fw_dynamic.bin"] {
        let firmware = format!("{OPENSBI}/{name}");
        let console = boot(&["--firmware", &firmware, "--kernel", &kernel], "500000000");
        shows(console, &["OpenSBI v", "U-Boot 20", "\n=> "]);
    }
}
