//! The emulated hart, instruction by instruction: the cases of the user-interrupt reference (T1 to T23) that concern U.

use uintr::csr::SUIRS;

use super::*;

const RECEIVER: u16 = 1;
const HANDLER: u64 = 0x3000;
const HERE: u64 = 0x5000;
/// Where the sender table is: 64 good entries, vector = index; entry 64 has a bad vector, 65 is not valid, 66 names no receiver.
const TABLE: u64 = 0x8000_0000;

struct Bench {
    context: Context,
    state: UserInterruptState,
    receivers: Receivers,
}

fn entry(paddr: u64) -> u64 {
    let good = |vector: u64| u64::from(RECEIVER) << 48 | vector << 16 | 1;
    match (paddr - TABLE) / 8 {
        65 => good(3) & !1,
        66 => u64::from(COUNT) << 48 | 3 << 16 | 1,
        index => good(index),
    }
}

impl Bench {
    /// Receiver 1, active, on core 0; everything enabled.
    fn new() -> Self {
        let mut context = Context::new();
        context.x[PC] = HERE;
        let state = UserInterruptState {
            receiver: RECEIVER,
            active: true,
            sender_table: TABLE,
            status: USTATUS_UIE as usize,
            enable: USIE,
            vector: HANDLER as usize,
            ..UserInterruptState::default()
        };
        let receivers = Receivers::new();
        receivers.set_core(RECEIVER, Some(0));
        Self { context, state, receivers }
    }

    /// Executes one instruction; gives whether it exists. The thread goes on behind it unless an interrupt comes.
    fn step(&mut self, instruction: u32) -> bool {
        let mut hart = VirtualHart { context: &mut self.context, state: &mut self.state, receivers: &self.receivers };
        let done = hart.execute(instruction, entry).is_some();
        if done {
            hart.take_interrupt();
            self.context.x[PC] = self.context.next_pc;
        }
        done
    }

    fn send(&mut self, index: u64) {
        self.context.x[5] = index;
        assert!(self.step(Operation::Send.encode(0, 5)));
    }

    fn read(&mut self) -> u64 {
        assert!(self.step(Operation::Read.encode(6, 0)));
        self.context.x[6]
    }

    fn write(&mut self, bits: u64) {
        self.context.x[5] = bits;
        assert!(self.step(Operation::Write.encode(0, 5)));
    }

    /// `csrrw`, 1; `csrrs`, 2; `csrrc`, 3 with the value in x5; gives the old value.
    fn csr(&mut self, funct3: u32, number: u16, value: usize) -> usize {
        self.context.x[5] = value as u64;
        assert!(self.step(u32::from(number) << 20 | 5 << 15 | funct3 << 12 | 7 << 7 | SYSTEM));
        self.context.x[7] as usize
    }

    fn get(&mut self, number: u16) -> usize {
        assert!(self.step(u32::from(number) << 20 | 2 << 12 | 7 << 7 | SYSTEM));
        self.context.x[7] as usize
    }

    fn in_handler(&self) -> bool {
        self.context.x[PC] == HANDLER
    }
}

#[test]
fn a_send_enters_the_handler_and_uret_leaves_it() {
    let mut b = Bench::new();
    b.send(3);
    assert!(b.in_handler());
    let seen = [USTATUS, UEPC, UCAUSE, UTVAL].map(|number| b.get(number));
    assert_eq!(seen, [0x10, HERE as usize + 4, 1 << 63, 0]);
    assert_eq!((b.read(), b.read()), (8, 0));
    assert!(b.step(URET));
    assert_eq!((b.context.x[PC], b.get(USTATUS)), (HERE + 4, 0x11));
}

#[test]
fn what_is_masked_waits() {
    for (number, on) in [(USTATUS, 1), (UIE, 1)] {
        let mut b = Bench::new();
        b.csr(1, number, 0);
        b.send(3);
        assert!(!b.in_handler());
        assert_eq!(b.get(UIP), 1);
        b.csr(1, number, on);
        assert!(b.in_handler());
    }
    let mut b = Bench::new();
    assert!(b.step(Operation::Deactivate.encode(0, 0)));
    b.send(3);
    assert_eq!((b.in_handler(), b.get(UIP)), (false, 0));
    assert!(b.step(Operation::Activate.encode(0, 0)));
    assert!(b.in_handler());
}

#[test]
fn bad_entries_have_no_effect() {
    for index in [64, 65, 66, 512, 1 << 61, u64::MAX] {
        let mut b = Bench::new();
        b.send(index);
        assert_eq!((b.in_handler(), b.receivers.pending(RECEIVER)), (false, 0), "{index}");
    }
    for vector in [30, 31, 32, 63] {
        let mut b = Bench::new();
        b.send(vector);
        assert_eq!((b.in_handler(), b.read()), (true, 1 << vector));
    }
}

#[test]
fn the_line_is_a_level_and_the_latch_is_the_programs() {
    let mut b = Bench::new();
    b.csr(1, USTATUS, 0);
    b.send(3);
    b.csr(3, UIP, 1);
    b.csr(1, USTATUS, 1);
    assert!(b.in_handler(), "clearing the latch does not silence a receiver");
    let mut b = Bench::new();
    b.csr(1, USTATUS, 0);
    b.send(3);
    // The line is up: what is written back is the latch alone.
    b.csr(2, UIP, 0);
    assert_eq!((b.read(), b.get(UIP)), (8, 0));
    b.csr(2, UIP, 0x111);
    assert_eq!(b.get(UIP), 1);
    b.csr(1, USTATUS, 1);
    assert_eq!((b.in_handler(), b.read()), (true, 0));
    assert!(b.step(URET));
    assert!(b.in_handler(), "not cleared: again");
}

#[test]
fn own_bits_merge() {
    let mut b = Bench::new();
    b.csr(1, USTATUS, 0);
    b.write(1);
    b.write(4 | 1 << 63);
    b.send(3);
    assert_eq!(b.read(), 0x8000_0000_0000_000D);
}

#[test]
fn registers_hold_what_hardware_holds() {
    let mut b = Bench::new();
    b.csr(1, USTATUS, 0);
    for (number, held) in [
        (USTATUS, 0x11),
        (UIE, 1),
        (USCRATCH, usize::MAX),
        (UEPC, usize::MAX - 1),
        (UCAUSE, 0x8000_0000_0000_001F),
        (UTVAL, usize::MAX),
    ] {
        b.csr(1, UIE, 0);
        b.csr(1, number, usize::MAX);
        assert_eq!(b.get(number), held, "{number:#x}");
    }
    for (written, held) in [(0x1000, 0x1000), (0x2002, 0x1000), (0x3003, 0x1000), (0x21FD, 0x2101)] {
        b.csr(1, UTVEC, written);
        assert_eq!(b.get(UTVEC), held);
    }
    // x0 stays zero, and is zero: word 0 of a context is the program counter.
    assert!(b.step(u32::from(USCRATCH) << 20 | 1 << 12 | SYSTEM));
    assert_eq!(b.state.scratch, 0);
    // Immediate forms.
    assert!(b.step(u32::from(USCRATCH) << 20 | 21 << 15 | 5 << 12 | SYSTEM));
    assert_eq!(b.state.scratch, 21);
    assert!(b.step(u32::from(USCRATCH) << 20 | 5 << 15 | 7 << 12 | 5 << 7 | SYSTEM));
    assert_eq!((b.state.scratch, b.context.x[5]), (16, 21));
}

#[test]
fn a_thread_without_receiver_or_table_does_nothing() {
    let mut b = Bench::new();
    b.state.receiver = 0;
    b.state.sender_table = 0;
    b.write(5);
    b.send(3);
    assert_eq!((b.read(), b.receivers.pending(RECEIVER), b.receivers.pending(0)), (0, 0, 0));
    b.csr(2, UIE, 0x111);
    b.csr(2, UIP, 0x111);
    assert_eq!((b.get(UIE), b.get(UIP), b.in_handler()), (0, 0, false));
}

#[test]
fn what_is_illegal_in_u_changes_nothing() {
    let mut b = Bench::new();
    let read = |number: u16| u32::from(number) << 20 | 2 << 12 | 7 << 7 | SYSTEM;
    let send = Operation::Send.encode(0, 5);
    let others = [send & !0x7000 | 2 << 12, send | 5 << 25, send | 5 << 20, 0, 0x1050_0073, 0x1020_0073, 0x73];
    for instruction in [SUIRS, 0x1B0, 0x103, 0x1B2, 0x100, 0x001].map(read).into_iter().chain(others) {
        let before = format!("{:?} {:?}", b.context, b.state);
        assert!(!b.step(instruction), "{instruction:#010x}");
        assert_eq!(before, format!("{:?} {:?}", b.context, b.state));
    }
}

#[test]
fn the_first_bits_interrupt_the_core_that_runs_the_receiver() {
    let receivers = Receivers::new();
    assert_eq!(receivers.post(7, 1), None, "nobody runs it");
    receivers.take(7);
    receivers.set_core(7, Some(2));
    assert_eq!(receivers.post(7, 0), None);
    assert_eq!(receivers.post(7, 4), Some(2));
    assert_eq!(receivers.post(7, 8), None, "it has not looked yet");
    assert_eq!(receivers.take(7), 12);
    assert_eq!(receivers.post(7, 8), Some(2));
    receivers.set_core(7, None);
    receivers.take(7);
    assert_eq!(receivers.post(7, 8), None);
}
