//! Stops the machine where the guest is in trouble, so that somebody can look: at the entry of a panic, or when it ends with an error.

use crate::bus::Bus;
use crate::debug::{Debug, Debugger, Stop};
use crate::hart::Hart;
use crate::hart::exec::Flow;
use crate::outcome::{End, Privilege};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A hart is about to enter a panic at `pc`.
    Panic { hart: usize, pc: u64 },
    /// The run would end like this; no instruction has been executed since the guest asked for it.
    Ended(End),
}

/// An exception of a program that was no system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub hart: usize,
    pub pc: u64,
    pub cause: u64,
    pub value: u64,
    /// Core cycle.
    pub clock: u64,
}

/// Environment call from U-mode (privileged manual, table of `mcause`).
const SYSTEM_CALL: u64 = 8;

/// The observer: breakpoints at panics, and the latest fault of a program.
pub(crate) struct Watchman {
    debugger: Debugger,
    pub fault: Option<Fault>,
}

impl Watchman {
    /// One that knows where panics begin.
    pub fn new(panics: impl IntoIterator<Item = u64>) -> Self {
        Self { debugger: Debugger::with_breakpoints(panics), fault: None }
    }
}

impl Debug for Watchman {
    const ACTIVE: bool = true;

    fn before(&mut self, hart: &Hart, bus: &Bus) -> Result<u64, Stop> {
        self.debugger.before(hart, bus)
    }

    fn after(&mut self, hart: &Hart, flow: Flow) {
        if flow == Flow::Exception && hart.privilege == Privilege::U && hart.exception.cause != SYSTEM_CALL {
            let (cause, value) = (hart.exception.cause, hart.exception.tval);
            self.fault = Some(Fault { hart: hart.id, pc: hart.pc, cause, value, clock: hart.clock });
        }
    }

    fn between(&mut self, now: u64, bus: &Bus) -> Option<Stop> {
        self.debugger.between(now, bus)
    }

    fn only(&self) -> Option<usize> {
        None
    }
}
