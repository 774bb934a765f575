//! The switches for other guests' expectations: the guest program `options` under each of them, in both modes of the machine.

mod guest;

use guest::run;
use soc::{Config, End, Misaligned, Mode, UserInterrupts};

const MODES: [Mode; 2] = [Mode::Fast, Mode::Timed];

fn config(mode: Mode) -> Config {
    Config { mode, max_cycles: Some(50_000_000), ..Config::default() }
}

#[track_caller]
fn shows(console: &str, lines: &[&str]) {
    for line in lines {
        assert!(console.lines().any(|printed| printed == *line), "no \"{line}\" in:\n{console}");
    }
}

#[test]
fn misaligned_accesses_trap_or_are_done() {
    for mode in MODES {
        let trap = run("options", config(mode)).console;
        shows(
            &trap,
            &["misaligned 0 of 21", "load cause 4 value 0", "store cause 6 value 0", "device cause 4 value 0"],
        );
        shows(&trap, &["atomic cause 6 value 0"]);
        let done = run("options", Config { misaligned: Misaligned::Hardware, ..config(mode) }).console;
        shows(&done, &["misaligned 21 of 21", "load cause 0 value 0", "store cause 0 value 0"]);
        shows(&done, &["device cause 5 value 0", "atomic cause 6 value 0"]);
    }
}

#[test]
fn the_supervisor_timer_is_there_or_not() {
    for mode in MODES {
        let without = run("options", config(mode));
        shows(&without.console, &["closed cause 2"]);
        assert!(without.console.contains("unexpected trap: cause 0x2"), "menvcfg: {}", without.console);
        let with = run("options", Config { sstc: true, ..config(mode) });
        assert_eq!(with.outcome.end, End::Exit(0), "{}", with.console);
        shows(&with.console, &["closed cause 2", "open cause 9", "timer cause 0x8000000000000005 in time true"]);
        shows(&with.console, &["pending 32", "moved 0", "closed again cause 2"]);
    }
}

/// What differs with a latch is what the reference says of it: the pending bit outlives the read, a handler that clears it last loses a
/// wake-up, and one that clears it first has one entry to spare.
#[test]
fn user_interrupts_may_be_a_latch() {
    for mode in MODES {
        let latch = Config { harts: 2, user_interrupts: UserInterrupts::Latch, ..config(mode) };
        let console = run("conformance", latch).console;
        let failed: Vec<&str> = console.lines().filter(|line| line.contains("FAIL")).collect();
        let expected = [
            "T8 FAIL value 0 is 0x1, not 0x0",
            "T8b FAIL value 0 is 0x0, not 0x1",
            "T18b FAIL value 1 is 0x0, not 0x1",
            "T18c FAIL value 1 is 0x1, not 0x0",
        ];
        assert_eq!(failed, expected, "{console}");
    }
}
