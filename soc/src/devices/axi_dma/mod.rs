//! Xilinx AXI DMA in scatter-gather mode (PG021): two channels, memory to stream (MM2S, transmit) and stream to memory (S2MM,
//! receive), each a ring of descriptors walked up to the tail register.
//!
//! [`AxiDma`] is the engine alone; what is at its streams is behind [`Streams`], so that it can be tested without a MAC. The NIC
//! ([`super::axi_nic`]) joins it with the MAC and makes a [`crate::device::Device`] of the two.
//!
//! Differences from the guide: no direct-register mode (its registers read 0), Keyhole is stored only, DMASlvErr and SGSlvErr never occur
//! (our bus has no slave errors), one descriptor at a time is fetched, buffers may have any alignment (a build with DRE), the
//! status and control streams are built in.

mod channel;
mod descriptor;
mod mm2s;
mod s2mm;
mod timing;

#[cfg(test)]
mod tests;

pub(crate) use timing::clocks;
pub use timing::{CLOCK, Timing};

use crate::device::{BusError, Context};
use crate::devices::timer::Timer;
use channel::{CR_RESET, Channel, Command, after};
use mm2s::Mm2s;
use s2mm::S2mm;
use serde::{Deserialize, Serialize};

/// Base of the S2MM registers; MM2S is at 0.
const S2MM_BASE: u64 = 0x30;
/// End of the registers in use.
const REGISTERS_END: u64 = 0x60;
/// Scatter-gather cache and user bits.
const SG_CTL: u64 = 0x2C;
/// SG_CTL after reset: AxCACHE 0011.
const SG_CTL_AFTER_RESET: u32 = 3;
/// SG_CTL: the bits that exist.
const SG_CTL_WRITABLE: u32 = 0x0F0F;

/// Event kinds of the engine; whoever shares its [`Context`] uses others.
pub(super) mod kind {
    pub const MM2S_STEP: u8 = 1;
    pub const MM2S_DELAY: u8 = 2;
    pub const S2MM_STEP: u8 = 3;
    pub const S2MM_DELAY: u8 = 4;
    pub const RESET: u8 = 5;
}

/// How the block was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Address width in bits, 32 to 64. Up to 32 the MSB registers do not exist and writing TAILDESC starts the engine; above, writing
    /// TAILDESC_MSB does.
    pub address_bits: u32,
    /// Width of the length fields, 8 to 26 bits.
    pub length_bits: u32,
    /// Clocks of each step.
    pub timing: Timing,
}

impl Default for Build {
    /// The board's: 32-bit addresses, 16-bit lengths.
    fn default() -> Self {
        Self { address_bits: 32, length_bits: 16, timing: Timing::default() }
    }
}

impl Build {
    pub(super) fn address_mask(&self) -> u64 {
        u64::MAX >> (64 - self.address_bits.clamp(32, 64))
    }
}

/// A packet on its way to the MAC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TxPacket {
    /// The data of all its buffers.
    pub bytes: Vec<u8>,
    /// The control stream: APP words of the packet's first descriptor.
    pub app: [u32; 5],
    /// Longer than [`Streams::tx_limit`]; `bytes` is empty.
    pub dropped: bool,
}

/// A packet from the MAC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RxPacket {
    /// The data; not empty.
    pub bytes: Vec<u8>,
    /// The status stream: APP words for the packet's last descriptor.
    pub app: [u32; 5],
}

/// What is at the other end of the streams.
pub trait Streams {
    /// There is room for a packet of `bytes` so far.
    fn tx_ready(&self, bytes: usize) -> bool;
    /// The longest packet that can be taken at all.
    fn tx_limit(&self) -> usize;
    /// Takes a packet; [`Self::tx_ready`] held when its last buffer was started.
    fn tx(&mut self, packet: TxPacket);
    /// The foremost packet to receive. It stays the foremost until [`Self::rx_pop`], or until the engine is reset too.
    fn rx_front(&self) -> Option<&RxPacket>;
    /// Removes the foremost packet.
    fn rx_pop(&mut self);
}

/// The engine.
#[derive(Serialize, Deserialize)]
pub struct AxiDma {
    mm2s: Mm2s,
    s2mm: S2mm,
    build: Build,
    sg_control: u32,
    reset: Timer,
}

impl AxiDma {
    /// An engine after power-on. Interrupt lines: `lines.0` MM2S, `lines.1` S2MM.
    pub fn new(build: Build, lines: (usize, usize)) -> Self {
        let mask = build.address_mask();
        Self {
            mm2s: Mm2s::new(Channel::new(lines.0, mask, kind::MM2S_DELAY), build, kind::MM2S_STEP),
            s2mm: S2mm::new(Channel::new(lines.1, mask, kind::S2MM_DELAY), build, kind::S2MM_STEP),
            build,
            sg_control: SG_CTL_AFTER_RESET,
            reset: Timer::new(kind::RESET),
        }
    }

    /// Reads 4 or 8 bytes at `offset`; 8 bytes are two registers. Errors: [`BusError::Size`].
    pub fn read(&self, cx: &dyn Context, offset: u64, size: u8) -> Result<u64, BusError> {
        match size {
            4 => Ok(u64::from(self.read_word(cx, offset))),
            8 => Ok(u64::from(self.read_word(cx, offset)) | u64::from(self.read_word(cx, offset + 4)) << 32),
            _ => Err(BusError::Size),
        }
    }

    /// Writes 4 or 8 bytes at `offset`; of 8 bytes the low register is written first. Returns true if the write started a reset,
    /// which the attached streams share. Errors: [`BusError::Size`].
    pub fn write(&mut self, cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<bool, BusError> {
        match size {
            4 => Ok(self.write_word(cx, offset, value as u32)),
            8 => {
                let low = self.write_word(cx, offset, value as u32);
                Ok(self.write_word(cx, offset + 4, (value >> 32) as u32) | low)
            }
            _ => Err(BusError::Size),
        }
    }

    fn in_reset(&self) -> bool {
        self.reset.due().is_some()
    }

    fn read_word(&self, cx: &dyn Context, offset: u64) -> u32 {
        let value = match offset {
            SG_CTL => self.sg_control,
            0..SG_CTL => self.mm2s.channel.read(cx, offset),
            S2MM_BASE..REGISTERS_END => self.s2mm.channel.read(cx, offset - S2MM_BASE),
            _ => 0,
        };
        let control = offset == 0 || offset == S2MM_BASE;
        if control && self.in_reset() { value | CR_RESET } else { value }
    }

    fn write_word(&mut self, cx: &mut dyn Context, offset: u64, value: u32) -> bool {
        if self.in_reset() {
            return false;
        }
        let transmit = offset < S2MM_BASE;
        let command = match offset {
            SG_CTL => {
                self.sg_control = value & SG_CTL_WRITABLE;
                Command::None
            }
            0..SG_CTL => self.mm2s.channel.write(cx, offset, value),
            S2MM_BASE..REGISTERS_END => self.s2mm.channel.write(cx, offset - S2MM_BASE, value),
            _ => Command::None,
        };
        match (command, transmit) {
            (Command::None, _) => {}
            (Command::Tail, true) => self.mm2s.tail(cx),
            (Command::Tail, false) => self.s2mm.tail(cx),
            (Command::Stop, true) => self.mm2s.stop(),
            (Command::Stop, false) => self.s2mm.stop(),
            (Command::Reset, _) => {
                self.mm2s.reset(cx);
                self.s2mm.reset(cx);
                self.sg_control = SG_CTL_AFTER_RESET;
                after(&mut self.reset, cx, self.build.timing.reset);
            }
        }
        command == Command::Reset
    }

    /// Takes an event; events of others are ignored.
    pub fn event(&mut self, cx: &mut dyn Context, streams: &mut dyn Streams, token: u64) {
        self.mm2s.event(cx, streams, token);
        self.s2mm.event(cx, streams, token);
        self.reset.fires(token);
    }

    /// The streams may have room, or a packet, that they had not before.
    pub fn kick(&mut self, cx: &mut dyn Context, streams: &mut dyn Streams) {
        self.mm2s.kick(cx, streams);
        self.s2mm.kick(cx, streams);
    }
}
