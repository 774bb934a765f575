//! Harts that contend for the same words: the counts are right, and equal configurations give equal machines to the last bit.

mod guest;

use guest::{Run, run};
use soc::{Config, End, Mode};
use std::collections::BTreeSet;

fn contention(mode: Mode, schedule_seed: u64) -> Run {
    let config = Config { harts: 4, mode, schedule_seed, max_cycles: Some(100_000_000), ..Config::default() };
    let run = run("contention", config);
    assert_eq!(run.outcome.end, End::Exit(0), "{}", run.console);
    assert_eq!(run.console, "LR/SC PASS\nAMO PASS\nlock PASS\n");
    run
}

fn twice(mode: Mode) {
    let (first, second) = (contention(mode, 7), contention(mode, 7));
    assert_eq!(first.outcome, second.outcome);
    assert_eq!(first.digest, second.digest);
}

#[test]
fn same_configuration_same_machine_fast() {
    twice(Mode::Fast);
}

#[test]
fn same_configuration_same_machine_timed() {
    twice(Mode::Timed);
}

/// Each seed is another interleaving, and none of them loses a count.
#[test]
fn seeds_vary_the_interleaving() {
    for mode in [Mode::Fast, Mode::Timed] {
        let cycles: BTreeSet<u64> = (0..6).map(|seed| contention(mode, seed).outcome.cycles).collect();
        assert!(cycles.len() >= 5, "{mode:?}: {cycles:?}");
    }
}

/// The timing model never changes what a program means: a single hart ends with the same console either way.
#[test]
fn modes_agree() {
    let console = |mode| run("conformance", Config { harts: 2, mode, ..Config::default() }).console;
    assert_eq!(console(Mode::Fast), console(Mode::Timed));
}
