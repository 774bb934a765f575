//! DebugSnapshot: all threads and what their CSpaces hold, in the style of capDL, on the console.

use super::debug::{Name, print};
use crate::mem::Ref;
use crate::object::cap::{Cap, Kind};
use crate::object::tcb::{Slot, Tcb};
use crate::state::Kernel;

/// Prints it. Of a CSpace the root CNode alone, once for all threads that share it.
pub fn print_all(k: &mut Kernel) {
    print(k, format_args!("arch riscv\n\nobjects {{\n"));
    each_thread(k, |k, thread| {
        let tcb = k.get(thread);
        let (name, priority, mcp, core, pc) = (Name(tcb.name), tcb.priority, tcb.mcp, tcb.core, tcb.context.next_pc);
        let (state, faults) = (tcb.state, tcb.fault_handler);
        print(
            k,
            format_args!(
                "tcb_{thread:?} = tcb (name: '{name}', state: {state:?}, ip: {pc:#x}, prio: {priority}, max_prio: {mcp}, \
                 affinity: {core}, dom: 0, fault_ep: {faults:#x})\n"
            ),
        );
    });
    print(k, format_args!("}}\n\ncaps {{\n"));
    each_thread(k, |k, thread| {
        let tcb = k.get(thread);
        let (cspace, vspace, buffer) = (tcb.cap(Slot::CSpace), tcb.cap(Slot::VSpace), tcb.cap(Slot::Buffer));
        print(k, format_args!("tcb_{thread:?} {{\n"));
        for (name, cap) in [("cspace", cspace), ("vspace", vspace), ("ipc_buffer", buffer)] {
            print_cap(k, format_args!("{name}"), cap);
        }
        print(k, format_args!("}}\n"));
        if cspace.is(Kind::CNode) && first_with(k, cspace) == Some(thread) {
            print(k, format_args!("cnode_{:?} {{\n", cspace.address()));
            for index in 0..1 << cspace.radix() {
                print_cap(k, format_args!("{index:#x}"), k.cap(cspace.slot(index)));
            }
            print(k, format_args!("}}\n"));
        }
    });
    print(k, format_args!("}}\n"));
}

fn each_thread(k: &mut Kernel, mut work: impl FnMut(&mut Kernel, Ref<Tcb>)) {
    let mut next = k.threads;
    while let Some(thread) = next {
        work(k, thread);
        next = k.get(thread).all_next;
    }
}

/// The first thread of the list whose CSpace this is.
fn first_with(k: &Kernel, cspace: Cap) -> Option<Ref<Tcb>> {
    let mut next = k.threads;
    while let Some(thread) = next {
        if k.get(thread).cap(Slot::CSpace).address() == cspace.address() {
            return next;
        }
        next = k.get(thread).all_next;
    }
    None
}

fn print_cap(k: &mut Kernel, place: core::fmt::Arguments<'_>, cap: Cap) {
    if cap.is_null() {
        return;
    }
    let (kind, address) = (cap.kind(), cap.paddr());
    match kind {
        Kind::Endpoint | Kind::Notification => {
            let (rights, badge) = (cap.rights().0, cap.badge());
            print(k, format_args!("{place}: {kind:?}_{:#x} (rights: {rights:#x}, badge: {badge})\n", address.0));
        }
        Kind::Untyped => {
            let (bits, free) = (cap.untyped_bits(), cap.untyped_free());
            print(k, format_args!("{place}: {kind:?}_{:#x} ({bits} bits, free: {free:#x})\n", address.0));
        }
        Kind::CNode => {
            let (guard, size) = (cap.guard(), cap.guard_size());
            print(k, format_args!("{place}: {kind:?}_{:#x} (guard: {guard}, guard_size: {size})\n", address.0));
        }
        Kind::IrqHandler => print(k, format_args!("{place}: {kind:?} (irq: {})\n", cap.irq())),
        _ => print(k, format_args!("{place}: {kind:?}_{:#x}\n", address.0)),
    }
}
