//! The whole board without harts: devices are reached through the bus, as a hart would, at times of the fuzzer's choice.

use crate::board::{self as map, CYCLE, RAM_BASE};
use crate::config::Config;
use crate::disk::DiskSpec;
use crate::machine::Machine;
use crate::wire::{Echo, Link, LinkConfig, NetSpec, Network, Nic, Peer};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// RAM of the machine.
pub(super) const MEMORY_BYTES: u64 = 1 << 20;
/// Where the checks after a reset have their rings; decoded addresses reach it seldom.
const RINGS: u64 = RAM_BASE + 0xE_0000;
const BUFFER: u64 = RINGS + 0x4000;
/// Sectors of the disk.
const SECTORS: usize = 16;
/// Behind this cycle no reset is checked: a driver cannot wait for anything at the end of time.
const LATE: u64 = u64::MAX / 2 / CYCLE.as_ps();

pub(super) struct Board {
    machine: Machine,
    nic: Nic,
    cycle: u64,
    accesses: usize,
}

impl Board {
    /// A board with `nic` and a station that sends everything back.
    pub fn with_echo(nic: Nic) -> Self {
        Self::new(nic, Box::new(Echo::new()))
    }

    /// A board with `nic`, `peer` at the far end of its cable, and a disk in slot 0.
    pub fn new(nic: Nic, peer: Box<dyn Peer>) -> Self {
        let path = disk_file();
        let config = Config {
            harts: 2,
            memory_bytes: MEMORY_BYTES,
            net: NetSpec { nic, ..NetSpec::default() },
            disks: vec![DiskSpec { path: path.clone(), read_only: false }],
            ..Config::default()
        };
        let network = Network { link: Some(Link::new(LinkConfig::default(), peer)), report: None };
        let machine = Machine::with_network(config, network).expect("a good configuration");
        // The machine has it open; nobody else needs its name. What is left behind otherwise is a small file.
        let _ = std::fs::remove_file(path);
        Self { machine, nic, cycle: 0, accesses: 0 }
    }

    /// Reads; none if refused.
    pub fn read(&mut self, at: u64, size: u8) -> Option<u64> {
        self.accesses += 1;
        if let Some(offset) = at.checked_sub(RAM_BASE) {
            let bytes = self.machine.bus().ram.get(offset, size.into())?;
            return Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)));
        }
        self.machine.bus().read(at, size, self.cycle).ok().map(|(value, ..)| value)
    }

    /// Writes; nobody hears if it is refused.
    pub fn write(&mut self, at: u64, size: u8, value: u64) {
        self.accesses += 1;
        if at >= RAM_BASE {
            return self.store(at, &value.to_le_bytes()[..size.into()]);
        }
        let _ = self.machine.bus().write(at, size, value, self.cycle);
        self.check_events_left();
    }

    /// Stores to RAM what lies inside.
    pub fn store(&mut self, at: u64, bytes: &[u8]) {
        self.machine.bus().ram.store_coherent(at - RAM_BASE, bytes);
    }

    /// Lets `cycles` pass, with all events in them.
    pub fn pass(&mut self, cycles: u64) {
        let end = self.cycle.saturating_add(cycles);
        let mut budget = 10_000 + cycles;
        loop {
            let bus = self.machine.bus();
            let next = bus.next_event().map(|time| time.as_ps().div_ceil(CYCLE.as_ps()).max(self.cycle));
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.cycle = next;
            while bus.run_event(map::at_cycle(next)) {
                budget = budget.checked_sub(1).expect("events beget events without an end");
            }
        }
        self.cycle = end;
        self.check_events_left();
    }

    /// Lets time pass up to the next event, however far that is, as when all harts wait.
    pub fn skip(&mut self) {
        if let Some(time) = self.machine.bus().next_event() {
            let next = time.as_ps().div_ceil(CYCLE.as_ps());
            // Peers ask for times that come soon; only the last stretch is a leap.
            self.cycle = self.cycle.max(next);
            self.pass(1);
        }
    }

    fn check_events_left(&mut self) {
        let pending = self.machine.bus().pending_events();
        assert!(pending <= 100, "{pending} events after {} accesses", self.accesses);
    }

    /// Resets the NIC and the disk as their drivers do, and uses them once.
    pub fn check_after_reset(&mut self) {
        if self.cycle > LATE {
            return;
        }
        self.store(BUFFER, &[0; 0x1000]);
        match self.nic {
            Nic::Axi => self.check_axi(),
            Nic::Gem => self.check_gem(),
            // Queue 1 transmits: a header of 12 bytes and a frame.
            Nic::Virtio => self.check_virtio(map::VIRTIO_NET_SLOT, 1, &[(BUFFER, 112, 0)]),
        }
        // A read of sector 0: header, data, status.
        self.store(BUFFER, &[0; 16]);
        self.check_virtio(0, 0, &[(BUFFER, 16, 0), (BUFFER + 0x100, 512, 2), (BUFFER + 0x400, 1, 2)]);
    }

    fn set_word(&mut self, at: u64, word: u32) {
        self.write(at, 4, word.into());
    }

    fn word(&mut self, at: u64) -> u32 {
        self.read(at, 4).expect("a register or RAM") as u32
    }

    fn check_axi(&mut self) {
        let (dma, ethernet) = (map::AXI_DMA.base, map::AXI_ETHERNET.base);
        self.set_word(dma, 4);
        self.pass(5_000);
        assert_eq!(self.word(dma) & 4, 0, "the reset ends");
        self.set_word(ethernet + 0x408, 1 << 31);
        self.set_word(ethernet + 0x408, 1 << 28);
        self.store(RINGS, &[0; 64]);
        for (offset, word) in [(0, RINGS as u32), (8, BUFFER as u32), (0x18, 3 << 26 | 100)] {
            self.set_word(RINGS + offset, word);
        }
        self.set_word(dma + 8, RINGS as u32);
        self.set_word(dma, 0x0001_0001);
        self.set_word(dma + 0x10, RINGS as u32);
        self.pass(1_000_000);
        assert_eq!(self.word(RINGS + 0x1C) >> 31, 1, "the AXI DMA completes a frame after a reset");
    }

    fn check_gem(&mut self) {
        let (gem, used) = (map::GEM.base, 1 << 31);
        self.set_word(gem, 0);
        self.pass(1_000_000);
        self.set_word(gem + 0x04, 1 << 10 | 1 << 1);
        self.set_word(gem + 0x10, 0x0020_0784);
        for (offset, word) in [(0, BUFFER as u32), (4, 1 << 15 | 100), (8, 0), (12, used | 1 << 30)] {
            self.set_word(RINGS + offset, word);
        }
        self.set_word(gem + 0x1C, RINGS as u32);
        self.set_word(gem, 1 << 3);
        self.set_word(gem, 1 << 3 | 1 << 9);
        self.pass(1_000_000);
        assert_ne!(self.word(RINGS + 4) & used, 0, "the GEM completes a frame after a reset");
    }

    /// One chain of `pieces` (address, length, flags) through queue `queue` of the device in `slot`.
    fn check_virtio(&mut self, slot: usize, queue: u32, pieces: &[(u64, u32, u16)]) {
        let base = map::virtio(slot).base;
        let (available, used) = (RINGS + 0x1000, RINGS + 0x2000);
        self.set_word(base + 0x70, 0);
        self.store(RINGS, &[0; 0x3000]);
        for (index, &(address, length, flags)) in pieces.iter().enumerate() {
            let more = index + 1 < pieces.len();
            let at = RINGS + 16 * index as u64;
            self.write(at, 8, address);
            self.set_word(at + 8, length);
            self.write(at + 12, 2, u64::from(flags) | u64::from(more));
            self.write(at + 14, 2, if more { index as u64 + 1 } else { 0 });
        }
        self.write(available + 2, 2, 1);
        // Status and features (VERSION_1), the queue, and off it goes.
        for (offset, word) in
            [(0x70, 3), (0x24, 0), (0x20, 0), (0x24, 1), (0x20, 1), (0x70, 11), (0x30, queue), (0x38, 8)]
        {
            self.set_word(base + offset, word);
        }
        for (offset, address) in [(0x80, RINGS), (0x90, available), (0xA0, used)] {
            self.set_word(base + offset, address as u32);
            self.set_word(base + offset + 4, 0);
        }
        for (offset, word) in [(0x44, 1), (0x70, 15), (0x50, queue)] {
            self.set_word(base + offset, word);
        }
        self.pass(1_000_000);
        assert_eq!(self.read(used + 2, 2), Some(1), "virtio slot {slot} uses a chain after a reset");
    }
}

/// A file for one disk. Its name has no part in what the machine does.
fn disk_file() -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = format!("soc-fuzz-{}-{}.img", std::process::id(), COUNT.fetch_add(1, Relaxed));
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, [0; 512 * SECTORS]).expect("the directory for temporary files can be written");
    path
}
