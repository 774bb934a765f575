//! The driver against the device models of `soc`, without a CPU: registers are calls, DMA memory is the driver's own region, time passes
//! with every register access and when a test lets it.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::num::NonZeroU8;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use drivers::axinic::{AxiNic, Coalesce, Config, Counters, Error, Event, Link, MIN_RX_BUFFER, TxRefused};
use drivers::dma::host::{DeviceView, region};
use drivers::{DmaBuffer, DmaRegion, Registers};
use soc::device::{BusError, Context, Device, Exit};
use soc::devices::axi_nic::{self, DMA_OFFSET, ETHERNET_OFFSET, LINE_MM2S, LINE_S2MM};
use soc::time::SimTime;
use soc::wire::{self, LinkConfig, Next, Peer};

const REGION: u64 = 0x8800_0000;
const MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x17];
const BROADCAST: [u8; 6] = [0xFF; 6];
/// What a register access takes on the board, about.
const ACCESS: SimTime = SimTime::from_ns(200);
/// Longer than anything the device does with a few frames.
const LONG: SimTime = SimTime::from_us(500);

/// The far end of the wire, in the hands of the test.
#[derive(Clone, Default)]
struct Far {
    to_send: Arc<Mutex<VecDeque<Vec<u8>>>>,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Peer for Far {
    fn deliver(&mut self, _: SimTime, frame: &[u8]) {
        self.received.lock().unwrap().push(frame.to_vec());
    }
    fn next(&mut self, now: SimTime) -> Next {
        match self.to_send.lock().unwrap().pop_front() {
            Some(frame) => Next::Frame(frame),
            None => Next::At(now + SimTime::from_us(1)),
        }
    }
}

/// The rest of the machine.
struct Board {
    now: SimTime,
    events: BinaryHeap<Reverse<(SimTime, u64, u64)>>,
    sequence: u64,
    lines: [bool; 3],
    memory: DeviceView,
    /// The bus refuses the device's writes of frame data.
    broken: bool,
}

impl Context for Board {
    fn now(&self) -> SimTime {
        self.now
    }
    fn alarm(&mut self, token: u64, at: SimTime) {
        self.events.retain(|Reverse((_, _, pending))| *pending != token);
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, token)));
    }
    fn irq(&mut self, line: usize, level: bool) {
        self.lines[line] = level;
    }
    fn dma_read(&mut self, paddr: u64, buf: &mut [u8]) -> Result<(), BusError> {
        self.memory.read(paddr, buf).ok_or(BusError::Refused)
    }
    fn dma_write(&mut self, paddr: u64, bytes: &[u8]) -> Result<(), BusError> {
        // Descriptor words are short.
        if self.broken && bytes.len() >= 60 {
            return Err(BusError::Refused);
        }
        self.memory.write(paddr, bytes).ok_or(BusError::Refused)
    }
    fn hart_line(&mut self, _: usize, _: u32, _: bool) {}
    fn stop(&mut self, _: Exit) {}
    fn console(&mut self, _: u8) {}
}

/// Device and board.
struct Machine {
    device: axi_nic::AxiNic,
    board: Board,
}

impl Machine {
    fn pass(&mut self, span: SimTime) {
        let end = self.board.now + span;
        while let Some(&Reverse((at, _, token))) = self.board.events.peek()
            && at <= end
        {
            self.board.events.pop();
            self.board.now = at;
            self.device.event(&mut self.board, token);
        }
        self.board.now = end;
    }
}

/// One block's registers.
struct Window {
    machine: Rc<RefCell<Machine>>,
    base: u64,
}

impl Registers for Window {
    fn read(&mut self, offset: usize) -> u32 {
        let machine = &mut *self.machine.borrow_mut();
        machine.pass(ACCESS);
        machine.device.read(&mut machine.board, self.base + offset as u64, 4).unwrap() as u32
    }
    fn write(&mut self, offset: usize, value: u32) {
        let machine = &mut *self.machine.borrow_mut();
        machine.pass(ACCESS);
        machine.device.write(&mut machine.board, self.base + offset as u64, 4, value.into()).unwrap();
    }
}

/// A started NIC with its surroundings.
struct Bench {
    nic: AxiNic<Window>,
    region: DmaRegion,
    spare: Vec<DmaBuffer>,
    far: Far,
    machine: Rc<RefCell<Machine>>,
}

impl Bench {
    /// Rings of 8 descriptors; `buffers` receive buffers are provided.
    fn new(rx_interrupt: Coalesce, buffers: usize) -> Self {
        let far = Far::default();
        let (mut region, memory) = region(REGION, 0x4_0000);
        let link = wire::Link::new(LinkConfig::default(), Box::new(far.clone()));
        let device = axi_nic::AxiNic::new(Some(link));
        let board = Board {
            now: SimTime::ZERO,
            events: BinaryHeap::new(),
            sequence: 0,
            lines: [false; 3],
            memory,
            broken: false,
        };
        let machine = Rc::new(RefCell::new(Machine { device, board }));
        let window = |base| Window { machine: machine.clone(), base };
        let config = Config { mac_address: MAC, rx_descriptors: 8, tx_descriptors: 8, rx_interrupt };
        let nic = AxiNic::new(window(DMA_OFFSET), window(ETHERNET_OFFSET), &mut region, config).unwrap();
        let mut bench = Self { nic, region, spare: vec![], far, machine: machine.clone() };
        bench.wait_for_link();
        bench.provide(buffers);
        bench
    }

    fn wait_for_link(&mut self) {
        for _ in 0..10_000 {
            if self.nic.link() == Ok(Link::Up(1000)) {
                return;
            }
        }
        panic!("no link");
    }

    fn carve(&mut self) -> DmaBuffer {
        self.spare.pop().unwrap_or_else(|| self.region.carve(MIN_RX_BUFFER, 64).unwrap())
    }

    fn provide(&mut self, buffers: usize) {
        for _ in 0..buffers {
            let buffer = self.carve();
            self.nic.rx_provide(buffer).unwrap();
        }
        self.nic.rx_publish();
    }

    fn pass(&self, span: SimTime) {
        self.machine.borrow_mut().pass(span);
    }

    fn line(&self, line: usize) -> bool {
        self.machine.borrow().board.lines[line]
    }

    fn arrive(&self, frame: &[u8]) {
        self.far.to_send.lock().unwrap().push_back(frame.to_vec());
    }

    /// All frames received so far; their buffers go back to the device.
    fn drain(&mut self) -> Vec<Vec<u8>> {
        let mut frames = vec![];
        while let Some(frame) = self.nic.rx_return() {
            frames.push(frame.bytes().to_vec());
            self.nic.rx_provide(frame.buffer).unwrap();
        }
        self.nic.rx_publish();
        frames
    }

    fn send(&mut self, frame: &[u8]) {
        let mut buffer = self.carve();
        buffer.bytes_mut()[..frame.len()].copy_from_slice(frame);
        self.nic.tx_provide(buffer, frame.len()).unwrap();
    }

    fn reclaim(&mut self) -> usize {
        let before = self.spare.len();
        while let Some(buffer) = self.nic.tx_return() {
            self.spare.push(buffer);
        }
        self.spare.len() - before
    }

    fn sent(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.far.received.lock().unwrap())
    }
}

/// A frame of `length` bytes whose content depends on `seed`.
fn frame(to: [u8; 6], length: usize, seed: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|index| (index * 13 + seed * 7) as u8).collect();
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    // An EtherType, so that no length check applies.
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame
}

const LENGTHS: [usize; 9] = [60, 61, 62, 63, 64, 65, 577, 1513, 1514];

#[test]
fn frames_of_all_lengths_are_received_unchanged() {
    let mut bench = Bench::new(Coalesce::EACH, 7);
    for (seed, length) in LENGTHS.into_iter().enumerate() {
        let frame = frame(MAC, length, seed);
        bench.arrive(&frame);
        bench.pass(LONG);
        assert_eq!(bench.drain(), [frame]);
    }
}

#[test]
fn frames_of_all_lengths_are_sent_unchanged_and_short_ones_padded() {
    let mut bench = Bench::new(Coalesce::EACH, 0);
    for (seed, length) in LENGTHS.into_iter().enumerate() {
        let frame = frame(BROADCAST, length, seed);
        bench.send(&frame);
        bench.nic.tx_publish();
        bench.pass(LONG);
        assert_eq!(bench.sent(), [frame]);
        assert_eq!(bench.reclaim(), 1);
    }
    let short = frame(BROADCAST, 42, 0);
    bench.send(&short);
    bench.nic.tx_publish();
    bench.pass(LONG);
    let sent = bench.sent();
    assert_eq!((sent.len(), sent[0].len()), (1, 60));
    assert_eq!(sent[0][..42], short);
}

#[test]
fn rings_wrap_many_times_in_both_directions() {
    let mut bench = Bench::new(Coalesce::EACH, 7);
    let (mut received, mut sent) = (0, 0);
    for batch in 0..60 {
        let incoming: Vec<_> = (0..batch % 6 + 1).map(|n| frame(MAC, 60 + batch * 7 + n, batch + n)).collect();
        let outgoing: Vec<_> = (0..batch % 7 + 1).map(|n| frame(BROADCAST, 60 + batch * 5 + n, batch * n)).collect();
        incoming.iter().for_each(|frame| bench.arrive(frame));
        outgoing.iter().for_each(|frame| bench.send(frame));
        bench.nic.tx_publish();
        bench.pass(LONG);
        assert_eq!(bench.drain(), incoming, "batch {batch}");
        assert_eq!(bench.sent(), outgoing, "batch {batch}");
        assert_eq!(bench.reclaim(), outgoing.len());
        received += incoming.len() as u64;
        sent += outgoing.len() as u64;
    }
    let expected = Counters { rx_frames: received, tx_frames: sent, ..Counters::default() };
    assert_eq!(bench.nic.counters(), expected);
}

#[test]
fn frames_wait_in_the_mac_while_the_ring_is_dry() {
    let mut bench = Bench::new(Coalesce::EACH, 2);
    let frames: Vec<_> = (0..6).map(|n| frame(MAC, 100 + n, n)).collect();
    frames.iter().for_each(|frame| bench.arrive(frame));
    bench.pass(LONG);
    let mut received = bench.drain();
    assert_eq!(received.len(), 2);
    while received.len() < 6 {
        bench.pass(LONG);
        let more = bench.drain();
        assert!(!more.is_empty(), "the device has stopped");
        received.extend(more);
    }
    assert_eq!(received, frames);
}

#[test]
fn only_frames_for_the_station_and_for_everybody_are_received() {
    let mut bench = Bench::new(Coalesce::EACH, 7);
    bench.arrive(&frame([2, 0, 0, 0, 0, 0x99], 60, 1));
    let broadcast = frame(BROADCAST, 60, 2);
    bench.arrive(&broadcast);
    bench.pass(LONG);
    assert_eq!(bench.drain(), [broadcast]);
}

#[test]
fn each_frame_interrupts_and_the_acknowledgement_ends_it() {
    let mut bench = Bench::new(Coalesce::EACH, 7);
    assert_eq!(bench.nic.rx_event(), Event::None);
    for seed in 0..3 {
        bench.arrive(&frame(MAC, 60, seed));
        bench.pass(LONG);
        assert!(bench.line(LINE_S2MM));
        assert_eq!(bench.nic.rx_event(), Event::Packets);
        assert!(!bench.line(LINE_S2MM));
        assert_eq!(bench.drain().len(), 1);
    }
}

#[test]
fn a_frame_between_acknowledgement_and_draining_interrupts_again() {
    let mut bench = Bench::new(Coalesce::EACH, 7);
    bench.arrive(&frame(MAC, 60, 1));
    bench.pass(LONG);
    assert_eq!(bench.nic.rx_event(), Event::Packets);
    bench.arrive(&frame(MAC, 60, 2));
    bench.pass(LONG);
    assert_eq!(bench.drain().len(), 2);
    assert!(bench.line(LINE_S2MM));
}

#[test]
fn the_threshold_holds_the_interrupt_back() {
    let packets = NonZeroU8::new(4).unwrap();
    let mut bench = Bench::new(Coalesce { packets, delay: 0 }, 7);
    for seed in 0..3 {
        bench.arrive(&frame(MAC, 60, seed));
    }
    bench.pass(LONG);
    assert!(!bench.line(LINE_S2MM), "three of four");
    bench.arrive(&frame(MAC, 60, 3));
    bench.pass(LONG);
    assert!(bench.line(LINE_S2MM));
    assert_eq!(bench.drain().len(), 4);
}

#[test]
fn the_delay_interrupts_for_fewer_frames_than_the_threshold() {
    let packets = NonZeroU8::new(64).unwrap();
    // 80 units of 1.25 us.
    let mut bench = Bench::new(Coalesce { packets, delay: 80 }, 7);
    bench.arrive(&frame(MAC, 60, 0));
    bench.pass(SimTime::from_us(50));
    assert!(!bench.line(LINE_S2MM), "too early");
    bench.pass(SimTime::from_us(100));
    assert!(bench.line(LINE_S2MM));
    assert_eq!(bench.nic.rx_event(), Event::Packets);
    assert!(!bench.line(LINE_S2MM));
}

#[test]
fn sending_interrupts_only_on_request_and_then_for_what_is_done_already() {
    let mut bench = Bench::new(Coalesce::EACH, 0);
    bench.send(&frame(BROADCAST, 60, 1));
    bench.nic.tx_publish();
    bench.pass(LONG);
    assert!(!bench.line(LINE_MM2S));
    bench.nic.tx_notify(true);
    assert!(bench.line(LINE_MM2S), "completions are latched while the interrupt is off");
    assert_eq!(bench.nic.tx_event(), Event::Packets);
    assert!(!bench.line(LINE_MM2S));
    bench.nic.tx_notify(false);
    bench.send(&frame(BROADCAST, 60, 2));
    bench.nic.tx_publish();
    bench.pass(LONG);
    assert!(!bench.line(LINE_MM2S));
    assert_eq!(bench.reclaim(), 2);
}

#[test]
fn completions_are_counted_to_the_threshold_of_the_transmit_channel() {
    let mut bench = Bench::new(Coalesce::EACH, 0);
    bench.nic.tx_coalesce(Coalesce { packets: NonZeroU8::new(2).unwrap(), delay: 0 });
    for event in [Event::None, Event::Packets, Event::None, Event::Packets] {
        bench.send(&frame(BROADCAST, 60, 0));
        bench.nic.tx_publish();
        bench.pass(SimTime::from_us(100));
        assert_eq!(bench.nic.tx_event(), event);
    }
}

#[test]
fn jumbo_frames_are_sent_once_they_are_allowed() {
    let mut bench = Bench::new(Coalesce::EACH, 0);
    let buffer = bench.region.carve(9000, 64).unwrap();
    let Err(TxRefused::BadFrame(buffer)) = bench.nic.tx_provide(buffer, 9000) else { panic!("too long by default") };
    bench.nic.tx_jumbo(9000);
    for _ in 0..2 {
        let buffer = bench.region.carve(9000, 64).unwrap();
        bench.nic.tx_provide(buffer, 9000).unwrap();
        bench.nic.tx_publish();
        bench.pass(SimTime::from_us(1000));
        assert_eq!(bench.sent().len(), 1);
        // Recovery keeps what was allowed.
        bench.nic.recover().unwrap();
        bench.wait_for_link();
    }
    assert!(bench.nic.tx_provide(buffer, 9001).is_err());
}

#[test]
fn what_cannot_be_sent_comes_back() {
    let mut bench = Bench::new(Coalesce::EACH, 0);
    for length in [0, 1515, MIN_RX_BUFFER + 1] {
        let buffer = bench.carve();
        let Err(TxRefused::BadFrame(buffer)) = bench.nic.tx_provide(buffer, length) else { panic!("{length} taken") };
        bench.spare.push(buffer);
    }
    let small = bench.region.carve(256, 64).unwrap();
    assert!(matches!(bench.nic.tx_provide(small, 100), Err(TxRefused::BadFrame(_))));
    let small = bench.region.carve(256, 64).unwrap();
    assert!(bench.nic.rx_provide(small).is_err());
    for seed in 0..7 {
        bench.send(&frame(BROADCAST, 60, seed));
    }
    let buffer = bench.carve();
    assert!(matches!(bench.nic.tx_provide(buffer, 60), Err(TxRefused::Full(_))));
}

#[test]
fn a_bus_error_stops_the_channel_and_recovery_loses_no_buffer() {
    let mut bench = Bench::new(Coalesce::EACH, 7);
    let whole = frame(MAC, 200, 1);
    bench.arrive(&whole);
    bench.pass(LONG);
    bench.machine.borrow_mut().board.broken = true;
    bench.arrive(&frame(MAC, 200, 2));
    bench.pass(LONG);
    assert!(bench.line(LINE_S2MM));
    assert_eq!(bench.nic.rx_event(), Event::Error);
    bench.machine.borrow_mut().board.broken = false;

    bench.nic.recover().unwrap();
    bench.wait_for_link();
    assert_eq!(bench.drain(), [whole], "what was received before is still there");
    assert_eq!(bench.nic.rx_event(), Event::None);
    // All seven buffers are with the device again: so many frames fit without draining.
    let frames: Vec<_> = (0..7).map(|n| frame(MAC, 300 + n, n)).collect();
    frames.iter().for_each(|frame| bench.arrive(frame));
    bench.pass(LONG);
    assert_eq!(bench.drain(), frames);
    assert_eq!(bench.nic.counters().resets, 1);
}

#[test]
fn recovery_returns_the_buffers_of_frames_not_sent() {
    let mut bench = Bench::new(Coalesce::EACH, 0);
    for seed in 0..5 {
        bench.send(&frame(BROADCAST, 60, seed));
    }
    // Never published: the device has not seen them.
    bench.nic.recover().unwrap();
    bench.wait_for_link();
    assert_eq!(bench.reclaim(), 5);
    assert_eq!(bench.nic.counters().tx_failed, 5);
    let after = frame(BROADCAST, 90, 9);
    bench.send(&after);
    bench.nic.tx_publish();
    bench.pass(LONG);
    assert_eq!(bench.sent(), [after]);
}

#[test]
fn a_nic_without_cable_has_no_link_and_memory_above_4_gib_is_refused() {
    let start = |physical: u64, size: usize| {
        let (mut region, memory) = region(physical, size);
        let board = Board {
            now: SimTime::ZERO,
            events: BinaryHeap::new(),
            sequence: 0,
            lines: [false; 3],
            memory,
            broken: false,
        };
        let machine = Rc::new(RefCell::new(Machine { device: axi_nic::AxiNic::new(None), board }));
        let window = |base| Window { machine: machine.clone(), base };
        let config = Config { mac_address: MAC, rx_descriptors: 8, tx_descriptors: 8, rx_interrupt: Coalesce::EACH };
        AxiNic::new(window(DMA_OFFSET), window(ETHERNET_OFFSET), &mut region, config)
    };
    assert_eq!(start(REGION, 0x1000).unwrap().link(), Ok(Link::Down));
    assert_eq!(start(0xFFFF_F000, 0x2000).err(), Some(Error::DmaMemoryTooHigh));
    assert_eq!(start(REGION, 0x200).err(), Some(Error::OutOfDmaMemory));
}
