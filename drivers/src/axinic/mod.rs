//! Xilinx AXI DMA (scatter-gather) with AXI Ethernet 1G/2.5G (product guides PG021 and PG138).
//!
//! ```text
//!            rx_provide, rx_publish                     tx_provide, tx_publish
//!   caller ───────────────────────▶ RX ring  ┌─────┐  ◀─────────────────────── caller
//!          ◀─────────────────────── (S2MM) ◀─│ MAC │◀─ TX ring (MM2S)
//!            rx_return              interrupt └─────┘   tx_return, no interrupt
//! ```
//!
//! The driver owns no pool: buffers are the caller's, lent to the device between `provide` and `return`. It makes no copy and no
//! system call, and never waits except at reset, where each wait is bounded. It believes nothing that the device says beyond
//! "this descriptor is done": lengths are checked against the buffer, frames that are broken or in pieces are dropped and
//! counted. Completion is seen in memory; a register is touched once per batch (tail) and once per interrupt (status).
//!
//! After an error a channel is dead until the DMA is reset, and that resets the MAC too: [`AxiNic::recover`] does all of it.
//!
//! Lengths come from the descriptor's STATUS word, which silicon always fills in (QEMU's model does not: it only sets the
//! status-stream word APP4; QEMU has no RISC-V board with this device).

pub mod channel;
mod driver;
mod phy;
mod regs;
pub mod ring;
mod rx;
mod tx;

pub use crate::nic::{Counters, Event, Link, MAX_FRAME, MIN_RX_BUFFER, RxFrame, TxRefused};
pub use channel::Coalesce;

use self::channel::Channel;
use self::phy::Phy;
use self::regs::{dma, mac};
use self::ring::Ring;
use self::rx::Rx;
use self::tx::Tx;
use crate::dma::{DmaBuffer, DmaRegion};
use crate::mmio::Registers;

/// Polls before a reset is given up. Linux allows 50 ms; a poll takes at least 0.1 us.
const RESET_TRIES: u32 = 500_000;

/// How to set the NIC up.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Station address, first byte on the wire first.
    pub mac_address: [u8; 6],
    /// Receive descriptors, a power of two; one fewer buffers can be outstanding.
    pub rx_descriptors: usize,
    /// Transmit descriptors, likewise.
    pub tx_descriptors: usize,
    /// When received frames interrupt.
    pub rx_interrupt: Coalesce,
}

/// Why the NIC cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The DMA region has no room for the rings.
    OutOfDmaMemory,
    /// The DMA region ends above 4 GiB; the 32-bit build of the engine cannot reach it.
    DmaMemoryTooHigh,
    /// The DMA engine did not come out of reset.
    DmaReset,
    /// The MAC did not come out of reset.
    MacReset,
    /// No PHY answers on the MDIO bus.
    NoPhy,
    /// The MDIO port hangs.
    Mdio,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::OutOfDmaMemory => "the DMA memory is too small for rings and buffers",
            Self::DmaMemoryTooHigh => "the DMA memory lies above 4 GiB",
            Self::DmaReset => "the DMA engine does not come out of reset",
            Self::MacReset => "the MAC does not come out of reset",
            Self::NoPhy => "no PHY answers",
            Self::Mdio => "the MDIO port hangs",
        })
    }
}

impl core::error::Error for Error {}

/// Brings DMA and MAC to their reset state. The MAC hangs on the DMA's reset outputs (PG138), so one follows the other.
fn reset(dma: &mut impl Registers, mac: &mut impl Registers) -> Result<(), Error> {
    for base in [dma::MM2S, dma::S2MM] {
        // Either resets both on silicon; a model may reset the addressed channel only.
        dma.write(base + dma::DMACR, dma::CR_RESET);
        let done = dma.poll(base + dma::DMACR, RESET_TRIES, |value| value & dma::CR_RESET == 0);
        done.ok_or(Error::DmaReset)?;
    }
    let ready = mac::IS_MGT_RDY | mac::IS_PHY_RST_CMPLT;
    mac.poll(mac::IS, RESET_TRIES, |value| value & ready == ready).ok_or(Error::MacReset)?;
    Ok(())
}

/// The NIC: two register windows, two rings.
pub struct AxiNic<R> {
    dma: R,
    mac: R,
    rx: Rx,
    tx: Tx,
    phy: Phy,
    mac_address: [u8; 6],
    counters: Counters,
}

impl<R: Registers> AxiNic<R> {
    /// Resets and starts the NIC whose DMA registers are `dma` and MAC registers `mac`; its rings are carved from `region`, and so
    /// must be the buffers given to it later. It receives nothing before the first [`Self::rx_publish`], and nothing moves
    /// before [`Self::link`] was up once.
    ///
    /// # Panics
    /// If a ring size is not a power of two of at least 2.
    pub fn new(mut dma: R, mut mac: R, region: &mut DmaRegion, config: Config) -> Result<Self, Error> {
        if region.physical_end() > 1 << 32 {
            return Err(Error::DmaMemoryTooHigh);
        }
        let rx_ring = Ring::new(region, config.rx_descriptors).ok_or(Error::OutOfDmaMemory)?;
        let tx_ring = Ring::new(region, config.tx_descriptors).ok_or(Error::OutOfDmaMemory)?;
        let rx_channel = Channel::new(dma::S2MM, Some(config.rx_interrupt));
        let tx_channel = Channel::new(dma::MM2S, None);
        reset(&mut dma, &mut mac)?;
        let phy = Phy::find(&mut mac).ok_or(Error::NoPhy)?;
        let mut nic = Self {
            dma,
            mac,
            rx: Rx { ring: rx_ring, channel: rx_channel, unpublished: false },
            tx: Tx { ring: tx_ring, channel: tx_channel, unpublished: false, longest: MAX_FRAME },
            phy,
            mac_address: config.mac_address,
            counters: Counters::default(),
        };
        nic.start()?;
        Ok(nic)
    }

    /// Programs MAC and channels after a reset and lets them run.
    fn start(&mut self) -> Result<(), Error> {
        // Receiver and transmitter off while the rest is set.
        self.mac.write(mac::RCW1, 0);
        self.mac.write(mac::TC, 0);
        self.mac.write(mac::IE, 0);
        self.mac.write(mac::RAF, 0);
        self.mac.write(mac::FCC, 0);
        self.mac.write(mac::FMI, 0);
        let [a, b, c, d, e, f] = self.mac_address;
        self.mac.write(mac::UAW0, u32::from_le_bytes([a, b, c, d]));
        self.mac.write(mac::UAW1, u32::from_le_bytes([e, f, 0, 0]));
        self.phy.negotiate(&mut self.mac).ok_or(Error::Mdio)?;

        self.rx.channel.start(&mut self.dma, self.rx.ring.next());
        self.tx.channel.start(&mut self.dma, self.tx.ring.next());
        self.mac.write(mac::RCW1, mac::ENABLE);
        let jumbo = if self.tx.longest > MAX_FRAME { mac::JUMBO } else { 0 };
        self.mac.write(mac::TC, mac::ENABLE | jumbo);
        Ok(())
    }

    /// Whether the device can work with a buffer: address below 4 GiB and word aligned (builds without the realignment engine need
    /// that), and big enough for any frame.
    fn usable(&self, buffer: &DmaBuffer) -> bool {
        let end = buffer.physical() + buffer.size() as u64;
        end <= 1 << 32 && buffer.physical().is_multiple_of(4) && buffer.size() >= MIN_RX_BUFFER
    }

    /// Asks the PHY for the link and sets the MAC to its speed: a MAC at another speed moves nothing.
    pub fn link(&mut self) -> Result<Link, Error> {
        let link = self.phy.link(&mut self.mac).ok_or(Error::Mdio)?;
        if let Link::Up(megabits) = link {
            let field = match megabits {
                1000 => 2 << 30,
                100 => 1 << 30,
                _ => 0,
            };
            let rest = self.mac.read(mac::EMMC) & !mac::EMMC_SPEED;
            self.mac.write(mac::EMMC, rest | field);
        }
        Ok(link)
    }

    /// Reads and acknowledges the receive channel's interrupt. Call it before draining [`Self::rx_return`]: a frame that arrives
    /// between the two then interrupts again, the other way round it could be missed.
    pub fn rx_event(&mut self) -> Event {
        self.rx.channel.take_event(&mut self.dma)
    }

    /// Reads and acknowledges the transmit channel's interrupt.
    pub fn tx_event(&mut self) -> Event {
        self.tx.channel.take_event(&mut self.dma)
    }

    /// After [`Event::Error`]: resets the device and starts it again. Frames that were received whole are still to be had; frames
    /// not sent are lost, their buffers come back through [`Self::tx_return`]; drain [`Self::rx_return`] and publish afterwards,
    /// so that the receive buffers are with the device again. The link must be asked for anew.
    pub fn recover(&mut self) -> Result<(), Error> {
        self.counters.resets += 1;
        reset(&mut self.dma, &mut self.mac)?;
        self.rx.ring.fail_unfinished();
        self.tx.ring.fail_unfinished();
        self.rx.unpublished = false;
        self.tx.unpublished = false;
        self.start()
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}
