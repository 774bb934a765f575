//! Conformance of user interrupts: the instructions, the CSRs, UINTC, delivery and return.
//!
//! Case numbers are those of the project's user-interrupt reference; each case starts from [`set_up`]: hart 0 has receiver 1,
//! active, all vectors registered, everything enabled. The tested code runs in U (or S) without translation.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    println!("build for riscv64imac-unknown-none-elf and run with: soc run --bare conformance --harts 2");
}

#[cfg(target_os = "none")]
mod program {
    use core::sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    };
    use soc_guest::csr::{uipi_activate, uipi_deactivate, uipi_read, uipi_send, uipi_write};
    use soc_guest::entry::{Mode, Trap, enter, supervisor_vector};
    use soc_guest::handler::{self, Record};
    use soc_guest::mmio::{self, Register, uintc_address, uintc_read, uintc_write};
    use soc_guest::{clear_csr, println, read_csr, set_csr, write_csr};

    const ENABLE: u64 = 1 << 63;
    const INTERRUPT: u64 = 1 << 63;
    const RECEIVER: usize = 1;
    /// UINTC LOW: active, 64-bit mode, hart 0.
    const LOW_ACTIVE: u64 = 3;
    const LOW_INACTIVE: u64 = 2;
    const ILLEGAL: u64 = 2;
    const LOAD_FAULT: u64 = 5;
    const STORE_FAULT: u64 = 7;
    const FROM_USER: u64 = 8;
    const FROM_SUPERVISOR: u64 = 9;
    /// Table entries beyond the 64 good ones.
    const BAD_VECTOR: u64 = 64;
    const NOT_VALID: u64 = 65;
    const BAD_RECEIVER: u64 = 66;

    #[repr(C, align(4096))]
    struct Table([AtomicU64; 512]);
    static TABLE: Table = Table([const { AtomicU64::new(0) }; 512]);
    static RECORD: Record = Record::new();
    /// What hart 1 is to do: 0 wait, 1 send vector 3, 2 done.
    static ORDER: AtomicU64 = AtomicU64::new(0);
    static FAILURES: AtomicU64 = AtomicU64::new(0);

    fn sender_table() -> u64 {
        ENABLE | 1 << 44 | (&raw const TABLE).addr() as u64 >> 12
    }

    fn set_up() {
        for vector in 0..=64u64 {
            TABLE.0[vector as usize].store((RECEIVER as u64) << 48 | vector << 16 | 1, Relaxed);
        }
        TABLE.0[NOT_VALID as usize].store((RECEIVER as u64) << 48 | 3 << 16, Relaxed);
        TABLE.0[BAD_RECEIVER as usize].store(512 << 48 | 3 << 16 | 1, Relaxed);
        uintc_write(RECEIVER, Register::Low, LOW_ACTIVE);
        uintc_read(RECEIVER, Register::High);
        RECORD.reset();
        set_csr!("mideleg", 0x333);
        write_csr!("medeleg", 0);
        write_csr!("0x103", 1);
        clear_csr!("mip", 0x111);
        write_csr!("0x1b0", sender_table());
        write_csr!("0x1b1", ENABLE | RECEIVER as u64);
        write_csr!("0x005", handler::vector());
        write_csr!("0x040", RECORD.address());
        write_csr!("0x000", 1);
        write_csr!("0x004", 1);
    }

    fn user(function: extern "C" fn(u64) -> u64) -> Trap {
        enter(Mode::User, function, 0)
    }

    fn entries() -> u64 {
        RECORD.entries.load(Relaxed)
    }

    fn bits() -> u64 {
        RECORD.bits.load(Relaxed)
    }

    /// One line per case: every pair is (got, expected).
    fn expect(name: &str, pairs: &[(u64, u64)]) {
        match pairs.iter().position(|(got, want)| got != want) {
            None => println!("{name} PASS"),
            Some(at) => {
                FAILURES.fetch_add(1, Relaxed);
                println!("{name} FAIL value {at} is {:#x}, not {:#x}", pairs[at].0, pairs[at].1);
            }
        }
    }

    fn send_and_return() {
        extern "C" fn to_self(_: u64) -> u64 {
            uipi_send(3);
            read_csr!("0x000")
        }
        set_up();
        let trap = user(to_self);
        let seen = [&RECORD.cause, &RECORD.value, &RECORD.status].map(|word| word.load(Relaxed));
        expect(
            "T1",
            &[
                (trap.cause, FROM_USER),
                (entries(), 1),
                (seen[0], INTERRUPT),
                (seen[1], 0),
                (seen[2], 0x10),
                (bits(), 8),
                (trap.result, 0x11),
            ],
        );
        extern "C" fn second_read(_: u64) -> u64 {
            uipi_send(3);
            uipi_read()
        }
        set_up();
        expect("T2", &[(user(second_read).result, 0), (bits(), 8)]);
    }

    fn masks() {
        extern "C" fn uie_off(_: u64) -> u64 {
            write_csr!("0x000", 0);
            uipi_send(3);
            let early = entries() << 8 | read_csr!("0x044");
            write_csr!("0x000", 1);
            early
        }
        set_up();
        expect("T3", &[(user(uie_off).result, 1), (entries(), 1), (bits(), 8)]);
        extern "C" fn usie_off(_: u64) -> u64 {
            write_csr!("0x004", 0);
            uipi_send(3);
            let early = entries() << 8 | read_csr!("0x044");
            write_csr!("0x004", 1);
            early
        }
        set_up();
        expect("T3b", &[(user(usie_off).result, 1), (entries(), 1), (bits(), 8)]);
    }

    fn bad_indices() {
        extern "C" fn send_one(index: u64) -> u64 {
            uipi_send(index);
            read_csr!("0x044")
        }
        for (name, index) in [
            ("T4 not valid", NOT_VALID),
            ("T4 end of table", 512),
            ("T4 huge", u64::MAX),
            ("T4 receiver beyond UINTC", BAD_RECEIVER),
            ("T4b", 1 << 61),
        ] {
            set_up();
            let trap = enter(Mode::User, send_one, index);
            let pending = uintc_read(RECEIVER, Register::High);
            expect(name, &[(trap.cause, FROM_USER), (trap.result, 0), (entries(), 0), (pending, 0)]);
        }
    }

    fn activation() {
        extern "C" fn inactive_send(_: u64) -> u64 {
            uipi_deactivate();
            uipi_send(3);
            read_csr!("0x044")
        }
        extern "C" fn activate(_: u64) -> u64 {
            uipi_activate();
            0
        }
        set_up();
        let trap = user(inactive_send);
        let before = [trap.result, entries(), uintc_read(RECEIVER, Register::Low)];
        user(activate);
        expect("T5", &[(before[0], 0), (before[1], 0), (before[2], LOW_INACTIVE), (entries(), 1), (bits(), 8)]);
    }

    fn merging() {
        extern "C" fn write_two(_: u64) -> u64 {
            uipi_write(0xA0);
            0
        }
        set_up();
        user(write_two);
        expect("T6", &[(entries(), 1), (bits(), 0xA0)]);
        extern "C" fn merge(_: u64) -> u64 {
            write_csr!("0x000", 0);
            uipi_write(1);
            uipi_write(4);
            uipi_write(1 << 63);
            uipi_send(3);
            write_csr!("0x000", 1);
            0
        }
        set_up();
        user(merge);
        expect("T6 merged", &[(entries(), 1), (bits(), 0x8000_0000_0000_000D)]);
    }

    fn vectors() {
        extern "C" fn send_one(index: u64) -> u64 {
            uipi_send(index);
            0
        }
        for (name, vector, wanted) in [
            ("T7 vector 30", 30, 1 << 30),
            ("T7 vector 31", 31, 1 << 31),
            ("T7 vector 32", 32, 1 << 32),
            ("T7 vector 63", 63, 1 << 63),
            ("T7 vector 64", BAD_VECTOR, 0),
        ] {
            set_up();
            enter(Mode::User, send_one, vector);
            expect(name, &[(bits(), wanted), (entries(), u64::from(wanted != 0))]);
        }
    }

    fn level() {
        extern "C" fn read_lowers(_: u64) -> u64 {
            write_csr!("0x000", 0);
            uipi_send(3);
            uipi_read();
            read_csr!("0x044")
        }
        set_up();
        expect("T8", &[(user(read_lowers).result, 0), (entries(), 0)]);
        extern "C" fn clearing_does_not_silence(_: u64) -> u64 {
            write_csr!("0x000", 0);
            uipi_send(3);
            clear_csr!("0x044", 1);
            write_csr!("0x000", 1);
            0
        }
        set_up();
        user(clearing_does_not_silence);
        expect("T8b", &[(entries(), 1), (bits(), 8)]);
    }

    fn illegal_forms() {
        macro_rules! refused {
            ($mode:expr, $name:literal, $($instruction:literal),+) => {{
                extern "C" fn body(_: u64) -> u64 {
                    // SAFETY: the instruction is expected to trap; if it does not, it only writes t0.
                    unsafe { core::arch::asm!($($instruction),+, out("t0") _) };
                    0
                }
                set_up();
                expect($name, &[(enter($mode, body, 0).cause, ILLEGAL)]);
            }};
        }
        refused!(Mode::User, "T9 suist from U", "csrr t0, 0x1b0");
        refused!(Mode::User, "T9 suirs from U", "csrr t0, 0x1b1");
        refused!(Mode::User, "T9 sideleg from U", "csrr t0, 0x103");
        refused!(Mode::User, "T9 funct3 010", ".insn r 0x7b, 2, 0, x0, t0, x0");
        refused!(Mode::User, "T9 funct7 5", ".insn r 0x7b, 6, 5, x0, x0, x0");
        refused!(Mode::User, "T9 rs2", ".insn r 0x7b, 6, 0, x0, t0, t0");
        refused!(Mode::User, "T9 suicfg", "csrr t0, 0x1b2");
        refused!(Mode::Supervisor, "T10", ".word 0x00200073");
        refused!(Mode::User, "wfi in U", "wfi");
    }

    fn software_latch() {
        extern "C" fn raise(_: u64) -> u64 {
            set_csr!("0x044", 0x111);
            read_csr!("0x044")
        }
        set_up();
        expect("T11", &[(user(raise).result, 0), (entries(), 1), (bits(), 0)]);
    }

    core::arch::global_asm!(
        r#"
    .globl supervisor_to_user
supervisor_to_user:
    csrsi   0x144, 1
    csrw    0x141, a0
    li      t0, 0x100
    csrc    0x100, t0
    sret
    .globl first_user_instruction
first_user_instruction:
    ret
"#
    );

    unsafe extern "C" {
        safe fn supervisor_to_user(target: u64) -> u64;
        safe fn first_user_instruction();
    }

    fn supervisor_posts() {
        extern "C" fn go(target: u64) -> u64 {
            supervisor_to_user(target)
        }
        let target = first_user_instruction as *const () as u64;
        set_up();
        let trap = enter(Mode::Supervisor, go, target);
        let seen = [&RECORD.pc, &RECORD.cause].map(|word| word.load(Relaxed));
        // `go` returns in U through its caller's epilogue, so the visit ends as if U had returned.
        expect("T12", &[(trap.cause, FROM_USER), (entries(), 1), (seen[0], target), (seen[1], INTERRUPT)]);
        set_up();
        write_csr!("0x004", 0);
        let trap = enter(Mode::Supervisor, go, target);
        expect("T12b", &[(trap.cause, FROM_USER), (entries(), 0)]);
    }

    fn disabled() {
        extern "C" fn write_and_read(_: u64) -> u64 {
            uipi_write(5);
            uipi_activate();
            uipi_read()
        }
        set_up();
        write_csr!("0x1b1", RECEIVER as u64);
        let trap = user(write_and_read);
        expect("T13 receiver", &[(trap.cause, FROM_USER), (trap.result, 0), (uintc_read(RECEIVER, Register::High), 0)]);
        extern "C" fn send(_: u64) -> u64 {
            uipi_send(3);
            0
        }
        set_up();
        write_csr!("0x1b0", 0);
        let trap = user(send);
        expect("T13 sender", &[(trap.cause, FROM_USER), (entries(), 0), (uintc_read(RECEIVER, Register::High), 0)]);
    }

    extern "C" fn nothing(_: u64) -> u64 {
        0
    }

    fn registers() {
        set_up();
        uintc_write(RECEIVER, Register::Send, 9);
        user(nothing);
        expect("T14 SEND", &[(entries(), 1), (bits(), 0x200), (uintc_read(RECEIVER, Register::Send), 0)]);
        set_up();
        uintc_write(RECEIVER, Register::Low, 1);
        uintc_write(RECEIVER, Register::Send, 9);
        user(nothing);
        expect("T14 mode 0", &[(entries(), 1), (bits(), 0x200)]);
        set_up();
        uintc_write(RECEIVER, Register::Low, 9 << 16 | LOW_ACTIVE);
        uintc_write(RECEIVER, Register::Send, 9);
        user(nothing);
        expect("T14 no such hart", &[(entries(), 0), (uintc_read(RECEIVER, Register::High), 0x200)]);

        set_up();
        for (name, got, wanted) in [
            (
                "T15 suirs",
                {
                    write_csr!("0x1b1", u64::MAX);
                    read_csr!("0x1b1")
                },
                ENABLE | 0xFFFF,
            ),
            (
                "T15 suist",
                {
                    write_csr!("0x1b0", u64::MAX);
                    read_csr!("0x1b0")
                },
                0x80FF_FFFF_FFFF_FFFF,
            ),
            (
                "T15 sideleg",
                {
                    write_csr!("0x103", u64::MAX);
                    read_csr!("0x103")
                },
                0x111,
            ),
            (
                "T15 sedeleg",
                {
                    write_csr!("0x102", u64::MAX);
                    read_csr!("0x102")
                },
                0,
            ),
        ] {
            expect(name, &[(got, wanted)]);
        }
    }

    fn vectored() {
        extern "C" fn send(_: u64) -> u64 {
            uipi_send(3);
            0
        }
        set_up();
        write_csr!("0x005", handler::vector() | 1);
        let stored = read_csr!("0x005");
        user(send);
        expect("T16 vectored", &[(stored, handler::vector() | 1), (entries(), 1)]);
        write_csr!("0x005", 0x1002);
        expect("T16 reserved", &[(read_csr!("0x005"), handler::vector() | 1)]);
    }

    fn exceptions_stay_with_the_kernel() {
        extern "C" fn illegal(_: u64) -> u64 {
            // SAFETY: the all-zero instruction always traps.
            unsafe { core::arch::asm!(".half 0") };
            0
        }
        set_up();
        write_csr!("0x102", 1 << 2);
        expect("T18", &[(user(illegal).cause, ILLEGAL), (entries(), 0)]);
    }

    fn clear_orders() {
        extern "C" fn read_send_clear(_: u64) -> u64 {
            write_csr!("0x000", 0);
            uipi_send(1);
            let first = uipi_read();
            uipi_send(2);
            clear_csr!("0x044", 1);
            write_csr!("0x000", 1);
            first
        }
        set_up();
        expect("T18b", &[(user(read_send_clear).result, 2), (entries(), 1), (bits(), 4)]);
        extern "C" fn clear_send_read(_: u64) -> u64 {
            write_csr!("0x000", 0);
            uipi_send(1);
            clear_csr!("0x044", 1);
            uipi_send(2);
            let all = uipi_read();
            write_csr!("0x000", 1);
            all
        }
        set_up();
        expect("T18c", &[(user(clear_send_read).result, 6), (entries(), 0)]);
    }

    fn from_another_hart() {
        extern "C" fn wait(_: u64) -> u64 {
            ORDER.store(1, Release);
            for turn in 0..100_000 {
                if entries() != 0 {
                    return turn;
                }
            }
            u64::MAX
        }
        set_up();
        let trap = user(wait);
        while ORDER.load(Acquire) != 2 {}
        expect("T19", &[(trap.cause, FROM_USER), (entries(), 1), (bits(), 8), (u64::from(trap.result == u64::MAX), 0)]);
    }

    fn late_activation() {
        set_up();
        uintc_write(RECEIVER, Register::Low, LOW_INACTIVE);
        uintc_write(RECEIVER, Register::Send, 5);
        user(nothing);
        let before = entries();
        uintc_write(RECEIVER, Register::Low, LOW_ACTIVE);
        user(nothing);
        expect("T20", &[(before, 0), (entries(), 1), (bits(), 0x20)]);
    }

    fn delegation() {
        extern "C" fn send(_: u64) -> u64 {
            uipi_send(3);
            0
        }
        set_up();
        clear_csr!("mideleg", 1);
        write_csr!("0x103", 1);
        let sideleg = read_csr!("0x103");
        write_csr!("0x000", 0);
        set_csr!("mie", 1);
        let trap = user(send);
        expect("T21", &[(sideleg, 0), (trap.cause, INTERRUPT), (entries(), 0)]);
        clear_csr!("mie", 1);

        set_up();
        write_csr!("0x103", 0);
        set_csr!("mie", 1);
        write_csr!("stvec", supervisor_vector());
        let uie = read_csr!("0x004");
        let trap = user(send);
        expect("T22", &[(uie, 0), (trap.cause, FROM_SUPERVISOR), (trap.result, INTERRUPT), (entries(), 0)]);
        clear_csr!("mie", 1);
    }

    fn re_entry() {
        extern "C" fn send(_: u64) -> u64 {
            uipi_send(3);
            0
        }
        set_up();
        RECORD.read_from.store(3, Relaxed);
        user(send);
        expect("T23", &[(entries(), 3), (bits(), 8)]);
        set_up();
        RECORD.read_from.store(u64::MAX, Relaxed);
        RECORD.give_up.store(5, Relaxed);
        let trap = user(send);
        expect("T23 given up", &[(trap.cause, FROM_USER), (entries(), 5), (read_csr!("0x000"), 0x10)]);
    }

    fn access_sizes() {
        extern "C" fn read_half(at: u64) -> u64 {
            // SAFETY: a device register; the access is expected to fault.
            u64::from(unsafe { (at as *const u32).read_volatile() })
        }
        extern "C" fn write_half(at: u64) -> u64 {
            // SAFETY: as above.
            unsafe { (at as *mut u32).write_volatile(0) };
            0
        }
        set_up();
        let at = uintc_address(RECEIVER, Register::Low) as u64;
        let read = enter(Mode::User, read_half, at);
        expect("T24", &[(read.cause, LOAD_FAULT), (read.value, at)]);
        let write = enter(Mode::User, write_half, at);
        expect("T24 store", &[(write.cause, STORE_FAULT), (write.value, at)]);
    }

    fn reservation() {
        static WORD: AtomicU64 = AtomicU64::new(0);
        extern "C" fn across(with_interrupt: u64) -> u64 {
            let failed: u64;
            // SAFETY: LR and SC of a static word; the interrupt handler saves the registers it uses.
            unsafe {
                core::arch::asm!(
                    "lr.d {t}, ({w})",
                    "beqz {i}, 1f",
                    ".insn r 0x7b, 6, 0, x0, {v}, x0",
                    "1: sc.d {f}, {i}, ({w})",
                    w = in(reg) WORD.as_ptr(), i = in(reg) with_interrupt, v = in(reg) 3u64,
                    t = out(reg) _, f = out(reg) failed,
                )
            };
            failed
        }
        set_up();
        let without = enter(Mode::User, across, 0).result;
        let with = enter(Mode::User, across, 1).result;
        expect("LR/SC across a user interrupt", &[(without, 0), (with, 1), (entries(), 1)]);
    }

    fn second_hart() {
        while ORDER.load(Acquire) != 1 {}
        write_csr!("0x1b0", sender_table());
        uipi_send(3);
        ORDER.store(2, Release);
    }

    #[unsafe(no_mangle)]
    extern "C" fn guest_main(hart: u64) {
        match hart {
            0 => {}
            1 => return second_hart(),
            _ => return,
        }
        send_and_return();
        masks();
        bad_indices();
        activation();
        merging();
        vectors();
        level();
        illegal_forms();
        software_latch();
        supervisor_posts();
        disabled();
        registers();
        vectored();
        exceptions_stay_with_the_kernel();
        clear_orders();
        from_another_hart();
        late_activation();
        delegation();
        re_entry();
        access_sizes();
        reservation();
        let failures = FAILURES.load(Relaxed);
        println!("{failures} failures");
        mmio::exit(u32::from(failures != 0));
    }
}
