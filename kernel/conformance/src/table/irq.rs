//! IRQControl and IRQHandler, with the interrupts of qemu-riscv-virt.

use crate::number::{Invocation::*, MAX_PLIC_IRQ, object as o, rights, slot};
use crate::row::System;

const ROOT: u64 = slot::CNODE;
const CONTROL: u64 = slot::IRQ_CONTROL;

/// Runs the table.
pub fn run(s: &mut impl System) {
    let u = s.block();
    let (handler, free, other) = (s.fresh(), s.fresh(), s.fresh());
    let (n, ep) = (s.make(u, o::NOTIFICATION, 0), s.make(u, o::ENDPOINT, 0));
    let read_only = s.copy(n, rights::READ);
    // Behind the sources come two numbers for other cores, on SMP kernels, and the timer.
    let max = MAX_PLIC_IRQ + if s.smp() { 3 } else { 1 };
    let get = IRQIssueIRQHandler;
    let trigger = RISCVIRQIssueIRQHandlerTrigger;
    s.check(
        "IRQControl",
        &[
            ("Get, length 2", CONTROL, get, &[10, free], &[ROOT], 7, &[]),
            ("Get, no extra cap", CONTROL, get, &[10, free, 64], &[], 7, &[]),
            ("Get 0", CONTROL, get, &[0, free, 64], &[ROOT], 4, &[1, max]),
            ("Get above the timer", CONTROL, get, &[max + 1, free, 65], &[ROOT], 4, &[1, max]),
            ("Get -1", CONTROL, get, &[u64::MAX, free, 64], &[ROOT], 4, &[1, max]),
            ("Get the timer", CONTROL, get, &[max, free, 65], &[ROOT], 9, &[]),
            ("Get the first that is the kernel's", CONTROL, get, &[MAX_PLIC_IRQ + 1, free, 64], &[ROOT], 9, &[]),
            ("depth 0", CONTROL, get, &[10, free, 0], &[ROOT], 4, &[1, 0x40]),
            ("root = TCB", CONTROL, get, &[10, free, 64], &[slot::TCB], 6, &[0, 1]),
            ("destination occupied", CONTROL, get, &[10, slot::TCB, 64], &[ROOT], 8, &[]),
            ("Get 10", CONTROL, get, &[10, handler, 64], &[ROOT], 0, &[]),
            ("Get 10 again", CONTROL, get, &[10, free, 65], &[ROOT], 9, &[]),
            ("GetTrigger, length 3", CONTROL, trigger, &[11, 1, other], &[ROOT], 7, &[]),
            ("GetTrigger, no extra cap", CONTROL, trigger, &[11, 1, other, 64], &[], 7, &[]),
            ("GetTrigger 0", CONTROL, trigger, &[0, 1, other, 64], &[ROOT], 4, &[1, max]),
            ("GetTrigger 10", CONTROL, trigger, &[10, 0, other, 64], &[ROOT], 9, &[]),
            ("GetTrigger, depth 65", CONTROL, trigger, &[11, 1, other, 65], &[ROOT], 4, &[1, 0x40]),
            ("GetTrigger 11", CONTROL, trigger, &[11, 1, other, 64], &[ROOT], 0, &[]),
        ],
    );
    if s.smp() {
        s.check(
            "IRQControl",
            &[("Get the second of the kernel's", CONTROL, get, &[MAX_PLIC_IRQ + 2, free, 64], &[ROOT], 9, &[])],
        );
    }
    s.check(
        "IRQHandler",
        &[
            ("Ack before anything came", handler, IRQAckIRQ, &[], &[], 0, &[]),
            ("SetNotification, no extra cap", handler, IRQSetIRQHandler, &[], &[], 7, &[]),
            ("SetNotification with endpoint", handler, IRQSetIRQHandler, &[], &[ep], 2, &[0]),
            ("SetNotification with null", handler, IRQSetIRQHandler, &[], &[slot::NULL], 2, &[0]),
            ("SetNotification without Write", handler, IRQSetIRQHandler, &[], &[read_only], 2, &[0]),
            ("SetNotification", handler, IRQSetIRQHandler, &[], &[n], 0, &[]),
            ("SetNotification again", handler, IRQSetIRQHandler, &[], &[n], 0, &[]),
            ("Ack", handler, IRQAckIRQ, &[], &[], 0, &[]),
            ("Clear", handler, IRQClearIRQHandler, &[], &[], 0, &[]),
            ("Clear again", handler, IRQClearIRQHandler, &[], &[], 0, &[]),
            ("Copy the handler", ROOT, CNodeCopy, &[free, 64, handler, 64, 15], &[ROOT], 0, &[]),
            ("delete one of two", ROOT, CNodeDelete, &[handler, 64], &[], 0, &[]),
            ("still issued", CONTROL, get, &[10, handler, 64], &[ROOT], 9, &[]),
            ("delete the last", ROOT, CNodeDelete, &[free, 64], &[], 0, &[]),
            ("issue it again", CONTROL, get, &[10, handler, 64], &[ROOT], 0, &[]),
            ("revoke IRQ control", ROOT, CNodeRevoke, &[CONTROL, 64], &[], 0, &[]),
            ("no handler is left", handler, IRQAckIRQ, &[], &[], 2, &[0]),
            ("nor the other", other, IRQAckIRQ, &[], &[], 2, &[0]),
        ],
    );
}
