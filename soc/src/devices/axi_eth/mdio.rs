//! The management interface (PG138, "MDIO") with one gigabit PHY on it, a Micrel KSZ9031RNX as on the board.
//!
//! An access takes 64 MDC cycles (IEEE 802.3, clause 22.2.4.5); the ready bit is clear meanwhile.

use crate::device::Context;
use crate::devices::axi_dma::CLOCK;
use crate::devices::phy::{self, Phy};
use crate::devices::timer::Timer;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};

/// MC: enable.
const MC_ENABLE: u32 = 1 << 6;
const MC_WRITABLE: u32 = 0x7F;
const MCR_INITIATE: u32 = 1 << 11;
const MCR_READY: u32 = 1 << 7;
const MCR_WRITABLE: u32 = 0x1F1F_C000;
const MRD_READY: u32 = 1 << 16;
const OP_WRITE: u32 = 1;
const OP_READ: u32 = 2;
/// MDC cycles of one access: preamble and frame.
const ACCESS_CYCLES: u64 = 64;

/// Event kind of the interface.
pub(super) const KIND: u8 = 8;

/// The interface.
#[derive(Serialize, Deserialize)]
pub(super) struct Mdio {
    control: u32,
    command: u32,
    write_data: u32,
    read_data: u16,
    busy: Timer,
    phy_address: u32,
    phy: Phy,
}

impl Mdio {
    /// An interface with a PHY at `phy_address`, plugged in if `cable`.
    pub(super) fn new(phy_address: u8, cable: bool) -> Self {
        Self {
            control: 0,
            command: 0,
            write_data: 0,
            read_data: 0,
            busy: Timer::new(KIND),
            phy_address: u32::from(phy_address),
            phy: Phy::new(phy::KSZ9031, cable),
        }
    }

    /// Reset of the MAC and, through its reset output, of the PHY.
    pub(super) fn reset(&mut self) {
        let mut busy = core::mem::replace(&mut self.busy, Timer::new(KIND));
        busy.disarm();
        *self = Self { busy, ..Self::new(self.phy_address as u8, self.phy.cable) };
    }

    /// The PHY has a link.
    pub(super) fn link(&self) -> bool {
        self.phy.link()
    }

    /// Reads the register at `offset` from MC.
    pub(super) fn read(&self, offset: u64) -> u32 {
        let idle = self.busy.due().is_none();
        match offset {
            0x0 => self.control,
            0x4 => self.command | if idle { MCR_READY } else { 0 },
            0x8 => self.write_data,
            0xC => u32::from(self.read_data) | if idle { MRD_READY } else { 0 },
            _ => 0,
        }
    }

    /// Writes the register at `offset` from MC. A command while one is under way, or while the interface is disabled, is lost.
    pub(super) fn write(&mut self, cx: &mut dyn Context, offset: u64, value: u32) {
        match offset {
            0x0 => self.control = value & MC_WRITABLE,
            0x4 if self.busy.due().is_none() => {
                self.command = value & MCR_WRITABLE;
                if value & MCR_INITIATE != 0 && self.control & MC_ENABLE != 0 {
                    let divisor = u64::from(self.control & 0x3F);
                    let cycle = CLOCK.as_ps() * 2 * (1 + divisor);
                    let at = cx.now() + SimTime::from_ps(cycle * ACCESS_CYCLES);
                    self.busy.arm(cx, at);
                }
            }
            0x8 => self.write_data = value & 0xFFFF,
            _ => {}
        }
    }

    /// Takes an event; true if an access has ended.
    pub(super) fn event(&mut self, token: u64) -> bool {
        if !self.busy.fires(token) {
            return false;
        }
        let (address, register, operation) =
            (self.command >> 24 & 0x1F, self.command >> 16 & 0x1F, self.command >> 14 & 3);
        let present = address == self.phy_address;
        match operation {
            // Nobody drives the line of an absent PHY; its pull-up reads as ones.
            OP_READ => self.read_data = if present { self.phy.read(register) } else { 0xFFFF },
            OP_WRITE if present => self.phy.write(register, self.write_data as u16),
            _ => {}
        }
        true
    }
}
