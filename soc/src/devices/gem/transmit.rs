//! The transmitter: walks its ring from START until it meets a descriptor that is software's.
//!
//! ```text
//!   idle ──START──▶ descriptors of a frame ──(fetch takes time)──▶ staged ──(wire free)──▶ on the wire ──▶ first descriptor used
//!    ▲                     │ used                    │ cannot be read
//!    └──TXUBR──────────────┘◀──corrupt, bus error────┘
//! ```
//!
//! The next frame is fetched while one is on the wire. The `used` bit comes back in the frame's first descriptor only, once the frame
//! has been sent.

use super::descriptor::{Descriptor, TX_CHECKSUM_SHIFT, TX_CORRUPT, TX_LAST, TX_LENGTH, TX_NO_CRC, TX_USED, TX_WRAP};
use super::registers::{Registers, control, dma, interrupt, tx_status};
use super::statistics::Statistics;
use crate::device::Context;
use crate::devices::axi_dma::{Timing, clocks};
use crate::devices::internet_checksum::{self, Unfilled};
use crate::devices::timer::Timer;
use crate::devices::{fcs, port::Port};
use crate::wire::{FCS_BYTES, MIN_FRAME_BYTES};
use serde::{Deserialize, Serialize};

/// Buffers of one frame; more than any driver uses, and an end for a ring without a last buffer.
const BUFFERS: usize = 256;
/// Frame that the packet memory holds (DMACFG is stored only: this build has what jumbo frames need).
const FRAME_LIMIT: u64 = 10_240;

/// A frame whose descriptors have been read.
#[derive(Serialize, Deserialize)]
struct Fetch {
    first: Descriptor,
    buffers: Vec<(u64, u32)>,
    /// A buffer was software's, or there were too many of them, or too many bytes.
    broken: bool,
}

/// A frame ready for the wire.
#[derive(Serialize, Deserialize)]
struct Staged {
    first: Descriptor,
    bytes: Vec<u8>,
    intact: bool,
    flags: u32,
}

/// The transmitter.
#[derive(Serialize, Deserialize)]
pub(super) struct Transmitter {
    base: u64,
    next: u64,
    going: bool,
    fetching: Option<Fetch>,
    fetch: Timer,
    staged: Option<Staged>,
    /// First descriptor of the frame on the wire, and what is to be written to it.
    sending: Option<(Descriptor, u32)>,
    wire: Timer,
}

impl Transmitter {
    /// An idle transmitter; the kinds name its timers.
    pub(super) fn new(fetch_kind: u8, wire_kind: u8) -> Self {
        Self {
            base: 0,
            next: 0,
            going: false,
            fetching: None,
            fetch: Timer::new(fetch_kind),
            staged: None,
            sending: None,
            wire: Timer::new(wire_kind),
        }
    }

    /// The queue pointer as it reads.
    pub(super) fn pointer(&self) -> u64 {
        self.next
    }

    /// Sets the queue pointer.
    pub(super) fn set_pointer(&mut self, address: u64) {
        self.base = address;
        self.next = address;
    }

    /// TXSTATUS.GO.
    pub(super) fn going(&self) -> bool {
        self.going
    }

    /// NWCTRL was written: `written` with the bits that do not stay.
    pub(super) fn control(&mut self, written: u32) {
        if written & control::TX_ENABLE == 0 {
            // The pipeline is cleared and the pointer goes back; a frame that is on the wire leaves whole.
            self.going = false;
            self.fetching = None;
            self.fetch.disarm();
            self.staged = None;
            self.next = self.base;
        } else if written & control::HALT_TX != 0 {
            self.going = false;
        } else if written & control::START_TX != 0 {
            self.going = true;
        }
    }

    /// Goes as far as it can. `connected`: frames reach the wire.
    pub(super) fn run(
        &mut self,
        cx: &mut dyn Context,
        registers: &mut Registers,
        statistics: &mut Statistics,
        port: &mut Port,
        connected: bool,
    ) -> Option<Vec<u8>> {
        let mut looped = None;
        while self.wire.due().is_none()
            && let Some(frame) = self.staged.take()
        {
            statistics.sent(&frame.bytes);
            self.sending = Some((frame.first, frame.flags));
            let local = registers.control & control::LOOPBACK_LOCAL != 0;
            if local {
                looped = Some(frame.bytes.clone());
            }
            let free = if connected && !local { port.send(cx, frame.bytes, frame.intact) } else { None };
            match free {
                Some(free) => self.wire.arm(cx, free),
                // Into the void, or back: at once.
                None => self.sent(cx, registers),
            }
            self.start_fetch(cx, registers);
        }
        self.start_fetch(cx, registers);
        looped
    }

    fn start_fetch(&mut self, cx: &mut dyn Context, registers: &mut Registers) {
        if !self.going || self.fetching.is_some() || self.staged.is_some() {
            return;
        }
        let Ok(first) = Descriptor::fetch(cx, self.next, registers.dma) else {
            self.going = false;
            registers.tx_status |= tx_status::BUS_ERROR;
            registers.raise(cx, interrupt::BUS_ERROR);
            return;
        };
        if first.words[1] & TX_USED != 0 {
            self.going = false;
            registers.tx_status |= tx_status::USED_BIT_READ;
            registers.raise(cx, interrupt::TX_USED_BIT_READ);
            return;
        }
        let mut fetch = Fetch { first, buffers: Vec::new(), broken: false };
        let mut descriptor = first;
        loop {
            fetch.buffers.push((descriptor.buffer(u32::MAX), descriptor.words[1] & TX_LENGTH));
            self.next = if descriptor.words[1] & TX_WRAP != 0 {
                self.base
            } else {
                descriptor.at.wrapping_add(registers.descriptor_bytes(dma::TX_EXTENDED))
            };
            if descriptor.words[1] & TX_LAST != 0 {
                break;
            }
            match Descriptor::fetch(cx, self.next, registers.dma) {
                Ok(next) if next.words[1] & TX_USED == 0 && fetch.buffers.len() < BUFFERS => descriptor = next,
                _ => {
                    fetch.broken = true;
                    break;
                }
            }
        }
        let bytes: u64 = fetch.buffers.iter().map(|&(_, length)| u64::from(length)).sum();
        fetch.broken |= bytes > FRAME_LIMIT;
        let timing = Timing::default();
        let descriptors = clocks(timing.tail_to_fetch + timing.fetch * fetch.buffers.len() as u64);
        let at = cx.now() + descriptors + timing.transmit_data(bytes.min(FRAME_LIMIT));
        self.fetch.arm(cx, at);
        self.fetching = Some(fetch);
    }

    /// Takes an event.
    pub(super) fn event(&mut self, cx: &mut dyn Context, registers: &mut Registers, token: u64) {
        if self.wire.fires(token) {
            self.sent(cx, registers);
        }
        if self.fetch.fires(token)
            && let Some(fetch) = self.fetching.take()
        {
            match read(cx, &fetch) {
                Some(bytes) => self.staged = Some(finish(fetch.first, bytes, registers)),
                None => {
                    self.going = false;
                    // The descriptor was read from RAM.
                    let _ = fetch.first.write(cx, 1, fetch.first.words[1] | TX_USED | TX_CORRUPT);
                    registers.tx_status |= tx_status::BUS_ERROR;
                    registers.raise(cx, interrupt::BUS_ERROR);
                }
            }
        }
    }

    fn sent(&mut self, cx: &mut dyn Context, registers: &mut Registers) {
        if let Some((first, flags)) = self.sending.take() {
            // The descriptor was read from RAM.
            let _ = first.write(cx, 1, first.words[1] | TX_USED | flags);
            registers.tx_status |= tx_status::COMPLETE;
            registers.raise(cx, interrupt::TX_COMPLETE);
        }
    }
}

/// The bytes of a frame; none if they cannot be had.
fn read(cx: &mut dyn Context, fetch: &Fetch) -> Option<Vec<u8>> {
    if fetch.broken {
        return None;
    }
    let mut bytes = Vec::new();
    for &(address, length) in &fetch.buffers {
        let start = bytes.len();
        bytes.resize(start + length as usize, 0);
        cx.dma_read(address, &mut bytes[start..]).ok()?;
    }
    Some(bytes)
}

/// Check sequence, padding and checksums.
fn finish(first: Descriptor, mut bytes: Vec<u8>, registers: &Registers) -> Staged {
    if first.words[1] & TX_NO_CRC != 0 {
        // Neither padded nor filled in.
        let given = bytes.split_off(bytes.len().saturating_sub(FCS_BYTES));
        let intact = given == fcs::fcs(&bytes);
        return Staged { first, bytes, intact, flags: 0 };
    }
    let filled = if registers.dma & dma::TX_CHECKSUM != 0 { internet_checksum::fill(&mut bytes) } else { Ok(()) };
    let error = match filled {
        Ok(()) => 0,
        Err(Unfilled::NotIpv4) => 4,
        Err(Unfilled::Fragment) => 5,
        Err(Unfilled::OtherProtocol) => 6,
    };
    bytes.resize(bytes.len().max(MIN_FRAME_BYTES), 0);
    Staged { first, bytes, intact: true, flags: error << TX_CHECKSUM_SHIFT }
}
