//! What lines cost between harts: one access to a line in each state, two harts passing a flag, contended atomics, streams of
//! several harts, an interrupt from hart to hart. Four harts, M-mode. Output and published values as of `rocket`.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    println!("build for riscv64imac-unknown-none-elf and run with: soc run --bare coherence --harts 4 --mode timed");
}

#[cfg(target_os = "none")]
mod program {
    use core::arch::{asm, global_asm};
    use core::hint::spin_loop;
    use core::sync::atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    };
    use soc_guest::measure::report;
    use soc_guest::{mmio, write_csr};

    const HARTS: usize = 4;
    const LINE: u64 = 64;
    /// Lines of a one-shot measurement.
    const LINES: u64 = 16;
    /// Rounds of ping-pong, atomics and interrupts.
    const ROUNDS: u64 = 256;
    const STREAM_BYTES: u64 = 64 << 10;

    #[repr(align(64))]
    struct Line([AtomicU64; 8]);

    const fn empty() -> Line {
        Line([const { AtomicU64::new(0) }; 8])
    }

    /// Job number (from 1), what to do and with what, per hart; and the last job done.
    static JOBS: [Line; HARTS] = [const { empty() }; HARTS];
    static DONE: [Line; HARTS] = [const { empty() }; HARTS];
    /// Never touched before it is measured; `FRESH` counts lines handed out.
    static ARENA: [Line; 4096] = [const { empty() }; 4096];
    static FRESH: AtomicU64 = AtomicU64::new(0);
    static FLAGS: [Line; 2] = [const { empty() }; 2];
    static COUNTER: Line = empty();
    static STREAMS: [[Line; 1024]; HARTS] = [const { [const { empty() }; 1024] }; HARTS];

    /// What a helper can be told to do.
    #[derive(Clone, Copy)]
    enum Job {
        Read = 1,
        Write = 2,
        /// Answer a flag in the word `argument`, by the word in bits 63:32 of it behind.
        Pong = 3,
        Add = 4,
        ReadStream = 5,
        WriteStream = 6,
        Interrupt = 7,
    }

    fn address<T>(of: &T) -> u64 {
        (&raw const *of).addr() as u64
    }

    /// Gives `hart` a job; it runs at once.
    fn start(hart: usize, job: Job, argument: u64) {
        let line = &JOBS[hart].0;
        line[1].store(job as u64, Relaxed);
        line[2].store(argument, Relaxed);
        line[0].store(line[0].load(Relaxed) + 1, Release);
    }

    fn wait(hart: usize) {
        while DONE[hart].0[0].load(Acquire) != JOBS[hart].0[0].load(Relaxed) {
            spin_loop();
        }
    }

    fn on(hart: usize, job: Job, argument: u64) {
        start(hart, job, argument);
        wait(hart);
    }

    fn helper(hart: usize) -> ! {
        let line = &JOBS[hart].0;
        for number in 1.. {
            while line[0].load(Acquire) != number {
                spin_loop();
            }
            let (job, argument) = (line[1].load(Relaxed), line[2].load(Relaxed));
            run(job, argument, hart);
            DONE[hart].0[0].store(number, Release);
        }
        unreachable!("2^64 jobs")
    }

    fn run(job: u64, argument: u64, hart: usize) {
        let word = |at: u64| at as *mut u64;
        match job {
            // SAFETY: the main hart names lines of the arena; nobody else uses them now.
            1 => (0..LINES).for_each(|n| _ = unsafe { word(argument + n * LINE).read_volatile() }),
            // SAFETY: as above.
            2 => (0..LINES).for_each(|n| unsafe { word(argument + n * LINE).write_volatile(n) }),
            3 => pong(argument),
            4 => _ = add(),
            5 => _ = stream(hart, false),
            6 => _ = stream(hart, true),
            _ => interrupts(),
        }
    }

    /// `LINES` lines that nobody has touched.
    fn fresh() -> u64 {
        address(&ARENA[FRESH.fetch_add(LINES, Relaxed) as usize])
    }

    /// Cycles between two reads of the counter around an access, for `LINES` lines together.
    macro_rules! access {
        ($from:expr, $access:literal) => {{
            let sum: u64;
            // SAFETY: the lines are of the arena; registers are declared.
            unsafe {
                asm!(
                    ".option push", ".option norvc", ".balign 64",
                    "2: csrr a6, mcycle", $access, "csrr a7, mcycle", "sub a7, a7, a6", "add t0, t0, a7",
                    "addi a0, a0, 64", "addi t3, t3, -1", "bnez t3, 2b", ".option pop",
                    inout("a0") $from => _, inout("t0") 0u64 => sum, inout("t3") LINES => _,
                    out("t1") _, out("t2") _, out("a6") _, out("a7") _,
                );
            }
            sum
        }};
    }

    /// Lines that another hart has written.
    fn dirty_elsewhere() -> u64 {
        let from = fresh();
        on(1, Job::Write, from);
        from
    }

    /// Lines that some of harts 1 and 2 have read.
    fn read_elsewhere(harts: usize) -> u64 {
        let from = fresh();
        (1..=harts).for_each(|hart| on(hart, Job::Read, from));
        from
    }

    /// An access on lines that `$lines` prepares; the best of four rounds, for the code is not there at first, and a victim may be dirty.
    macro_rules! single {
        ($name:literal, $lines:expr, $access:literal) => {{
            let mut cycles = u64::MAX;
            for _ in 0..4 {
                // No dirty victims.
                stream(0, false);
                let from = $lines;
                // Until the hub is idle.
                (0..100).for_each(|_| spin_loop());
                cycles = cycles.min(access!(from, $access));
            }
            report($name, cycles, LINES);
        }};
    }

    fn single_accesses() {
        single!("load, nowhere else", fresh(), "ld t1, 0(a0)\nadd t2, t1, t1");
        single!("load, clean in another", read_elsewhere(1), "ld t1, 0(a0)\nadd t2, t1, t1");
        single!("load, clean in two others", read_elsewhere(2), "ld t1, 0(a0)\nadd t2, t1, t1");
        single!("load, dirty in another", dirty_elsewhere(), "ld t1, 0(a0)\nadd t2, t1, t1");
        let own = || {
            let from = fresh();
            run(Job::Write as u64, from, 0);
            from
        };
        single!("store, own", own(), "sd t1, 0(a0)");
        let shared = || {
            let from = read_elsewhere(1);
            run(Job::Read as u64, from, 0);
            from
        };
        single!("store, shared with another", shared(), "sd t1, 0(a0)");
        single!("store, dirty in another", dirty_elsewhere(), "sd t1, 0(a0)");
        single!("amo, dirty in another", dirty_elsewhere(), "amoadd.d t1, t2, (a0)\nadd t2, t1, t1");
        single!("lr and sc, dirty in another", dirty_elsewhere(), "lr.d t1, (a0)\nsc.d t2, t1, (a0)\nadd t1, t2, t2");
    }

    /// Hart 0 stores n, the other answers n in `answer`.
    #[inline(never)]
    fn ping(name: &str, flag: u64, answer: u64) {
        let mut cycles = 0u64;
        for _ in 0..2 {
            // SAFETY: two words of FLAGS.
            unsafe {
                (flag as *mut u64).write_volatile(0);
                (answer as *mut u64).write_volatile(0);
                start(1, Job::Pong, (answer - flag) << 32 | (flag & 0xFFFF_FFFF));
                asm!(
                    ".option push", ".option norvc", "li t0, 1", ".balign 64", "csrr a6, mcycle",
                    "2: sd t0, 0(a0)", "3: ld t1, 0(a1)", "bne t1, t0, 3b", "addi t0, t0, 1", "bgeu t2, t0, 2b",
                    "csrr a7, mcycle", "sub a7, a7, a6", ".option pop",
                    in("a0") flag, in("a1") answer, in("t2") ROUNDS, out("t0") _, out("t1") _, out("a6") _, lateout("a7") cycles,
                );
            }
            wait(1);
        }
        report(name, cycles, ROUNDS);
    }

    fn pong(argument: u64) {
        let flag = argument & 0xFFFF_FFFF;
        // SAFETY: two words of FLAGS.
        unsafe {
            asm!(
                ".option push", ".option norvc", "li t0, 1", ".balign 64",
                "2: ld t1, 0(a0)", "bne t1, t0, 2b", "sd t0, 0(a1)", "addi t0, t0, 1", "bgeu t2, t0, 2b", ".option pop",
                in("a0") flag, in("a1") flag + (argument >> 32), in("t2") ROUNDS, out("t0") _, out("t1") _,
            );
        }
    }

    /// Adds to the one counter; cycles.
    #[inline(never)]
    fn add() -> u64 {
        let mut cycles;
        // SAFETY: an atomic word.
        unsafe {
            asm!(
                ".option push", ".option norvc", ".balign 64", "csrr a6, mcycle", ".balign 64",
                "2: amoadd.d t1, t0, (a0)", "nop", "nop", "addi t0, t0, -1", "bnez t0, 2b",
                "csrr a7, mcycle", "sub a7, a7, a6", ".option pop",
                in("a0") address(&COUNTER), inout("t0") ROUNDS => _, out("t1") _, out("a6") _, lateout("a7") cycles,
            );
        }
        cycles
    }

    /// Runs `job` on the first `harts` harts at a time, this one included; its own cycles, the second time.
    fn together(harts: usize, job: Job, own: impl Fn() -> u64) -> u64 {
        let mut cycles = 0;
        for _ in 0..2 {
            (1..harts).for_each(|hart| start(hart, job, 0));
            cycles = own();
            (1..harts).for_each(wait);
        }
        cycles
    }

    /// One pass over this hart's own lines; cycles.
    #[inline(never)]
    fn stream(hart: usize, write: bool) -> u64 {
        macro_rules! pass {
            ($access:literal) => {{
                let cycles: u64;
                // SAFETY: this hart's own lines.
                unsafe {
                    asm!(
                        ".option push", ".option norvc", ".balign 64", "csrr a6, mcycle", ".balign 64", "2:",
                        $access, "add t2, t3, t3", "addi a0, a0, 64", "bne a0, t0, 2b",
                        "csrr a7, mcycle", "sub a7, a7, a6", ".option pop",
                        inout("a0") address(&STREAMS[hart]) => _, in("t0") address(&STREAMS[hart]) + STREAM_BYTES,
                        out("t1") _, out("t2") _, out("t3") _, out("a6") _, lateout("a7") cycles,
                    );
                }
                cycles
            }};
        }
        let mut cycles = 0;
        for _ in 0..2 {
            cycles = if write {
                pass!(".irp offset, 0, 8, 16, 24, 32, 40, 48, 56\nsd t1, \\offset(a0)\n.endr")
            } else {
                // Two destinations in turn: a load waits for a late result that it replaces.
                pass!(".irp offset, 0, 16, 32, 48\nld t1, \\offset(a0)\nld t3, 8+\\offset(a0)\n.endr")
            };
        }
        cycles
    }

    global_asm!(
        r#"
    // Takes the interrupt back and tells hart 0: a0 = msip of this hart, a1 = flag, t0 = number.
    .balign 64
    .option push
    .option norvc
    .globl coherence_handler
coherence_handler:
    sw      x0, 0(a0)
    sd      t0, 0(a1)
    addi    t0, t0, 1
    fence
    mret
    .option pop
"#
    );
    unsafe extern "C" {
        fn coherence_handler();
    }
    const MSIP: u64 = 0x0200_0000;

    fn interrupts() {
        let vector = soc_guest::read_csr!("mtvec");
        write_csr!("mtvec", coherence_handler as *const () as u64);
        // SAFETY: the handler uses a0, a1 and t0, all declared; it comes only between the two CSR writes.
        unsafe {
            asm!(
                "csrwi mie, 8", "csrsi mstatus, 8", "2: bgeu t1, t0, 2b", "csrci mstatus, 8", "csrwi mie, 0",
                in("a0") MSIP + 4, in("a1") address(&FLAGS[0]), inout("t0") 1u64 => _, in("t1") ROUNDS,
            );
        }
        write_csr!("mtvec", vector);
    }

    #[inline(never)]
    fn interrupt_round_trip() {
        let mut cycles = 0u64;
        for _ in 0..2 {
            FLAGS[0].0[0].store(0, Relaxed);
            start(1, Job::Interrupt, 0);
            // Long enough for the other hart to be ready.
            (0..1000).for_each(|_| spin_loop());
            // SAFETY: msip of hart 1 and a flag.
            unsafe {
                asm!(
                    ".option push", ".option norvc", "li t0, 1", "li t3, 1", ".balign 64", "csrr a6, mcycle",
                    "2: sw t3, 4(a0)", "3: ld t1, 0(a1)", "bne t1, t0, 3b", "addi t0, t0, 1", "bgeu t2, t0, 2b",
                    "csrr a7, mcycle", "sub a7, a7, a6", ".option pop",
                    in("a0") MSIP, in("a1") address(&FLAGS[0]), in("t2") ROUNDS,
                    out("t0") _, out("t1") _, out("t3") _, out("a6") _, lateout("a7") cycles,
                );
            }
            wait(1);
        }
        report("interrupt of another hart, until it has answered", cycles, ROUNDS);
    }

    #[unsafe(no_mangle)]
    extern "C" fn guest_main(hart: u64) {
        if hart as usize >= HARTS {
            return;
        }
        if hart != 0 {
            helper(hart as usize);
        }
        single_accesses();
        ping("ping-pong, one line", address(&FLAGS[0].0[0]), address(&FLAGS[0].0[1]));
        ping("ping-pong, two lines", address(&FLAGS[0].0[0]), address(&FLAGS[1].0[0]));
        report("amoadd, one hart", together(1, Job::Add, add), ROUNDS);
        report("amoadd, 2 harts", together(2, Job::Add, add), ROUNDS);
        report("amoadd, 4 harts", together(4, Job::Add, add), ROUNDS);
        let lines = STREAM_BYTES / LINE;
        for (name, harts, write) in [
            ("read stream, 1 of 4 harts, per line", 1, false),
            ("read stream, 2 harts, per line", 2, false),
            ("read stream, 4 harts, per line", 4, false),
            ("write stream, 1 of 4 harts, per line", 1, true),
            ("write stream, 4 harts, per line", 4, true),
        ] {
            let job = if write { Job::WriteStream } else { Job::ReadStream };
            report(name, together(harts, job, || stream(0, write)), lines);
        }
        interrupt_round_trip();
        mmio::exit(0);
    }
}
