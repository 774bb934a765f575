//! seL4's answers on the machine: the root servers of `sel4-conformance`, which know nothing of Wakeline, in images configured as
//! seL4's test suites configure their kernel.

mod system;

use abi::label::Table;
use images::{Builder, Image, Options, RootServer, Size};
use soc::{End, Misaligned, Mode};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use system::{assert_lines, run, run_on};

/// An image around one of the root servers, with sel4test's root CNode of 13 bits unless `configure` says otherwise.
fn image(name: &str, bin: &str, configure: impl FnOnce(&mut RootServer)) -> Image {
    build(name, bin, false, configure)
}

fn build(name: &str, bin: &str, without_firmware: bool, configure: impl FnOnce(&mut RootServer)) -> Image {
    let mut builder = Builder::new().unwrap_or_else(|error| panic!("{error}"));
    let out = Some(builder.target().join(format!("images/{name}.elf")));
    let options = Options { quiet: true, out, without_firmware, ..Options::default() };
    let program = builder.program("sel4-conformance", bin, &options);
    let mut server = RootServer::new(program.unwrap_or_else(|error| panic!("{error}")));
    server.kernel.root_cnode_bits = 13;
    configure(&mut server);
    builder.build_root_server(&server, &options).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs all rows; gives how many there are.
fn rows(image: &Image, mode: Mode) -> usize {
    let (end, text) = run(image, mode);
    let last = text.lines().last().unwrap_or_default();
    assert!(end == End::Exit(0) && last.ends_with(" rows, 0 failed"), "{end:?}\n{text}");
    let count = last.split(' ').nth(1).and_then(|count| count.parse().ok());
    count.unwrap_or_else(|| panic!("no count in `{last}`"))
}

#[test]
fn a_up_kernel_answers_as_sel4() {
    let image = image("conformance-up", "sel4-conformance", |server| server.labels = Table::Up);
    let count = rows(&image, Mode::Fast);
    assert!(count > 650, "rows went missing: {count}");
    assert_eq!(rows(&image, Mode::Timed), count);
    // A machine that makes misaligned accesses, as the one that the rows were observed on.
    let (end, text) = run_on(&image, Mode::Fast, |config| config.misaligned = Misaligned::Hardware);
    assert_eq!(end, End::Exit(0), "{text}");
}

#[test]
fn a_smp_kernel_answers_as_sel4() {
    let image = image("conformance-smp", "sel4-conformance", |server| server.machine.harts = 2);
    let count = rows(&image, Mode::Fast);
    assert!(count > 650, "rows went missing: {count}");
    assert_eq!(rows(&image, Mode::Timed), count);
}

/// The board that the rows were observed on, with its own firmware and harts without the N extension, where it is installed.
#[test]
fn the_same_images_give_the_same_answers_on_stock_qemu() {
    const QEMU: &str = "qemu-system-riscv64";
    for (name, labels, harts) in [("conformance-qemu-up", Table::Up, "1"), ("conformance-qemu-smp", Table::Smp, "2")] {
        let image = build(name, "sel4-conformance", true, |server| {
            server.labels = labels;
            // Time there is the host's: no time slice may end while the order of threads is observed.
            server.kernel.timer_tick = 1000;
        });
        let mut command = Command::new(QEMU);
        command.args(["-machine", "virt", "-m", "128M", "-nographic", "-smp", harts, "-kernel"]).arg(&image.path);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = child else {
            // Not `eprintln`, which the test runner would hold back.
            let _ = writeln!(std::io::stderr(), "SKIPPED: {QEMU} is not installed; no seL4 row ran on QEMU's virt");
            return;
        };
        let deadline = Instant::now() + Duration::from_secs(120);
        while child.try_wait().expect("a child").is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Ended already, unless the deadline is over.
        let _ = child.kill();
        let output = child.wait_with_output().expect("a child");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(" rows, 0 failed") && output.status.success(), "{}\n{text}", output.status);
    }
}

/// The kernel that checks its invariants, on two harts.
#[test]
fn a_kernel_that_checks_itself_finds_nothing_to_complain_of() {
    let image = image("conformance-checked", "sel4-conformance", |server| {
        server.machine.harts = 2;
        server.kernel.checked = true;
    });
    assert!(rows(&image, Mode::Fast) > 650);
}

/// Exit code of `sel4-profile` with debug calls, without benchmark calls.
const PRINTING: u8 = 4 | 1;

#[test]
fn the_defaults_are_those_of_sel4() {
    let image = image("profile", "sel4-profile", |server| *server = RootServer::new(server.path.clone()));
    let (end, text) = run(&image, Mode::Fast);
    assert_lines(&text, &["radix 12", "nodes 1", "labels smp", "benchmarks false", "slice 10 ms"].map(profile));
    assert_eq!(end, End::Exit(PRINTING.into()), "{text}");
}

#[test]
fn a_root_server_gets_the_configuration_that_it_was_built_for() {
    let image = image("profile-bench", "sel4-profile", |server| {
        server.labels = Table::Up;
        server.machine.harts = 2;
        server.kernel.root_cnode_bits = 15;
        server.kernel.benchmarks = true;
        server.kernel.timer_tick = 3;
        server.kernel.time_slice = 7;
    });
    let (end, text) = run(&image, Mode::Fast);
    assert_lines(&text, &["radix 15", "nodes 1", "labels up", "benchmarks true", "slice 21 ms"].map(profile));
    assert_eq!(end, End::Exit((PRINTING | 2).into()), "{text}");
}

#[test]
fn a_kernel_logs_its_entries_into_a_frame_of_its_user() {
    let image = image("profile-log", "sel4-profile", |server| server.kernel.entries = true);
    let (end, text) = run(&image, Mode::Fast);
    // The reset, an unknown system call as seL4 counts, and three Yields.
    assert_lines(
        &text,
        &["benchmarks true", "slice 10 ms", "log errors 0 3 0 0, 4 entries: 1:3 5:7 5:7 5:7"].map(profile),
    );
    assert_eq!(end, End::Exit((PRINTING | 2).into()), "{text}");
}

#[test]
fn a_kernel_without_debug_calls_has_none() {
    let image = image("profile-quiet", "sel4-profile", |server| server.kernel.printing = false);
    let (end, text) = run(&image, Mode::Fast);
    assert!(!text.contains("sel4-profile"), "{text}");
    assert_eq!(end, End::Exit(4), "{text}");
}

#[test]
fn eight_gigabytes_come_in_aligned_untypeds() {
    let image = image("profile-8g", "sel4-profile", |server| server.machine.memory = Size(8 << 30));
    let (end, text) = run(&image, Mode::Fast);
    // RAM starts at 2 GiB, with the kernel; its last GiB has the root task's objects.
    assert_lines(&text, &["memory 81", "giga page 0xc0000000"].map(profile));
    assert!(text.contains(" MiB, 6 aligned GiB") || text.contains(" MiB, 7 aligned GiB"), "{text}");
    assert_eq!(end, End::Exit(PRINTING.into()), "{text}");
}

fn profile(line: &str) -> &'static str {
    Box::leak(format!("sel4-profile: {line}").into_boxed_str())
}
