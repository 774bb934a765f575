//! 16550 UART: transmits to the console at once, receives what the host pushes, or what a [`Keyboard`] has when it is asked.

use crate::device::{BusError, Context, Device, Exit};
use crate::error::SocError;
use crate::snapshot::State;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

const RBR_THR: u64 = 0;
const IER: u64 = 1;
const IIR_FCR: u64 = 2;
const LCR: u64 = 3;
const MCR: u64 = 4;
const LSR: u64 = 5;
const MSR: u64 = 6;
const SCR: u64 = 7;

const IER_RECEIVED: u8 = 1;
const IER_EMPTY: u8 = 2;
const LCR_DLAB: u8 = 0x80;
const LSR_DATA: u8 = 1;
/// Transmit holding register and shifter empty: always, a byte leaves at once.
const LSR_EMPTY: u8 = 0x60;
const IIR_NONE: u8 = 1;
const IIR_EMPTY: u8 = 2;
const IIR_RECEIVED: u8 = 4;
const IIR_FIFO: u8 = 0xC0;
/// CTS, DSR, DCD asserted.
const MSR_READY: u8 = 0xB0;

/// Token of the event that asks the keyboard; smaller ones are received bytes.
pub(crate) const ASK_KEYBOARD: u64 = 1 << 8;
/// Between two questions: fast enough for a hand.
const ASK_EVERY: SimTime = SimTime::from_us(1_000);

/// What a keyboard has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// These bytes, or none yet.
    Bytes(Vec<u8>),
    /// Nothing will come any more.
    Closed,
    /// The machine is to end with this exit code.
    Quit(u32),
}

/// Somebody who types at the serial port in the host's time.
pub trait Keyboard {
    /// What has been typed by `now`. May take its time, to keep simulated time from running away.
    fn poll(&mut self, now: SimTime) -> Typed;
}

/// The device; byte registers, one byte apart.
#[derive(Default, Serialize, Deserialize)]
pub struct Uart {
    #[serde(skip)]
    keyboard: Option<Box<dyn Keyboard>>,
    ier: u8,
    fcr: u8,
    lcr: u8,
    mcr: u8,
    scr: u8,
    divisor: u16,
    received: VecDeque<u8>,
    /// "Transmitter empty" was raised and not yet seen through IIR.
    empty_pending: bool,
}

impl Uart {
    /// Plugs a keyboard in; the first event [`ASK_KEYBOARD`] starts it.
    pub(crate) fn set_keyboard(&mut self, keyboard: Box<dyn Keyboard>) {
        self.keyboard = Some(keyboard);
    }

    fn ask_keyboard(&mut self, cx: &mut dyn Context) {
        let Some(keyboard) = &mut self.keyboard else { return };
        // Who types wants to see the prompt first.
        cx.flush_console();
        match keyboard.poll(cx.now()) {
            Typed::Bytes(bytes) => {
                self.received.extend(bytes);
                cx.alarm(ASK_KEYBOARD, cx.now() + ASK_EVERY);
            }
            Typed::Closed => self.keyboard = None,
            Typed::Quit(code) => cx.stop(Exit::Code(code)),
        }
    }

    fn cause(&self) -> u8 {
        if self.ier & IER_RECEIVED != 0 && !self.received.is_empty() {
            IIR_RECEIVED
        } else if self.ier & IER_EMPTY != 0 && self.empty_pending {
            IIR_EMPTY
        } else {
            IIR_NONE
        }
    }

    fn drive_line(&self, cx: &mut dyn Context) {
        cx.irq(0, self.cause() != IIR_NONE);
    }
}

impl Device for Uart {
    fn read(&mut self, cx: &mut dyn Context, offset: u64, size: u8) -> Result<u64, BusError> {
        if !matches!(size, 1 | 4) {
            return Err(BusError::Size);
        }
        let latch = self.lcr & LCR_DLAB != 0;
        let value = match offset {
            RBR_THR if latch => self.divisor as u8,
            IER if latch => (self.divisor >> 8) as u8,
            RBR_THR => self.received.pop_front().unwrap_or(0),
            IER => self.ier,
            IIR_FCR => {
                let cause = self.cause();
                if cause == IIR_EMPTY {
                    self.empty_pending = false;
                }
                cause | if self.fcr & 1 != 0 { IIR_FIFO } else { 0 }
            }
            LCR => self.lcr,
            MCR => self.mcr,
            LSR => LSR_EMPTY | if self.received.is_empty() { 0 } else { LSR_DATA },
            MSR => MSR_READY,
            SCR => self.scr,
            _ => 0,
        };
        self.drive_line(cx);
        Ok(u64::from(value))
    }

    fn write(&mut self, cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<(), BusError> {
        if !matches!(size, 1 | 4) {
            return Err(BusError::Size);
        }
        let value = value as u8;
        let latch = self.lcr & LCR_DLAB != 0;
        match offset {
            RBR_THR if latch => self.divisor = self.divisor & 0xFF00 | u16::from(value),
            IER if latch => self.divisor = self.divisor & 0xFF | u16::from(value) << 8,
            RBR_THR => {
                cx.console(value);
                self.empty_pending = true;
            }
            IER => {
                if value & IER_EMPTY != 0 && self.ier & IER_EMPTY == 0 {
                    self.empty_pending = true;
                }
                self.ier = value & 0xF;
            }
            IIR_FCR => {
                self.fcr = value;
                if value & 2 != 0 {
                    self.received.clear();
                }
            }
            LCR => self.lcr = value,
            MCR => self.mcr = value & 0x1F,
            SCR => self.scr = value,
            _ => {}
        }
        self.drive_line(cx);
        Ok(())
    }

    /// A byte from the host, whose value is the token, or time to ask the keyboard.
    fn event(&mut self, cx: &mut dyn Context, token: u64) {
        if token == ASK_KEYBOARD {
            self.ask_keyboard(cx);
        } else {
            self.received.push_back(token as u8);
        }
        self.drive_line(cx);
    }

    /// Without the keyboard: that is not part of the machine.
    fn save(&self) -> Result<State, SocError> {
        State::of(self)
    }

    fn restore(&mut self, state: &State) -> Result<(), SocError> {
        let keyboard = self.keyboard.take();
        *self = Self { keyboard, ..state.read()? };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::Bench;

    #[test]
    fn transmit() {
        let (mut uart, mut cx) = (Uart::default(), Bench::default());
        assert_eq!(uart.read(&mut cx, LSR, 1), Ok(0x60));
        for byte in b"ok" {
            uart.write(&mut cx, RBR_THR, 1, u64::from(*byte)).unwrap();
        }
        assert_eq!(cx.console, b"ok");
        uart.write(&mut cx, LCR, 1, 0x80).unwrap();
        uart.write(&mut cx, RBR_THR, 1, 3).unwrap();
        assert_eq!(cx.console, b"ok", "divisor latch, not data");
    }

    #[test]
    fn transmitter_empty_interrupt_is_acknowledged_by_iir() {
        let (mut uart, mut cx) = (Uart::default(), Bench::default());
        uart.write(&mut cx, IER, 1, 2).unwrap();
        assert_eq!(cx.irqs.get(&0), Some(&true));
        assert_eq!(uart.read(&mut cx, IIR_FCR, 1), Ok(2));
        assert_eq!(cx.irqs.get(&0), Some(&false));
        uart.write(&mut cx, RBR_THR, 1, 65).unwrap();
        assert_eq!(cx.irqs.get(&0), Some(&true));
    }

    #[test]
    fn receive() {
        let (mut uart, mut cx) = (Uart::default(), Bench::default());
        uart.write(&mut cx, IER, 1, 1).unwrap();
        uart.event(&mut cx, u64::from(b'x'));
        assert_eq!(cx.irqs.get(&0), Some(&true));
        assert_eq!(uart.read(&mut cx, LSR, 1), Ok(0x61));
        assert_eq!(uart.read(&mut cx, IIR_FCR, 1), Ok(4));
        assert_eq!(uart.read(&mut cx, RBR_THR, 1), Ok(u64::from(b'x')));
        assert_eq!(cx.irqs.get(&0), Some(&false));
        assert_eq!(uart.read(&mut cx, 8, 2), Err(BusError::Size));
    }

    #[test]
    fn a_keyboard_is_asked_until_it_is_closed() {
        struct Script(std::vec::IntoIter<Typed>);
        impl Keyboard for Script {
            fn poll(&mut self, _now: SimTime) -> Typed {
                self.0.next().unwrap_or(Typed::Quit(9))
            }
        }
        let typed =
            vec![Typed::Bytes(b"a".to_vec()), Typed::Bytes(Vec::new()), Typed::Bytes(b"bc".to_vec()), Typed::Closed];
        let (mut uart, mut cx) = (Uart::default(), Bench::default());
        uart.set_keyboard(Box::new(Script(typed.into_iter())));
        for asked in 0..6 {
            uart.event(&mut cx, ASK_KEYBOARD);
            let again = (asked < 3).then_some((ASK_KEYBOARD, cx.now + ASK_EVERY));
            assert_eq!(cx.alarms.pop_first(), again, "not asked again once it is closed");
        }
        let got: Vec<u64> = (0..4).map(|_| uart.read(&mut cx, RBR_THR, 1).unwrap()).collect();
        assert_eq!((got, cx.stopped), (vec![b'a'.into(), b'b'.into(), b'c'.into(), 0], None));
        uart.set_keyboard(Box::new(Script(Vec::new().into_iter())));
        uart.event(&mut cx, ASK_KEYBOARD);
        assert_eq!(cx.stopped, Some(Exit::Code(9)));
    }
}
