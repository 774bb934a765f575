//! The SBI as S-mode sees it: version 2.0 extensions by the `rustsbi` crate's dispatcher, legacy calls beside it.

use rustsbi::RustSBI;

use super::console::DebugConsole;
use super::finisher::SystemReset;
use super::hsm::HartStates;
use super::legacy;
use super::mailbox::Interrupts;
use super::rfence::RemoteFence;
use super::timer::SupervisorTimer;
use super::trap::Frame;

#[derive(RustSBI)]
struct Sbi {
    timer: SupervisorTimer,
    ipi: Interrupts,
    fence: RemoteFence,
    hsm: HartStates,
    reset: SystemReset,
    console: DebugConsole,
}

const SBI: Sbi = Sbi {
    timer: SupervisorTimer,
    ipi: Interrupts,
    fence: RemoteFence,
    hsm: HartStates,
    reset: SystemReset,
    console: DebugConsole,
};

const A0: usize = 10;
const A1: usize = 11;
const A6: usize = 16;
const A7: usize = 17;

/// Answers the `ecall` whose registers are in `frame`: extension in a7, function in a6, arguments from a0.
pub fn call(frame: &mut Frame) {
    let arguments = [
        frame.register[A0],
        frame.register[A1],
        frame.register[A1 + 1],
        frame.register[A1 + 2],
        frame.register[A1 + 3],
        frame.register[A1 + 4],
    ];
    let extension = frame.register[A7];
    if let Some(value) = legacy::handle(extension, arguments) {
        frame.register[A0] = value;
        return;
    }
    let result = SBI.handle_ecall(extension, frame.register[A6], arguments);
    frame.register[A0] = result.error;
    frame.register[A1] = result.value;
}
