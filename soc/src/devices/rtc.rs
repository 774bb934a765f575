//! Goldfish RTC: nanoseconds since the epoch, with an alarm. Simulated time starts at a fixed date, so that runs stay identical.
//!
//! Registers as in Linux' `timer-goldfish.h`. The alarm is armed by writing its low half; when its time has come, or if it has already, it is over
//! and an interrupt is pending until CLEAR_INTERRUPT is written. The line follows the pending interrupt while IRQ_ENABLED is 1.

use crate::device::state_is_all;
use crate::device::{BusError, Context, Device};
use crate::devices::timer::Timer;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};

/// 2026-01-01T00:00:00Z.
const START_NS: u64 = 1_767_225_600_000_000_000;
const TIME_LOW: u64 = 0x00;
const TIME_HIGH: u64 = 0x04;
const ALARM_LOW: u64 = 0x08;
const ALARM_HIGH: u64 = 0x0C;
const IRQ_ENABLED: u64 = 0x10;
const CLEAR_ALARM: u64 = 0x14;
const ALARM_STATUS: u64 = 0x18;
const CLEAR_INTERRUPT: u64 = 0x1C;

/// The clock.
#[derive(Serialize, Deserialize)]
pub struct Rtc {
    /// High half, latched by a read of the low half.
    high: u32,
    /// What the alarm registers hold.
    alarm: u64,
    timer: Timer,
    enabled: bool,
    pending: bool,
}

impl Default for Rtc {
    fn default() -> Self {
        Self { high: 0, alarm: 0, timer: Timer::new(0), enabled: false, pending: false }
    }
}

impl Rtc {
    fn arm(&mut self, cx: &mut dyn Context) {
        // The clock starts at START_NS: an earlier alarm is in the past like any other. One beyond the end of simulated time never comes.
        let due = self.alarm.saturating_sub(START_NS);
        if due <= cx.now().as_ns() {
            self.timer.disarm();
            self.pending = true;
        } else if due <= u64::MAX / 1000 {
            self.timer.arm(cx, SimTime::from_ns(due));
        }
    }

    fn drive_line(&self, cx: &mut dyn Context) {
        cx.irq(0, self.pending && self.enabled);
    }
}

impl Device for Rtc {
    fn read(&mut self, cx: &mut dyn Context, offset: u64, size: u8) -> Result<u64, BusError> {
        if size != 4 {
            return Err(BusError::Size);
        }
        Ok(match offset {
            TIME_LOW => {
                let time = START_NS + cx.now().as_ns();
                self.high = (time >> 32) as u32;
                time & 0xFFFF_FFFF
            }
            TIME_HIGH => u64::from(self.high),
            ALARM_LOW => self.alarm & 0xFFFF_FFFF,
            ALARM_HIGH => self.alarm >> 32,
            IRQ_ENABLED => self.enabled.into(),
            ALARM_STATUS => self.timer.due().is_some().into(),
            _ => 0,
        })
    }

    fn write(&mut self, cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<(), BusError> {
        if size != 4 {
            return Err(BusError::Size);
        }
        let value = value & 0xFFFF_FFFF;
        match offset {
            ALARM_LOW => {
                self.alarm = self.alarm >> 32 << 32 | value;
                self.arm(cx);
            }
            ALARM_HIGH => self.alarm = value << 32 | self.alarm & 0xFFFF_FFFF,
            IRQ_ENABLED => self.enabled = value & 1 != 0,
            CLEAR_ALARM => self.timer.disarm(),
            CLEAR_INTERRUPT => self.pending = false,
            _ => return Ok(()),
        }
        self.drive_line(cx);
        Ok(())
    }

    fn event(&mut self, cx: &mut dyn Context, token: u64) {
        if self.timer.fires(token) {
            self.pending = true;
            self.drive_line(cx);
        }
    }

    state_is_all!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeContext;

    fn read(rtc: &mut Rtc, cx: &mut FakeContext, offset: u64) -> u64 {
        rtc.read(cx, offset, 4).unwrap()
    }

    fn write(rtc: &mut Rtc, cx: &mut FakeContext, offset: u64, value: u64) {
        rtc.write(cx, offset, 4, value & 0xFFFF_FFFF).unwrap();
    }

    fn set_alarm(rtc: &mut Rtc, cx: &mut FakeContext, after_ns: u64) {
        let at = START_NS + cx.now().as_ns() + after_ns;
        write(rtc, cx, ALARM_HIGH, at >> 32);
        write(rtc, cx, ALARM_LOW, at);
    }

    #[test]
    fn halves_belong_together() {
        let (mut rtc, mut cx) = (Rtc::default(), FakeContext::new(0));
        cx.advance(&mut rtc, SimTime::from_us(3));
        let low = read(&mut rtc, &mut cx, TIME_LOW);
        cx.advance(&mut rtc, SimTime::from_us(1 << 40));
        let high = read(&mut rtc, &mut cx, TIME_HIGH);
        assert_eq!(high << 32 | low, START_NS + 3000);
    }

    #[test]
    fn the_alarm_comes_once_at_its_time() {
        let (mut rtc, mut cx) = (Rtc::default(), FakeContext::new(0));
        write(&mut rtc, &mut cx, IRQ_ENABLED, 1);
        set_alarm(&mut rtc, &mut cx, 5000);
        assert_eq!(read(&mut rtc, &mut cx, ALARM_STATUS), 1);
        cx.advance(&mut rtc, SimTime::from_ns(4999));
        assert!(!cx.line(0));
        cx.advance(&mut rtc, SimTime::from_ns(1));
        assert!(cx.line(0));
        assert_eq!(read(&mut rtc, &mut cx, ALARM_STATUS), 0);
        write(&mut rtc, &mut cx, CLEAR_INTERRUPT, 1);
        assert!(!cx.line(0));
        cx.advance(&mut rtc, SimTime::from_us(100));
        assert!(!cx.line(0));
    }

    #[test]
    fn an_alarm_in_the_past_comes_at_once_and_shows_when_enabled() {
        let (mut rtc, mut cx) = (Rtc::default(), FakeContext::new(0));
        cx.advance(&mut rtc, SimTime::from_us(9));
        set_alarm(&mut rtc, &mut cx, 0);
        assert!(!cx.line(0), "not enabled");
        write(&mut rtc, &mut cx, IRQ_ENABLED, 1);
        assert!(cx.line(0));
    }

    #[test]
    fn a_moved_or_cleared_alarm_does_not_come_at_its_old_time() {
        let (mut rtc, mut cx) = (Rtc::default(), FakeContext::new(0));
        write(&mut rtc, &mut cx, IRQ_ENABLED, 1);
        set_alarm(&mut rtc, &mut cx, 1000);
        set_alarm(&mut rtc, &mut cx, 3000);
        cx.advance(&mut rtc, SimTime::from_ns(2000));
        assert!(!cx.line(0));
        write(&mut rtc, &mut cx, CLEAR_ALARM, 1);
        cx.advance(&mut rtc, SimTime::from_us(10));
        assert!(!cx.line(0));
    }
}
