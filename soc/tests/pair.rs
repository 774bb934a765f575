//! Two machines on one cable: they understand each other, and equal pairs are equal to the last bit.

mod guest;

use guest::program;
use soc::pair::Pair;
use soc::time::SimTime;
use soc::{Config, End, Mode};
use std::cell::RefCell;
use std::process::Command;
use std::rc::Rc;

/// What a pair shows: end and console of each machine, cycles, digests.
#[derive(Debug, PartialEq)]
struct Shown {
    ends: [End; 2],
    cycles: [u64; 2],
    consoles: [String; 2],
    digests: [[u8; 32]; 2],
}

fn talk(config: &Config, delay_us: u64) -> Shown {
    let second = Config { mac_address: [2, 0, 0, 0, 0, 2], ..config.clone() };
    let mut pair = Pair::new([config.clone(), second], SimTime::from_us(delay_us)).expect("a good pair");
    let elf = std::fs::read(program("talk")).expect("the program was just built");
    let consoles = pair.machines().each_mut().map(|machine| {
        machine.load_elf(&elf).expect("a good program");
        let console = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&console);
        machine.set_console(move |bytes| sink.borrow_mut().extend_from_slice(bytes));
        console
    });
    let outcomes = pair.run();
    Shown {
        ends: outcomes.each_ref().map(|outcome| outcome.end),
        cycles: outcomes.each_ref().map(|outcome| outcome.cycles),
        consoles: consoles.map(|console| String::from_utf8_lossy(&console.borrow()).into_owned()),
        digests: pair.machines().each_ref().map(|machine| machine.digest()),
    }
}

#[test]
fn two_machines_count_to_fifty_and_do_it_again() {
    for mode in [Mode::Fast, Mode::Timed] {
        let config = Config { mode, max_cycles: Some(100_000_000), ..Config::default() };
        let shown = talk(&config, 5);
        assert_eq!(shown.ends[0], End::Exit(0), "{shown:?}");
        for console in &shown.consoles {
            let lines: Vec<&str> = console.lines().collect();
            assert!(lines.len() >= 5 && lines[4].starts_with("40 heard at "), "{mode:?}: {console}");
        }
        assert!(shown.consoles[0].ends_with("done\n"));
        assert_eq!(talk(&config, 5), shown, "{mode:?}");
    }
}

/// A number takes one delay and the work at both ends: longer cables take longer.
#[test]
fn the_delay_is_that_of_the_cable() {
    let config = Config { mode: Mode::Timed, max_cycles: Some(100_000_000), ..Config::default() };
    let [short, long] = [5, 105].map(|delay| talk(&config, delay).cycles[0]);
    // 50 numbers, 100 us more each.
    let more = long - short;
    assert!((450_000..600_000).contains(&more), "{more}");
}

#[test]
fn impossible_pairs_are_refused() {
    let pair = |config: Config, delay| Pair::new([config.clone(), config], delay).map(|_| ()).unwrap_err().to_string();
    assert!(pair(Config::default(), SimTime::ZERO).contains("1us"));
    let echo = Config { net: "echo".parse().expect("a good network"), ..Config::default() };
    assert!(pair(echo, SimTime::from_us(5)).contains("other machine"));
}

#[test]
fn the_command_names_the_machines() {
    let talk = program("talk");
    let run = || {
        let soc = Command::new(env!("CARGO_BIN_EXE_soc")).arg("pair").args([&talk, &talk]).arg("--digest").output();
        soc.expect("the command was built with this test")
    };
    let (first, second) = (run(), run());
    let console = String::from_utf8_lossy(&first.stdout).into_owned();
    assert!(
        first.status.success() && console.contains("A| done\n") && console.contains("B| 40 heard at "),
        "{console}"
    );
    assert_eq!((first.stdout, first.stderr), (second.stdout, second.stderr));
}
