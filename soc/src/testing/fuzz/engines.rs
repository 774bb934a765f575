//! Rings of arbitrary descriptors, and engines that are started on them.

use super::board::Board;
use super::input::Input;
use super::{MAX_STEPS, step};
use crate::board::{self as map, RAM_BASE};
use crate::wire::Nic;

/// Where rings are: descriptors refer to each other there.
const RINGS: u64 = RAM_BASE;
/// Descriptors of a ring.
const SLOTS: u64 = 16;

/// Fills RAM with descriptors, starts the engines of the NIC and of the disk on them, and goes on with accesses to both.
pub fn dma_descriptors(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let nic = input.pick(&[Nic::Axi, Nic::Virtio, Nic::Gem]);
    let mut board = Board::with_echo(nic);
    let disk = map::virtio(0);
    virtio(&mut board, &mut input, disk.base, 1);
    let windows: &[map::Window] = match nic {
        Nic::Axi => {
            axi(&mut board, &mut input);
            &[map::AXI_DMA, disk, map::AXI_ETHERNET]
        }
        Nic::Gem => {
            gem(&mut board, &mut input);
            &[map::GEM, disk]
        }
        Nic::Virtio => {
            let window = map::virtio(map::VIRTIO_NET_SLOT);
            virtio(&mut board, &mut input, window.base, 2);
            &[window, disk]
        }
    };
    board.pass(50_000);
    for _ in 0..MAX_STEPS / 4 {
        if input.is_empty() {
            break;
        }
        step(&mut board, &mut input, windows);
    }
    board.pass(100_000);
    board.check_after_reset();
}

/// An address in one of the rings, or anywhere.
fn link(input: &mut Input, ring: u64, bytes: u64) -> u64 {
    match input.byte() {
        kind @ 0..=0xBF => ring + u64::from(kind) % SLOTS * bytes,
        _ => input.address(),
    }
}

fn axi(board: &mut Board, input: &mut Input) {
    let (dma, ethernet) = (map::AXI_DMA.base, map::AXI_ETHERNET.base);
    board.write(dma, 4, 4);
    board.pass(5_000);
    for control in [0x404, 0x408] {
        board.write(ethernet + control, 4, 1 << 28 | u64::from(input.byte()) << 24);
    }
    board.write(ethernet + 0x708, 4, u64::from(input.byte()) << 24);
    for (channel, ring) in [(dma, RINGS + 0x1000), (dma + 0x30, RINGS + 0x2000)] {
        for slot in 0..SLOTS {
            let at = ring + 64 * slot;
            for (offset, word) in [
                (0, link(input, ring, 64) as u32),
                (8, input.address() as u32),
                (0x18, u32::from(input.half()) | u32::from(input.half()) << 16),
                (0x1C, if input.byte() < 0x20 { input.word() } else { 0 }),
                (0x20, input.byte().into()),
                (0x24, input.word()),
            ] {
                board.write(at + offset, 4, word.into());
            }
        }
        board.write(channel + 8, 4, link(input, ring, 64));
        board.write(channel, 4, u64::from(input.word()) & !4 | 1);
        board.write(channel + 0x10, 4, link(input, ring, 64));
    }
}

fn gem(board: &mut Board, input: &mut Input) {
    let gem = map::GEM.base;
    let configuration = input.word();
    board.write(gem + 4, 4, configuration.into());
    let long = input.byte() & 1;
    board.write(gem + 0x10, 4, u64::from(input.word()) & !(1 << 30) | u64::from(long) << 30);
    for (register, ring) in [(0x18, RINGS + 0x1000), (0x1C, RINGS + 0x2000)] {
        let bytes = if long == 0 { 8 } else { 16 };
        for slot in 0..SLOTS {
            let at = ring + bytes * slot;
            board.write(at, 4, input.address() | u64::from(input.byte() & 3));
            board.write(at + 4, 4, u64::from(input.half()) | u64::from(input.byte()) << 24);
        }
        board.write(gem + register, 4, link(input, ring, bytes));
    }
    board.write(gem, 4, 0x1C | u64::from(input.byte() & 2));
    board.write(gem, 4, 0x21C | u64::from(input.byte() & 2));
}

fn virtio(board: &mut Board, input: &mut Input, base: u64, queues: u64) {
    let features = input.byte();
    let low = u64::from(features & 3) << 28;
    for (offset, word) in [(0x70, 0), (0x70, 3), (0x24, 0), (0x20, low), (0x24, 1), (0x20, 1), (0x70, 11)] {
        board.write(base + offset, 4, word);
    }
    for queue in 0..queues {
        let (table, available, used) = (RINGS + 0x4000 + 0x3000 * queue, 0x1000, 0x2000);
        for slot in 0..SLOTS {
            let at = table + 16 * slot;
            board.write(at, 8, input.address());
            board.write(at + 8, 4, if input.byte() < 0xE0 { input.half().into() } else { input.word().into() });
            board.write(at + 12, 2, u64::from(input.byte() & 7));
            board.write(at + 14, 2, u64::from(input.byte() % 20));
            board.write(table + available + 4 + 2 * slot, 2, u64::from(input.byte() % 18));
        }
        board.write(table + available, 2, u64::from(input.byte() & 1));
        board.write(table + available + 2, 2, u64::from(input.byte() % 20));
        for (offset, word) in [
            (0x30, queue),
            (0x38, SLOTS),
            (0x80, table),
            (0x84, 0),
            (0x90, table + available),
            (0x94, 0),
            (0xA0, table + used),
            (0xA4, 0),
            (0x44, 1),
        ] {
            board.write(base + offset, 4, word);
        }
    }
    board.write(base + 0x70, 4, 15);
    for queue in 0..queues {
        board.write(base + 0x50, 4, queue);
    }
}
