//! Entry points for fuzzers: each takes any bytes, does with the machine what they say, and panics if a promise of the machine is
//! broken. `soc/fuzz` calls them under libFuzzer, `soc/tests/fuzz.rs` with random bytes on stable Rust.
//!
//! The promises: whatever guest, file or wire do, the machine does not panic; every span of simulated time has a bounded number of
//! events, and an access leaves a bounded number of events behind; and a driver that resets its device can use it.

mod board;
mod engines;
mod input;
mod wire;

use crate::board as map;
use crate::config::Config;
use crate::machine::Machine;
use crate::symbols::Symbols;
use crate::wire::Nic;
use board::{Board, MEMORY_BYTES};
use input::Input;

pub use engines::dma_descriptors;
pub use wire::frames;

/// Most accesses of one input.
const MAX_STEPS: usize = 512;

/// Loads `file`, and runs what was loaded for some cycles.
pub fn elf_loader(file: &[u8]) {
    let config = Config { memory_bytes: MEMORY_BYTES, max_cycles: Some(2_000), ..Config::default() };
    let mut machine = Machine::new(config).expect("a good configuration");
    if let Ok(executable) = crate::elf::Executable::parse(file) {
        executable.functions();
        executable.sections_with_prefix(".");
    }
    let _ = crate::image::MachineDefaults::of(file);
    let _ = Symbols::of(file);
    if machine.load_elf(file).is_ok() {
        machine.run();
    }
}

/// Reads and writes registers of all devices while time passes.
pub fn device_registers(bytes: &[u8]) {
    const fn part(window: map::Window, offset: u64, size: u64) -> map::Window {
        map::Window { base: window.base + offset, size }
    }
    const WINDOWS: [map::Window; 23] = [
        map::FINISHER,
        map::RTC,
        map::CLINT,
        map::UINTC,
        map::PLIC,
        map::UART,
        map::ATS_INTC,
        map::AXI_DMA,
        map::AXI_ETHERNET,
        map::GEM,
        map::virtio(0),
        map::virtio(1),
        map::virtio(map::VIRTIO_NET_SLOT),
        // Registers that lie far behind the first ones: compare registers and time; enables, thresholds and claims.
        part(map::CLINT, 0x4000, 0x10),
        part(map::CLINT, 0xBFF8, 8),
        part(map::PLIC, 0x2000, 0x180),
        part(map::PLIC, 0x20_0000, 8),
        part(map::PLIC, 0x20_1000, 8),
        // Configuration and MDIO of the MAC, its filter.
        part(map::AXI_ETHERNET, 0x400, 0x120),
        part(map::AXI_ETHERNET, 0x700, 0x40),
        // Screening, queues and addresses of the GEM; a disk's configuration.
        part(map::GEM, 0x400, 0x200),
        part(map::virtio(0), 0x100, 0x100),
        // RAM: rings of engines that happen to point there.
        map::Window { base: map::RAM_BASE, size: 0x1000 },
    ];
    let mut input = Input::new(bytes);
    let nic = input.pick(&[Nic::Axi, Nic::Virtio, Nic::Gem]);
    let mut board = Board::with_echo(nic);
    for _ in 0..MAX_STEPS {
        if input.is_empty() {
            break;
        }
        step(&mut board, &mut input, &WINDOWS);
    }
    board.pass(100_000);
    board.check_after_reset();
}

/// One access to one of `windows`, or some time.
fn step(board: &mut Board, input: &mut Input, windows: &[map::Window]) {
    let action = input.byte();
    let size = 1 << (action >> 3 & 3);
    let window = input.pick(windows);
    // Half of the time among the first registers, where most devices have theirs.
    let span = if action & 0x20 != 0 { window.size } else { window.size.min(0x100) };
    let at = window.base + ((u64::from(input.word()) % span) & !(size - 1));
    match action & 7 {
        0..=3 => board.write(at, size as u8, input.value()),
        4 | 5 => drop(board.read(at, size as u8)),
        6 => board.pass(input.word().into()),
        _ => board.skip(),
    }
}
