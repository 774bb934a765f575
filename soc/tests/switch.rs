//! A composite figure: the address-space switch of the guest program `switch` against the same sequence on Rocket RTL
//! (one core, LiteX variant LitexFullConfig): 224 cycles per round trip without `sfence.vma`; with it 330 to 335 at RL = 1 and
//! 387 to 391 at RL = 30, WL = 10. The instruction sequences differ in details, hence 10 %.

mod guest;

use soc::{Config, Mode};

fn cycles(rl: u32, wl: u32, line: &str) -> u64 {
    let config = Config { mode: Mode::Timed, rl, wl, max_cycles: Some(10_000_000), ..Config::default() };
    let console = guest::run("switch", config).console;
    let line =
        console.lines().find_map(|text| text.strip_prefix(line)).unwrap_or_else(|| panic!("no {line}: {console}"));
    line.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no figure: {console}"))
}

#[track_caller]
fn near(ours: u64, published: u64) {
    assert!(ours.abs_diff(published) * 10 <= published, "{ours} cycles, published {published}");
}

#[test]
fn address_space_switch() {
    near(cycles(1, 1, "plain"), 224);
    near(cycles(1, 1, "flushing"), 332);
    near(cycles(30, 10, "flushing"), 389);
}
