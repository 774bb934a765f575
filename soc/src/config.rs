//! What a machine is built from. Everything that may change a result is here, so that a configuration and an image name a run.

use crate::board::{DISK_SLOTS, MAC_ADDRESS};
use crate::disk::DiskSpec;
use crate::error::SocError;
use crate::wire::NetSpec;
use serde::{Deserialize, Serialize};

/// The largest number of harts.
pub const MAX_HARTS: usize = 8;
/// The smallest RAM: room for firmware, kernel and root task.
pub const MIN_MEMORY_BYTES: u64 = 1 << 20;
/// The largest RAM that the machine accepts. The host gives memory for the pages that the guest writes.
pub const MAX_MEMORY_BYTES: u64 = 8 << 30;

/// How time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Every instruction takes one cycle; harts take turns of some hundred instructions.
    Fast,
    /// The cost model of `timing/params.rs`; harts are ordered by simulated time at every basic block.
    Timed,
}

/// Who sets the accessed and dirty bits of a page table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessedDirty {
    /// Software: an access to a page with A = 0, or a store with D = 0, is a page fault (as Rocket).
    Trap,
    /// The page table walker.
    Hardware,
}

/// Extensions of the harts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isa {
    #[default]
    /// RV64IMAFDC with user interrupts (N, `uipi`) and a UINTC.
    Rv64imafdcn,
    /// The same without user interrupts: no such registers and instructions, no UINTC.
    Rv64imafdc,
}

impl Isa {
    /// Whether the machine has user interrupts.
    pub fn has_user_interrupts(self) -> bool {
        self == Self::Rv64imafdcn
    }
}

/// What a load or store does at an address that is no multiple of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Misaligned {
    /// An exception (as Rocket).
    Trap,
    /// It is done, in RAM; atomics still trap.
    Hardware,
}

/// How the UINTC interrupts a hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserInterrupts {
    /// A level: there while something is pending.
    Level,
    /// A latch that software must clear, as an earlier model had it; to test handlers with.
    Latch,
}

/// A machine's configuration. Start from [`Config::default`] and change fields.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Number of harts, 1 to [`MAX_HARTS`].
    pub harts: usize,
    /// Size of RAM in bytes; a multiple of 4096.
    pub memory_bytes: u64,
    /// How time passes.
    pub mode: Mode,
    /// Varies the interleaving of harts within what hardware could do; 0 is the plain order.
    pub schedule_seed: u64,
    /// Memory read latency in core cycles ("RL" of the cost model).
    pub rl: u32,
    /// Memory write latency in core cycles ("WL" of the cost model).
    pub wl: u32,
    /// The run stops when the slowest running hart has passed this many cycles.
    pub max_cycles: Option<u64>,
    /// Extensions of the harts.
    pub isa: Isa,
    /// Who sets the A and D bits.
    pub accessed_dirty: AccessedDirty,
    /// What a misaligned load or store does.
    pub misaligned: Misaligned,
    /// The Sstc extension: `stimecmp`, and `menvcfg` to switch it on.
    pub sstc: bool,
    /// How the UINTC interrupts a hart.
    pub user_interrupts: UserInterrupts,
    /// Kernel arguments in `/chosen`.
    pub bootargs: String,
    /// Which NIC the board has, and what is at the far end of its cable; by default nothing is plugged in.
    pub net: NetSpec,
    /// Station address of the NIC: in the device tree, and in virtio-net's own registers.
    pub mac_address: [u8; 6],
    /// virtio disks, in slots from 0 on.
    pub disks: Vec<DiskSpec>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            harts: 1,
            memory_bytes: 128 << 20,
            mode: Mode::Fast,
            schedule_seed: 0,
            rl: 30,
            wl: 20,
            max_cycles: None,
            isa: Isa::Rv64imafdcn,
            accessed_dirty: AccessedDirty::Trap,
            misaligned: Misaligned::Trap,
            sstc: false,
            user_interrupts: UserInterrupts::Level,
            bootargs: String::new(),
            net: NetSpec::default(),
            mac_address: MAC_ADDRESS,
            disks: Vec::new(),
        }
    }
}

impl Config {
    /// Checks that a machine can be built. Errors: [`SocError::Harts`], [`SocError::Memory`], [`SocError::Latency`],
    /// [`SocError::Disks`].
    pub fn check(&self) -> Result<(), SocError> {
        if !(1..=MAX_HARTS).contains(&self.harts) {
            return Err(SocError::Harts { asked: self.harts });
        }
        if !(MIN_MEMORY_BYTES..=MAX_MEMORY_BYTES).contains(&self.memory_bytes)
            || !self.memory_bytes.is_multiple_of(4096)
        {
            return Err(SocError::Memory { asked: self.memory_bytes });
        }
        if self.rl > 10_000 || self.wl > 10_000 {
            return Err(SocError::Latency);
        }
        if self.disks.len() > DISK_SLOTS {
            return Err(SocError::Disks { asked: self.disks.len(), most: DISK_SLOTS });
        }
        Ok(())
    }
}

/// Reads a size such as `128M`, `1G`, `64K` or `1048576`.
pub fn parse_bytes(text: &str) -> Result<u64, SocError> {
    let bad = || SocError::Size { text: text.to_owned() };
    let text_trimmed = text.trim();
    let (digits, shift) = match text_trimmed.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text_trimmed[..at], 10),
        Some((at, 'M' | 'm')) => (&text_trimmed[..at], 20),
        Some((at, 'G' | 'g')) => (&text_trimmed[..at], 30),
        _ => (text_trimmed, 0),
    };
    let number: u64 = digits.parse().map_err(|_| bad())?;
    number.checked_mul(1 << shift).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_bytes("128M").unwrap(), 128 << 20);
        assert_eq!(parse_bytes("4096").unwrap(), 4096);
        for bad in ["", "M", "x", "-1", "99999999999999999999", "17179869184G"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn impossible_machines_are_refused() {
        let good = Config::default();
        assert!(good.check().is_ok());
        assert!(Config { harts: 0, ..good.clone() }.check().is_err());
        assert!(Config { harts: 9, ..good.clone() }.check().is_err());
        assert!(Config { memory_bytes: 4095, ..good.clone() }.check().is_err());
        assert!(Config { memory_bytes: (1 << 20) + 1, ..good }.check().is_err());
    }
}
