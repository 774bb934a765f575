//! What happens around `main`: start, heap, console, panic, exit.
//!
//! The root task enters every thread at `_start` with a0 = address of the environment, a1 = index of the thread, sp = end of its
//! stack, tp = its IPC buffer. [`crate::program!`] makes that entry and hands over to `start::program`; [`crate::root_task!`] is
//! its counterpart for the one program that the kernel itself starts, with a0 = BootInfo and nothing else.

pub mod console;
#[cfg(all(target_arch = "riscv64", target_os = "none"))]
pub mod heap;
mod lock;
#[cfg(all(target_arch = "riscv64", target_os = "none"))]
pub mod panic;
pub mod start;

pub use start::Outcome;

use crate::cap::Cap as _;
use crate::cap::slot::SUPERVISOR;
use crate::supervisor;
use abi::message::MessageInfo;

/// Leaves the program. Its other threads are stopped; code 0 means success.
pub fn exit(code: i32) -> ! {
    console::flush();
    leave(supervisor::EXIT, code as u64)
}

/// Ends this thread; the program goes on.
pub fn park() -> ! {
    console::flush();
    rest()
}

/// Ends this thread without touching anything.
pub(crate) fn rest() -> ! {
    leave(supervisor::PARK, 0)
}

/// Tells the root task that the other end of the channel with number `channel` has broken the protocol.
pub fn accuse(channel: u64) {
    crate::syscall::send(SUPERVISOR.cptr(), MessageInfo::new(supervisor::ACCUSE, 0, 0, 1), [channel, 0, 0, 0]);
}

/// A call that the root task never answers.
fn leave(label: u64, word: u64) -> ! {
    loop {
        SUPERVISOR.call(MessageInfo::new(label, 0, 0, 1), [word, 0, 0, 0]);
    }
}
