//! Two devices of the board: the clock whose alarm wakes the supervisor, and the finisher that ends the machine.

/// Physical address of the finisher's page; the clock's follows it (docs/architecture.md, section 2).
pub const FINISHER: u64 = 0x10_0000;
/// Interrupt of the clock.
pub const IRQ: u64 = 11;

/// Registers of the Goldfish RTC (Linux `timer-goldfish.h`).
const TIME_LOW: u64 = 0x00;
const TIME_HIGH: u64 = 0x04;
const ALARM_LOW: u64 = 0x08;
const ALARM_HIGH: u64 = 0x0C;
const IRQ_ENABLED: u64 = 0x10;
const CLEAR_INTERRUPT: u64 = 0x1C;

const PASS: u32 = 0x5555;

/// The devices, mapped.
pub struct Alarm {
    finisher: u64,
    clock: u64,
}

impl Alarm {
    /// The devices at these addresses of the root task.
    ///
    /// # Safety
    /// The pages of finisher and clock are mapped there, for ever.
    pub unsafe fn new(finisher: u64, clock: u64) -> Self {
        Self { finisher, clock }
    }

    fn write(&self, register: u64, value: u64) {
        // SAFETY: a register of the clock, which `new`'s caller mapped.
        unsafe { ((self.clock + register) as *mut u32).write_volatile(value as u32) }
    }

    fn read(&self, register: u64) -> u64 {
        // SAFETY: as in `write`.
        u64::from(unsafe { ((self.clock + register) as *const u32).read_volatile() })
    }

    /// Interrupts once, `nanoseconds` from now.
    pub fn set(&self, nanoseconds: u64) {
        let now = self.read(TIME_LOW) | self.read(TIME_HIGH) << 32;
        let due = now + nanoseconds;
        self.write(CLEAR_INTERRUPT, 1);
        self.write(IRQ_ENABLED, 1);
        self.write(ALARM_HIGH, due >> 32);
        self.write(ALARM_LOW, due);
    }

    /// Takes the interrupt back.
    pub fn clear(&self) {
        self.write(CLEAR_INTERRUPT, 1);
    }

    /// Ends the machine with success.
    pub fn end_machine(&self) -> ! {
        // SAFETY: the finisher's register, which `new`'s caller mapped.
        unsafe { (self.finisher as *mut u32).write_volatile(PASS) };
        loop {
            core::hint::spin_loop();
        }
    }
}
