//! The PHY behind the MAC's MDIO port: find it, let it negotiate, learn the speed (IEEE 802.3 clause 22).

use super::regs::{mac, phy};
use crate::mmio::Registers;
use crate::nic::Link;

/// Polls of the MDIO ready bit before the access is given up. An access takes 64 periods of the 2.5 MHz clock, 25.6 us;
/// a poll of an uncached register takes at least 0.1 us.
const MDIO_TRIES: u32 = 10_000;

/// The PHY found on the MDIO bus.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phy {
    address: u32,
}

fn access(registers: &mut impl Registers, phy: u32, register: u32, operation: u32) -> Option<()> {
    registers.poll(mac::MDIO_MCR, MDIO_TRIES, |value| value & mac::MCR_READY != 0)?;
    let target = phy << mac::MCR_PHY_SHIFT | register << mac::MCR_REGISTER_SHIFT;
    registers.write(mac::MDIO_MCR, target | operation | mac::MCR_INITIATE);
    registers.poll(mac::MDIO_MCR, MDIO_TRIES, |value| value & mac::MCR_READY != 0)?;
    Some(())
}

/// Turns the MDIO port on; a reset turns it off.
fn enable(registers: &mut impl Registers) {
    registers.write(mac::MDIO_MC, mac::MC_ENABLE | mac::MC_DIVISOR);
}

impl Phy {
    /// Looks for the lowest address that answers.
    pub fn find(registers: &mut impl Registers) -> Option<Self> {
        enable(registers);
        (0..32).map(|address| Self { address }).find(|phy| {
            // An address without a PHY reads all-ones (pulled up); all-zero is no identifier either.
            !matches!(phy.read(registers, phy::ID1), None | Some(0xFFFF | 0))
        })
    }

    /// `None` if the MDIO port does not get ready.
    fn read(&self, registers: &mut impl Registers, register: u32) -> Option<u16> {
        access(registers, self.address, register, mac::MCR_READ)?;
        Some(registers.read(mac::MDIO_MRD) as u16)
    }

    fn write(&self, registers: &mut impl Registers, register: u32, value: u16) -> Option<()> {
        registers.write(mac::MDIO_MWD, u32::from(value));
        access(registers, self.address, register, mac::MCR_WRITE)
    }

    /// After a reset: starts autonegotiation unless it is already complete. Takes seconds on copper; poll [`Self::link`].
    pub fn negotiate(&self, registers: &mut impl Registers) -> Option<()> {
        enable(registers);
        if self.read(registers, phy::BMSR)? & phy::BMSR_NEGOTIATED == 0 {
            self.write(registers, phy::BMCR, phy::BMCR_RESTART)?;
        }
        Some(())
    }

    /// The link now: the best full-duplex mode that both ends advertise.
    pub fn link(&self, registers: &mut impl Registers) -> Option<Link> {
        // Link status is latched low: the first read may tell of the past.
        self.read(registers, phy::BMSR)?;
        let status = self.read(registers, phy::BMSR)?;
        let up = phy::BMSR_LINK | phy::BMSR_NEGOTIATED;
        if status & up != up {
            return Some(Link::Down);
        }
        if status & phy::BMSR_EXTENDED != 0 {
            let common = self.read(registers, phy::GBCR)? & self.read(registers, phy::GBSR)? >> 2;
            if common & phy::GB_FULL != 0 {
                return Some(Link::Up(1000));
            }
        }
        let common = self.read(registers, phy::ANAR)? & self.read(registers, phy::ANLPAR)?;
        Some(match common {
            modes if modes & phy::AN_100_FULL != 0 => Link::Up(100),
            modes if modes & phy::AN_10_FULL != 0 => Link::Up(10),
            _ => Link::Down,
        })
    }
}
