//! Calls that end at a time though nothing else happens: alarms of the kernel, through libipc (`apps/src/bin/{punctual,sleeper}.rs`).

mod system;

use images::{Image, Manifest};
use soc::{Config, End, Isa, Mode};
use system::{assert_lines, build, run_on};

/// How late a call may end, in ticks of 100 ns: over the endpoint that is two programs that sleep and wake. The scheduler's tick has 20,000.
const LATE: u64 = 4000;

/// `harts`: with one there are no user interrupts, since nobody reaches a peer of the own hart by them.
fn image(harts: &str) -> Image {
    let mut manifest = Manifest::named("deadline").unwrap();
    manifest.rename(&format!("deadline-{harts}"));
    manifest.set("machine.harts", harts).unwrap();
    manifest.set("program.silent.hart", if harts == "1" { "0" } else { "1" }).unwrap();
    build(&manifest)
}

fn check(image: &Image, mode: Mode, change: impl FnOnce(&mut Config)) {
    let (end, text) = run_on(image, mode, change);
    assert_lines(
        &text,
        &["punctual: silent: 20 calls ended at their deadlines", "punctual: slow: 20 calls were answered in time"],
    );
    for line in text.lines().filter(|line| line.contains("ticks late")) {
        let late = line.split(' ').rev().nth(2).and_then(|word| word.parse::<u64>().ok());
        assert!(late.is_some_and(|late| late <= LATE), "{mode:?}:\n{text}");
    }
    assert_eq!(end, End::Exit(0), "{text}");
}

#[test]
fn a_call_that_nobody_answers_ends_at_its_deadline() {
    for harts in ["1", "2"] {
        let image = image(harts);
        check(&image, Mode::Fast, |_| ());
        check(&image, Mode::Timed, |_| ());
        check(&image, Mode::Fast, |config| config.isa = Isa::Rv64imafdc);
    }
}
