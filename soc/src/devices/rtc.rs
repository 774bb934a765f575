//! Goldfish RTC: nanoseconds since the epoch. Simulated time starts at a fixed date, so that runs stay identical.

use crate::device::{BusError, Context, Device};

/// 2026-01-01T00:00:00Z.
const START_NS: u64 = 1_767_225_600_000_000_000;
const TIME_LOW: u64 = 0x00;
const TIME_HIGH: u64 = 0x04;

/// The clock. Its alarm is not modelled: it never raises its interrupt.
#[derive(Default)]
pub struct Rtc {
    /// High half, latched by a read of the low half.
    high: u32,
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
            _ => 0,
        })
    }

    fn write(&mut self, _cx: &mut dyn Context, _offset: u64, size: u8, _value: u64) -> Result<(), BusError> {
        if size == 4 { Ok(()) } else { Err(BusError::Size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::Bench;
    use crate::time::SimTime;

    #[test]
    fn halves_belong_together() {
        let (mut rtc, mut cx) = (Rtc::default(), Bench::default());
        cx.now = SimTime::from_us(3);
        let low = rtc.read(&mut cx, TIME_LOW, 4).unwrap();
        cx.now = SimTime::from_us(1 << 40);
        let high = rtc.read(&mut cx, TIME_HIGH, 4).unwrap();
        assert_eq!(high << 32 | low, START_NS + 3000);
    }
}
