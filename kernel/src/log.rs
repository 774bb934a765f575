//! The log of kernel entries: seL4's `KernelBenchmarks = track_kernel_entries`, for images that ask for it.
//!
//! A thread gives a frame of 2 MiB (`BenchmarkSetLogBuffer`). Every exit writes a record: when the kernel was entered, for how many
//! cycles, and why. The fast paths take no time stamps, so a kernel with a log has none. Entries that find the log full are counted
//! only.
//!
//! The log ends with the first deletion of a capability to its frame, whichever it is: before the last one is gone nobody can use
//! the memory for something else. seL4 goes on writing.

use abi::log::{INTERRUPT, RECORD_BYTES, RECORDS, SYSCALL, UNKNOWN_SYSCALL, USER_LEVEL_FAULT, VM_FAULT};
use abi::message::MessageInfo;
use abi::{ipc_buffer, syscall};

use crate::arch::register::{A0, A1, A7};
use crate::arch::{Arch, Interrupt};
use crate::cspace;
use crate::mem::{Buffer, Kva};
use crate::object::cap::{Cap, FrameSize, Kind, VmRights};
use crate::state::Kernel;

/// The log, and the entry that the kernel is in.
#[derive(Debug)]
pub struct Log {
    frame: Option<Kva>,
    /// Records since the last reset, written or not.
    count: u64,
    /// When the kernel was entered.
    since: u64,
    /// `abi::log`: why, and more about it.
    path: u8,
    detail: u64,
}

impl Log {
    /// No frame.
    pub const NEW: Self = Self { frame: None, count: 0, since: 0, path: 0, detail: 0 };
}

/// The kernel was entered by an interrupt; `note_interrupt` tells which.
#[inline]
pub fn enter_interrupt(k: &mut Kernel) {
    if k.config.entries {
        note(k, INTERRUPT, 0);
    }
}

/// The kernel was entered by a trap with this cause (`scause`) that is no system call.
#[inline]
pub fn enter_fault(k: &mut Kernel, cause: u64) {
    if k.config.entries {
        // Access and page faults of fetch, load, store.
        let path = if matches!(cause, 1 | 5 | 7 | 12 | 13 | 15) { VM_FAULT } else { USER_LEVEL_FAULT };
        let detail = core_and_word(k, cause);
        note(k, path, detail);
    }
}

/// The kernel was entered by a system call.
#[inline]
pub fn enter_syscall(k: &mut Kernel) {
    if k.config.entries {
        let (path, detail) = describe_syscall(k);
        note(k, path, detail);
    }
}

#[cold]
fn note(k: &mut Kernel, path: u8, detail: u64) {
    let since = k.arch.cycles();
    k.log = Log { since, path, detail, ..k.log };
}

/// Number, type of the capability (all ones if there is none), label.
#[cold]
fn describe_syscall(k: &Kernel) -> (u8, u64) {
    let current = k.current();
    let x = &k.get(current).context.x;
    let (number, cptr, label) = (x[A7] as isize, x[A0], MessageInfo(x[A1]).label());
    let path = if (syscall::NB_RECV..=syscall::CALL).contains(&number) { SYSCALL } else { UNKNOWN_SYSCALL };
    let kind = cspace::lookup_slot(k, current, cptr).map_or(u64::MAX, |slot| k.cap(slot).kind() as u64);
    let number = number.unsigned_abs() as u64;
    (path, number & 0xF | (kind & 0x1F) << 4 | (label & 0x7_FFFF) << 10)
}

/// The interrupt for which the kernel was entered turns out to be this.
pub fn note_interrupt(k: &mut Kernel, interrupt: Interrupt) {
    if k.config.entries && k.log.path == INTERRUPT {
        let number = match interrupt {
            Interrupt::Source(source) => source,
            // As seL4 counts them: behind the sources, those of other cores, then the timer.
            Interrupt::Software => k.max_irq() - 1,
            Interrupt::Timer => k.max_irq(),
        };
        k.log.detail = core_and_word(k, number as u64);
    }
}

/// Details of entries other than system calls.
fn core_and_word(k: &Kernel, word: u64) -> u64 {
    k.core() as u64 & 7 | (word & 0x3FF_FFFF) << 3
}

/// The kernel is about to be left.
#[inline]
pub fn leave(k: &mut Kernel) {
    if k.config.entries {
        write(k);
    }
}

#[cold]
fn write(k: &mut Kernel) {
    let Log { frame, count, since, path, detail } = k.log;
    let Some(frame) = frame else { return };
    if count < RECORDS {
        let duration = k.arch.cycles().wrapping_sub(since) as u32;
        // Packed: 4 bytes of duration, one of path, 8 of details.
        let words = [since, u64::from(duration) | u64::from(path) << 32 | detail << 40, detail >> 24];
        for (index, &word) in (3 * count..).zip(&words) {
            const WORDS: u64 = ipc_buffer::WORDS as u64;
            let offset = index / WORDS * (1 << ipc_buffer::SIZE_BITS);
            // SAFETY: inside the frame, which is RAM and stays a frame while the log has it (`forget`).
            let page = unsafe { Buffer::assume(frame.offset(offset)) };
            k.set_buffer_word(page, (index % WORDS) as usize, word);
        }
    }
    k.log.count += 1;
}

const _: () = assert!(RECORD_BYTES == 24 && RECORDS * RECORD_BYTES <= 1 << 20);
const _: () = assert!(ipc_buffer::WORDS * 8 <= 1 << ipc_buffer::SIZE_BITS);

/// `BenchmarkSetLogBuffer`: the log is in the frame of that capability from now on; gives whether it can be. A frame that its holder may
/// not write is refused too.
pub fn set_frame(k: &mut Kernel, cptr: u64) -> bool {
    let current = k.current();
    let cap = cspace::lookup_slot(k, current, cptr).map_or(Cap::NULL, |slot| k.cap(slot));
    let right = cap.is(Kind::Frame) && !cap.is_device() && cap.vm_rights() == VmRights::ReadWrite;
    let fits = right && cap.frame_size() == FrameSize::Mega;
    if fits {
        k.log.frame = Some(cap.address());
    }
    fits
}

/// A capability to a frame is being deleted.
pub fn forget(k: &mut Kernel, frame: Cap) {
    if k.log.frame == Some(frame.address()) {
        k.log.frame = None;
    }
}

/// `BenchmarkResetLog`: begins anew; gives whether there is a frame.
pub fn reset(k: &mut Kernel) -> bool {
    k.log.count = 0;
    k.log.frame.is_some()
}

/// `BenchmarkFinalizeLog`: the number of records, with those that found no place.
pub fn count(k: &Kernel) -> u64 {
    k.log.count
}
