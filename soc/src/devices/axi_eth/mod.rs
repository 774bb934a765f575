//! Xilinx AXI 1G/2.5G Ethernet Subsystem (PG138): registers, transmit and receive memory, address filter, MDIO with a PHY,
//! statistics, and the near end of a [`Link`].
//!
//! ```text
//!   MM2S stream ──▶ transmit memory ──▶ pad, check sequence ──▶ Link::send
//!   S2MM stream ◀── receive memory  ◀── length, filter      ◀── Link::receive
//! ```
//!
//! Store and forward in both directions. A full transmit memory holds the DMA back; a frame that finds no room in the receive memory is
//! dropped (IS.RxFifoOvr). Resetting the DMA resets this block too (PG138, "Resets"): the receive and transmit reset inputs are the
//! DMA's outputs.
//!
//! Stored but without effect: IFGP, TPF (no pause frames are sent), VLAN tagging and stripping, AVB, 1588, half duplex. Not modelled and
//! reading 0: PPST, PHYC, MIS to MIC, the extended VLAN and multicast tables. Received pause frames are taken out of the stream
//! but do not pause the transmitter.

mod checksum;
mod filter;
mod mdio;
mod statistics;

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

pub use checksum::Offload;

use super::axi_dma::{RxPacket, Streams, TxPacket};
use super::fcs;
use super::internet_checksum::{self, Verdict};
use super::irq_line::IrqLine;
use super::port::Port;
use super::timer::Timer;
use crate::device::{BusError, Context};
use crate::time::SimTime;
use crate::wire::{Arrival, FCS_BYTES, Link, MIN_FRAME_BYTES};
use filter::Filter;
use mdio::Mdio;
use statistics::{Counter, Statistics};

/// Size of the register window.
pub const WINDOW: u64 = 0x4_0000;

/// Event kinds; those of the DMA are below, MDIO's is 8.
const KIND_TRANSMIT: u8 = 6;
const KIND_LINK: u8 = 7;
const KIND_PHY_RESET: u8 = 9;

/// Time from reset to IS.PhyRstCmplt. The real subsystem holds its PHY in reset for 10 ms, in which nothing can happen.
const PHY_RESET: SimTime = SimTime::from_us(20);

const RAF: u64 = 0x000;
const IS: u64 = 0x00C;
const IP: u64 = 0x010;
const IE: u64 = 0x014;
const STATISTICS: u64 = 0x200;
const STATISTICS_END: u64 = 0x400;
const RCW1: u64 = 0x404;
const TC: u64 = 0x408;
const FCC: u64 = 0x40C;
const EMMC: u64 = 0x410;
const RXFC: u64 = 0x414;
const TXFC: u64 = 0x418;
const ID: u64 = 0x4F8;
const ABILITY: u64 = 0x4FC;
const MDIO: u64 = 0x500;
const MDIO_END: u64 = 0x510;
const FILTER: u64 = 0x700;
const FILTER_END: u64 = 0x790;

/// RAF: clear the statistics.
const RAF_STATISTICS_RESET: u32 = 1 << 13;
const IS_ACCESS_COMPLETE: u32 = 1 << 0;
const IS_RX_COMPLETE: u32 = 1 << 2;
const IS_RX_REJECT: u32 = 1 << 3;
const IS_RX_OVERFLOW: u32 = 1 << 4;
const IS_TX_COMPLETE: u32 = 1 << 5;
const IS_RX_DCM_LOCK: u32 = 1 << 6;
const IS_MGT_READY: u32 = 1 << 7;
const IS_PHY_RESET_COMPLETE: u32 = 1 << 8;
const IS_ALL: u32 = 0x1FF;
/// RCW1 and TC: reset this side.
const RESET: u32 = 1 << 31;
/// RCW1 and TC: frames longer than standard.
const JUMBO: u32 = 1 << 30;
/// RCW1 and TC: the check sequence is software's.
const IN_BAND_FCS: u32 = 1 << 29;
/// RCW1 and TC: on.
const ENABLE: u32 = 1 << 28;
/// RCW1 and TC: tagged frames may be 4 bytes longer.
const VLAN: u32 = 1 << 27;
/// RCW1: do not compare length field and length.
const LENGTH_CHECK_OFF: u32 = 1 << 25;
/// FCC: take pause frames out of the stream.
const RX_FLOW_CONTROL: u32 = 1 << 29;
/// EMMC: speed field, and its value for 1000 Mb/s.
const SPEED: u32 = 3 << 30;
const SPEED_1000: u32 = 2 << 30;
/// RXFC and TXFC: the limit is on.
const LIMIT_ENABLE: u32 = 1 << 16;
const LIMIT: u32 = 0x7FFF;

/// Core version 9.0: with it Linux looks for the upper address registers of the DMA and takes what it finds.
const VERSION: u32 = 0x0900_0000;
/// 10, 100, 1000 Mb/s, statistics, frame filter.
const ABILITIES: u32 = 0x0000_0507;

/// Registers that hold a value and nothing more happens on writing: offset, value after reset, writable bits.
const PLAIN: [(u64, u32, u32); 13] = [
    (RAF, 0, 0x5FFE),
    (0x004, 0, 0xFFFF),
    (0x008, 0, 0xFF),
    (0x018, 0, u32::MAX),
    (0x01C, 0, u32::MAX),
    (0x020, 0, u32::MAX),
    (0x024, 0, 0xFFFF),
    (0x028, 0, u32::MAX),
    (0x02C, 0, u32::MAX),
    (0x400, 0, u32::MAX),
    (FCC, 0x6000_0000, 0x6000_0000),
    (RXFC, 1518, LIMIT_ENABLE | LIMIT),
    (TXFC, 1518, LIMIT_ENABLE | LIMIT),
];

/// Longest standard frame, without check sequence.
const STANDARD_FRAME_BYTES: usize = 1514;
const TAG_BYTES: usize = 4;

/// How the block was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Transmit memory in bytes.
    pub tx_memory: usize,
    /// Receive memory in bytes.
    pub rx_memory: usize,
    /// Address of the PHY on the MDIO bus, 0 to 31.
    pub phy_address: u8,
    /// Checksum offload, transmit.
    pub tx_checksum: Offload,
    /// Checksum offload, receive.
    pub rx_checksum: Offload,
}

impl Default for Build {
    /// 32 KiB each way, PHY 1, full offload.
    fn default() -> Self {
        Self {
            tx_memory: 32 << 10,
            rx_memory: 32 << 10,
            phy_address: 1,
            tx_checksum: Offload::Full,
            rx_checksum: Offload::Full,
        }
    }
}

/// A frame in the transmit memory.
#[derive(Serialize, Deserialize)]
struct TxFrame {
    bytes: Vec<u8>,
    intact: bool,
    /// Room it takes.
    room: usize,
}

/// The MAC.
#[derive(Serialize, Deserialize)]
pub struct AxiEthernet {
    build: Build,
    line: IrqLine,
    port: Port,
    plain: [u32; PLAIN.len()],
    receive_config: u32,
    transmit_config: u32,
    speed: u32,
    status: u32,
    enable: u32,
    filter: Filter,
    statistics: Statistics,
    mdio: Mdio,
    tx_queue: VecDeque<TxFrame>,
    tx_used: usize,
    /// Room of the frame on the wire; it is free when `wire` fires.
    tx_sending: usize,
    wire: Timer,
    rx_queue: VecDeque<RxPacket>,
    rx_used: usize,
    rx_overflows: u64,
    phy_reset: Timer,
}

impl AxiEthernet {
    /// The socket for the cable.
    pub(super) fn port(&self) -> &Port {
        &self.port
    }

    /// The same.
    pub(super) fn port_mut(&mut self) -> &mut Port {
        &mut self.port
    }

    /// A MAC after power-on, with a cable in it or none. `line` is its interrupt line.
    pub fn new(build: Build, line: usize, link: Option<Link>) -> Self {
        let mdio = Mdio::new(build.phy_address, link.is_some());
        Self {
            build,
            line: IrqLine::new(line),
            port: Port::new(link, KIND_LINK),
            plain: PLAIN.map(|(_, reset, _)| reset),
            receive_config: ENABLE,
            transmit_config: ENABLE,
            speed: SPEED_1000,
            status: IS_RX_DCM_LOCK | IS_MGT_READY | IS_PHY_RESET_COMPLETE,
            enable: 0,
            filter: Filter::default(),
            statistics: Statistics::default(),
            mdio,
            tx_queue: VecDeque::new(),
            tx_used: 0,
            tx_sending: 0,
            wire: Timer::new(KIND_TRANSMIT),
            rx_queue: VecDeque::new(),
            rx_used: 0,
            rx_overflows: 0,
            phy_reset: Timer::new(KIND_PHY_RESET),
        }
    }

    /// The link, if a cable is plugged in.
    pub fn link(&self) -> Option<&Link> {
        self.port.link()
    }

    /// Frames dropped because the receive memory was full.
    pub fn rx_overflows(&self) -> u64 {
        self.rx_overflows
    }

    /// Reset by the DMA's reset outputs. A frame that is on the wire leaves whole.
    pub fn reset(&mut self, cx: &mut dyn Context) {
        self.plain = PLAIN.map(|(_, reset, _)| reset);
        self.receive_config = ENABLE;
        self.transmit_config = ENABLE;
        self.speed = SPEED_1000;
        self.status = IS_RX_DCM_LOCK | IS_MGT_READY;
        self.enable = 0;
        self.filter = Filter::default();
        self.statistics = Statistics::default();
        self.mdio.reset();
        self.tx_queue.clear();
        self.tx_used = 0;
        self.tx_sending = 0;
        self.wire.disarm();
        self.rx_queue.clear();
        self.rx_used = 0;
        let at = cx.now() + PHY_RESET;
        self.phy_reset.arm(cx, at);
        self.drive_line(cx);
    }

    /// Reads the 32-bit register at `offset`. Errors: [`BusError::Size`].
    pub fn read(&mut self, offset: u64, size: u8) -> Result<u64, BusError> {
        if size != 4 {
            return Err(BusError::Size);
        }
        Ok(u64::from(match offset {
            IS => self.status,
            IP => self.status & self.enable,
            IE => self.enable,
            STATISTICS..STATISTICS_END => self.statistics.read(offset - STATISTICS),
            RCW1 => self.receive_config,
            TC => self.transmit_config,
            EMMC => self.speed,
            ID => VERSION,
            ABILITY => ABILITIES,
            MDIO..MDIO_END => self.mdio.read(offset - MDIO),
            FILTER..FILTER_END => self.filter.read(offset - FILTER),
            _ => self.plain(offset),
        }))
    }

    /// Writes the 32-bit register at `offset`. Errors: [`BusError::Size`].
    pub fn write(&mut self, cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<(), BusError> {
        if size != 4 {
            return Err(BusError::Size);
        }
        let value = value as u32;
        match offset {
            IS => self.status &= !value,
            IE => self.enable = value & IS_ALL,
            RCW1 => self.receive_config = if value & RESET != 0 { ENABLE } else { value },
            TC => self.transmit_config = if value & RESET != 0 { ENABLE } else { value },
            EMMC => self.speed = value & SPEED,
            MDIO..MDIO_END => self.mdio.write(cx, offset - MDIO, value),
            FILTER..FILTER_END => self.filter.write(offset - FILTER, value),
            _ => self.set_plain(offset, value),
        }
        if offset == RAF && value & RAF_STATISTICS_RESET != 0 {
            self.statistics = Statistics::default();
        }
        self.drive_line(cx);
        Ok(())
    }

    fn plain(&self, offset: u64) -> u32 {
        let at = PLAIN.iter().position(|&(register, ..)| register == offset);
        at.map_or(0, |at| self.plain[at])
    }

    fn set_plain(&mut self, offset: u64, value: u32) {
        if let Some(at) = PLAIN.iter().position(|&(register, ..)| register == offset) {
            self.plain[at] = value & PLAIN[at].2;
        }
    }

    /// Takes an event; events of others are ignored.
    pub fn event(&mut self, cx: &mut dyn Context, token: u64) {
        if self.wire.fires(token) {
            self.tx_used -= self.tx_sending;
            self.tx_sending = 0;
            self.status |= IS_TX_COMPLETE;
        }
        if self.phy_reset.fires(token) {
            self.status |= IS_PHY_RESET_COMPLETE;
        }
        if self.mdio.event(token) {
            self.status |= IS_ACCESS_COMPLETE;
        }
        self.port.event(token);
        self.drive_line(cx);
    }

    /// Moves frames between memories and wire as far as they go, and tells the machine when the peer has finished.
    pub fn run(&mut self, cx: &mut dyn Context) {
        self.transmit(cx);
        for arrival in self.port.poll(cx) {
            self.receive(arrival);
        }
        self.drive_line(cx);
    }

    /// The wire carries traffic: cable, PHY link, and the MAC runs at the speed that was negotiated.
    fn connected(&self) -> bool {
        self.port.link().is_some() && self.mdio.link() && self.speed == SPEED_1000
    }

    fn transmit(&mut self, cx: &mut dyn Context) {
        while self.wire.due().is_none() && self.transmit_config & ENABLE != 0 {
            let Some(frame) = self.tx_queue.pop_front() else { return };
            if self.connected() {
                self.statistics.sent(&frame.bytes);
                self.tx_sending = frame.room;
                if let Some(free) = self.port.send(cx, frame.bytes, frame.intact) {
                    self.wire.arm(cx, free);
                }
            } else {
                // Into the void.
                self.tx_used -= frame.room;
            }
        }
    }

    fn receive(&mut self, arrival: Arrival) {
        if self.receive_config & ENABLE == 0 || !self.connected() {
            return;
        }
        let frame = &arrival.frame;
        if let Err(reason) = self.judge(&arrival) {
            if let Some(counter) = reason {
                self.statistics.count(counter);
            }
            self.status |= IS_RX_REJECT;
            return;
        }
        if frame[12..14] == [0x88, 0x08] {
            self.statistics.count(Counter::RxControl);
            if frame[14..16] == [0x00, 0x01] {
                self.statistics.count(Counter::RxPause);
            }
            if self.plain(FCC) & RX_FLOW_CONTROL != 0 {
                return;
            }
        }
        if !self.filter.accepts(frame, self.plain(RAF)) {
            self.status |= IS_RX_REJECT;
            return;
        }
        self.statistics.received(frame);
        let packet = self.packet(arrival.frame);
        if self.rx_used + packet.bytes.len() > self.build.rx_memory {
            self.rx_overflows += 1;
            self.status |= IS_RX_OVERFLOW;
            return;
        }
        self.rx_used += packet.bytes.len();
        self.rx_queue.push_back(packet);
        self.status |= IS_RX_COMPLETE;
    }

    /// Whether a frame is well-formed; if not, which counter tells.
    fn judge(&self, arrival: &Arrival) -> Result<(), Option<Counter>> {
        let frame = &arrival.frame;
        if !arrival.intact {
            return Err(Some(Counter::RxFcsErrors));
        }
        if frame.len() < MIN_FRAME_BYTES {
            return Err(Some(Counter::RxUndersize));
        }
        if frame.len() > self.frame_limit(self.receive_config, RXFC, self.build.rx_memory, frame) {
            return Err(Some(Counter::RxOversize));
        }
        // IEEE 802.3, clause 3.2.6: below 0x600 the field is a length; what is beyond it is padding.
        let field = usize::from(u16::from_be_bytes([frame[12], frame[13]]));
        let too_short = field < 0x600 && frame.len() < 14 + field;
        let not_padding = field < 0x600 && frame.len() > MIN_FRAME_BYTES.max(14 + field);
        if self.receive_config & LENGTH_CHECK_OFF == 0 && (too_short || not_padding) {
            return Err(Some(Counter::RxLengthErrors));
        }
        Ok(())
    }

    /// Longest frame, without check sequence, under configuration word `config` and limit register `limit`.
    fn frame_limit(&self, config: u32, limit: u64, memory: usize, frame: &[u8]) -> usize {
        let tagged = config & VLAN != 0 && frame.get(12..14) == Some(&[0x81, 0x00]);
        let built = match config & JUMBO != 0 {
            true => memory,
            false => STANDARD_FRAME_BYTES + if tagged { TAG_BYTES } else { 0 },
        };
        let limit = self.plain(limit);
        let set = ((limit & LIMIT) as usize).saturating_sub(FCS_BYTES);
        if limit & LIMIT_ENABLE != 0 { built.min(set) } else { built }
    }

    /// The packet for the S2MM stream, with its status words.
    fn packet(&self, mut frame: Vec<u8>) -> RxPacket {
        let group = frame[0] & 1 != 0;
        let broadcast = frame.starts_with(&[0xFF; 6]);
        let ip_group = frame.starts_with(&[0x01, 0x00, 0x5E]);
        let (raw, verdict) = match self.build.rx_checksum {
            Offload::None => (0, Verdict::NotChecked),
            Offload::Partial => (checksum::raw_sum(&frame), Verdict::NotChecked),
            Offload::Full => (0, internet_checksum::check(&frame)),
        };
        if self.receive_config & IN_BAND_FCS != 0 {
            let fcs = fcs::fcs(&frame);
            frame.extend(fcs);
        }
        let word = |at: usize| u32::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
        let address = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
        let flags = u32::from(group && !broadcast) | u32::from(ip_group) << 1 | u32::from(broadcast) << 2;
        let app = [
            if group { address(&frame[4..6]) } else { 0 },
            if group { address(&frame[..4]) } else { 0 },
            flags | checksum::status(verdict) << 3,
            word(12) << 16 | u32::from(raw),
            // At most the receive memory, which the field holds up to 64 KiB.
            word(14) << 16 | (frame.len() as u32 & 0xFFFF),
        ];
        RxPacket { bytes: frame, app }
    }

    fn drive_line(&mut self, cx: &mut dyn Context) {
        self.line.set(cx, self.status & self.enable != 0);
    }
}

impl Streams for AxiEthernet {
    fn tx_ready(&self, bytes: usize) -> bool {
        // A packet beyond the memory is let in when the memory is empty, and dropped.
        self.tx_used == 0 || self.tx_used + bytes <= self.build.tx_memory
    }

    fn tx_limit(&self) -> usize {
        self.build.tx_memory
    }

    fn tx(&mut self, packet: TxPacket) {
        let TxPacket { mut bytes, app, dropped } = packet;
        let room = bytes.len();
        let mut intact = true;
        if self.transmit_config & IN_BAND_FCS != 0 {
            let end = bytes.len().saturating_sub(FCS_BYTES);
            let given = bytes.split_off(end);
            intact = given == fcs::fcs(&bytes);
        } else {
            checksum::complete(&mut bytes, &app, self.build.tx_checksum);
            if bytes.len() < MIN_FRAME_BYTES {
                bytes.resize(MIN_FRAME_BYTES, 0);
            }
        }
        if dropped || bytes.len() > self.frame_limit(self.transmit_config, TXFC, self.build.tx_memory, &bytes) {
            self.statistics.count(Counter::TxOversize);
            return;
        }
        self.tx_used += room;
        self.tx_queue.push_back(TxFrame { bytes, intact, room });
    }

    fn rx_front(&self) -> Option<&RxPacket> {
        self.rx_queue.front()
    }

    fn rx_pop(&mut self) {
        if let Some(packet) = self.rx_queue.pop_front() {
            self.rx_used -= packet.bytes.len();
        }
    }
}
