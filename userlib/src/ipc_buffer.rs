//! The IPC buffer of the running thread: 1024 bytes of message words behind MR3, capabilities to send, badges received.
//!
//! `tp` holds its address from the first instruction of a thread on: the root task sets it, and nothing else in these programs uses
//! `tp` (they have no thread-local variables). So there is no global and no lookup, and any thread finds its own buffer.
//! A message received stays there until the next system call with more than four words, the next invocation or the next line of
//! output of the same thread: read it out first.

use crate::cap::{CNode, CPtr, Cap};
use abi::ipc_buffer as layout;
use abi::message::{MAX_EXTRA_CAPS, MAX_LENGTH};

/// The word at `index` (see `abi::ipc_buffer`).
#[inline(always)]
fn word(index: usize) -> *mut u64 {
    assert!(index < layout::WORDS);
    (thread_pointer() as *mut u64).wrapping_add(index)
}

#[inline(always)]
fn read(index: usize) -> u64 {
    // SAFETY: `tp` is the address of this thread's mapped, 1024-aligned buffer (head comment), `word` checked the index, and the
    // buffer is only reached through volatile accesses, so no reference to it exists.
    unsafe { word(index).read_volatile() }
}

#[inline(always)]
fn write(index: usize, value: u64) {
    // SAFETY: as in `read`.
    unsafe { word(index).write_volatile(value) }
}

/// Message word `index`. MR0..MR3 travel in registers; the kernel neither reads nor writes them here.
///
/// # Panics
/// If `index` is not below 120.
#[doc(alias = "seL4_GetMR")]
#[inline(always)]
pub fn message_word(index: usize) -> u64 {
    assert!(index < MAX_LENGTH);
    read(layout::MESSAGE + index)
}

/// Sets message word `index`.
///
/// # Panics
/// If `index` is not below 120.
#[doc(alias = "seL4_SetMR")]
#[inline(always)]
pub fn set_message_word(index: usize, value: u64) {
    assert!(index < MAX_LENGTH);
    write(layout::MESSAGE + index, value);
}

/// Sets extra capability `index` of the next message.
///
/// # Panics
/// If `index` is not below 3.
#[doc(alias = "seL4_SetCap")]
#[inline(always)]
pub fn set_cap(index: usize, capability: CPtr) {
    assert!(index < MAX_EXTRA_CAPS);
    write(layout::CAPS_OR_BADGES + index, capability.0);
}

/// Badge of the unwrapped capability `index` of the message received.
///
/// # Panics
/// If `index` is not below 3.
#[doc(alias = "seL4_GetBadge")]
pub fn unwrapped_badge(index: usize) -> u64 {
    assert!(index < MAX_EXTRA_CAPS);
    read(layout::CAPS_OR_BADGES + index)
}

/// Where a capability in a message is to be put.
#[doc(alias = "seL4_SetCapReceivePath")]
pub fn set_receive_slot(root: CNode, index: u64, depth: u64) {
    write(layout::RECEIVE_CNODE, root.cptr().0);
    write(layout::RECEIVE_INDEX, index);
    write(layout::RECEIVE_DEPTH, depth);
}

#[cfg(all(target_arch = "riscv64", target_os = "none"))]
#[inline(always)]
fn thread_pointer() -> usize {
    let address: usize;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mv {}, tp", out(reg) address, options(nomem, nostack, preserves_flags)) };
    address
}

/// On a host no thread has an IPC buffer; a test must not get here.
#[cfg(not(all(target_arch = "riscv64", target_os = "none")))]
fn thread_pointer() -> usize {
    panic!("IPC buffer on a host")
}
