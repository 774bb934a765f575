//! A machine that was saved and restored ends as the one that ran on: same clocks, same state, same console.

mod guest;

use guest::program;
use proptest::prelude::*;
use soc::snapshot::Snapshot;
use soc::{Config, Machine, Mode, Outcome, SocError};
use std::cell::RefCell;
use std::rc::Rc;

/// Everything that a run shows.
struct Shown {
    outcome: Outcome,
    console: Vec<u8>,
    digest: [u8; 32],
}

/// Runs `machine` to its end; `console` is what it has printed before.
fn finish(mut machine: Machine, console: Vec<u8>) -> Shown {
    let console = listen(&mut machine, console);
    let outcome = machine.run();
    let console = console.borrow().clone();
    Shown { outcome, console, digest: machine.digest() }
}

fn listen(machine: &mut Machine, console: Vec<u8>) -> Rc<RefCell<Vec<u8>>> {
    let console = Rc::new(RefCell::new(console));
    let sink = Rc::clone(&console);
    machine.set_console(move |bytes| sink.borrow_mut().extend_from_slice(bytes));
    console
}

fn start(name: &str, config: &Config) -> Machine {
    let mut network = config.net.clone().build().expect("a good network");
    if let Some(link) = &mut network.link {
        link.keep_calls();
    }
    let mut machine = Machine::with_network(config.clone(), network).expect("a good configuration");
    machine.load_elf(&std::fs::read(program(name)).expect("the program was just built")).expect("a good program");
    machine
}

/// Saves a run at `parts` - 1 places between start and end, and lets each snapshot run on alone.
#[track_caller]
fn survives(name: &str, config: Config, parts: u64) {
    let plain = finish(start(name, &config), Vec::new());
    let mut machine = start(name, &config);
    let console = listen(&mut machine, Vec::new());
    for part in 1..parts {
        assert_eq!(machine.run_to(plain.outcome.cycles / parts * part), None, "{name} runs that long");
        let file = machine.snapshot().expect("nothing of the host is attached");
        let restored = Machine::restore(Snapshot::read(&file).unwrap()).unwrap();
        assert_eq!(restored.digest(), machine.digest(), "{name}, part {part}");
        assert_eq!(restored.snapshot().unwrap(), file, "{name}, part {part}");
        // What the console still holds back is in the snapshot.
        let printed = console.borrow().clone();
        same(&finish(restored, printed), &plain, &format!("{name}, part {part}"));
    }
    let printed = console.borrow().clone();
    same(&finish(machine, printed), &plain, &format!("{name} after {} snapshots", parts - 1));
}

/// Not one comparison: a console is too long to be printed twice.
#[track_caller]
fn same(left: &Shown, right: &Shown, what: &str) {
    assert_eq!(left.outcome, right.outcome, "{what}");
    assert!(left.console == right.console, "{what}: the consoles differ");
    assert!(left.digest == right.digest, "{what}: the digests differ");
}

fn config(mode: Mode, harts: usize, net: &str) -> Config {
    Config { mode, harts, net: net.parse().expect("a good network"), memory_bytes: 32 << 20, ..Config::default() }
}

#[test]
fn one_hart_and_two_address_spaces() {
    survives("switch", config(Mode::Fast, 1, "none"), 3);
    survives("switch", config(Mode::Timed, 1, "none"), 3);
}

#[test]
fn four_harts_that_contend() {
    survives("contention", config(Mode::Fast, 4, "none"), 6);
    survives("contention", config(Mode::Timed, 4, "none"), 6);
    survives("contention", Config { schedule_seed: 7, ..config(Mode::Timed, 4, "none") }, 3);
}

#[test]
fn a_nic_at_work() {
    let config = config(Mode::Timed, 1, "echo:loss=0.01;reorder=0.02;delay=7us");
    survives("nic", Config { max_cycles: Some(12_000_000), ..config }, 4);
}

#[test]
fn traps_of_all_kinds() {
    survives("conformance", config(Mode::Fast, 2, "none"), 5);
    survives("conformance", config(Mode::Timed, 2, "none"), 5);
}

#[test]
fn what_the_host_holds_is_not_saved() {
    let nat = start("nic", &config(Mode::Fast, 1, "nat"));
    let refused = nat.snapshot().unwrap_err().to_string();
    assert!(refused.contains("host's network"), "{refused}");
    let not_kept = Machine::new(config(Mode::Fast, 1, "echo")).unwrap();
    let refused = not_kept.snapshot().unwrap_err().to_string();
    assert!(refused.contains("before the run"), "{refused}");
}

fn refused(file: &[u8]) -> String {
    match Snapshot::read(file) {
        Err(error @ SocError::Snapshot { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{} bytes were taken", file.len()),
    }
}

fn good() -> Vec<u8> {
    let config = Config { memory_bytes: 1 << 20, ..Config::default() };
    let mut machine = start("contention", &Config { harts: 4, ..config });
    assert_eq!(machine.run_to(5_000), None);
    machine.snapshot().unwrap()
}

#[test]
fn foreign_and_cut_files_are_refused() {
    let good = good();
    assert!(refused(b"").contains("not a snapshot"));
    assert!(refused(b"\x7fELF and more").contains("not a snapshot"));
    assert!(refused(&good[..8]).contains("cut off"));
    assert!(refused(&good[..good.len() - 1]).contains("cut off"));
    let mut other = good.clone();
    other[8] += 1;
    assert!(refused(&other).contains("another version"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn no_damage_goes_unnoticed(at in any::<prop::sample::Index>(), flip in 1u8.., cut in any::<prop::sample::Index>()) {
        thread_local!(static GOOD: Vec<u8> = good());
        GOOD.with(|good| {
            let mut file = good.clone();
            file[at.index(good.len())] ^= flip;
            refused(&file);
            refused(&good[..cut.index(good.len())]);
        });
    }

    #[test]
    fn noise_is_refused(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        refused(&noise);
        refused(&[b"WKL-snap\x01\0\0\0".as_slice(), &noise].concat());
    }
}
