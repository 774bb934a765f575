//! A gigabit PHY (IEEE 802.3, clauses 22 and 40) as the MACs' management interfaces see it.
//!
//! It negotiates 1000BASE-T full duplex in no time: on the real thing that takes seconds in which nothing happens.

use serde::{Deserialize, Serialize};

/// BMCR: reset, restart negotiation: both clear themselves.
const BMCR_SELF_CLEARING: u16 = 1 << 15 | 1 << 9;
const BMCR_RESET: u16 = 1 << 15;
const BMCR_POWER_DOWN: u16 = 1 << 11;
/// BMCR after reset: negotiation on, 1000 Mb/s, full duplex.
const BMCR_AFTER_RESET: u16 = 0x1140;
/// BMSR: abilities, without the two state bits.
const BMSR_ABILITIES: u16 = 0x7949;
const BMSR_LINK: u16 = 1 << 2;
const BMSR_NEGOTIATED: u16 = 1 << 5;

/// What tells one PHY from another.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Model {
    /// Registers 2 and 3.
    identity: [u16; 2],
    /// Number and content of the vendor's register that tells of a link at 1000 Mb/s, full duplex.
    status: (u32, u16),
}

/// Micrel KSZ9031RNX; register 31 is PHY control.
pub(super) const KSZ9031: Model = Model { identity: [0x0022, 0x1622], status: (31, 0x0048) };
/// Marvell 88E1111; register 17 is the PHY-specific status: 1000 Mb/s, full duplex, resolved, link.
pub(super) const M88E1111: Model = Model { identity: [0x0141, 0x0CC2], status: (17, 0xAC00) };

/// Its registers.
#[derive(Serialize, Deserialize)]
pub(super) struct Phy {
    model: Model,
    /// There is a cable in the socket.
    pub(super) cable: bool,
    control: u16,
    advertisement: u16,
    gigabit_control: u16,
}

impl Phy {
    /// A PHY after reset.
    pub(super) fn new(model: Model, cable: bool) -> Self {
        Self { model, cable, control: BMCR_AFTER_RESET, advertisement: 0x01E1, gigabit_control: 0x0300 }
    }

    /// There is a link.
    pub(super) fn link(&self) -> bool {
        self.cable && self.control & BMCR_POWER_DOWN == 0
    }

    /// Reads register `register`.
    pub(super) fn read(&self, register: u32) -> u16 {
        // What the partner has told is known only with a link.
        let partner = |word: u16| if self.link() { word } else { 0 };
        match register {
            0 => self.control,
            1 => BMSR_ABILITIES | partner(BMSR_LINK | BMSR_NEGOTIATED),
            2 | 3 => self.model.identity[register as usize - 2],
            4 => self.advertisement,
            // All of 10 and 100 Mb/s, acknowledged.
            5 => partner(0x45E1),
            // The partner can negotiate.
            6 => partner(0x0001),
            9 => self.gigabit_control,
            // 1000BASE-T full duplex; both receivers fine.
            10 => partner(0x3800),
            // 1000BASE-T, full and half duplex.
            15 => 0x3000,
            _ if register == self.model.status.0 => partner(self.model.status.1),
            _ => 0,
        }
    }

    /// Writes register `register`.
    pub(super) fn write(&mut self, register: u32, value: u16) {
        match register {
            0 if value & BMCR_RESET != 0 => *self = Self::new(self.model, self.cable),
            0 => self.control = value & !BMCR_SELF_CLEARING,
            4 => self.advertisement = value,
            9 => self.gigabit_control = value,
            _ => {}
        }
    }
}
