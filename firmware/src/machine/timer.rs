//! The supervisor timer: one compare word per hart, relayed as the supervisor timer interrupt.

use rustsbi::Timer;

use super::{clint, csr};

/// SBI timer extension.
pub struct SupervisorTimer;

impl Timer for SupervisorTimer {
    fn set_timer(&self, time: u64) {
        csr::clear!("mip", csr::interrupt::STI);
        clint::set_compare(csr::read!("mhartid"), time);
        csr::set!("mie", csr::interrupt::MTI);
    }
}

/// The compare word was reached: hands the interrupt down. It stays quiet here until the next `set_timer`.
pub fn relay() {
    csr::clear!("mie", csr::interrupt::MTI);
    csr::set!("mip", csr::interrupt::STI);
}

/// No timer interrupt for `hart` until it asks for one.
pub fn stop(hart: usize) {
    csr::clear!("mie", csr::interrupt::MTI);
    csr::clear!("mip", csr::interrupt::STI);
    clint::set_compare(hart, u64::MAX);
}
