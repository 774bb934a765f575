//! The kernel on the machine: programs of `kernel/guest` that test it from inside.

mod system;

use images::Manifest;
use soc::{End, Mode};
use system::{assert_lines, build, run};

#[test]
fn floating_point_registers_stay_with_their_thread() {
    let image = build(&Manifest::named("floats").unwrap());
    for mode in [Mode::Fast, Mode::Timed] {
        let (end, text) = run(&image, mode);
        for line in ["left: 0 registers changed in 3 threads", "right: 0 registers changed in 2 threads"] {
            assert_lines(&text, &[line]);
        }
        assert_eq!(end, End::Exit(0), "{text}");
    }
}

#[test]
fn a_thread_without_the_unit_faults() {
    let mut manifest = Manifest::named("floats").unwrap();
    manifest.rename("floats-disabled");
    manifest.set("program.left.args.attempt", "disabled").unwrap();
    manifest.set("program.left.threads", "1").unwrap();
    let (end, text) = run(&build(&manifest), Mode::Fast);
    let expected = ["left: flags Ok(1)", "fault: left thread 0 raised exception 2, illegal instruction"];
    assert_lines(&text, &expected);
    assert_eq!(end, End::Exit(1), "{text}");
}

#[test]
fn a_kernel_panic_shows_every_core_and_ends_with_its_own_code() {
    let image = build(&Manifest::named("halter").unwrap());
    let (end, text) = run(&image, Mode::Fast);
    let expected = [
        "spinner: spinning",
        "halter: asking for DebugSendIPI",
        "kernel: core 0 panicked at kernel/src/api/debug.rs",
        "#0 0x",
        "'halter:0' priority 100 Running",
        "x30 000000000000feed x31 0000000000000001",
        "core 1, hart 1, stopped: thread",
        "core 2, hart 2, stopped: no thread",
    ];
    assert_lines(&text, &expected);
    assert_eq!(end, End::Exit(101), "{text}");
}

#[test]
fn without_debug_assertions_the_same_call_halts() {
    let mut manifest = Manifest::named("halter").unwrap();
    manifest.rename("halter-release");
    manifest.set("kernel.checked", "false").unwrap();
    let (end, text) = run(&build(&manifest), Mode::Fast);
    assert_lines(&text, &["halter: asking", "debug call: this machine has no DebugSendIPI, halting"]);
    assert_eq!(end, End::Exit(0), "{text}");
}

#[test]
fn a_system_runs_on_a_kernel_that_checks_itself() {
    let mut manifest = Manifest::named("pair").unwrap();
    manifest.rename("pair-checked");
    manifest.set("kernel.checked", "true").unwrap();
    let (end, text) = run(&build(&manifest), Mode::Fast);
    assert_lines(&text, &["asker: rings: 100 of 100 answers right over rings"]);
    assert_eq!(end, End::Exit(0), "{text}");
}

#[test]
fn a_system_runs_on_a_kernel_that_tracks_utilisation() {
    let mut manifest = Manifest::named("pair").unwrap();
    manifest.rename("pair-utilisation");
    manifest.set("kernel.utilisation", "true").unwrap();
    let (end, text) = run(&build(&manifest), Mode::Fast);
    assert_lines(&text, &["asker: rings: 100 of 100 answers right over rings"]);
    assert_eq!(end, End::Exit(0), "{text}");
}
