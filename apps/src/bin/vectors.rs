//! What user interrupts do, seen from U: one line a case, with everything that was observed.
//!
//! The program at the client's end of the channel is the receiver. It sends to itself first, through a sender table entry for each of
//! a few vectors (cases T1 to T18 of the user-interrupt reference), then asks its peer to send, `rounds` times, by a word of shared
//! memory: T19 if the two run on two harts, T20 if they share one. The lines are the same on every machine; it leaves with 1 if one
//! is wrong.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use uintr::csr::{self, UCAUSE, UEPC, UIE, UIP, USCRATCH, USTATUS, UTVAL, UTVEC};
    use uintr::entry;
    use uintr::insn::{activate, deactivate, read, send, write};
    use userlib::cap::{CPtr, Notification, Rights, Slot, slot};
    use userlib::env::{Channel, Role, Transport};
    use userlib::{Env, println, syscall};

    userlib::program!(main);

    /// Vectors that the receiver can send to itself, and the slots for their badged doorbells.
    const VECTORS: [u32; 7] = [1, 2, 3, 30, 31, 32, 63];
    const FIRST_SLOT: u64 = 24;
    /// The word of an order to end.
    const END: u64 = u64::MAX;

    static ENTRIES: AtomicU64 = AtomicU64::new(0);
    static BITS: AtomicU64 = AtomicU64::new(0);
    static SEEN: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
    static FAILED: AtomicBool = AtomicBool::new(false);

    macro_rules! get {
        ($csr:ident) => {{
            let value: u64;
            // SAFETY: reads a register of this thread.
            unsafe { core::arch::asm!("csrr {}, {}", out(reg) value, const $csr) };
            value
        }};
    }
    macro_rules! set {
        ($csr:ident, $value:expr) => {{
            let value: u64 = $value;
            // SAFETY: handler and stack stay as they are; the values are masks and words to be read back.
            unsafe { core::arch::asm!("csrw {}, {}", const $csr, in(reg) value) }
        }};
    }
    macro_rules! clear_latch {
        () => {
            // SAFETY: the software latch of this thread.
            unsafe { core::arch::asm!("csrci {}, 1", const UIP) }
        };
    }

    extern "C" fn handler(bits: u64) {
        ENTRIES.fetch_add(1, Ordering::Relaxed);
        BITS.fetch_or(bits, Ordering::Relaxed);
        for (word, value) in SEEN.iter().zip([get!(UCAUSE), get!(UTVAL), get!(USTATUS)]) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Entries and bits since the last call.
    fn taken() -> [u64; 2] {
        [ENTRIES.swap(0, Ordering::Relaxed), BITS.swap(0, Ordering::Relaxed)]
    }

    fn expect(case: &str, got: &[u64], wanted: &[u64]) {
        let verdict = if got == wanted { "right" } else { "WRONG" };
        FAILED.fetch_or(got != wanted, Ordering::Relaxed);
        println!("{case}: {got:#x?} {verdict}", got = Line(got));
    }

    struct Line<'a>(&'a [u64]);
    impl core::fmt::Debug for Line<'_> {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            self.0.iter().try_for_each(|word| write!(f, "{word:#x} "))
        }
    }

    fn main(env: &'static Env, _: usize) -> i32 {
        let Some(channel) = env.channels().next() else { return 1 };
        if !env.user_interrupts() {
            println!("{}: no user interrupts", env.name());
            return 1;
        }
        match channel.role {
            Role::Client => receiver(env, &channel),
            Role::Server => sender(&channel),
        }
        FAILED.load(Ordering::Relaxed).into()
    }

    fn receiver(env: &Env, channel: &Channel) {
        let index: [u64; VECTORS.len()] = core::array::from_fn(|place| {
            let place_of = |index| Slot { root: slot::CNODE, index, depth: 64 };
            let badged = FIRST_SLOT + place as u64;
            let doorbell = place_of(slot::DOORBELL.0.0);
            place_of(badged).mint(doorbell, Rights::WRITE, 1 << VECTORS[place]).expect("a free slot");
            slot::SENDER_TABLE.register(Notification(CPtr(badged))).expect("a free entry") as u64
        });
        let to = |vector: u32| index[VECTORS.iter().position(|&known| known == vector).expect("one of the list")];

        // SAFETY: the handler touches atomics only.
        unsafe { entry::call(handler) };
        activate();
        masks(to(3));
        for vector in [30, 31, 32, 63] {
            send(to(vector));
            expect("T7", &taken(), &[1, 1 << vector]);
        }
        bits(to(1), to(2), to(3));
        registers();
        ask(env, channel);
    }

    fn masks(three: u64) {
        send(three);
        let [entries, bits] = taken();
        let [cause, value, status] = [0, 1, 2].map(|index: usize| SEEN[index].load(Ordering::Relaxed));
        expect("T1", &[entries, bits, cause, value, status, get!(USTATUS)], &[1, 8, 1 << 63, 0, 0x10, 0x11]);
        expect("T2", &[read()], &[0]);
        csr::disable();
        send(three);
        let early = [ENTRIES.load(Ordering::Relaxed), get!(UIP)];
        csr::enable();
        expect("T3", &[early, taken()].concat(), &[0, 1, 1, 8]);
        set!(UIE, 0);
        send(three);
        let early = [ENTRIES.load(Ordering::Relaxed), get!(UIP)];
        set!(UIE, 0x111);
        expect("T3b", &[early, [get!(UIE), taken()[1]]].concat(), &[0, 1, 1, 8]);
        for index in [127, 128, 512, 1 << 61, u64::MAX] {
            send(index);
        }
        expect("T4", &taken(), &[0, 0]);
        deactivate();
        send(three);
        let early = [ENTRIES.load(Ordering::Relaxed), get!(UIP)];
        activate();
        expect("T5", &[early, taken()].concat(), &[0, 0, 1, 8]);
    }

    fn bits(one: u64, two: u64, three: u64) {
        write(0xA0);
        expect("T6", &taken(), &[1, 0xA0]);
        csr::disable();
        write(1);
        write(4 | 1 << 63);
        send(three);
        csr::enable();
        expect("T6 merged", &taken(), &[1, 0x8000_0000_0000_000D]);
        csr::disable();
        send(three);
        expect("T8", &[get!(UIP), read(), get!(UIP)], &[1, 8, 0]);
        send(three);
        clear_latch!();
        csr::enable();
        expect("T8b", &taken(), &[1, 8]);
        csr::disable();
        set!(UIP, 0x111);
        let latched = get!(UIP);
        csr::enable();
        expect("T11", &[[latched, 0], taken()].concat(), &[1, 0, 1, 0]);
        csr::disable();
        send(one);
        let first = read();
        send(two);
        clear_latch!();
        csr::enable();
        expect("T18b", &[[first, 0], taken()].concat(), &[2, 0, 1, 4]);
        csr::disable();
        send(one);
        clear_latch!();
        send(two);
        let all = read();
        csr::enable();
        expect("T18c", &[[all, 0], taken()].concat(), &[6, 0, 0, 0]);
    }

    fn registers() {
        csr::disable();
        let (vector, scratch) = (get!(UTVEC), get!(USCRATCH));
        set!(UTVEC, 0x2001);
        set!(UTVEC, 0x3002);
        expect("T16", &[get!(UTVEC)], &[0x2001]);
        macro_rules! holds {
            ($csr:ident, $written:expr, $held:expr) => {
                set!($csr, $written);
                expect(stringify!($csr), &[get!($csr)], &[$held]);
            };
        }
        holds!(USCRATCH, u64::MAX, u64::MAX);
        holds!(UEPC, u64::MAX, u64::MAX - 1);
        holds!(UCAUSE, u64::MAX, 0x8000_0000_0000_001F);
        holds!(UTVAL, u64::MAX, u64::MAX);
        holds!(USTATUS, !1, 0x10);
        set!(UTVEC, vector);
        set!(USCRATCH, scratch);
        csr::enable();
    }

    /// The word through which the receiver gives orders: how many sends it has asked for.
    fn order(channel: &Channel) -> &'static AtomicU64 {
        // SAFETY: the arena is shared memory, zeroed, aligned and mapped for good; both ends use it as this word only.
        unsafe { AtomicU64::from_ptr(channel.arena.address as *mut u64) }
    }

    fn ask(env: &Env, channel: &Channel) {
        let Transport::Async { vector, .. } = channel.transport else { return };
        let rounds = env.arg_or("rounds", 100u64);
        let order = order(channel);
        let mut wrong = 0;
        for round in 1..=rounds {
            order.store(round, Ordering::Release);
            while ENTRIES.load(Ordering::Relaxed) == 0 {
                syscall::yield_now();
            }
            wrong += u64::from(taken() != [1, 1 << vector]);
        }
        order.store(END, Ordering::Release);
        expect("T19", &[rounds, wrong], &[rounds, 0]);
    }

    fn sender(channel: &Channel) {
        let Transport::Async { peer, .. } = channel.transport else { return };
        let index = slot::SENDER_TABLE.register(peer).expect("the peer has a receiver") as u64;
        let mut sent = 0;
        loop {
            match order(channel).load(Ordering::Acquire) {
                END => return,
                asked if asked != sent => {
                    sent = asked;
                    send(index);
                }
                _ => syscall::yield_now(),
            }
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("vectors is a guest program; run it with `cargo run -p images -- run vectors`");
}
