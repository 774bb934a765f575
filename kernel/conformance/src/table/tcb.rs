//! TCB invocations.

use crate::number::{Invocation::*, ROOT_GUARD, object as o, rights, slot};
use crate::row::System;

const ROOT: u64 = slot::CNODE;
const SPACE: u64 = slot::VSPACE;

/// ReadRegisters, WriteRegisters, CopyRegisters.
pub fn registers(s: &mut impl System) {
    let u = s.block();
    let (t, other, ep) = (s.make(u, o::TCB, 0), s.make(u, o::TCB, 0), s.make(u, o::ENDPOINT, 0));
    s.check(
        "TCB registers",
        &[
            ("Read, length 1", t, TCBReadRegisters, &[0], &[], 7, &[]),
            ("Read, count 0", t, TCBReadRegisters, &[0, 0], &[], 4, &[1, 0x20]),
            ("Read, count 33", t, TCBReadRegisters, &[0, 33], &[], 4, &[1, 0x20]),
            ("Read self", slot::TCB, TCBReadRegisters, &[0, 2], &[], 3, &[]),
            ("Read self, count 0", slot::TCB, TCBReadRegisters, &[0, 0], &[], 4, &[1, 0x20]),
            ("Read, count 2", t, TCBReadRegisters, &[0, 2], &[], 0, &[0, 0]),
            ("Read, count 32", t, TCBReadRegisters, &[0, 32], &[], 0, &[0; 32]),
            ("Write, length 1", t, TCBWriteRegisters, &[0], &[], 7, &[]),
            ("Write, length 4, count 5", t, TCBWriteRegisters, &[0, 5, 0, 0], &[], 7, &[]),
            ("Write, count -1", t, TCBWriteRegisters, &[0, u64::MAX, 0, 0], &[], 7, &[]),
            ("Write self", slot::TCB, TCBWriteRegisters, &[0, 1, 0], &[], 3, &[]),
            ("Write three", t, TCBWriteRegisters, &[0, 3, 0x1000, 0x2000, 0x3000], &[], 0, &[]),
            ("Read them", t, TCBReadRegisters, &[0, 4], &[], 0, &[0x1000, 0x2000, 0x3000, 0]),
            ("Copy, length 0", t, TCBCopyRegisters, &[], &[t], 7, &[]),
            ("Copy, no extra cap", t, TCBCopyRegisters, &[0], &[], 7, &[]),
            ("Copy from endpoint", t, TCBCopyRegisters, &[0], &[ep], 2, &[1]),
            ("Copy from null", t, TCBCopyRegisters, &[0], &[slot::NULL], 2, &[1]),
            ("Copy integer registers", other, TCBCopyRegisters, &[8], &[t], 0, &[]),
            ("frame registers stay", other, TCBReadRegisters, &[0, 3], &[], 0, &[0, 0, 0]),
            ("Copy frame registers", other, TCBCopyRegisters, &[4], &[t], 0, &[]),
            ("they came", other, TCBReadRegisters, &[0, 3], &[], 0, &[0x1000, 0x2000, 0x3000]),
        ],
    );
}

/// Priorities, domains apart; affinity.
pub fn scheduling(s: &mut impl System) {
    let u = s.block();
    let (t, authority, ep) = (s.make(u, o::TCB, 0), s.make(u, o::TCB, 0), s.make(u, o::ENDPOINT, 0));
    s.prepare(authority, TCBSetMCPriority, &[5], &[slot::TCB]);
    for invocation in [TCBSetPriority, TCBSetMCPriority] {
        s.check(
            "TCB priority",
            &[
                ("length 0", t, invocation, &[], &[slot::TCB], 7, &[]),
                ("no extra cap", t, invocation, &[1], &[], 7, &[]),
                ("256", t, invocation, &[256], &[slot::TCB], 4, &[0, 0xFF]),
                ("-1", t, invocation, &[u64::MAX], &[slot::TCB], 4, &[0, 0xFF]),
                ("2^32", t, invocation, &[1 << 32], &[slot::TCB], 4, &[0, 0xFF]),
                ("authority = endpoint", t, invocation, &[256], &[ep], 2, &[1]),
                ("authority null", t, invocation, &[1], &[slot::NULL], 2, &[1]),
                ("6, authority MCP 5", t, invocation, &[6], &[authority], 4, &[0, 5]),
                ("5, authority MCP 5", t, invocation, &[5], &[authority], 0, &[]),
            ],
        );
    }
    s.check(
        "TCB priority",
        &[
            ("Params, length 1", t, TCBSetSchedParams, &[1], &[slot::TCB], 7, &[]),
            ("Params, no extra cap", t, TCBSetSchedParams, &[1, 1], &[], 7, &[]),
            ("Params, authority = endpoint", t, TCBSetSchedParams, &[1, 1], &[ep], 2, &[1]),
            ("Params, mcp 255, priority 256", t, TCBSetSchedParams, &[255, 256], &[slot::TCB], 4, &[0, 0xFF]),
            ("Params, mcp 256", t, TCBSetSchedParams, &[256, 1], &[slot::TCB], 4, &[0, 0xFF]),
            ("Params, mcp 6, authority 5", t, TCBSetSchedParams, &[6, 1], &[authority], 4, &[0, 5]),
            ("Params, priority above own mcp", t, TCBSetSchedParams, &[1, 4], &[authority], 0, &[]),
            ("its mcp is 1", authority, TCBSetPriority, &[2], &[t], 4, &[0, 1]),
        ],
    );
    if s.smp() {
        let cores = s.cores();
        s.check(
            "TCB affinity",
            &[
                ("length 0", t, TCBSetAffinity, &[], &[], 7, &[]),
                ("core out of range", t, TCBSetAffinity, &[cores], &[], 3, &[]),
                ("core -1", t, TCBSetAffinity, &[u64::MAX], &[], 3, &[]),
                ("last core", t, TCBSetAffinity, &[cores - 1], &[], 0, &[]),
                ("core 0", t, TCBSetAffinity, &[0], &[], 0, &[]),
            ],
        );
    }
}

/// Configure, SetSpace, SetIPCBuffer.
pub fn space(s: &mut impl System) {
    let u = s.block();
    let (t, frame, table) = (s.make(u, o::TCB, 0), s.make(u, o::PAGE, 0), s.make(u, o::PAGE_TABLE, 0));
    let device = s.device();
    let device_frame = s.make(device, o::PAGE, 0);
    let g = ROOT_GUARD;
    s.check(
        "TCB_Configure",
        &[
            ("length 3", t, TCBConfigure, &[0, g, 0], &[ROOT, SPACE, 0], 7, &[]),
            ("2 extra caps", t, TCBConfigure, &[0, g, 0, 0], &[ROOT, SPACE], 7, &[]),
            ("null CSpace", t, TCBConfigure, &[0, g, 0, 0], &[0, SPACE, 0], 3, &[]),
            ("CSpace = TCB", t, TCBConfigure, &[0, 0, 0, 0], &[slot::TCB, SPACE, 0], 3, &[]),
            ("CSpace = used untyped", t, TCBConfigure, &[0, 0, 0, 0], &[u, SPACE, 0], 9, &[]),
            ("null VSpace", t, TCBConfigure, &[0, g, 0, 0], &[ROOT, 0, 0], 3, &[]),
            ("VSpace = frame", t, TCBConfigure, &[0, g, 0, 0], &[ROOT, frame, 0], 3, &[]),
            ("VSpace = used untyped", t, TCBConfigure, &[0, g, 0, 0], &[ROOT, u, 0], 9, &[]),
            ("unmapped page table as VSpace", t, TCBConfigure, &[0, g, 0, 0], &[ROOT, table, 0], 3, &[]),
            ("CSpace data: guard 52 bits", t, TCBConfigure, &[0, 52, 0, 0], &[ROOT, SPACE, 0], 3, &[]),
            ("buffer cap not a frame", t, TCBConfigure, &[0, g, 0, 0x1000], &[ROOT, SPACE, slot::TCB], 3, &[]),
            ("buffer cap null", t, TCBConfigure, &[0, g, 0, 0x1000], &[ROOT, SPACE, 0], 3, &[]),
            ("buffer = used untyped", t, TCBConfigure, &[0, g, 0, 0x1000], &[ROOT, SPACE, u], 9, &[]),
            ("buffer = device frame", t, TCBConfigure, &[0, g, 0, 0x1000], &[ROOT, SPACE, device_frame], 3, &[]),
            ("buffer at 0x1200", t, TCBConfigure, &[0, g, 0, 0x1200], &[ROOT, SPACE, frame], 5, &[]),
            ("buffer at 0x1200, null CSpace", t, TCBConfigure, &[0, g, 0, 0x1200], &[0, 0, frame], 5, &[]),
            ("configure", t, TCBConfigure, &[0, g, 0, 0x1400], &[ROOT, SPACE, frame], 0, &[]),
            ("without buffer", t, TCBConfigure, &[0, g, 0, 0], &[ROOT, SPACE, 0], 0, &[]),
        ],
    );
    s.check(
        "TCB_SetSpace",
        &[
            ("length 2", t, TCBSetSpace, &[0, g], &[ROOT, SPACE], 7, &[]),
            ("1 extra cap", t, TCBSetSpace, &[0, g, 0], &[ROOT], 7, &[]),
            ("null CSpace", t, TCBSetSpace, &[0, g, 0], &[0, SPACE], 3, &[]),
            ("null VSpace", t, TCBSetSpace, &[0, g, 0], &[ROOT, 0], 3, &[]),
            ("unmapped page table", t, TCBSetSpace, &[0, g, 0], &[ROOT, table], 3, &[]),
            ("CSpace data: guard 52 bits", t, TCBSetSpace, &[0, 52, 0], &[ROOT, SPACE], 3, &[]),
            ("set", t, TCBSetSpace, &[0, g, 0], &[ROOT, SPACE], 0, &[]),
        ],
    );
    s.check(
        "TCB_SetIPCBuffer",
        &[
            ("length 0", t, TCBSetIPCBuffer, &[], &[frame], 7, &[]),
            ("no extra cap", t, TCBSetIPCBuffer, &[0x1000], &[], 7, &[]),
            ("0x1001", t, TCBSetIPCBuffer, &[0x1001], &[frame], 5, &[]),
            ("not a frame", t, TCBSetIPCBuffer, &[0x1000], &[slot::TCB], 3, &[]),
            ("device frame", t, TCBSetIPCBuffer, &[0x1001], &[device_frame], 3, &[]),
            ("0x1C00", t, TCBSetIPCBuffer, &[0x1C00], &[frame], 0, &[]),
            ("0", t, TCBSetIPCBuffer, &[0], &[0], 0, &[]),
            ("0, no extra cap", t, TCBSetIPCBuffer, &[0], &[], 7, &[]),
        ],
    );
    // Taking the last capability to a CNode away would be a long delete, which Configure does not do.
    let cnode = s.make(u, o::CNODE, 4);
    s.check(
        "TCB_SetSpace",
        &[
            ("own CNode", t, TCBSetSpace, &[0, 0, 0], &[cnode, SPACE], 0, &[]),
            ("again", t, TCBSetSpace, &[0, 0, 0], &[cnode, SPACE], 0, &[]),
            ("delete the other cap", ROOT, CNodeDelete, &[cnode, 64], &[], 0, &[]),
            ("last cap to a CNode", t, TCBSetSpace, &[0, g, 0], &[ROOT, SPACE], 3, &[]),
            ("before the other checks", t, TCBConfigure, &[0, g, 0, 0], &[u, SPACE, 0], 3, &[]),
        ],
    );
    s.prepare(ROOT, CNodeDelete, &[device_frame, 64], &[]);
}

/// BindNotification, UnbindNotification.
pub fn notification(s: &mut impl System) {
    let u = s.block();
    let (t, other, ep) = (s.make(u, o::TCB, 0), s.make(u, o::TCB, 0), s.make(u, o::ENDPOINT, 0));
    let (n, second) = (s.make(u, o::NOTIFICATION, 0), s.make(u, o::NOTIFICATION, 0));
    let write_only = s.copy(second, rights::WRITE);
    s.check(
        "TCB notification",
        &[
            ("Unbind when not bound", t, TCBUnbindNotification, &[], &[], 3, &[]),
            ("Bind, no extra cap", t, TCBBindNotification, &[], &[], 7, &[]),
            ("Bind endpoint", t, TCBBindNotification, &[], &[ep], 3, &[]),
            ("Bind null", t, TCBBindNotification, &[], &[slot::NULL], 3, &[]),
            ("Bind without Read", t, TCBBindNotification, &[], &[write_only], 3, &[]),
            ("Bind", t, TCBBindNotification, &[], &[n], 0, &[]),
            ("Bind twice", t, TCBBindNotification, &[], &[second], 3, &[]),
            ("Bind, bound, no extra cap", t, TCBBindNotification, &[], &[], 7, &[]),
            ("Bind a bound notification", other, TCBBindNotification, &[], &[n], 3, &[]),
            ("Unbind", t, TCBUnbindNotification, &[], &[], 0, &[]),
            ("Bind it elsewhere", other, TCBBindNotification, &[], &[n], 0, &[]),
            ("delete the notification", ROOT, CNodeDelete, &[n, 64], &[], 0, &[]),
            ("that unbound it", other, TCBUnbindNotification, &[], &[], 3, &[]),
        ],
    );
}

/// Suspend, Resume, TLS base, flags.
pub fn rest(s: &mut impl System) {
    let u = s.block();
    let t = s.thread(u);
    s.check(
        "TCB",
        &[
            ("Suspend inactive thread", t, TCBSuspend, &[], &[], 0, &[]),
            ("SetTLSBase, length 0", t, TCBSetTLSBase, &[], &[], 7, &[]),
            ("SetTLSBase", t, TCBSetTLSBase, &[0x5555], &[], 0, &[]),
            ("SetFlags, length 1", t, TCBSetFlags, &[1], &[], 7, &[]),
            ("SetFlags clear 0 set 1", t, TCBSetFlags, &[0, 1], &[], 0, &[1]),
            ("SetFlags clear 0 set 0", t, TCBSetFlags, &[0, 0], &[], 0, &[1]),
            ("SetFlags clear 0 set 0xFF", t, TCBSetFlags, &[0, 0xFF], &[], 0, &[1]),
            ("SetFlags clear 1 set 1", t, TCBSetFlags, &[1, 1], &[], 0, &[1]),
            ("SetFlags clear 1 set 0", t, TCBSetFlags, &[1, 0], &[], 0, &[0]),
            ("SetFlags set 2", t, TCBSetFlags, &[0, 2], &[], 0, &[0]),
        ],
    );
    let answer = s.invoke(t, TCBReadRegisters, &[0, 32], &[]);
    let (tp, expected) = ([answer.words[31]], [0x5555]);
    s.report(&crate::Outcome {
        table: "TCB",
        row: "SetTLSBase sets tp",
        expected: (0, &expected),
        got: (answer.error, &tp),
    });
}
