//! The alarm of the board's real-time clock: an interrupt that a program can ask for, at once or at a given time.
//!
//! Registers as in Linux' `timer-goldfish.h`. Writing the low half of the alarm arms it; one that lies in the past is over at once.

use userlib::Env;
use userlib::env::Interrupt;

const TIME_LOW: usize = 0x00;
const TIME_HIGH: usize = 0x04;
const ALARM_LOW: usize = 0x08;
const ALARM_HIGH: usize = 0x0C;
const IRQ_ENABLED: usize = 0x10;
const CLEAR_INTERRUPT: usize = 0x1C;
/// Bytes of the register block.
const BYTES: usize = 0x20;

/// The alarm.
#[derive(Clone, Copy, Debug)]
pub struct Alarm {
    base: usize,
    interrupt: Interrupt,
}

impl Alarm {
    /// The alarm of the clock that the manifest gives the program.
    ///
    /// # Panics
    /// If it gives none.
    pub fn of(env: &Env) -> Self {
        let Some(device) = env.device("google,goldfish-rtc") else { panic!("the manifest gives no clock") };
        let Some(interrupt) = device.interrupts().next() else { panic!("the clock has no interrupt") };
        assert!(device.registers.size >= BYTES);
        let alarm = Self { base: device.registers.address, interrupt };
        alarm.write(IRQ_ENABLED, 1);
        alarm
    }

    fn read(self, register: usize) -> u32 {
        // SAFETY: a register of the block that the environment says is mapped; reading it changes no memory.
        unsafe { ((self.base + register) as *const u32).read_volatile() }
    }

    fn write(self, register: usize, value: u32) {
        // SAFETY: as in `read`; the device does not access memory.
        unsafe { ((self.base + register) as *mut u32).write_volatile(value) }
    }

    /// Now, in nanoseconds.
    pub fn now(self) -> u64 {
        let low = self.read(TIME_LOW);
        u64::from(self.read(TIME_HIGH)) << 32 | u64::from(low)
    }

    /// Asks for an interrupt at `time`, in nanoseconds.
    pub fn ring_at(self, time: u64) {
        self.write(ALARM_HIGH, (time >> 32) as u32);
        self.write(ALARM_LOW, time as u32);
    }

    /// Asks for an interrupt now: one write, where no other time has been asked for before.
    #[inline(always)]
    pub fn ring(self) {
        self.write(ALARM_LOW, 0);
    }

    /// The interrupt has been seen, and may come again.
    ///
    /// # Panics
    /// If the kernel refuses that.
    pub fn take_back(self) {
        self.write(CLEAR_INTERRUPT, 1);
        if let Err(error) = self.interrupt.handler.ack() {
            panic!("the interrupt cannot be acknowledged: {error}");
        }
    }
}
