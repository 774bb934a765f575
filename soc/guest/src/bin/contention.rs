//! Four harts count in shared words: by LR/SC, by AMO, and under a ticket lock.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    println!("build for riscv64imac-unknown-none-elf and run with: soc run --bare contention --harts 4");
}

#[cfg(target_os = "none")]
mod program {
    use core::sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
    };
    use soc_guest::{mmio, println};

    const HARTS: u64 = 4;
    const ROUNDS: u64 = 2000;

    #[repr(align(64))]
    struct Line(AtomicU64);

    static BY_LR_SC: Line = Line(AtomicU64::new(0));
    static BY_AMO: Line = Line(AtomicU64::new(0));
    static LOCKED: Line = Line(AtomicU64::new(0));
    static NEXT_TICKET: Line = Line(AtomicU64::new(0));
    static NOW_SERVING: Line = Line(AtomicU64::new(0));
    static FINISHED: Line = Line(AtomicU64::new(0));

    fn count() {
        for _ in 0..ROUNDS {
            // Compiles to an LR/SC loop.
            while BY_LR_SC.0.fetch_update(SeqCst, Relaxed, |old| Some(old + 1)).is_err() {}
            BY_AMO.0.fetch_add(1, Relaxed);
            let ticket = NEXT_TICKET.0.fetch_add(1, Relaxed);
            while NOW_SERVING.0.load(Acquire) != ticket {
                core::hint::spin_loop();
            }
            // Not atomic as a whole: only the lock makes it right.
            LOCKED.0.store(LOCKED.0.load(Relaxed) + 1, Relaxed);
            NOW_SERVING.0.store(ticket + 1, Release);
        }
        FINISHED.0.fetch_add(1, Release);
    }

    #[unsafe(no_mangle)]
    extern "C" fn guest_main(hart: u64) {
        if hart >= HARTS {
            return;
        }
        count();
        if hart != 0 {
            return;
        }
        while FINISHED.0.load(Acquire) != HARTS {
            core::hint::spin_loop();
        }
        let mut code = 0;
        for (name, word) in [("LR/SC", &BY_LR_SC), ("AMO", &BY_AMO), ("lock", &LOCKED)] {
            let got = word.0.load(Relaxed);
            if got == HARTS * ROUNDS {
                println!("{name} PASS");
            } else {
                println!("{name} FAIL {got} instead of {}", HARTS * ROUNDS);
                code = 1;
            }
        }
        mmio::exit(code);
    }
}
