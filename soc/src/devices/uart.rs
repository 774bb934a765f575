//! 16550 UART: transmits to the console at once, receives what the host pushes.

use crate::device::{BusError, Context, Device};
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

/// The device; byte registers, one byte apart.
#[derive(Default)]
pub struct Uart {
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

    /// A byte from the host: the token is its value.
    fn event(&mut self, cx: &mut dyn Context, token: u64) {
        self.received.push_back(token as u8);
        self.drive_line(cx);
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
}
