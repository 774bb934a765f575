//! Random system calls on the machine, on a kernel that checks its invariants at every exit.
//!
//! `make fuzz-kernel` is the long form: FUZZ_CALLS system calls in each of the four runs, seeds from FUZZ_SEED on.
//! A failure prints what to replay.

mod system;

use abi::label::Table;
use images::{Builder, Image, Options, RootServer};
use soc::symbols::Symbols;
use soc::{Config, End, Machine, Mode};
use std::cell::RefCell;
use std::rc::Rc;

/// Calls of a run in the short form; four harts contend for the lock while each checks the kernel.
const CALLS: u64 = 85_000;
const CALLS_ON_FOUR: u64 = 15_000;
/// Cycles of a fast machine that a call may take, with everything around it.
const CYCLES_PER_CALL: u64 = 200_000;
const START_CYCLES: u64 = 2_000_000_000;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

fn image(name: &str, labels: Table, harts: usize) -> Image {
    let mut builder = Builder::new().unwrap_or_else(|error| panic!("{error}"));
    let out = Some(builder.target().join(format!("images/{name}.elf")));
    let options = Options { quiet: true, out, ..Options::default() };
    let program = builder.program("kernel-guest", "fuzzer", &options);
    let mut server = RootServer::new(program.unwrap_or_else(|error| panic!("{error}")));
    server.labels = labels;
    server.kernel.checked = true;
    // A check takes longer than a short tick.
    server.kernel.timer_tick = 10;
    server.kernel.time_slice = 1;
    server.machine.harts = harts;
    server.machine.memory = images::Size(32 << 20);
    builder.build_root_server(&server, &options).unwrap_or_else(|error| panic!("{error}"))
}

fn fuzz(image: &Image, labels: Table, schedule_seed: u64) {
    let few = if image.machine.harts == 1 { CALLS } else { CALLS_ON_FOUR };
    let (calls, seed) = (number("FUZZ_CALLS", few), number("FUZZ_SEED", 1));
    let seed = seed + schedule_seed;
    let numbering = if labels == Table::Up { " labels=up" } else { "" };
    let config = Config {
        harts: image.machine.harts,
        memory_bytes: image.machine.memory.0,
        mode: Mode::Fast,
        schedule_seed,
        max_cycles: Some(START_CYCLES + calls * CYCLES_PER_CALL),
        bootargs: format!("seed={seed} calls={calls}{numbering}"),
        ..Config::default()
    };
    let replay = format!(
        "soc run {} --schedule-seed {schedule_seed} --append '{}'",
        image.path.file_name().unwrap_or_default().to_string_lossy(),
        config.bootargs
    );
    let console = Rc::new(RefCell::new(Vec::new()));
    let mut machine = Machine::new(config).unwrap_or_else(|error| panic!("{error}"));
    machine.load_elf(&image.bytes).unwrap_or_else(|error| panic!("{error}"));
    let sink = console.clone();
    machine.set_console(move |bytes| sink.borrow_mut().extend_from_slice(bytes));
    let outcome = machine.run();
    let text = Symbols::of(&image.bytes).expand(&String::from_utf8_lossy(&console.borrow()));
    let last = text.lines().last().unwrap_or_default();
    assert!(
        outcome.end == End::Exit(0) && last.starts_with("fuzzer: "),
        "{:?} after {} cycles; the worker's call is in x31; replay: {replay}\n{text}",
        outcome.end,
        outcome.cycles
    );
    println!("{last}, schedule seed {schedule_seed}, {} million instructions", outcome.instructions() / 1_000_000);
}

#[test]
fn one_hart() {
    fuzz(&image("fuzz-up", Table::Up, 1), Table::Up, 0);
    fuzz(&image("fuzz-1", Table::Smp, 1), Table::Smp, 1);
}

#[test]
fn four_harts_in_two_schedules() {
    let image = image("fuzz-4", Table::Smp, 4);
    fuzz(&image, Table::Smp, 2);
    fuzz(&image, Table::Smp, 3);
}
