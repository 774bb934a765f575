//! The engine on streams of the test's own: what goes in comes out, and the registers tell the truth meanwhile.

use crate::error::SocError;
use crate::snapshot::State;
use std::collections::VecDeque;

use super::*;
use crate::device::Device;
use crate::testing::{FakeContext, RAM_BASE};
use crate::time::SimTime;

const MM2S: u64 = 0;
const S2MM: u64 = 0x30;
const DMACR: u64 = 0x00;
const DMASR: u64 = 0x04;
const CURDESC: u64 = 0x08;
const TAILDESC: u64 = 0x10;

const RUN: u32 = 1;
const CYCLIC: u32 = 1 << 4;
const IRQS_ON: u32 = 7 << 12;
const IOC: u32 = 1 << 12;
const DELAY: u32 = 1 << 13;
const ERROR: u32 = 1 << 14;
const HALTED: u32 = 1;
const IDLE: u32 = 2;
const COMPLETE: u32 = 1 << 31;
const EOF: u32 = 1 << 26;
const SOF: u32 = 1 << 27;

const RING: u64 = RAM_BASE + 0x1000;
const BUFFERS: u64 = RAM_BASE + 0x8000;
const MAC_MEMORY: usize = 4096;

fn clocks(count: u64) -> SimTime {
    SimTime::from_ns(10 * count)
}

/// Streams of the test: keeps what was sent, offers what it was given.
#[derive(Default)]
struct Fake {
    sent: Vec<TxPacket>,
    waiting: VecDeque<RxPacket>,
    full: bool,
}

impl Streams for Fake {
    fn tx_ready(&self, _bytes: usize) -> bool {
        !self.full
    }
    fn tx_limit(&self) -> usize {
        MAC_MEMORY
    }
    fn tx(&mut self, packet: TxPacket) {
        self.sent.push(packet);
    }
    fn rx_front(&self) -> Option<&RxPacket> {
        self.waiting.front()
    }
    fn rx_pop(&mut self) {
        self.waiting.pop_front();
    }
}

struct Block {
    dma: AxiDma,
    streams: Fake,
}

impl Device for Block {
    fn save(&self) -> Result<State, SocError> {
        State::of(&self.dma)
    }
    fn restore(&mut self, state: &State) -> Result<(), SocError> {
        self.dma = state.read()?;
        Ok(())
    }
    fn read(&mut self, cx: &mut dyn Context, offset: u64, size: u8) -> Result<u64, BusError> {
        self.dma.read(cx, offset, size)
    }
    fn write(&mut self, cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<(), BusError> {
        self.dma.write(cx, offset, size, value).map(|_| ())
    }
    fn event(&mut self, cx: &mut dyn Context, token: u64) {
        self.dma.event(cx, &mut self.streams, token);
        self.dma.kick(cx, &mut self.streams);
    }
}

struct Bench {
    block: Block,
    cx: FakeContext,
}

impl Bench {
    fn new(build: Build) -> Self {
        let block = Block { dma: AxiDma::new(build, (0, 1)), streams: Fake::default() };
        Self { block, cx: FakeContext::new(1 << 20) }
    }

    fn read(&mut self, offset: u64) -> u32 {
        self.block.read(&mut self.cx, offset, 4).unwrap() as u32
    }

    fn write(&mut self, offset: u64, value: u32) {
        self.block.write(&mut self.cx, offset, 4, u64::from(value)).unwrap();
    }

    fn pass(&mut self, span: SimTime) {
        self.cx.advance(&mut self.block, span);
    }

    /// A circle of `count` fresh descriptors with buffers of `length` bytes and control flags `flags`.
    fn ring(&mut self, count: u64, length: u32, flags: u32) {
        for index in 0..count {
            let at = descriptor(index);
            self.cx.set_word(at, descriptor((index + 1) % count) as u32);
            self.cx.set_word(at + 4, 0);
            self.cx.set_word(at + 8, buffer(index) as u32);
            self.cx.set_word(at + 0xC, 0);
            self.cx.set_word(at + 0x18, flags | length);
            self.cx.set_word(at + 0x1C, 0);
        }
    }

    /// Starts the channel at `base` with control word `control`.
    fn start(&mut self, base: u64, control: u32) {
        self.write(base + DMACR, control);
        self.write(base + CURDESC, RING as u32);
        self.write(base + DMACR, control | RUN);
    }

    fn status(&mut self, index: u64) -> u32 {
        self.cx.word(descriptor(index) + 0x1C)
    }

    fn tail(&mut self, base: u64, index: u64) {
        self.write(base + TAILDESC, descriptor(index) as u32);
    }

    fn receive(&mut self, packet: &[u8]) {
        self.block.streams.waiting.push_back(RxPacket { bytes: packet.to_vec(), app: [1, 2, 3, 4, 5] });
        self.block.dma.kick(&mut self.cx, &mut self.block.streams);
    }
}

fn descriptor(index: u64) -> u64 {
    RING + 64 * index
}

fn buffer(index: u64) -> u64 {
    BUFFERS + 0x1000 * index
}

/// A transmitter with `count` ready 64-byte packets, running with `control`, nothing started.
fn transmitter(count: u64, control: u32) -> Bench {
    let mut bench = Bench::new(Build::default());
    bench.ring(count, 64, SOF | EOF);
    bench.start(MM2S, control);
    bench
}

const LONG: SimTime = SimTime::from_us(1000);
const THRESHOLD: u32 = 1 << 16;

#[test]
fn registers_after_power_on() {
    let mut bench = Bench::new(Build::default());
    for base in [MM2S, S2MM] {
        assert_eq!(bench.read(base + DMACR), 0x0001_0002);
        assert_eq!(bench.read(base + DMASR), 0x0001_0009);
        assert_eq!((bench.read(base + CURDESC), bench.read(base + TAILDESC)), (0, 0));
    }
    assert!(bench.block.read(&mut bench.cx, 0, 2).is_err() && bench.block.write(&mut bench.cx, 0, 1, 0).is_err());
}

#[test]
fn the_ring_is_walked_to_the_tail_and_no_further() {
    let mut bench = transmitter(8, THRESHOLD);
    for index in 0..3 {
        bench.cx.ram_mut(buffer(index), 64).fill(index as u8);
    }
    bench.pass(LONG);
    assert_eq!(bench.read(DMASR) & (HALTED | IDLE), 0, "running, but nothing was asked for");
    bench.tail(MM2S, 1);
    bench.pass(LONG);
    let sent: Vec<_> = bench.block.streams.sent.iter().map(|packet| packet.bytes[0]).collect();
    assert_eq!(sent, [0, 1]);
    assert_eq!((bench.status(0), bench.status(1), bench.status(2)), (COMPLETE | 64, COMPLETE | 64, 0));
    assert_eq!(bench.read(DMASR) & (HALTED | IDLE), IDLE);
    assert_eq!(bench.read(CURDESC), descriptor(1) as u32);
    bench.tail(MM2S, 2);
    assert_eq!(bench.read(DMASR) & IDLE, 0);
    bench.pass(LONG);
    assert_eq!(bench.block.streams.sent.len(), 3);
}

#[test]
fn the_tail_moves_while_the_engine_works_and_the_ring_wraps() {
    let mut bench = transmitter(4, THRESHOLD);
    bench.tail(MM2S, 0);
    for round in 1..10u64 {
        bench.pass(clocks(100));
        bench.cx.set_word(descriptor(round % 4) + 0x1C, 0);
        bench.tail(MM2S, round % 4);
        bench.pass(clocks(150));
    }
    bench.pass(LONG);
    assert_eq!(bench.block.streams.sent.len(), 10);
    assert_eq!(bench.read(DMASR) & 0xFF7, IDLE, "no error, idle");
}

#[test]
fn a_tail_write_while_halted_does_nothing() {
    let mut bench = Bench::new(Build::default());
    bench.ring(4, 64, SOF | EOF);
    bench.write(CURDESC, RING as u32);
    bench.tail(MM2S, 1);
    bench.write(DMACR, RUN);
    bench.pass(LONG);
    assert!(bench.block.streams.sent.is_empty());
    // And the first descriptor cannot be moved any more.
    bench.write(CURDESC, 0x8000_4000);
    assert_eq!(bench.read(CURDESC), RING as u32);
}

#[test]
fn time_from_tail_write_to_completion() {
    let mut bench = transmitter(4, IRQS_ON | THRESHOLD);
    bench.tail(MM2S, 0);
    // 10 + 30 to the descriptor, 28 + 64-byte burst 33 + 6 to the MAC, 121 to write back.
    bench.pass(clocks(10 + 30 + 28 + 33 + 6) - SimTime::from_ps(1));
    assert!(bench.block.streams.sent.is_empty());
    bench.pass(SimTime::from_ps(1));
    assert_eq!(bench.block.streams.sent.len(), 1);
    bench.pass(clocks(121) - SimTime::from_ps(1));
    assert!(!bench.cx.line(0) && bench.status(0) == 0);
    bench.pass(SimTime::from_ps(1));
    assert!(bench.cx.line(0) && bench.status(0) == COMPLETE | 64);
}

#[test]
fn a_packet_of_several_buffers_is_one_packet() {
    let mut bench = Bench::new(Build::default());
    bench.ring(4, 10, 0);
    bench.cx.set_word(descriptor(0) + 0x18, SOF | 10);
    bench.cx.set_word(descriptor(2) + 0x18, EOF | 10);
    for word in 0..5u32 {
        bench.cx.set_word(descriptor(0) + 0x20 + 4 * u64::from(word), word + 1);
    }
    for index in 0..3 {
        bench.cx.ram_mut(buffer(index), 10).fill(index as u8 + 1);
    }
    bench.start(MM2S, IRQS_ON | THRESHOLD);
    bench.tail(MM2S, 2);
    bench.pass(LONG);
    let [packet] = &bench.block.streams.sent[..] else { panic!() };
    assert_eq!(packet.bytes, [[1; 10], [2; 10], [3; 10]].concat());
    assert_eq!(packet.app, [1, 2, 3, 4, 5]);
    assert_eq!(bench.cx.rises(0), 1);
}

#[test]
fn a_packet_beyond_the_mac_is_counted_not_kept() {
    let mut bench = Bench::new(Build::default());
    bench.ring(4, 3000, 0);
    bench.cx.set_word(descriptor(1) + 0x18, EOF | 3000);
    bench.start(MM2S, THRESHOLD);
    bench.tail(MM2S, 1);
    bench.pass(LONG);
    let [packet] = &bench.block.streams.sent[..] else { panic!() };
    assert!(packet.dropped && packet.bytes.is_empty());
}

#[test]
fn a_full_mac_holds_the_engine_back() {
    let mut bench = transmitter(4, THRESHOLD);
    bench.block.streams.full = true;
    bench.tail(MM2S, 0);
    bench.pass(LONG);
    assert_eq!(bench.status(0), 0);
    bench.block.streams.full = false;
    bench.block.dma.kick(&mut bench.cx, &mut bench.block.streams);
    bench.pass(LONG);
    assert_eq!(bench.status(0), COMPLETE | 64);
}

#[test]
fn thresholds_count_packets() {
    for (threshold, packets, interrupts) in [(1, 5, 5), (2, 5, 2), (5, 5, 1), (5, 4, 0), (255, 4, 0)] {
        let mut bench = transmitter(8, IRQS_ON | threshold << 16);
        for index in 0..packets {
            bench.tail(MM2S, index);
            bench.pass(LONG);
            bench.write(DMASR, IOC);
        }
        assert_eq!(bench.cx.rises(0), interrupts, "threshold {threshold}");
        let counter = bench.read(DMASR) >> 16 & 0xFF;
        assert_eq!(u64::from(counter), u64::from(threshold) - packets % u64::from(threshold), "threshold {threshold}");
    }
}

#[test]
fn buffers_are_not_packets() {
    let mut bench = Bench::new(Build::default());
    bench.ring(8, 64, 0);
    bench.cx.set_word(descriptor(3) + 0x18, EOF | 64);
    bench.start(MM2S, IRQS_ON | (2 * THRESHOLD));
    bench.tail(MM2S, 3);
    bench.pass(LONG);
    assert_eq!((bench.cx.rises(0), bench.read(DMASR) >> 16 & 0xFF), (0, 1));
}

#[test]
fn the_status_latches_while_masked_and_raises_the_line_when_enabled() {
    let mut bench = transmitter(4, THRESHOLD);
    bench.tail(MM2S, 0);
    bench.pass(LONG);
    assert!(!bench.cx.line(0) && bench.read(DMASR) & IOC != 0);
    bench.write(DMACR, RUN | IOC | THRESHOLD);
    assert!(bench.cx.line(0));
    // Acknowledging another bit changes nothing; acknowledging this one lowers the line.
    bench.write(DMASR, DELAY | ERROR);
    assert!(bench.cx.line(0));
    bench.write(DMASR, IOC);
    assert!(!bench.cx.line(0) && bench.read(DMASR) & IOC == 0);
    assert_eq!(bench.read(DMASR) & IDLE, IDLE, "acknowledging leaves the rest alone");
}

#[test]
fn writing_the_control_register_restarts_the_count_and_a_threshold_of_zero_is_not_taken() {
    let mut bench = transmitter(8, IRQS_ON | (3 * THRESHOLD));
    bench.tail(MM2S, 1);
    bench.pass(LONG);
    assert_eq!(bench.read(DMASR) >> 16 & 0xFF, 1);
    bench.write(DMACR, IRQS_ON | (3 * THRESHOLD) | RUN);
    assert_eq!(bench.read(DMASR) >> 16 & 0xFF, 3);
    bench.write(DMACR, IRQS_ON | RUN);
    assert_eq!(bench.read(DMACR) >> 16 & 0xFF, 3);
}

#[test]
fn the_delay_timer_fires_after_the_last_uncovered_packet() {
    let delay = 10u32;
    let span = clocks(125 * 10);
    let mut bench = transmitter(8, IRQS_ON | (3 * THRESHOLD) | delay << 24);
    let alone = clocks(10 + 30 + 28 + 33 + 6 + 121);
    bench.tail(MM2S, 0);
    bench.pass(alone + clocks(600));
    assert_eq!(bench.read(DMASR) >> 24, 4, "units that have passed");
    // A second packet starts the time anew.
    bench.tail(MM2S, 1);
    bench.pass(alone + span - SimTime::from_ps(1));
    assert!(!bench.cx.line(0));
    bench.pass(SimTime::from_ps(1));
    assert!(bench.cx.line(0));
    assert_eq!(bench.read(DMASR) & (IOC | DELAY), DELAY);
    assert_eq!(bench.read(DMASR) >> 16 & 0xFF, 3, "the counter is loaded again");
    // Nothing is left to cover.
    bench.write(DMASR, DELAY);
    bench.pass(LONG);
    assert!(!bench.cx.line(0));
}

#[test]
fn packets_covered_by_the_threshold_need_no_delay_interrupt() {
    let mut bench = transmitter(8, IRQS_ON | (2 * THRESHOLD) | 10 << 24);
    bench.tail(MM2S, 1);
    bench.pass(LONG);
    assert_eq!(bench.read(DMASR) & (IOC | DELAY), IOC);
}

#[test]
fn too_few_packets_and_no_delay_is_silence() {
    let mut bench = transmitter(8, IRQS_ON | (3 * THRESHOLD));
    bench.tail(MM2S, 1);
    bench.pass(SimTime::from_us(1_000_000));
    assert_eq!(bench.cx.rises(0), 0);
}

#[test]
fn reset_takes_both_channels_and_some_clocks() {
    let mut bench = transmitter(4, IRQS_ON | THRESHOLD);
    bench.write(S2MM + DMACR, 5 * THRESHOLD);
    bench.tail(MM2S, 3);
    bench.pass(clocks(300));
    assert!(bench.cx.line(0));
    bench.write(S2MM + DMACR, 4);
    assert!(bench.read(DMACR) & 4 != 0 && bench.read(S2MM + DMACR) & 4 != 0);
    assert!(!bench.cx.line(0));
    bench.pass(clocks(20));
    for base in [MM2S, S2MM] {
        assert_eq!((bench.read(base + DMACR), bench.read(base + DMASR)), (0x0001_0002, 0x0001_0009));
    }
    bench.pass(LONG);
    assert_eq!(bench.block.streams.sent.len(), 1, "what was under way is cut off");
    assert_eq!(bench.status(1), 0);
}

#[test]
fn stopping_finishes_the_descriptor_under_way_and_starting_goes_on_behind_it() {
    let mut bench = transmitter(4, THRESHOLD);
    bench.tail(MM2S, 2);
    bench.pass(clocks(90));
    bench.write(DMACR, THRESHOLD);
    assert_eq!(bench.read(DMASR) & HALTED, 0, "still draining");
    bench.pass(LONG);
    assert_eq!(bench.read(DMASR) & (HALTED | IDLE), HALTED);
    assert_eq!(bench.block.streams.sent.len(), 1);
    bench.write(DMACR, THRESHOLD | RUN);
    bench.tail(MM2S, 2);
    bench.pass(LONG);
    assert_eq!(bench.block.streams.sent.len(), 3);
    assert!((0..3).all(|index| bench.status(index) == COMPLETE | 64));
}

#[test]
fn a_receiver_that_waits_stops_at_once() {
    let mut bench = Bench::new(Build::default());
    bench.ring(4, 256, 0);
    bench.start(S2MM, THRESHOLD);
    bench.tail(S2MM, 3);
    bench.pass(LONG);
    bench.write(S2MM + DMACR, THRESHOLD);
    assert_eq!(bench.read(S2MM + DMASR) & HALTED, HALTED);
    bench.receive(&[7; 100]);
    bench.pass(LONG);
    assert_eq!(bench.status(0), 0);
    bench.write(S2MM + DMACR, THRESHOLD | RUN);
    bench.tail(S2MM, 3);
    bench.pass(LONG);
    bench.block.dma.kick(&mut bench.cx, &mut bench.block.streams);
    bench.pass(LONG);
    assert_eq!(bench.status(0), COMPLETE | SOF | EOF | 100);
}

/// Breaks descriptor 1 of a transmitter and expects these error bits in DMASR.
fn expect_error(expected: u32, control: u32, damage: impl Fn(&mut Bench)) -> Bench {
    let mut bench = transmitter(4, control | IRQS_ON | THRESHOLD);
    damage(&mut bench);
    bench.tail(MM2S, 3);
    bench.pass(LONG);
    assert_eq!(bench.block.streams.sent.len(), 1);
    assert_eq!(bench.read(DMASR) & 0x770, expected);
    assert_eq!(bench.read(DMASR) & (HALTED | IDLE | ERROR), HALTED | ERROR);
    assert_eq!(bench.read(DMACR) & RUN, 0);
    assert!(bench.cx.line(0));
    // Only a reset recovers.
    bench.write(DMACR, RUN);
    assert_eq!(bench.read(DMACR) & RUN, 0);
    bench.write(DMACR, 4);
    bench.pass(LONG);
    assert_eq!(bench.read(DMASR), 0x0001_0009);
    bench
}

#[test]
fn a_completed_descriptor_is_an_error_but_not_in_cyclic_mode() {
    let damage = |bench: &mut Bench| bench.cx.set_word(descriptor(1) + 0x1C, COMPLETE);
    expect_error(1 << 8, 0, damage);
    let mut bench = transmitter(4, CYCLIC | THRESHOLD);
    damage(&mut bench);
    // A tail outside the ring never stops the engine.
    bench.write(TAILDESC, 0x8000_0000);
    bench.pass(LONG);
    assert!(bench.block.streams.sent.len() > 100);
    // A tail in the ring does.
    bench.tail(MM2S, 2);
    bench.pass(LONG);
    assert_eq!(bench.read(DMASR) & IDLE, IDLE);
}

#[test]
fn a_length_of_zero_is_an_internal_error() {
    let mut bench = expect_error(1 << 4, 0, |bench| bench.cx.set_word(descriptor(1) + 0x18, SOF | EOF));
    assert_eq!(bench.status(1), COMPLETE | 1 << 28);
}

#[test]
fn a_bad_buffer_and_a_bad_descriptor_are_decode_errors() {
    let mut bench = expect_error(1 << 6, 0, |bench| bench.cx.set_word(descriptor(1) + 8, 0x1000));
    assert_eq!(bench.status(1), COMPLETE | 1 << 30);
    expect_error(1 << 10, 0, |bench| bench.cx.set_word(descriptor(0), 0x1000));
}

#[test]
fn receive_fills_buffers_and_tells_length_and_words() {
    let mut bench = Bench::new(Build::default());
    bench.ring(4, 256, 0);
    bench.start(S2MM, IRQS_ON | THRESHOLD);
    bench.tail(S2MM, 2);
    bench.pass(LONG);
    bench.receive(&[7; 100]);
    // 39 clocks, two bursts of 16 and 9 beats with 5 each, 30 to write back.
    let arrival = clocks(39 + 25 + 2 * 5 + 30);
    bench.pass(arrival - SimTime::from_ps(1));
    assert_eq!(bench.status(0), 0);
    bench.pass(SimTime::from_ps(1));
    assert_eq!(bench.status(0), COMPLETE | SOF | EOF | 100);
    assert_eq!(bench.cx.ram(buffer(0), 101), [&[7; 100][..], &[0]].concat());
    let app: Vec<u32> = (0..5).map(|word| bench.cx.word(descriptor(0) + 0x20 + 4 * word)).collect();
    assert_eq!(app, [1, 2, 3, 4, 5]);
    assert!(bench.cx.line(1) && !bench.cx.line(0));
}

#[test]
fn a_long_packet_takes_several_buffers_and_waits_for_the_last() {
    let mut bench = Bench::new(Build::default());
    bench.ring(4, 64, 0);
    bench.start(S2MM, IRQS_ON | THRESHOLD);
    bench.tail(S2MM, 1);
    bench.pass(LONG);
    let packet: Vec<u8> = (0..150).collect();
    bench.receive(&packet);
    bench.pass(LONG);
    assert_eq!((bench.status(0), bench.status(1)), (COMPLETE | SOF | 64, COMPLETE | 64));
    assert_eq!(bench.cx.rises(1), 0);
    assert_eq!(bench.read(S2MM + DMASR) & IDLE, IDLE);
    bench.tail(S2MM, 3);
    bench.pass(LONG);
    bench.block.dma.kick(&mut bench.cx, &mut bench.block.streams);
    bench.pass(LONG);
    assert_eq!(bench.status(2), COMPLETE | EOF | 22);
    let stored: Vec<u8> = (0..3).flat_map(|index| bench.cx.ram(buffer(index), 64).to_vec()).take(150).collect();
    assert_eq!(stored, packet);
    assert_eq!(bench.cx.rises(1), 1);
}

#[test]
fn addresses_of_32_and_of_64_bits() {
    // 32 bits: the upper halves do not exist, the lower half of the tail starts.
    let mut bench = transmitter(4, THRESHOLD);
    bench.write(0x14, 0xFFFF_FFFF);
    assert_eq!(bench.read(0x14), 0);
    bench.tail(MM2S, 0);
    bench.pass(LONG);
    assert_eq!(bench.block.streams.sent.len(), 1);

    // 64 bits: the upper half starts, and one access of 8 bytes does both.
    let mut bench = Bench::new(Build { address_bits: 64, ..Build::default() });
    bench.ring(4, 64, SOF | EOF);
    bench.write(0x0C, 0xFFFF_FFFF);
    assert_eq!(bench.read(0x0C), 0xFFFF_FFFF);
    bench.block.write(&mut bench.cx, CURDESC, 8, RING).unwrap();
    assert_eq!(bench.block.read(&mut bench.cx, CURDESC, 8), Ok(RING));
    bench.write(DMACR, RUN | THRESHOLD);
    bench.tail(MM2S, 0);
    bench.pass(LONG);
    assert!(bench.block.streams.sent.is_empty());
    bench.write(TAILDESC + 4, 0);
    bench.pass(LONG);
    assert_eq!(bench.block.streams.sent.len(), 1);
    bench.block.write(&mut bench.cx, TAILDESC, 8, descriptor(1)).unwrap();
    bench.pass(LONG);
    assert_eq!(bench.block.streams.sent.len(), 2);
    // A descriptor above 4 GiB is really looked for there.
    bench.cx.set_word(descriptor(2) + 4, 1);
    bench.block.write(&mut bench.cx, TAILDESC, 8, descriptor(3)).unwrap();
    bench.pass(LONG);
    assert_eq!(bench.block.streams.sent.len(), 3);
    assert_eq!(bench.read(DMASR) & 0x770, 1 << 10);
}
