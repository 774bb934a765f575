//! The test finisher ends or restarts the machine.

use rustsbi::{Reset, SbiRet, spec::srst};

use super::csr;
use super::start::board;

/// Words of the `sifive,test` device.
const PASS: u32 = 0x5555;
const FAIL: u32 = 0x3333;
const RESET: u32 = 0x7777;

/// Reasons of a reset that the vendor defines (SBI 2.0, "System Reset Extension"): here the low 16 bits are the exit code.
const VENDOR_REASONS: u32 = 0xF000_0000;

fn write(value: u32) -> ! {
    if let Some(finisher) = board().finisher {
        // SAFETY: the device tree names this word as the test finisher.
        unsafe { (finisher.base as *mut u32).write_volatile(value) }
    }
    csr::write!("mie", 0);
    loop {
        // SAFETY: waits; with `mie` = 0 nothing wakes this hart for good.
        unsafe { core::arch::asm!("wfi", options(nomem, nostack)) }
    }
}

/// Ends the machine; code 0 is success.
pub fn exit(code: u16) -> ! {
    if code == 0 { write(PASS) } else { write(u32::from(code) << 16 | FAIL) }
}

/// SBI system reset extension.
pub struct SystemReset;

impl Reset for SystemReset {
    fn system_reset(&self, reset_type: u32, reset_reason: u32) -> SbiRet {
        let code = match reset_reason {
            srst::RESET_REASON_NO_REASON => 0,
            srst::RESET_REASON_SYSTEM_FAILURE => 1,
            VENDOR_REASONS.. => reset_reason as u16,
            _ => return SbiRet::invalid_param(),
        };
        match reset_type {
            srst::RESET_TYPE_SHUTDOWN => exit(code),
            srst::RESET_TYPE_COLD_REBOOT | srst::RESET_TYPE_WARM_REBOOT => write(RESET),
            _ => SbiRet::invalid_param(),
        }
    }
}
