//! The instruction set, group by group: the guest program `isa`, in both modes of the machine.

mod guest;

use guest::run;
use soc::{Config, End, Mode};

/// Each group and its number of cases, so that a program that stops early or skips cannot pass.
const GROUPS: [(&str, u32); 9] = [
    ("I", 53),
    ("C", 21),
    ("M", 26),
    ("loads and stores", 35),
    ("A", 52),
    ("Zicsr", 19),
    ("traps", 46),
    ("Sv39", 33),
    ("PMP", 22),
];

fn check(mode: Mode) {
    let run = run("isa", Config { mode, max_cycles: Some(10_000_000), ..Config::default() });
    for (group, cases) in GROUPS {
        let line = format!("{group}: {cases} cases PASS");
        assert!(run.console.lines().any(|found| found == line), "`{line}` is missing:\n{}", run.console);
    }
    assert_eq!(run.outcome.end, End::Exit(0), "{}", run.console);
}

#[test]
fn fast() {
    check(Mode::Fast);
}

#[test]
fn timed() {
    check(Mode::Timed);
}
