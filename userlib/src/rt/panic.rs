//! A panic prints its message and faults: the root task then prints registers and backtrace as for any fault.

use super::lock::Lock;
use super::{console, start};
use core::panic::PanicInfo;

/// What to do after the message instead of faulting.
static LAST: Lock<Option<fn() -> !>> = Lock::new(None);

/// Ends panics of this program with `last`: for the root task, whose faults nobody hears.
pub fn on_panic(last: fn() -> !) {
    *LAST.lock() = Some(last);
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    let program = start::name();
    match info.location() {
        Some(place) => {
            let (file, line) = (place.file(), place.line());
            console::print_last(format_args!("{program} panicked at {file}:{line}: {}", info.message()));
        }
        None => console::print_last(format_args!("{program} panicked: {}", info.message())),
    }
    match LAST.try_lock().and_then(|last| *last) {
        Some(last) => last(),
        None => trap(),
    }
}

/// Kept out of line so that the fault has a frame whose caller is the panic handler.
#[inline(never)]
fn trap() -> ! {
    loop {
        // SAFETY: raises an illegal-instruction exception; if a fault handler lets the thread go on, it comes back here.
        unsafe { core::arch::asm!("unimp", options(nomem, nostack)) }
    }
}
