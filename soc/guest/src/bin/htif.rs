//! Talks to the host through `tohost` alone: bytes as one 64-bit store and as two 32-bit stores in either order, a system call of the
//! proxy kernel, a signature, and the end as two 32-bit stores.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    println!("build for riscv64imac-unknown-none-elf and run with: soc run --bare htif --signature FILE");
}

#[cfg(target_os = "none")]
mod program {
    use core::arch::global_asm;
    use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
    // Brings the start code and the panic handler.
    use soc_guest as _;

    /// Little-endian: the lower half first.
    #[repr(C, align(64))]
    struct Words([AtomicU32; 2]);
    #[unsafe(export_name = "tohost")]
    static TO_HOST: Words = Words([const { AtomicU32::new(0) }; 2]);
    #[unsafe(export_name = "fromhost")]
    static FROM_HOST: AtomicU64 = AtomicU64::new(0);

    // Seven words: the last line of the signature is a whole one all the same.
    global_asm!(
        ".section .data",
        ".balign 16",
        ".globl begin_signature",
        "begin_signature:",
        ".word 0x01234567, 0x89abcdef, 0, 0xffffffff, 5, 6, 7",
        ".globl end_signature",
        "end_signature:",
        ".previous"
    );
    unsafe extern "C" {
        #[link_name = "begin_signature"]
        static SIGNATURE: [AtomicU32; 7];
    }

    const PRINT: u32 = 0x0101_0000;

    fn whole(word: u64) {
        // SAFETY: the two halves are one aligned 8-byte word that only this hart and the host touch.
        unsafe { (&raw const TO_HOST).cast_mut().cast::<u64>().write_volatile(word) };
    }

    fn wait() {
        while TO_HOST.0.iter().any(|half| half.load(SeqCst) != 0) {}
    }

    #[unsafe(no_mangle)]
    extern "C" fn guest_main(hart: u64) {
        if hart != 0 {
            return;
        }
        for byte in *b"whole\n" {
            whole(u64::from(PRINT) << 32 | u64::from(byte));
            wait();
        }
        for byte in *b"lower first\n" {
            TO_HOST.0[0].store(byte.into(), SeqCst);
            TO_HOST.0[1].store(PRINT, SeqCst);
            wait();
        }
        for byte in *b"upper first\n" {
            TO_HOST.0[1].store(PRINT, SeqCst);
            TO_HOST.0[0].store(byte.into(), SeqCst);
            wait();
        }
        let text = "system call\n";
        let call = [64, 1, text.as_ptr().addr() as u64, text.len() as u64, 0, 0, 0, 0].map(AtomicU64::new);
        whole(call.as_ptr().addr() as u64);
        while FROM_HOST.swap(0, SeqCst) == 0 {}
        let written = call[0].load(SeqCst) as u32;
        // SAFETY: the linker placed seven words there.
        unsafe { SIGNATURE[2].store(written, SeqCst) };
        TO_HOST.0[0].store(2 * 42 + 1, SeqCst);
        TO_HOST.0[1].store(0, SeqCst);
    }
}
