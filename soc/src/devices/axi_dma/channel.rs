//! What both channels have: the registers, interrupt coalescing and errors. The engines ([`super::mm2s`], [`super::s2mm`]) move
//! the data.
//!
//! Coalescing (PG021): a counter loaded with IRQThreshold counts packets down; at zero it sets IOC_Irq and reloads. The delay timer
//! runs from the end of a packet that no interrupt has covered yet, starts anew with each packet, and sets Dly_Irq. Threshold k, fewer than
//! k packets and no delay: no interrupt, ever, as on the real thing.

use super::timing::{clocks, delay_units};
use crate::device::Context;
use crate::devices::irq_line::IrqLine;
use crate::devices::timer::Timer;
use serde::{Deserialize, Serialize};

/// DMACR: run.
const CR_RS: u32 = 1;
/// DMACR: always reads 1.
const CR_ONE: u32 = 1 << 1;
/// DMACR: soft reset.
pub(super) const CR_RESET: u32 = 1 << 2;
/// DMACR: ignore Cmplt in fetched descriptors.
const CR_CYCLIC: u32 = 1 << 4;
/// DMACR: everything that software can set.
const CR_WRITABLE: u32 = 0xFFFF_7019;
/// DMACR after reset: threshold 1.
const CR_AFTER_RESET: u32 = 0x0001_0000;

const SR_HALTED: u32 = 1;
const SR_IDLE: u32 = 1 << 1;
const SR_SG_INCLUDED: u32 = 1 << 3;
/// DMASR: zero length, or similar.
pub(super) const SR_DMA_INT_ERR: u32 = 1 << 4;
/// DMASR: bad buffer address.
pub(super) const SR_DMA_DEC_ERR: u32 = 1 << 6;
/// DMASR: a completed descriptor was fetched.
pub(super) const SR_SG_INT_ERR: u32 = 1 << 8;
/// DMASR: bad descriptor address.
pub(super) const SR_SG_DEC_ERR: u32 = 1 << 10;
const IRQ_IOC: u32 = 1 << 12;
const IRQ_DELAY: u32 = 1 << 13;
const IRQ_ERROR: u32 = 1 << 14;
const IRQS: u32 = IRQ_IOC | IRQ_DELAY | IRQ_ERROR;

/// What a register write asks of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Nothing.
    None,
    /// RS went from 1 to 0.
    Stop,
    /// TAILDESC was written while running.
    Tail,
    /// Reset both channels.
    Reset,
}

/// Registers and interrupt state of a channel.
#[derive(Serialize, Deserialize)]
pub(super) struct Channel {
    line: IrqLine,
    address_mask: u64,
    control: u32,
    errors: u32,
    irqs: u32,
    halted: bool,
    idle: bool,
    /// CURDESC as it reads: the descriptor at work, or the last one.
    current: u64,
    tail: u64,
    /// The descriptor to fetch next.
    pub(super) next: u64,
    counter: u32,
    /// A packet has ended that no interrupt has covered.
    uncovered: bool,
    delay: Timer,
}

impl Channel {
    /// A channel after reset. `delay_kind` names its delay timer.
    pub(super) fn new(line: usize, address_mask: u64, delay_kind: u8) -> Self {
        Self {
            line: IrqLine::new(line),
            address_mask,
            control: CR_AFTER_RESET,
            errors: 0,
            irqs: 0,
            halted: true,
            idle: false,
            current: 0,
            tail: 0,
            next: 0,
            counter: 1,
            uncovered: false,
            delay: Timer::new(delay_kind),
        }
    }

    /// Back to the state after reset.
    pub(super) fn reset(&mut self, cx: &mut dyn Context) {
        // Line and timer keep their identity; the rest is as after power-on.
        let fresh = Self::new(0, self.address_mask, 0);
        let Self { line, delay, .. } = core::mem::replace(self, fresh);
        (self.line, self.delay) = (line, delay);
        self.delay.disarm();
        self.drive_line(cx);
    }

    /// RS is set and no error has stopped the channel.
    pub(super) fn running(&self) -> bool {
        self.control & CR_RS != 0
    }

    /// Cyclic mode: completed descriptors may be used again.
    pub(super) fn cyclic(&self) -> bool {
        self.control & CR_CYCLIC != 0
    }

    /// Reads register `offset` (relative to the channel).
    pub(super) fn read(&self, cx: &dyn Context, offset: u64) -> u32 {
        match offset {
            0x00 => self.control | CR_ONE,
            0x04 => self.status(cx),
            0x08 => self.current as u32,
            0x0C => (self.current >> 32) as u32,
            0x10 => self.tail as u32,
            0x14 => (self.tail >> 32) as u32,
            _ => 0,
        }
    }

    fn status(&self, cx: &dyn Context) -> u32 {
        let flag = |set, bit| if set { bit } else { 0 };
        flag(self.halted, SR_HALTED)
            | flag(self.idle, SR_IDLE)
            | SR_SG_INCLUDED
            | self.errors
            | self.irqs
            | self.counter << 16
            | self.delay_elapsed(cx) << 24
    }

    /// Units that the delay timer has run.
    fn delay_elapsed(&self, cx: &dyn Context) -> u32 {
        let Some(due) = self.delay.due() else { return 0 };
        let units = self.control >> 24;
        let left = due.as_ps().saturating_sub(cx.now().as_ps()).div_ceil(delay_units(1).as_ps());
        units.saturating_sub(left as u32)
    }

    /// Writes register `offset`.
    pub(super) fn write(&mut self, cx: &mut dyn Context, offset: u64, value: u32) -> Command {
        let low = |old: u64| (old & !0xFFFF_FFFF | u64::from(value & !0x3F)) & self.address_mask;
        let high = |old: u64| (old & 0xFFFF_FFFF | u64::from(value) << 32) & self.address_mask;
        let wide = self.address_mask > u64::from(u32::MAX);
        match offset {
            0x00 => return self.write_control(cx, value),
            0x04 => {
                self.irqs &= !(value & IRQS);
                self.drive_line(cx);
            }
            0x08 if self.halted => self.set_current(low(self.current)),
            0x0C if self.halted => self.set_current(high(self.current)),
            // The last half to be written is the trigger: the only one in a 32-bit build, the upper one in a wider build.
            0x10 => {
                self.tail = low(self.tail);
                return self.tail_written(!wide);
            }
            0x14 => {
                self.tail = high(self.tail);
                return self.tail_written(wide);
            }
            _ => {}
        }
        Command::None
    }

    fn set_current(&mut self, address: u64) {
        self.current = address;
        self.next = address;
    }

    fn tail_written(&mut self, trigger: bool) -> Command {
        if !trigger || !self.running() {
            return Command::None;
        }
        self.idle = false;
        Command::Tail
    }

    fn write_control(&mut self, cx: &mut dyn Context, value: u32) -> Command {
        if value & CR_RESET != 0 {
            return Command::Reset;
        }
        let was_running = self.running();
        let mut control = value & CR_WRITABLE;
        if control & 0x00FF_0000 == 0 {
            // A threshold of 0 is not taken.
            control |= self.control & 0x00FF_0000;
        }
        if self.errors != 0 {
            // Only a reset recovers.
            control &= !CR_RS;
        }
        self.control = control;
        self.counter = control >> 16 & 0xFF;
        match (control >> 24, self.delay.due()) {
            (0, _) => self.delay.disarm(),
            (_, None) if self.uncovered => self.arm_delay(cx),
            _ => {}
        }
        if self.running() {
            self.halted = false;
        }
        self.drive_line(cx);
        if was_running && !self.running() { Command::Stop } else { Command::None }
    }

    /// The engine works on the descriptor at `address`.
    pub(super) fn at_work_on(&mut self, address: u64) {
        self.current = address;
    }

    /// The engine is done with the descriptor at `address`; returns true if the next one may be fetched, false if the channel pauses.
    pub(super) fn may_go_on(&mut self, address: u64, next: u64) -> bool {
        self.next = next;
        if !self.running() {
            self.halted = true;
        } else if address == self.tail {
            self.idle = true;
        }
        self.running() && !self.idle
    }

    /// The engine has drained after RS was cleared.
    pub(super) fn halt(&mut self) {
        self.halted = true;
        self.idle = false;
    }

    /// Stops on the error bits `errors`.
    pub(super) fn fail(&mut self, cx: &mut dyn Context, errors: u32) {
        self.errors |= errors;
        self.irqs |= IRQ_ERROR;
        self.control &= !CR_RS;
        self.halt();
        self.drive_line(cx);
    }

    /// A packet begins: a running delay timer starts anew.
    pub(super) fn packet_begins(&mut self, cx: &mut dyn Context) {
        if self.delay.due().is_some() {
            self.arm_delay(cx);
        }
    }

    /// A packet is complete in memory, or in the MAC.
    pub(super) fn packet_ends(&mut self, cx: &mut dyn Context) {
        self.counter = self.counter.saturating_sub(1);
        if self.counter == 0 {
            self.interrupt(cx, IRQ_IOC);
        } else {
            self.uncovered = true;
            if self.control >> 24 != 0 {
                self.arm_delay(cx);
            }
        }
    }

    /// Takes an event; true if it was the delay timer's.
    pub(super) fn event(&mut self, cx: &mut dyn Context, token: u64) -> bool {
        let fires = self.delay.fires(token);
        if fires && self.uncovered {
            self.interrupt(cx, IRQ_DELAY);
        }
        fires
    }

    /// Both interrupts cover all packets so far and reload the counter.
    fn interrupt(&mut self, cx: &mut dyn Context, irq: u32) {
        self.irqs |= irq;
        self.counter = self.control >> 16 & 0xFF;
        self.uncovered = false;
        self.delay.disarm();
        self.drive_line(cx);
    }

    fn arm_delay(&mut self, cx: &mut dyn Context) {
        let at = cx.now() + delay_units(u64::from(self.control >> 24));
        self.delay.arm(cx, at);
    }

    fn drive_line(&mut self, cx: &mut dyn Context) {
        self.line.set(cx, self.irqs & self.control & IRQS != 0);
    }
}

/// Arms `timer` in `count` clocks.
pub(super) fn after(timer: &mut Timer, cx: &mut dyn Context, count: u64) {
    let at = cx.now() + clocks(count);
    timer.arm(cx, at);
}
