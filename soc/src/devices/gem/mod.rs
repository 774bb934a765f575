//! Cadence GEM, the gigabit MAC with its own DMA of the FU540 and of QEMU's `sifive_u` (Zynq-7000 Technical Reference Manual, UG585,
//! appendix B.18, for the registers; the FU540 adds a management block that selects the transmit clock).
//!
//! ```text
//!   ring ──▶ transmit.rs ──▶ Port::send          registers.rs   control, status, interrupts
//!   ring ◀── receive.rs  ◀── filter.rs ◀── Port  mdio.rs        one PHY, at address 0
//! ```
//!
//! The build is QEMU's: one queue, 64-bit addresses possible, interrupt status cleared by reading. What differs from QEMU's model: the
//! transmitter and MDIO take their time, short frames are padded, a recycled receive descriptor is found without a write to
//! NWCTRL, checksum offload is there. Stored but without effect: burst sizes, endianness, pause frames, VLAN and screener registers.
//! Not there: IEEE 1588, priority queues, half duplex, timestamps in extended descriptors.
//!
//! The DMA is charged as the board's AXI DMA is ([`super::axi_dma::Timing`]): a memory latency per descriptor, bursts for the data.

mod descriptor;
mod filter;
mod mdio;
mod receive;
mod registers;
mod statistics;
mod transmit;

use super::fcs;
use super::internet_checksum::{self, Verdict};
use super::port::Port;
use crate::device::{BusError, Context, Device};
use crate::error::SocError;
use crate::snapshot::State;
use crate::wire::{Arrival, FCS_BYTES, Link, MIN_FRAME_BYTES};
use filter::Filter;
use mdio::Mdio;
use receive::{Packet, Receiver};
use registers::{Registers, config, control, tx_status};
use serde::{Deserialize, Serialize};
use statistics::{Counter, Statistics};
use transmit::Transmitter;

/// Size of the MAC's registers.
pub const REGISTERS: u64 = 0x2000;
/// Offset of the management block.
pub const MANAGEMENT_OFFSET: u64 = 0x1_0000;
/// Size of the whole window.
pub const WINDOW: u64 = MANAGEMENT_OFFSET + 0x1000;

const KIND_LINK: u8 = 0;
const KIND_FETCH: u8 = 1;
const KIND_WIRE: u8 = 2;
const KIND_WRITE: u8 = 3;
const KIND_MDIO: u8 = 4;

const NWCTRL: u64 = 0x000;
const NWCFG: u64 = 0x004;
const NWSTATUS: u64 = 0x008;
const DMACFG: u64 = 0x010;
const TXSTATUS: u64 = 0x014;
const RXQBASE: u64 = 0x018;
const TXQBASE: u64 = 0x01C;
const RXSTATUS: u64 = 0x020;
const ISR: u64 = 0x024;
const IER: u64 = 0x028;
const IDR: u64 = 0x02C;
const IMR: u64 = 0x030;
const PHYMNTNC: u64 = 0x034;
const JUMBO_MAX_LEN: u64 = 0x048;
const FILTER: u64 = 0x080;
const FILTER_END: u64 = 0x0A8;
const MODID: u64 = 0x0FC;
const STATISTICS: u64 = 0x100;
const STATISTICS_END: u64 = 0x1B4;
const DESIGN_CONFIG_1: u64 = 0x280;
const TXQBASE_HIGH: u64 = 0x4C8;
const RXQBASE_HIGH: u64 = 0x4D4;

/// As QEMU's `sifive_u`: what each part of the design was built with.
const MODULE: u32 = 0x1007_0109;
/// Design configuration 1 to 6: status cleared by reading, 32-bit bus; jumbo; no 1588; 64-bit addresses, one queue.
const DESIGN: [u32; 6] = [0x02D0_0111, 0x2AB1_2800, 0, 0, 0x002F_2045, 0x0080_0000];
const JUMBO_AFTER_RESET: u32 = 10_240;
const JUMBO_MASK: u32 = 0x3FFF;
/// Cycles of a register access, as behind the board's AXI interconnect.
const ACCESS_CYCLES: u64 = 20;

/// The MAC.
#[derive(Serialize, Deserialize)]
pub struct Gem {
    registers: Registers,
    filter: Filter,
    statistics: Statistics,
    mdio: Mdio,
    transmitter: Transmitter,
    receiver: Receiver,
    port: Port,
    /// Management register 0: bit 0 clear selects the 125 MHz clock of 1000 Mb/s.
    clock_select: u32,
}

impl Gem {
    /// A MAC after power-on, with a cable in it or none.
    pub fn new(link: Option<Link>) -> Self {
        Self {
            registers: Registers::new(JUMBO_AFTER_RESET),
            filter: Filter::default(),
            statistics: Statistics::default(),
            mdio: Mdio::new(link.is_some(), KIND_MDIO),
            transmitter: Transmitter::new(KIND_FETCH, KIND_WIRE),
            receiver: Receiver::new(KIND_WRITE),
            port: Port::new(link, KIND_LINK),
            clock_select: 0,
        }
    }

    /// The wire carries traffic: cable, PHY link, and the MAC runs at the speed that was negotiated.
    fn connected(&self) -> bool {
        self.port.link().is_some()
            && self.mdio.link()
            && self.registers.config & config::GIGABIT != 0
            && self.clock_select & 1 == 0
    }

    /// Lets wire, transmitter and receiver go as far as they can at this time.
    fn run(&mut self, cx: &mut dyn Context) {
        let connected = self.connected();
        let Self { registers, statistics, transmitter, port, .. } = self;
        if let Some(frame) = transmitter.run(cx, registers, statistics, port, connected) {
            self.receive(cx, Arrival { frame, intact: true });
        }
        let local = self.registers.control & control::LOOPBACK_LOCAL != 0;
        for arrival in self.port.poll(cx) {
            if self.connected() && !local {
                self.receive(cx, arrival);
            }
        }
        self.receiver.run(cx, &mut self.registers, &mut self.statistics);
    }

    fn receive(&mut self, cx: &mut dyn Context, arrival: Arrival) {
        if self.registers.control & control::RX_ENABLE == 0 {
            return;
        }
        let Arrival { frame, intact } = arrival;
        let counter = match self.judge(&frame, intact) {
            Ok(flags) => return self.accept(cx, frame, intact, flags),
            Err(counter) => counter,
        };
        if let Some(counter) = counter {
            self.statistics.count(counter);
        }
    }

    /// The descriptor's bits for a frame that is wanted; which counter tells of one that is not.
    fn judge(&self, frame: &[u8], intact: bool) -> Result<u32, Option<Counter>> {
        let on = |bit| self.registers.config & bit != 0;
        if !intact && !on(config::IGNORE_FCS) {
            return Err(Some(Counter::FcsErrors));
        }
        if frame.len() < MIN_FRAME_BYTES {
            return Err(Some(Counter::Undersize));
        }
        if frame.len() + FCS_BYTES > self.registers.receive_limit() {
            return Err(Some(Counter::Oversize));
        }
        // IEEE 802.3, clause 3.2.6: below 0x600 the field is a length.
        let field = usize::from(u16::from_be_bytes([frame[12], frame[13]]));
        if on(config::LENGTH_ERROR_DISCARD) && field < 0x600 && frame.len() < 14 + field {
            return Err(Some(Counter::LengthErrors));
        }
        let matched = self.filter.accepts(frame, self.registers.config).ok_or(None)?;
        let checksum = if !on(config::RX_CHECKSUM) {
            0
        } else {
            match internet_checksum::check(frame) {
                Verdict::NotChecked => 0,
                Verdict::IpGood => 1,
                Verdict::TcpGood => 2,
                Verdict::UdpGood => 3,
                Verdict::IpBad => return Err(Some(Counter::IpErrors)),
                Verdict::TcpBad => return Err(Some(Counter::TcpErrors)),
                Verdict::UdpBad => return Err(Some(Counter::UdpErrors)),
            }
        };
        let tagged = if frame[12..14] == [0x81, 0x00] { 1 << 21 | u32::from(frame[14] >> 5) << 17 } else { 0 };
        Ok(matched.bits() | checksum << 22 | tagged)
    }

    fn accept(&mut self, cx: &mut dyn Context, mut frame: Vec<u8>, intact: bool, flags: u32) {
        self.statistics.received(&frame);
        if self.registers.config & config::FCS_REMOVE == 0 {
            let mut sequence = fcs::fcs(&frame);
            if !intact {
                // Which of its bits the wire damaged nobody knows.
                sequence[0] ^= 1;
            }
            frame.extend(sequence);
        }
        let packet = Packet { bytes: frame, flags };
        self.receiver.accept(cx, &mut self.registers, &mut self.statistics, packet);
    }

    fn read_register(&mut self, cx: &mut dyn Context, offset: u64) -> u32 {
        match offset {
            NWCTRL => self.registers.control,
            NWCFG => self.registers.config,
            NWSTATUS => self.mdio.status(),
            DMACFG => self.registers.dma,
            TXSTATUS => self.registers.tx_status | if self.transmitter.going() { tx_status::GO } else { 0 },
            RXQBASE => self.receiver.pointer() as u32,
            TXQBASE => self.transmitter.pointer() as u32,
            RXQBASE_HIGH => (self.receiver.pointer() >> 32) as u32,
            TXQBASE_HIGH => (self.transmitter.pointer() >> 32) as u32,
            RXSTATUS => self.registers.rx_status,
            ISR => self.registers.take_status(cx),
            IMR => self.registers.mask(),
            PHYMNTNC => self.mdio.maintenance,
            JUMBO_MAX_LEN => self.registers.jumbo_limit,
            FILTER..FILTER_END => self.filter.read(offset - FILTER),
            MODID => MODULE,
            STATISTICS..STATISTICS_END => self.statistics.read(offset - STATISTICS),
            DESIGN_CONFIG_1.. => DESIGN.get(((offset - DESIGN_CONFIG_1) / 4) as usize).copied().unwrap_or(0),
            _ => 0,
        }
    }

    fn write_register(&mut self, cx: &mut dyn Context, offset: u64, value: u32) {
        let low = |old: u64| old & !0xFFFF_FFFF | u64::from(value & !3);
        let high = |old: u64| old & 0xFFFF_FFFF | u64::from(value) << 32;
        match offset {
            NWCTRL => {
                self.registers.control = value & control::STORED & !control::CLEAR_STATISTICS;
                if value & control::CLEAR_STATISTICS != 0 {
                    self.statistics = Statistics::default();
                }
                self.transmitter.control(value);
                self.receiver.control(value);
            }
            NWCFG => self.registers.config = value,
            DMACFG => self.registers.dma = value,
            TXSTATUS => self.registers.tx_status &= !value,
            RXQBASE => self.receiver.set_pointer(low(self.receiver.pointer())),
            TXQBASE => self.transmitter.set_pointer(low(self.transmitter.pointer())),
            RXQBASE_HIGH => self.receiver.set_pointer(high(self.receiver.pointer())),
            TXQBASE_HIGH => self.transmitter.set_pointer(high(self.transmitter.pointer())),
            RXSTATUS => self.registers.rx_status &= !value,
            IER => self.registers.change_mask(cx, 0, value),
            IDR => self.registers.change_mask(cx, value, 0),
            PHYMNTNC => self.mdio.write(cx, &self.registers, value),
            JUMBO_MAX_LEN => self.registers.jumbo_limit = value & JUMBO_MASK,
            FILTER..FILTER_END => self.filter.write(offset - FILTER, value),
            _ => {}
        }
    }
}

impl Device for Gem {
    fn read(&mut self, cx: &mut dyn Context, offset: u64, size: u8) -> Result<u64, BusError> {
        match (offset, size) {
            (..REGISTERS, 4) => Ok(self.read_register(cx, offset).into()),
            (MANAGEMENT_OFFSET, 4) => Ok(self.clock_select.into()),
            (REGISTERS..MANAGEMENT_OFFSET, _) => Err(BusError::Unmapped),
            (_, 4) => Ok(0),
            _ => Err(BusError::Size),
        }
    }

    fn write(&mut self, cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<(), BusError> {
        match (offset, size) {
            (..REGISTERS, 4) => self.write_register(cx, offset, value as u32),
            (MANAGEMENT_OFFSET, 4) => self.clock_select = value as u32 & 1,
            (REGISTERS..MANAGEMENT_OFFSET, _) => return Err(BusError::Unmapped),
            (_, 4) => {}
            _ => return Err(BusError::Size),
        }
        self.run(cx);
        Ok(())
    }

    fn event(&mut self, cx: &mut dyn Context, token: u64) {
        self.port.event(token);
        self.mdio.event(cx, &mut self.registers, token);
        self.transmitter.event(cx, &mut self.registers, token);
        self.receiver.event(cx, &mut self.registers, token);
        self.run(cx);
    }

    fn latency_cycles(&self) -> u64 {
        ACCESS_CYCLES
    }

    fn save(&self) -> Result<State, SocError> {
        self.port.check_repeatable()?;
        State::of(self)
    }

    fn restore(&mut self, state: &State) -> Result<(), SocError> {
        let mut saved: Self = state.read()?;
        saved.port.plug_in(&mut self.port)?;
        *self = saved;
        Ok(())
    }
}
