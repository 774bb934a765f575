//! Building and running a system, for the tests that do.

#![allow(dead_code, reason = "each test file uses its part")]

use images::{Image, Manifest, Options};
use soc::symbols::Symbols;
use soc::{Config, End, Machine, Mode, Outcome};
use std::cell::RefCell;
use std::rc::Rc;

/// Far beyond what any of these systems needs: 30 s of simulated time.
const MAX_CYCLES: u64 = 3_000_000_000;

/// Builds the image of a manifest.
pub fn build(manifest: &Manifest) -> Image {
    let options = Options { quiet: true, ..Options::default() };
    images::build(manifest, &options).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs an image to its end; returns how it ended and the console, with names for addresses.
pub fn run(image: &Image, mode: Mode) -> (End, String) {
    run_on(image, mode, |_| ())
}

/// The same on another machine.
pub fn run_on(image: &Image, mode: Mode, change: impl FnOnce(&mut Config)) -> (End, String) {
    let (outcome, text) = outcome_on(image, mode, change);
    (outcome.end, text)
}

/// The same with all that the machine tells at its end.
pub fn outcome_on(image: &Image, mode: Mode, change: impl FnOnce(&mut Config)) -> (Outcome, String) {
    let mut config = Config {
        harts: image.machine.harts,
        memory_bytes: image.machine.memory.0,
        mode,
        max_cycles: Some(MAX_CYCLES),
        ..Config::default()
    };
    change(&mut config);
    let console = Rc::new(RefCell::new(Vec::new()));
    let mut machine = Machine::new(config).unwrap_or_else(|error| panic!("{error}"));
    machine.load_elf(&image.bytes).unwrap_or_else(|error| panic!("{error}"));
    let sink = console.clone();
    machine.set_console(move |bytes| sink.borrow_mut().extend_from_slice(bytes));
    let outcome = machine.run();
    let text = String::from_utf8_lossy(&console.borrow()).replace('\r', "");
    (outcome, Symbols::of(&image.bytes).expand(&text))
}

/// Asserts that the lines stand in the text in this order, each as a part of a line.
pub fn assert_lines(text: &str, expected: &[&str]) {
    let mut rest = text.lines();
    for line in expected {
        assert!(rest.any(|candidate| candidate.contains(line)), "`{line}` is missing or out of order in:\n{text}");
    }
}
