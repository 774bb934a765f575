//! The `soc` command: bad input is one line on standard error and exit code 2; good input passes the guest's exit code on.

mod guest;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn soc(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_soc")).args(arguments).output().expect("the command was built with this test")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the target directory has a plain name")
}

/// A file in the tests' own directory.
fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).expect("the target directory can be written");
    path
}

#[track_caller]
fn refused(arguments: &[&str], hint: &str) {
    let output = soc(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
    assert!(message.starts_with("soc: ") && message.contains(hint), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty());
}

/// A minimal executable: `code` at `address`, entered there.
fn elf(address: u64, memory_size: u64, code: &[u32]) -> Vec<u8> {
    let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend([2, 0, 243, 0, 1, 0, 0, 0]);
    out.extend(address.to_le_bytes());
    out.extend(64u64.to_le_bytes());
    out.extend([0; 12]);
    out.extend([64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
    out.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for word in [120, address, address, code.len() as u64, memory_size.max(code.len() as u64), 4] {
        out.extend(word.to_le_bytes());
    }
    out.extend(code);
    out
}

/// lui a0, 0x100; lui a1, 0x2a3; addi a1, a1, 0x333; sw a1, 0(a0): ends the machine with code 42.
const EXIT_42: [u32; 4] = [0x0010_0537, 0x002a_35b7, 0x3335_8593, 0x00b5_2023];

#[test]
fn exit_code_of_the_guest() {
    let path = file("exit.elf", &elf(0x8000_0000, 0, &EXIT_42));
    for arguments in [&["run", text(&path)][..], &["run", "--bare", text(&path), "--mode", "timed", "--harts", "8"]] {
        assert_eq!(soc(arguments).status.code(), Some(42), "{arguments:?}");
    }
}

#[test]
fn bad_files() {
    refused(&["run", "no-such-file.elf"], "no such file");
    refused(&["run", text(Path::new(env!("CARGO_TARGET_TMPDIR")))], "cannot be read");
    refused(&["run", text(&file("text.elf", b"hello"))], "not a readable ELF");
    refused(&["run", text(&file("empty.elf", b""))], "not a readable ELF");
    let good = elf(0x8000_0000, 0, &EXIT_42);
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    refused(&["run", text(&file("class.elf", &with(4, 1)))], "32-bit");
    refused(&["run", text(&file("order.elf", &with(5, 2)))], "big-endian");
    refused(&["run", text(&file("machine.elf", &with(18, 62)))], "machine number 62");
    refused(&["run", text(&file("object.elf", &with(16, 1)))], "object file");
    refused(&["run", text(&file("nothing.elf", &with(64, 2)))], "no loadable segment");
    for length in [10, 30, 63, 100, 130] {
        refused(&["run", text(&file(&format!("truncated-{length}.elf"), &good[..length]))], "ELF");
    }
    refused(&["run", text(&file("low.elf", &elf(0x1000, 0, &EXIT_42)))], "outside RAM");
    refused(&["run", text(&file("high.elf", &elf(0x8000_0000, 1 << 40, &EXIT_42)))], "outside RAM");
    refused(&["run", text(&file("full.elf", &elf(0x8000_0000, 128 << 20, &EXIT_42)))], "device tree");
    let large = file("large.elf", &elf(0x8000_0000, 8 << 20, &EXIT_42));
    refused(&["run", text(&large), "--memory", "4M"], "outside RAM");
}

/// Whatever one byte of the header says, the answer is a run or one line, never a backtrace.
#[test]
fn damaged_headers() {
    let good = elf(0x8000_0000, 0, &EXIT_42);
    for at in 0..120 {
        let mut bytes = good.clone();
        bytes[at] ^= 0x81;
        let path = file("damaged.elf", &bytes);
        let output = soc(&["run", text(&path), "--max-cycles", "1000"]);
        let message = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        assert!(!message.contains("panicked"), "byte {at}: {message}");
        assert!(
            matches!(code, Some(42 | 124 | 125)) || (code == Some(2) && message.lines().count() == 1),
            "byte {at}: {message}"
        );
    }
}

#[test]
fn bad_parameters() {
    let path = file("parameters.elf", &elf(0x8000_0000, 0, &EXIT_42));
    let image = text(&path);
    refused(&["run", image, "--harts", "0"], "1 to 8");
    refused(&["run", image, "--harts", "9"], "1 to 8");
    refused(&["run", image, "--harts", "two"], "--harts");
    refused(&["run", image, "--mode", "slow"], "fast, timed");
    refused(&["run", image, "--memory", "lots"], "not a size");
    refused(&["run", image, "--memory", "1000"], "multiple of 4096");
    refused(&["run", image, "--memory", "1024G"], "multiple of 4096");
    refused(&["run", image, "--net", "token-ring"], "--net");
    refused(&["run", image, "--net", "token-ring,echo"], "--net");
    refused(&["run", image, "--disk", "no-such.img"], "no-such.img");
    refused(&["run", image, "--disk", text(&file("odd.img", &[0; 513]))], "whole sectors");
    let disk = file("one-sector.img", &[0; 512]);
    refused(&[&["run", image][..], &["--disk", text(&disk)].repeat(8)].concat(), "at most 7");
    refused(&["run", image, "--pcap", "x.pcap"], "--net");
    refused(&["run", image, "--rl", "99999999"], "at most 10000");
    refused(&["run", image, "--bare", image], "--bare");
    refused(&["run", image, "--dump-dtb", "no/such/directory/x.dtb"], "--dump-dtb");
    refused(&["run", "--kernel", image], "--firmware");
    refused(&["run", image, "--firmware", image], "--firmware");
    refused(&["run", image, "--interactive", "--input", image], "--input");
    refused(&["run", "--firmware", "no-such-file"], "no such file");
    refused(&["run", "--firmware", image, "--kernel", image], "link them apart");
    refused(&["run", "--bare", image, "--signature", "x"], "begin_signature");
    refused(&["run"], "IMAGE.elf");
    refused(&["walk"], "walk");
    refused(&[], "soc");
}

#[test]
fn help_is_everywhere() {
    for arguments in [&["--help"][..], &["run", "--help"], &["restore", "--help"], &["--version"]] {
        let output = soc(arguments);
        assert!(output.status.success() && !output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn limits_and_deadlocks_name_the_place() {
    // j . at RAM base; wfi; j . - 4
    let spin = file("spin.elf", &elf(0x8000_0000, 0, &[0x0000_006f]));
    let output = soc(&["run", text(&spin), "--max-cycles", "1000"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(124));
    assert!(message.contains("hart 0: M-mode, running, pc 0x80000000"), "{message}");
    let idle = file("idle.elf", &elf(0x8000_0000, 0, &[0x1050_0073, 0xffdf_f06f]));
    let output = soc(&["run", text(&idle), "--harts", "2"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125));
    assert!(message.contains("hart 1: M-mode, waiting"), "{message}");
    // An illegal instruction with no trap vector.
    let lost = file("lost.elf", &elf(0x8000_0000, 0, &[0]));
    let output = soc(&["run", text(&lost)]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125));
    assert!(message.contains("trap handler cannot be fetched"), "{message}");
}

#[test]
fn device_tree_without_an_image() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("board.dtb");
    assert!(soc(&["run", "--harts", "3", "--dump-dtb", text(&path)]).status.success());
    let blob = fs::read(&path).expect("the command wrote it");
    assert_eq!(blob[..4], [0xD0, 0x0D, 0xFE, 0xED]);
}

/// Repeats what it receives until a "q" has come: lui a0, 0x10000; lbu a1, 5(a0); andi a1, a1, 1; beqz a1, .-8; lbu a2, 0(a0);
/// sb a2, 0(a0); li a3, 'q'; bne a2, a3, .-24.
const ECHO: [u32; 8] =
    [0x1000_0537, 0x0055_4583, 0x0015_f593, 0xfe05_8ce3, 0x0005_4603, 0x00c5_0023, 0x0710_0693, 0xfed6_14e3];

#[test]
fn what_is_typed_reaches_the_serial_port() {
    let path = file("echo.elf", &elf(0x8000_0000, 0, &[&ECHO[..], &EXIT_42].concat()));
    let mut child = Command::new(env!("CARGO_BIN_EXE_soc"))
        .args(["run", "--interactive", "--bare", text(&path)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command was built with this test");
    let mut keyboard = child.stdin.take().expect("it is piped");
    let mut screen = child.stdout.take().expect("it is piped");
    // No escape on a pipe: Ctrl-A and x are bytes like others. The answer is shown without waiting for a line end.
    keyboard.write_all(b"prompt\x01x").expect("it runs until it is told to end");
    let mut shown = [0; 8];
    screen.read_exact(&mut shown).expect("the guest answers");
    assert_eq!(&shown, b"prompt\x01x");
    keyboard.write_all(b"q").expect("it still runs");
    assert_eq!(child.wait().expect("it is our child").code(), Some(42));
    // Bytes that are never read, and an end of the input, end nothing.
    let output = soc(&["run", "-i", "--bare", text(&path), "--max-cycles", "1000000"]);
    assert_eq!(output.status.code(), Some(124));
}

#[test]
fn a_bare_program_talks_to_the_host_and_leaves_a_signature() {
    let program = guest::program("htif");
    let signature = Path::new(env!("CARGO_TARGET_TMPDIR")).join("signature.txt");
    for mode in ["fast", "timed"] {
        let output = soc(&["run", "--bare", text(&program), "--mode", mode, "--signature", text(&signature)]);
        assert_eq!(output.status.code(), Some(42), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\nlower first\nupper first\nsystem call\n");
        let written = fs::read_to_string(&signature).expect("the command wrote it");
        assert_eq!(written, "01234567\n89abcdef\n0000000c\nffffffff\n00000005\n00000006\n00000007\n");
        fs::remove_file(&signature).expect("it is there");
    }
}

#[test]
fn a_saved_machine_is_restored() {
    let program = guest::program("contention");
    let path = |name: &str| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (by_cycle, by_text, late) = (path("cycle.snap"), path("text.snap"), path("late.snap"));
    let at = |path: &Path, moment: &str| format!("--snapshot={}@{moment}", text(path));
    let saved = soc(&[
        &["run", "--bare", text(&program), "--harts", "4", "--mode", "timed", "--digest"][..],
        &[&at(&by_cycle, "60000"), &at(&by_text, "AMO PASS"), &at(&late, "no such line")],
    ]
    .concat());
    let message = String::from_utf8_lossy(&saved.stderr).into_owned();
    assert!(saved.status.success() && message.contains("late.snap: not written"), "{message}");
    let digest = message.lines().find(|line| line.starts_with("digest ")).expect("it was asked for");
    for (snapshot, rest) in [(&by_cycle, ""), (&by_text, "lock PASS\n")] {
        let restored = soc(&["restore", text(snapshot), "--digest"]);
        assert_eq!(String::from_utf8_lossy(&restored.stderr).trim_end(), digest);
        let console = String::from_utf8_lossy(&restored.stdout).into_owned();
        assert!(restored.status.success() && console.ends_with("lock PASS\n") && console.ends_with(rest), "{console}");
    }
    assert_eq!(soc(&["restore", text(&by_cycle), "--max-cycles", "60500"]).status.code(), Some(124));
    let good = fs::read(&by_cycle).expect("the command wrote it");
    refused(&["restore", text(&file("cut.snap", &good[..good.len() / 2]))], "cut off");
    refused(&["restore", text(&program)], "not a snapshot");
    refused(&["restore", "no-such.snap"], "no such file");
    refused(&["run", text(&program), "--snapshot", "x"], "FILE@CYCLE");
    refused(
        &["run", "--bare", text(&program), "--harts", "4", "--net", "nat", "--snapshot", "x.snap@1"],
        "host's network",
    );
}

#[test]
fn digest_and_statistics() {
    let program = guest::program("conformance");
    let run = || soc(&["run", "--bare", text(&program), "--harts", "2", "--mode", "timed", "--stats", "--digest"]);
    let (first, second) = (run(), run());
    assert!(first.status.success());
    let message = String::from_utf8_lossy(&first.stderr).into_owned();
    assert!(message.contains("digest ") && message.contains("user-interrupts"), "{message}");
    assert_eq!(first.stderr, second.stderr);
    assert_eq!(first.stdout, second.stdout);
}
