//! The device model: what a device is and the only door it has to the rest of the machine.
//!
//! A device holds no reference to RAM, harts or other devices. Everything it may do outside itself goes through [`Context`],
//! so that a device can be tested with a context of the test's own, without a machine.

use crate::error::SocError;
use crate::snapshot::State;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};

/// Why a bus access was refused. The hart turns it into a load or store access fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusError {
    /// Nothing is mapped at the address.
    Unmapped,
    /// The device does not take accesses of this size or alignment.
    Size,
    /// The device refuses the access (for example a DMA address outside RAM).
    Refused,
}

/// A device's door to the machine.
pub trait Context {
    /// Simulated time of the access or event being handled.
    fn now(&self) -> SimTime;
    /// Asks for [`Device::event`] with `token` at time `at`, which is not in the past, instead of the time that this device last
    /// gave for this token. One at [`SimTime::END`] never comes.
    fn alarm(&mut self, token: u64, at: SimTime);
    /// Sets the level of interrupt line `line` (0-based index into the lines that the board gave the device).
    fn irq(&mut self, line: usize, level: bool);
    /// Copies RAM to `buf`. Errors: [`BusError::Refused`] if any byte lies outside RAM.
    fn dma_read(&mut self, paddr: u64, buf: &mut [u8]) -> Result<(), BusError>;
    /// Copies `bytes` to RAM, coherent with all harts (decoded code, caches). Errors as [`Context::dma_read`].
    fn dma_write(&mut self, paddr: u64, bytes: &[u8]) -> Result<(), BusError>;
    /// Sets or clears `mip` bit `bit` of hart `hart`; only interrupt controllers and timers use it. Unknown harts are ignored.
    fn hart_line(&mut self, hart: usize, bit: u32, level: bool);
    /// Asks the machine to stop with `exit`.
    fn stop(&mut self, exit: Exit);
    /// One byte for the machine's console.
    fn console(&mut self, byte: u8);
    /// Shows what the console has got so far, also without a line end.
    fn flush_console(&mut self) {}
}

/// How a device asked the machine to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// Power off with this exit code.
    Code(u32),
    /// Reset asked for.
    Reset,
    /// The far end of the wire has done all it came for (a load generator after its last phase).
    PeerDone,
}

/// A memory-mapped device.
pub trait Device {
    /// Reads `size` bytes (1, 2, 4 or 8; naturally aligned) at byte offset `offset` of the device's window.
    fn read(&mut self, cx: &mut dyn Context, offset: u64, size: u8) -> Result<u64, BusError>;
    /// Writes the low `size` bytes of `value`, as [`Device::read`].
    fn write(&mut self, cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<(), BusError>;
    /// A time asked for by [`Context::schedule`] has come.
    fn event(&mut self, cx: &mut dyn Context, token: u64) {
        let _ = (cx, token);
    }
    /// The device's whole state, for a snapshot. Error: [`SocError::Snapshot`] if it hangs on something outside the machine.
    fn save(&self) -> Result<State, SocError>;
    /// Takes the state of the same device of a machine that was saved. Error: [`SocError::Snapshot`] if it is not that; nothing is
    /// changed then.
    fn restore(&mut self, state: &State) -> Result<(), SocError>;
    /// Extra core cycles that one register access takes in timed mode, beyond the bus path of
    /// `timing/params.rs`; 1 for on-chip devices, 20 behind an AXI interconnect.
    fn latency_cycles(&self) -> u64 {
        1
    }
}

/// [`Device::save`] and [`Device::restore`] of a device that is nothing but its state.
macro_rules! state_is_all {
    () => {
        fn save(&self) -> Result<crate::snapshot::State, crate::SocError> {
            crate::snapshot::State::of(self)
        }
        fn restore(&mut self, state: &crate::snapshot::State) -> Result<(), crate::SocError> {
            *self = state.read()?;
            Ok(())
        }
    };
}
pub(crate) use state_is_all;

/// A context for tests of one device: it records what the device does.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// The recorder, with a little RAM from address 0.
    #[derive(Default)]
    pub struct Bench {
        pub now: SimTime,
        pub alarms: BTreeMap<u64, SimTime>,
        pub irqs: BTreeMap<usize, bool>,
        pub hart_lines: BTreeSet<(usize, u32, bool)>,
        pub stopped: Option<Exit>,
        pub console: Vec<u8>,
        pub ram: Vec<u8>,
    }

    impl Context for Bench {
        fn now(&self) -> SimTime {
            self.now
        }
        fn alarm(&mut self, token: u64, at: SimTime) {
            self.alarms.insert(token, at);
        }
        fn irq(&mut self, line: usize, level: bool) {
            self.irqs.insert(line, level);
        }
        fn dma_read(&mut self, paddr: u64, buf: &mut [u8]) -> Result<(), BusError> {
            let start = paddr as usize;
            buf.copy_from_slice(self.ram.get(start..start + buf.len()).ok_or(BusError::Refused)?);
            Ok(())
        }
        fn dma_write(&mut self, paddr: u64, bytes: &[u8]) -> Result<(), BusError> {
            let start = paddr as usize;
            self.ram.get_mut(start..start + bytes.len()).ok_or(BusError::Refused)?.copy_from_slice(bytes);
            Ok(())
        }
        fn hart_line(&mut self, hart: usize, bit: u32, level: bool) {
            self.hart_lines.remove(&(hart, bit, !level));
            self.hart_lines.insert((hart, bit, level));
        }
        fn stop(&mut self, exit: Exit) {
            self.stopped = Some(exit);
        }
        fn console(&mut self, byte: u8) {
            self.console.push(byte);
        }
    }
}
