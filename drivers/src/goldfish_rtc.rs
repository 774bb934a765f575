//! Goldfish RTC (`google,goldfish-rtc`): used for its alarm, the one timer interrupt that a program without machine privilege can own.
//!
//! Registers as in Linux' `timer-goldfish.h`; times are nanoseconds since the epoch in two halves. Reading the low half latches the high half;
//! writing the low half of the alarm arms it.

use crate::mmio::Registers;

const TIME_LOW: usize = 0x00;
const TIME_HIGH: usize = 0x04;
const ALARM_LOW: usize = 0x08;
const ALARM_HIGH: usize = 0x0C;
const IRQ_ENABLED: usize = 0x10;
const CLEAR_INTERRUPT: usize = 0x1C;

/// The clock's alarm.
pub struct GoldfishRtc<R> {
    registers: R,
}

impl<R: Registers> GoldfishRtc<R> {
    /// The device behind `registers`, its interrupt enabled and not pending.
    pub fn new(mut registers: R) -> Self {
        registers.write(CLEAR_INTERRUPT, 1);
        registers.write(IRQ_ENABLED, 1);
        Self { registers }
    }

    /// Nanoseconds since the epoch.
    pub fn now_ns(&mut self) -> u64 {
        let low = self.registers.read(TIME_LOW);
        let high = self.registers.read(TIME_HIGH);
        u64::from(high) << 32 | u64::from(low)
    }

    /// Interrupts once, `delay_ns` from now; an alarm set before is given up.
    pub fn set_alarm(&mut self, delay_ns: u64) {
        let at = self.now_ns().saturating_add(delay_ns);
        self.registers.write(ALARM_HIGH, (at >> 32) as u32);
        self.registers.write(ALARM_LOW, at as u32);
    }

    /// Ends the interrupt.
    pub fn acknowledge(&mut self) {
        self.registers.write(CLEAR_INTERRUPT, 1);
    }
}
