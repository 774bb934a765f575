//! PHY maintenance: one register, a frame of 64 MDC cycles (IEEE 802.3, clause 22.2.4.5) per access, and NWSTATUS that says when it is over.

use super::registers::{Registers, config, control, interrupt};
use crate::device::Context;
use crate::devices::axi_dma::CLOCK;
use crate::devices::phy::{M88E1111, Phy};
use crate::devices::timer::Timer;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};

/// Address of the PHY, as on QEMU's `sifive_u`.
pub(super) const PHY_ADDRESS: u32 = 0;
const OP_READ: u32 = 2;
const OP_WRITE: u32 = 1;
/// Idle, and the pulled-up data line.
const STATUS_IDLE: u32 = 6;
const STATUS_BUSY: u32 = 2;
const ACCESS_CYCLES: u64 = 64;
/// Bus clocks per MDC cycle, by NWCFG 20:18.
const DIVISORS: [u64; 8] = [8, 16, 32, 48, 64, 96, 128, 224];

/// The interface.
#[derive(Serialize, Deserialize)]
pub(super) struct Mdio {
    /// PHYMNTNC.
    pub(super) maintenance: u32,
    busy: Timer,
    phy: Phy,
}

impl Mdio {
    /// An interface with a PHY that a cable is plugged into, or none; `kind` names its timer.
    pub(super) fn new(cable: bool, kind: u8) -> Self {
        Self { maintenance: 0, busy: Timer::new(kind), phy: Phy::new(M88E1111, cable) }
    }

    /// The PHY has a link.
    pub(super) fn link(&self) -> bool {
        self.phy.link()
    }

    /// NWSTATUS.
    pub(super) fn status(&self) -> u32 {
        if self.busy.due().is_some() { STATUS_BUSY } else { STATUS_IDLE }
    }

    /// Writes PHYMNTNC; without effect while an access is under way. With the port disabled nothing happens on the wire.
    pub(super) fn write(&mut self, cx: &mut dyn Context, registers: &Registers, value: u32) {
        if self.busy.due().is_some() {
            return;
        }
        self.maintenance = value;
        // Clause 22 frames only.
        if registers.control & control::MANAGEMENT_ENABLE != 0 && value >> 30 == 1 {
            let divisor = DIVISORS[(registers.config >> config::MDC_SHIFT & 7) as usize];
            let at = cx.now() + SimTime::from_ps(CLOCK.as_ps() * divisor * ACCESS_CYCLES);
            self.busy.arm(cx, at);
        }
    }

    /// Takes an event.
    pub(super) fn event(&mut self, cx: &mut dyn Context, registers: &mut Registers, token: u64) {
        if !self.busy.fires(token) {
            return;
        }
        let word = self.maintenance;
        let (operation, address, register) = (word >> 28 & 3, word >> 23 & 0x1F, word >> 18 & 0x1F);
        let present = address == PHY_ADDRESS;
        match operation {
            OP_READ => {
                // Nobody drives the line of an absent PHY; its pull-up reads as ones.
                let data = if present { self.phy.read(register) } else { 0xFFFF };
                self.maintenance = word & !0xFFFF | u32::from(data);
            }
            OP_WRITE if present => self.phy.write(register, word as u16),
            _ => {}
        }
        registers.raise(cx, interrupt::MANAGEMENT_DONE);
    }
}
