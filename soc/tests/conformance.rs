//! User interrupts as software sees them: the guest program `conformance`, in both modes of the machine.

mod guest;

use guest::run;
use soc::{Config, End, Mode};

/// Every case that must report, so that a program that stops early or skips cannot pass.
const CASES: &str =
    "T1 T2 T3 T3b T4 T4b T5 T6 T7 T8 T8b T9 T10 T11 T12 T12b T13 T14 T15 T16 T18 T18b T18c T19 T20 T21 T22 T23 T24";

fn check(mode: Mode) {
    let run = run("conformance", Config { harts: 2, mode, max_cycles: Some(10_000_000), ..Config::default() });
    for case in CASES.split(' ') {
        let lines: Vec<_> = run.console.lines().filter(|line| line.split(' ').next() == Some(case)).collect();
        assert!(!lines.is_empty(), "{case} did not report:\n{}", run.console);
        assert!(lines.iter().all(|line| line.ends_with("PASS")), "{case}: {lines:?}");
    }
    assert!(!run.console.contains("FAIL"), "{}", run.console);
    assert_eq!(run.outcome.end, End::Exit(0));
}

#[test]
fn fast() {
    check(Mode::Fast);
}

#[test]
fn timed() {
    check(Mode::Timed);
}
