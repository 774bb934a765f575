//! The system calls: the only `ecall` of user space.
//!
//! Each function is one entry of seL4's non-MCS interface, with four message words in registers and the rest in the IPC buffer
//! ([`crate::ipc_buffer`]). They are safe: the kernel protects itself and other programs, and a call touches no memory of the
//! caller except its IPC buffer, which is only ever reached through volatile accesses.
//!
//! `Wait` and `Poll` are `Recv` and `NBRecv` on a notification; `Signal` is `Send` with an empty message.

use crate::cap::CPtr;
use abi::extension;
use abi::message::{MessageInfo, REGISTERS};
use abi::syscall as number;

/// Message words that travel in registers.
pub type Registers = [u64; REGISTERS];

/// What a receive or the reply of a call delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Badge of the capability that the sender used; 0 for replies.
    pub badge: u64,
    /// Label and lengths.
    pub info: MessageInfo,
    /// MR0..MR3; later words are in the IPC buffer.
    pub words: Registers,
}

/// Sends and waits for the reply.
#[doc(alias = "seL4_Call")]
#[inline(always)]
pub fn call(destination: CPtr, info: MessageInfo, words: Registers) -> Received {
    ecall(number::CALL, destination, info, words)
}

/// Sends; waits until somebody receives.
#[doc(alias = "seL4_Send")]
#[inline(always)]
pub fn send(destination: CPtr, info: MessageInfo, words: Registers) {
    ecall(number::SEND, destination, info, words);
}

/// Sends if somebody waits; otherwise does nothing.
#[doc(alias = "seL4_NBSend")]
#[inline(always)]
pub fn nb_send(destination: CPtr, info: MessageInfo, words: Registers) {
    ecall(number::NB_SEND, destination, info, words);
}

/// Waits for a message on an endpoint.
///
/// When a signal on the bound notification arrives instead, only `badge` is set: label, length and words are 0.
#[doc(alias = "seL4_Recv")]
#[inline(always)]
pub fn recv(source: CPtr) -> Received {
    ecall(number::RECV, source, MessageInfo(0), [0; REGISTERS])
}

/// Takes a message from an endpoint if one waits; `badge` and `info` are 0 if none does.
#[doc(alias = "seL4_NBRecv")]
#[inline(always)]
pub fn nb_recv(source: CPtr) -> Received {
    ecall(number::NB_RECV, source, MessageInfo(0), [0; REGISTERS])
}

/// Replies to the caller of the last receive, then waits for the next message.
#[doc(alias = "seL4_ReplyRecv")]
#[inline(always)]
pub fn reply_recv(source: CPtr, info: MessageInfo, words: Registers) -> Received {
    ecall(number::REPLY_RECV, source, info, words)
}

/// Replies to the caller of the last receive; does nothing if there is none.
#[doc(alias = "seL4_Reply")]
#[inline(always)]
pub fn reply(info: MessageInfo, words: Registers) {
    ecall(number::REPLY, CPtr::NULL, info, words);
}

/// Signals a notification with the badge of the capability.
#[doc(alias = "seL4_Signal")]
#[inline(always)]
pub fn signal(notification: CPtr) {
    ecall(number::SEND, notification, MessageInfo(0), [0; REGISTERS]);
}

/// Waits until a notification has bits set; takes and returns them.
#[doc(alias = "seL4_Wait")]
#[inline(always)]
pub fn wait(notification: CPtr) -> u64 {
    recv(notification).badge
}

/// Takes the bits of a notification without waiting; 0 if none is set.
#[doc(alias = "seL4_Poll")]
#[inline(always)]
pub fn poll(notification: CPtr) -> u64 {
    nb_recv(notification).badge
}

/// Signals `notification`, then receives from `source`, in one entry of the kernel: if a thread of this hart waits for the signal,
/// it is switched to directly. A notification that cannot be signalled (any more) is passed over.
///
/// Wakeline's own (docs/architecture.md, section 5); the nearest relative is `seL4_NBSendRecv` of the MCS kernel.
#[inline(always)]
pub fn signal_recv(notification: CPtr, source: CPtr) -> Received {
    ecall_with(extension::SIGNAL_RECV, source, MessageInfo(0), [0; REGISTERS], notification.0)
}

/// As [`signal_recv`], waiting for a notification: takes and returns its bits.
#[inline(always)]
pub fn signal_wait(notification: CPtr, source: CPtr) -> u64 {
    signal_recv(notification, source).badge
}

/// As [`recv`], until the time base counter ([`crate::time::ticks`]) shows `until` at most: then everything received is 0. Signals
/// `notification` first, as [`signal_recv`], unless it is [`CPtr::NULL`]. A time that has passed takes what is there.
///
/// Wakeline's own (docs/architecture.md, section 5).
#[inline(always)]
pub fn recv_until(notification: CPtr, source: CPtr, until: u64) -> Received {
    let received = ecall_with(extension::WAIT_UNTIL, source, MessageInfo(0), [until, 0, 0, 0], notification.0);
    // Where no message came, the time is still in its register.
    Received { words: if received.info == MessageInfo(0) { [0; REGISTERS] } else { received.words }, ..received }
}

/// As [`recv_until`], waiting for a notification: takes and returns its bits, 0 if the time has come first.
#[inline(always)]
pub fn wait_until(notification: CPtr, source: CPtr, until: u64) -> u64 {
    ecall_with(extension::WAIT_UNTIL, source, MessageInfo(0), [until, 0, 0, 0], notification.0).badge
}

/// Carries out what the system-call ring of this thread holds (`abi::syscall_ring`), or with `HAND_OVER` lets another hart do it; gives
/// which. Wakeline's own.
#[inline(always)]
pub fn ring_enter(flags: u64) -> u64 {
    ecall(extension::RING_ENTER, CPtr(flags), MessageInfo(0), [0; REGISTERS]).badge
}

/// Lets the next thread of the same priority run.
#[doc(alias = "seL4_Yield")]
#[inline(always)]
pub fn yield_now() {
    ecall(number::YIELD, CPtr::NULL, MessageInfo(0), [0; REGISTERS]);
}

/// Prints one byte on the kernel's console (kernels with printing).
#[doc(alias = "seL4_DebugPutChar")]
pub fn debug_put_char(byte: u8) {
    ecall(number::DEBUG_PUT_CHAR, CPtr(byte.into()), MessageInfo(0), [0; REGISTERS]);
}

/// Stops the machine through the firmware (debug kernels).
#[doc(alias = "seL4_DebugHalt")]
pub fn debug_halt() -> ! {
    ecall(number::DEBUG_HALT, CPtr::NULL, MessageInfo(0), [0; REGISTERS]);
    loop {
        core::hint::spin_loop();
    }
}

/// Type of a capability as the kernel tags it (`abi::object::cap_id`); 0 for an empty slot (debug kernels).
#[doc(alias = "seL4_DebugCapIdentify")]
pub fn debug_cap_identify(capability: CPtr) -> u64 {
    ecall(number::DEBUG_CAP_IDENTIFY, capability, MessageInfo(0), [0; REGISTERS]).badge
}

/// Names a thread; the name is in the message words of the IPC buffer, NUL-terminated ([`crate::cap::Tcb::debug_name`]).
#[doc(alias = "seL4_DebugNameThread")]
pub(crate) fn debug_name_thread(thread: CPtr) {
    ecall(number::DEBUG_NAME_THREAD, thread, MessageInfo(0), [0; REGISTERS]);
}

#[inline(always)]
fn ecall(number: isize, capability: CPtr, info: MessageInfo, words: Registers) -> Received {
    ecall_with(number, capability, info, words, 0)
}

/// With a sixth argument register, which SignalRecv and WaitUntil use.
#[cfg(all(target_arch = "riscv64", target_os = "none"))]
#[inline(always)]
fn ecall_with(number: isize, capability: CPtr, info: MessageInfo, words: Registers, other: u64) -> Received {
    let (mut badge, mut info) = (capability.0, info.0);
    let [mut w0, mut w1, mut w2, mut w3] = words;
    // SAFETY: the kernel preserves every register but a0..a5 (seL4 manual, "System calls"; it saves and restores all 31), and these
    // are outputs here. It writes no memory of this thread but the IPC buffer; without `nomem` the compiler keeps its own accesses
    // in order with the trap.
    unsafe {
        core::arch::asm!(
            "ecall",
            in("a7") number,
            in("a6") other,
            inlateout("a0") badge,
            inlateout("a1") info,
            inlateout("a2") w0,
            inlateout("a3") w1,
            inlateout("a4") w2,
            inlateout("a5") w3,
            options(nostack),
        );
    }
    Received { badge, info: MessageInfo(info), words: [w0, w1, w2, w3] }
}

/// On a host there is no kernel below: user libraries compile there for their unit tests, but a test must not get here.
#[cfg(not(all(target_arch = "riscv64", target_os = "none")))]
fn ecall_with(number: isize, _: CPtr, _: MessageInfo, _: Registers, _: u64) -> Received {
    panic!("system call {number} on a host")
}
