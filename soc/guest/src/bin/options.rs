//! What a hart does where the machine's configuration decides: misaligned accesses, and the supervisor timer. Prints what it finds; the
//! test knows what each configuration promises.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    println!("build for riscv64imac-unknown-none-elf and run with: soc run --bare options --misaligned hw --sstc on");
}

#[cfg(target_os = "none")]
mod program {
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use soc_guest::entry::{Mode, enter};
    use soc_guest::{clear_csr, mmio, println, read_csr, set_csr, write_csr};

    const FROM_USER: u64 = 8;
    const RETURNED: [u64; 2] = [FROM_USER, 9];
    const UART: u64 = 0x1000_0000;
    const SUPERVISOR_TIMER: u64 = 1 << 5;

    #[repr(C, align(4096))]
    struct Pages([AtomicU64; 1024]);
    static PAGES: Pages = Pages([const { AtomicU64::new(0) }; 1024]);

    macro_rules! access {
        ($name:ident, $instruction:literal, load) => {
            extern "C" fn $name(at: u64) -> u64 {
                let value: u64;
                // SAFETY: reads the program's own memory or a device register without side effects, or traps.
                unsafe { core::arch::asm!(concat!($instruction, " {0}, 0({1})"), out(reg) value, in(reg) at) };
                value
            }
        };
        ($name:ident, $instruction:literal, store) => {
            extern "C" fn $name(at: u64) -> u64 {
                // SAFETY: writes to the atomics of `PAGES`, which nothing else uses meanwhile, or traps.
                unsafe { core::arch::asm!(concat!($instruction, " {0}, 0({1})"), in(reg) PATTERN, in(reg) at) };
                0
            }
        };
    }
    const PATTERN: u64 = 0x8877_6655_4433_2211;
    access!(load_half, "lhu", load);
    access!(load_word, "lwu", load);
    access!(load_double, "ld", load);
    access!(store_half, "sh", store);
    access!(store_word, "sw", store);
    access!(store_double, "sd", store);

    extern "C" fn add_atomically(at: u64) -> u64 {
        let old: u64;
        // SAFETY: as the stores.
        unsafe { core::arch::asm!("amoadd.w {0}, zero, ({1})", out(reg) old, in(reg) at) };
        old
    }

    fn byte(index: u64) -> u8 {
        (PAGES.0[(index / 8) as usize].load(Relaxed) >> (8 * (index % 8))) as u8
    }

    /// Stores and loads at odd places: inside a line, across lines, across pages. Gives how often it went right.
    fn round_trips() -> (u64, u64) {
        type Access = extern "C" fn(u64) -> u64;
        let (mut right, mut tried) = (0, 0);
        let base = PAGES.0.as_ptr().addr() as u64;
        let pairs: [(u64, Access, Access); 3] =
            [(2, store_half, load_half), (4, store_word, load_word), (8, store_double, load_double)];
        for (size, store, load) in pairs {
            for at in [1, 61, 63, 4089, 4091, 4093, 4095].into_iter().filter(|at| at % size != 0) {
                PAGES.0.iter().for_each(|word| word.store(0, Relaxed));
                let stored = enter(Mode::User, store, base + at);
                let loaded = enter(Mode::User, load, base + at);
                let expected = PATTERN & (u64::MAX >> (64 - 8 * size));
                let bytes = (0..16).all(|index| {
                    let inside = index >= 4 && index - 4 < size;
                    let (place, shift) = ((at + index).checked_sub(4), 8 * (index.wrapping_sub(4) % 8));
                    place.is_none_or(|place| byte(place) == if inside { (PATTERN >> shift) as u8 } else { 0 })
                });
                tried += 1;
                right +=
                    u64::from((stored.cause, loaded.cause, loaded.result) == (FROM_USER, FROM_USER, expected) && bytes);
            }
        }
        (right, tried)
    }

    fn misaligned() {
        let base = PAGES.0.as_ptr().addr() as u64;
        let (right, tried) = round_trips();
        println!("misaligned {right} of {tried}");
        for (name, function, at) in [
            ("load", load_word as extern "C" fn(u64) -> u64, base + 1),
            ("store", store_word, base + 4095),
            ("device", load_word, UART + 1),
            ("atomic", add_atomically, base + 2),
        ] {
            let trap = enter(Mode::User, function, at);
            let cause = if RETURNED.contains(&trap.cause) { 0 } else { trap.cause };
            println!("{name} cause {cause} value {}", if cause == 0 { 0 } else { trap.value - at });
        }
    }

    /// Arms the timer 100 ticks from now and waits for its interrupt, which M takes for S here.
    extern "C" fn arm(_: u64) -> u64 {
        let due = read_csr!("time") + 100;
        write_csr!("0x14d", due);
        loop {
            core::hint::spin_loop();
        }
    }

    fn timer() {
        write_csr!("mcounteren", 7);
        extern "C" fn touch(_: u64) -> u64 {
            write_csr!("0x14d", u64::MAX);
            1
        }
        println!("closed cause {}", enter(Mode::Supervisor, touch, 0).cause);
        // Without the extension there is no menvcfg either, and the program ends here.
        set_csr!("0x30a", 1 << 63);
        println!("open cause {}", enter(Mode::Supervisor, touch, 0).cause);
        set_csr!("mie", SUPERVISOR_TIMER);
        let before = read_csr!("time");
        let trap = enter(Mode::Supervisor, arm, 0);
        let late = read_csr!("time") - before;
        println!("timer cause {:#x} in time {}", trap.cause, (100..200).contains(&late));
        println!("pending {}", read_csr!("mip") & SUPERVISOR_TIMER);
        write_csr!("0x14d", u64::MAX);
        println!("moved {}", read_csr!("mip") & SUPERVISOR_TIMER);
        clear_csr!("0x30a", 1 << 63);
        println!("closed again cause {}", enter(Mode::Supervisor, touch, 0).cause);
    }

    #[unsafe(no_mangle)]
    extern "C" fn guest_main(hart: u64) {
        if hart != 0 {
            return;
        }
        misaligned();
        timer();
        mmio::exit(0);
    }
}
