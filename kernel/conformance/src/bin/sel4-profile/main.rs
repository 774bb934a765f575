//! What a libsel4 program can see of the configuration that its kernel was built with: `images build --root-server` takes options for
//! these. It prints one line each, `sel4-profile: NAME VALUE`, and ends the machine with 1 if debug calls exist, plus 2 if benchmark
//! calls exist, plus 4; so it says so much where it cannot print.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod profile {
    use sel4_conformance::System;
    use sel4_conformance::number::object::{GIGA_PAGE, MEGA_PAGE};
    use sel4_conformance::number::{Invocation::*, slot};
    use sel4_conformance::server::Machine;
    use sel4_conformance::server::actor::register::{A0, A1};
    use sel4_conformance::server::actor::{Actor, Faults, Stub};
    use sel4_conformance::server::machine::print;
    use sel4_conformance::server::start::{
        BENCHMARK_FINALIZE_LOG, BENCHMARK_NULL_SYSCALL, BENCHMARK_RESET_LOG, BENCHMARK_SET_LOG_BUFFER, Buffer,
        DEBUG_PUT_CHAR, YIELD, syscall,
    };

    /// Ticks of the time base (10 MHz) in a millisecond.
    const TICKS_PER_MS: u64 = 10_000;
    /// Interrupts hold a thread up for less than this.
    const HELD_UP: u64 = 2_000;

    sel4_conformance::root_server!(run);

    fn run(mut machine: Machine, _: u64) -> ! {
        let m = &mut machine;
        let printing = exists(m, DEBUG_PUT_CHAR);
        let benchmarks = exists(m, BENCHMARK_NULL_SYSCALL);
        if printing {
            let info = m.info;
            print(format_args!("\nsel4-profile: radix {}\n", info.cnode_size_bits));
            print(format_args!("sel4-profile: nodes {}\n", info.num_nodes));
            print(format_args!("sel4-profile: labels {}\n", if m.smp() { "smp" } else { "up" }));
            print(format_args!("sel4-profile: benchmarks {benchmarks}\n"));
            let ram = || info.untypeds().filter(|(_, desc)| desc.is_device == 0);
            let bytes: u64 = ram().map(|(_, desc)| 1 << desc.size_bits).sum();
            let gigabytes: u64 = ram().map(|(_, desc)| 1 << desc.size_bits >> 30).sum();
            print(format_args!("sel4-profile: memory {} MiB, {gigabytes} aligned GiB\n", bytes >> 20));
            if gigabytes > 0 {
                print(format_args!("sel4-profile: giga page {}\n", giga_page(m)));
            }
            print(format_args!("sel4-profile: slice {} ms\n", slice(m)));
            if exists(m, BENCHMARK_SET_LOG_BUFFER) {
                log(m);
            }
        }
        machine.end(4 | u16::from(printing) | u16::from(benchmarks) << 1)
    }

    /// Whether a system call exists: its thread gets to its `ebreak`.
    fn exists(m: &mut Machine, number: i64) -> bool {
        let block = m.block();
        let faults = Faults::new(m, block);
        let actor = Actor::new(m, block, faults, 0);
        actor.call(m, number, u64::from(b' '), 0, [0; 4]);
        faults.next(m).word(0) != Stub::ecall().0
    }

    /// Milliseconds that a thread waits while another one of its priority uses up its time slice.
    fn slice(m: &mut Machine) -> u64 {
        let block = m.block();
        let faults = Faults::new(m, block);
        let (waits, spins) = (Actor::new(m, block, faults, 0), Actor::new(m, block, faults, 1));
        spins.start(m, Stub::spin(), &[]);
        waits.start(m, Stub::gap(), &[(A0, HELD_UP)]);
        faults.next(m);
        (waits.register(m, A1) + TICKS_PER_MS / 2) / TICKS_PER_MS
    }

    /// Has three calls logged, and prints what the log holds: path and number of each system call.
    fn log(m: &mut Machine) {
        const V: u64 = 0x2000_0000;
        let block = m.block();
        let page = m.make(block, MEGA_PAGE, 0);
        let mapped = m.invoke(page, RISCVPageMap, &[V, 3, 1], &[slot::VSPACE]).error;
        let ask = |number, argument| syscall(number, [argument, 0, 0, 0, 0, 0])[0];
        let unset = ask(BENCHMARK_RESET_LOG, 0);
        let (set, reset) = (ask(BENCHMARK_SET_LOG_BUFFER, page), ask(BENCHMARK_RESET_LOG, 0));
        for _ in 0..3 {
            ask(YIELD, 0);
        }
        let count = ask(BENCHMARK_FINALIZE_LOG, 0);
        print(format_args!("sel4-profile: log errors {mapped} {unset} {set} {reset}, {count} entries:"));
        // SAFETY: the page that was mapped there, if it was; nothing else is.
        let log = unsafe { Buffer::at(V as *mut u64) };
        // `benchmark_track_kernel_entry_t`: 24 bytes, path in byte 12, minus the number in the low bits of byte 13.
        for word in (0..count.min(8) as usize).map(|index| log.get(3 * index + 1)) {
            print(format_args!(" {}:{}", word >> 32 & 7, word >> 40 & 0xF));
        }
        print(format_args!("\n"));
    }

    /// Makes a page of 1 GiB and maps it: its physical address.
    fn giga_page(m: &mut Machine) -> GigaPage {
        const V: u64 = 0x10_0000_0000;
        let large = m.info.untypeds().find(|(_, desc)| desc.is_device == 0 && desc.size_bits == 30);
        let Some((untyped, _)) = large else { return GigaPage(None) };
        m.block();
        let page = m.make(untyped, GIGA_PAGE, 0);
        let mapped = m.invoke(page, RISCVPageMap, &[V, 3, 1], &[slot::VSPACE]);
        let address = m.invoke(page, RISCVPageGetAddress, &[], &[]).words[0];
        GigaPage((mapped.error == 0).then_some(address))
    }

    struct GigaPage(Option<u64>);

    impl core::fmt::Display for GigaPage {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            match self.0 {
                Some(address) => write!(f, "{address:#x}"),
                None => f.write_str("none"),
            }
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!(
        "a root server of the machine: cargo test -p images --test conformance builds images around it and runs them"
    );
}
