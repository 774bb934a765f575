//! Entry, the one `ecall`, counters, IPC buffers.

use core::arch::{asm, global_asm};
use core::panic::PanicInfo;
use core::ptr;

use super::machine;

// The kernel promises a0 and zeros; the OR of the others shows whether they are.
global_asm!(
    r#"
    .section .text.entry, "ax"
    .globl _start
_start:
    or      ra, ra, sp
    or      ra, ra, gp
    or      ra, ra, tp
    or      ra, ra, t0
    or      ra, ra, t1
    or      ra, ra, t2
    or      ra, ra, s0
    or      ra, ra, s1
    or      ra, ra, a1
    or      ra, ra, a2
    or      ra, ra, a3
    or      ra, ra, a4
    or      ra, ra, a5
    or      ra, ra, a6
    or      ra, ra, a7
    or      ra, ra, s2
    or      ra, ra, s3
    or      ra, ra, s4
    or      ra, ra, s5
    or      ra, ra, s6
    or      ra, ra, s7
    or      ra, ra, s8
    or      ra, ra, s9
    or      ra, ra, s10
    or      ra, ra, s11
    or      ra, ra, t3
    or      ra, ra, t4
    or      ra, ra, t5
    or      ra, ra, t6
    mv      a1, ra
    la      sp, root_stack_end
    call    root_server

    .bss
    .balign 16
    .space  65536
root_stack_end:
"#,
);

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    machine::print(format_args!("root server: {info}\n"));
    syscall(DEBUG_HALT, [0; 6]);
    loop {}
}

/// Numbers of system calls (libsel4, `sel4/syscall.h`): `seL4_Call`.
pub const CALL: i64 = -1;
/// `seL4_ReplyRecv`.
pub const REPLY_RECV: i64 = -2;
/// `seL4_Send`.
pub const SEND: i64 = -3;
/// `seL4_NBSend`.
pub const NB_SEND: i64 = -4;
/// `seL4_Recv`.
pub const RECV: i64 = -5;
/// `seL4_Reply`.
pub const REPLY: i64 = -6;
/// `seL4_NBRecv`.
pub const NB_RECV: i64 = -8;
/// `seL4_DebugPutChar`.
pub const DEBUG_PUT_CHAR: i64 = -9;
/// `seL4_DebugHalt`.
pub const DEBUG_HALT: i64 = -11;
/// `seL4_DebugCapIdentify`.
pub const DEBUG_CAP_IDENTIFY: i64 = -12;
/// `seL4_Yield`.
pub const YIELD: i64 = -7;
/// `seL4_BenchmarkResetLog`.
pub const BENCHMARK_RESET_LOG: i64 = -19;
/// `seL4_BenchmarkFinalizeLog`.
pub const BENCHMARK_FINALIZE_LOG: i64 = -20;
/// `seL4_BenchmarkSetLogBuffer`.
pub const BENCHMARK_SET_LOG_BUFFER: i64 = -21;
/// `seL4_BenchmarkNullSyscall`.
pub const BENCHMARK_NULL_SYSCALL: i64 = -22;

/// A system call: a0 to a5 before and after.
pub fn syscall(number: i64, registers: [u64; 6]) -> [u64; 6] {
    let [mut a0, mut a1, mut a2, mut a3, mut a4, mut a5] = registers;
    // SAFETY: the kernel keeps every register but these six and writes no memory of this thread but its IPC buffer, which is only
    // reached through volatile accesses.
    unsafe {
        asm!(
            "ecall",
            in("a7") number,
            inlateout("a0") a0,
            inlateout("a1") a1,
            inlateout("a2") a2,
            inlateout("a3") a3,
            inlateout("a4") a4,
            inlateout("a5") a5,
            options(nostack),
        );
    }
    [a0, a1, a2, a3, a4, a5]
}

/// The `cycle` and the `time` counter.
pub fn counters() -> [u64; 2] {
    let (cycle, time);
    // SAFETY: reads two counters.
    unsafe { asm!("rdcycle {}", "rdtime {}", out(reg) cycle, out(reg) time, options(nomem, nostack)) };
    [cycle, time]
}

/// Word of an IPC buffer where message words begin.
pub const MESSAGE: usize = 1;
/// Word where capabilities to send, or badges received, begin.
pub const CAPS: usize = 122;
/// Word with the CNode to receive capabilities into; index and depth follow.
pub const RECEIVE_CNODE: usize = 125;

/// An IPC buffer of this image.
#[derive(Clone, Copy)]
pub struct Buffer(*mut u64);

impl Buffer {
    /// The buffer at an address.
    ///
    /// # Safety
    /// 1 KiB of memory lies at `address`, for buffers only, as long as the program runs.
    pub const unsafe fn at(address: *mut u64) -> Self {
        Self(address)
    }

    /// Its first byte.
    pub fn address(self) -> u64 {
        self.0 as u64
    }

    /// Reads a word.
    ///
    /// # Panics
    /// Behind the 128th.
    pub fn get(self, index: usize) -> u64 {
        assert!(index < 128);
        // SAFETY: inside the buffer.
        unsafe { ptr::read_volatile(self.0.add(index)) }
    }

    /// Writes a word.
    ///
    /// # Panics
    /// Behind the 128th.
    pub fn set(self, index: usize, word: u64) {
        assert!(index < 128);
        // SAFETY: inside the buffer.
        unsafe { ptr::write_volatile(self.0.add(index), word) }
    }

    /// Says where received capabilities go.
    pub fn receive_into(self, cnode: u64, index: u64, depth: u64) {
        [cnode, index, depth].into_iter().zip(RECEIVE_CNODE..).for_each(|(word, at)| self.set(at, word));
    }
}
