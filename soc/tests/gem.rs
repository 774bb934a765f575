//! The Cadence GEM through registers and rings only, as a driver sees it.

use proptest::prelude::*;
use soc::device::{BusError, Device};
use soc::devices::gem::{Gem, MANAGEMENT_OFFSET};
use soc::testing::{FakeContext, RAM_BASE};
use soc::time::SimTime;
use soc::wire::{Echo, Link, LinkConfig, Loopback, Peer, Sink};

const NWCTRL: u64 = 0x000;
const NWCFG: u64 = 0x004;
const NWSTATUS: u64 = 0x008;
const DMACFG: u64 = 0x010;
const TXSTATUS: u64 = 0x014;
const RXQBASE: u64 = 0x018;
const TXQBASE: u64 = 0x01C;
const RXSTATUS: u64 = 0x020;
const ISR: u64 = 0x024;
const IER: u64 = 0x028;
const IDR: u64 = 0x02C;
const PHYMNTNC: u64 = 0x034;
const SA1: u64 = 0x088;

const LOOPBACK: u32 = 1 << 1;
const ON: u32 = 1 << 2 | 1 << 3 | 1 << 4;
const START: u32 = 1 << 9;
/// 1000 Mb/s, full duplex, check sequence removed, MDC divided by 48.
const PLAIN: u32 = 1 << 10 | 1 << 1 | 1 << 17 | 2 << 18;
const COPY_ALL: u32 = 1 << 4;
const JUMBO: u32 = 1 << 3;
const USED: u32 = 1 << 31;
const LAST: u32 = 1 << 15;
const WRAP: u32 = 1 << 30;

const STATION: [u8; 6] = [0x02, 0, 0, 0, 0, 0x15];
const OTHER: [u8; 6] = [0x02, 0, 0, 0, 0, 0x99];
const SLOTS: u64 = 4;
const TX_RING: u64 = RAM_BASE + 0x1000;
const RX_RING: u64 = RAM_BASE + 0x2000;
const TX_BUFFERS: u64 = RAM_BASE + 0x1_0000;
const RX_BUFFERS: u64 = RAM_BASE + 0x4_0000;
const SLOT_BYTES: u64 = 0x4000;

/// The smallest driver: rings of four slots, 2 KiB receive buffers, polled.
struct Driver {
    gem: Gem,
    cx: FakeContext,
    sent: u64,
    received: u64,
}

impl Driver {
    fn new(link: Option<Link>) -> Self {
        let mut driver = Self { gem: Gem::new(link), cx: FakeContext::new(1 << 20), sent: 0, received: 0 };
        driver.write(NWCFG, PLAIN);
        driver.write(DMACFG, 0x0020_0784);
        for slot in 0..SLOTS {
            let wrap = slot + 1 == SLOTS;
            driver.cx.set_word(TX_RING + 8 * slot + 4, USED | if wrap { WRAP } else { 0 });
            driver.cx.set_word(RX_RING + 8 * slot, (RX_BUFFERS + SLOT_BYTES * slot) as u32 | u32::from(wrap) << 1);
        }
        driver.write(TXQBASE, TX_RING as u32);
        driver.write(RXQBASE, RX_RING as u32);
        driver.write(SA1, 0x0000_0002);
        driver.write(SA1 + 4, 0x1500);
        driver.write(IER, u32::MAX);
        driver.write(NWCTRL, ON);
        driver
    }

    fn on(peer: impl Peer + 'static) -> Self {
        Self::new(Some(Link::new(LinkConfig::default(), Box::new(peer))))
    }

    fn read(&mut self, offset: u64) -> u32 {
        self.gem.read(&mut self.cx, offset, 4).unwrap() as u32
    }

    fn write(&mut self, offset: u64, value: u32) {
        self.gem.write(&mut self.cx, offset, 4, value.into()).unwrap();
    }

    fn pass(&mut self, span: SimTime) {
        self.cx.advance(&mut self.gem, span);
    }

    fn queue(&mut self, frame: &[u8], flags: u32) {
        let slot = self.sent % SLOTS;
        let wrap = if slot + 1 == SLOTS { WRAP } else { 0 };
        self.cx.ram_mut(TX_BUFFERS + SLOT_BYTES * slot, frame.len()).copy_from_slice(frame);
        self.cx.set_word(TX_RING + 8 * slot, (TX_BUFFERS + SLOT_BYTES * slot) as u32);
        self.cx.set_word(TX_RING + 8 * slot + 4, frame.len() as u32 | LAST | wrap | flags);
        self.sent += 1;
    }

    fn send(&mut self, frame: &[u8]) {
        self.queue(frame, 0);
        self.write(NWCTRL, ON | START);
    }

    /// The next received frame and word 1 of its descriptor; only frames of one buffer.
    fn take(&mut self) -> Option<(Vec<u8>, u32)> {
        let slot = self.received % SLOTS;
        let at = RX_RING + 8 * slot;
        if self.cx.word(at) & 1 == 0 {
            return None;
        }
        let status = self.cx.word(at + 4);
        assert_eq!(status & 3 << 14, 3 << 14, "start and end");
        let frame = self.cx.ram(RX_BUFFERS + SLOT_BYTES * slot, (status & 0x1FFF) as usize).to_vec();
        self.cx.set_word(at, self.cx.word(at) & !1);
        self.received += 1;
        Some((frame, status))
    }

    fn exchange(&mut self, frame: &[u8]) -> Option<(Vec<u8>, u32)> {
        self.send(frame);
        self.pass(SimTime::from_us(300));
        self.take()
    }
}

fn frame(destination: [u8; 6], length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|index| index as u8).collect();
    frame[..6].copy_from_slice(&destination);
    // The echo swaps the addresses.
    frame[6..12].copy_from_slice(&STATION);
    frame[12..14].copy_from_slice(&[0x88, 0xB5]);
    frame
}

#[test]
fn registers_after_reset() {
    let mut gem = Gem::new(None);
    let mut cx = FakeContext::new(4096);
    for (offset, value) in [
        (NWCTRL, 0),
        (NWCFG, 0x0008_0000),
        (NWSTATUS, 6),
        (DMACFG, 0x0002_0784),
        (0x030, 0x07FF_FFFF),
        (0x048, 0x2800),
        (0x0FC, 0x1007_0109),
        (0x280, 0x02D0_0111),
        (0x284, 0x2AB1_2800),
        (0x290, 0x002F_2045),
        (0x294, 0x0080_0000),
        (0x1FFC, 0),
        (MANAGEMENT_OFFSET, 0),
    ] {
        assert_eq!(gem.read(&mut cx, offset, 4), Ok(value), "{offset:#x}");
    }
    assert_eq!(gem.read(&mut cx, 0, 8), Err(BusError::Size));
    assert_eq!(gem.write(&mut cx, 0, 1, 0), Err(BusError::Size));
    assert_eq!(gem.read(&mut cx, 0x2000, 4), Err(BusError::Unmapped));
}

#[test]
fn a_frame_goes_out_and_its_echo_comes_in() {
    let mut driver = Driver::on(Echo::new());
    let sent = frame(OTHER, 100);
    driver.send(&sent);
    assert_eq!(driver.read(TXSTATUS), 1 << 3, "going");
    driver.pass(SimTime::from_us(100));
    let word = driver.cx.word(TX_RING + 4);
    assert_eq!(word, USED | LAST | 100);
    assert_eq!(driver.read(TXSTATUS), 1 << 5 | 1, "complete, then used bit read");
    assert_eq!(driver.read(RXSTATUS), 1 << 1);
    assert!(driver.cx.line(0));
    assert_eq!(driver.read(ISR), 1 << 7 | 1 << 3 | 1 << 1);
    assert_eq!((driver.read(ISR), driver.cx.line(0)), (0, false), "cleared by reading");
    driver.write(TXSTATUS, 1 << 5);
    driver.write(RXSTATUS, 1 << 1);
    assert_eq!((driver.read(TXSTATUS), driver.read(RXSTATUS)), (1, 0));
    let (got, status) = driver.take().unwrap();
    assert_eq!((&got[..6], &got[12..]), (&STATION[..], &sent[12..]));
    assert_eq!((status & 0x1FFF, status >> 25), (100, 0b100), "matched the first address");
    // The counters, and again: cleared by reading.
    let counters = [0x100, 0x108, 0x11C, 0x150, 0x158, 0x16C].map(|at| driver.read(at));
    assert_eq!(counters, [104, 1, 1, 104, 1, 1]);
    assert_eq!(driver.read(0x108), 0);
}

#[test]
fn rings_wrap_and_only_the_first_descriptor_of_a_frame_comes_back() {
    let (sink, counters) = Sink::new();
    let mut driver = Driver::on(sink);
    for _ in 0..3 * SLOTS {
        driver.send(&frame(OTHER, 60));
        driver.pass(SimTime::from_us(50));
    }
    assert_eq!(counters.frames(), 3 * SLOTS);
    // 10 + 20 + 40 bytes in three buffers.
    let whole = frame(OTHER, 70);
    for (slot, range) in [(0, 0..10), (1, 10..30), (2, 30..70)] {
        let buffer = TX_BUFFERS + SLOT_BYTES * slot;
        driver.cx.ram_mut(buffer, range.len()).copy_from_slice(&whole[range.clone()]);
        driver.cx.set_word(TX_RING + 8 * slot, buffer as u32);
        driver.cx.set_word(TX_RING + 8 * slot + 4, range.len() as u32 | if slot == 2 { LAST } else { 0 });
    }
    driver.write(NWCTRL, ON | START);
    driver.pass(SimTime::from_us(50));
    assert_eq!((counters.frames(), counters.bytes()), (3 * SLOTS + 1, 3 * SLOTS * 60 + 70));
    let words = [0, 1, 2].map(|slot| driver.cx.word(TX_RING + 8 * slot + 4) & USED);
    assert_eq!(words, [USED, 0, 0]);
    assert_eq!(driver.read(TXQBASE), (TX_RING + 8 * 3) as u32);
    driver.write(NWCTRL, ON & !(1 << 3));
    assert_eq!(driver.read(TXQBASE), TX_RING as u32, "switched off, it starts anew");
}

#[test]
fn masked_events_leave_no_trace() {
    let mut driver = Driver::on(Echo::new());
    driver.write(IDR, 1 << 7);
    driver.exchange(&frame(OTHER, 60)).unwrap();
    driver.write(IER, 1 << 7);
    assert_eq!(driver.read(ISR), 1 << 3 | 1 << 1);
    driver.write(IDR, u32::MAX);
    driver.exchange(&frame(OTHER, 60)).unwrap();
    assert_eq!((driver.read(ISR), driver.cx.line(0)), (0, false));
    assert_eq!(driver.read(TXSTATUS) & 1 << 5, 1 << 5, "the status says it all the same");
}

#[test]
fn what_cannot_be_sent_stops_the_transmitter() {
    for ruin in [0, 1, 2] {
        let (sink, counters) = Sink::new();
        let mut driver = Driver::on(sink);
        driver.queue(&frame(OTHER, 60), 0);
        match ruin {
            0 => driver.cx.set_word(TX_RING, 0x1000),
            // The second buffer is still software's.
            1 => driver.cx.set_word(TX_RING + 4, 60),
            _ => driver.write(TXQBASE, 0x1000),
        }
        driver.write(NWCTRL, ON | START);
        driver.pass(SimTime::from_us(50));
        assert_eq!((driver.read(TXSTATUS), driver.read(ISR), counters.frames()), (1 << 4, 1 << 6, 0), "{ruin}");
        let corrupt = if ruin == 2 { 0 } else { USED | 1 << 27 };
        assert_eq!(driver.cx.word(TX_RING + 4) & (USED | 1 << 27), corrupt, "{ruin}");
    }
    // A ring whose frames never end.
    let mut driver = Driver::on(Sink::new().0);
    for slot in 0..SLOTS {
        driver.cx.set_word(TX_RING + 8 * slot, TX_BUFFERS as u32);
        driver.cx.set_word(TX_RING + 8 * slot + 4, if slot + 1 == SLOTS { WRAP } else { 0 });
    }
    driver.write(NWCTRL, ON | START);
    driver.pass(SimTime::from_us(500));
    assert_eq!(driver.read(TXSTATUS), 1 << 4);
}

#[test]
fn a_ring_without_room_drops_and_goes_on_by_itself() {
    let mut driver = Driver::on(Echo::new());
    for _ in 0..SLOTS + 2 {
        driver.send(&frame(OTHER, 60));
        driver.pass(SimTime::from_us(50));
    }
    assert_eq!(driver.read(RXSTATUS) & 1, 1);
    assert_eq!(driver.read(ISR) & 1 << 2, 1 << 2);
    assert_eq!(driver.read(0x1A0), 2, "resource errors");
    for _ in 0..SLOTS {
        driver.take().unwrap();
    }
    assert!(driver.exchange(&frame(OTHER, 60)).is_some());
}

#[test]
fn long_frames_take_several_buffers() {
    let mut driver = Driver::on(Echo::new());
    driver.write(DMACFG, 0x0002_0784);
    driver.write(NWCFG, PLAIN | 2 << 14);
    let sent = frame(OTHER, 300);
    assert!(driver.cx.word(RX_RING) & 1 == 0);
    driver.send(&sent);
    driver.pass(SimTime::from_us(100));
    let words: Vec<_> =
        (0..4).map(|slot| (driver.cx.word(RX_RING + 8 * slot) & 1, driver.cx.word(RX_RING + 8 * slot + 4))).collect();
    // 126 bytes behind an offset of 2, 128, 46.
    assert_eq!(words[..3], [(1, 1 << 14), (1, 0), (1, 1 << 15 | 1 << 27 | 300)]);
    assert_eq!(words[3].0, 0);
    let piece = |slot: u64, skip: u64, length| driver.cx.ram(RX_BUFFERS + SLOT_BYTES * slot + skip, length);
    let got = [piece(0, 2, 126), piece(1, 0, 128), piece(2, 0, 46)].concat();
    assert_eq!(got[12..], sent[12..]);
}

#[test]
fn lengths_that_are_allowed() {
    let mut driver = Driver::on(Echo::new());
    let mut passes = |config: u32, length: usize| {
        driver.write(NWCFG, PLAIN | config);
        driver.exchange(&frame(OTHER, length)).is_some()
    };
    assert!(passes(0, 1514) && !passes(0, 1515));
    assert!(passes(1 << 8, 1532) && !passes(1 << 8, 1533));
    assert!(passes(JUMBO, 2000));
    assert_eq!(driver.read(0x188), 2, "oversize");
    driver.write(0x048, 1600);
    assert!(driver.exchange(&frame(OTHER, 1597)).is_none());
    // With a check sequence, and padded to the minimum.
    driver.write(NWCFG, PLAIN & !(1 << 17));
    let (got, _) = driver.exchange(&frame(OTHER, 42)).unwrap();
    assert_eq!(got.len(), 64);
}

#[test]
fn filters_decide_and_tell() {
    let mut driver = Driver::on(Loopback::new());
    let bits = |driver: &mut Driver, destination| driver.exchange(&frame(destination, 60)).map(|(_, word)| word >> 25);
    assert_eq!(bits(&mut driver, STATION), Some(0b000_0100));
    assert_eq!(bits(&mut driver, [0xFF; 6]), Some(0b100_0000));
    assert_eq!(bits(&mut driver, OTHER), None);
    driver.write(SA1 + 16, 0x0000_0002);
    driver.write(SA1 + 20, 0x9900);
    assert_eq!(bits(&mut driver, OTHER), Some(0b000_0110), "the third address");
    let group = [0x01, 0, 0x5E, 0, 0, 1];
    assert_eq!(bits(&mut driver, group), None);
    driver.write(0x080, u32::MAX);
    driver.write(0x084, u32::MAX);
    driver.write(NWCFG, PLAIN | 1 << 6);
    assert_eq!(bits(&mut driver, group), Some(0b010_0000));
    driver.write(NWCFG, PLAIN | COPY_ALL | 1 << 5);
    assert_eq!(bits(&mut driver, group), Some(0));
    assert_eq!(bits(&mut driver, [0xFF; 6]), None);
    driver.write(NWCTRL, ON & !(1 << 2));
    driver.queue(&frame(STATION, 60), 0);
    driver.write(NWCTRL, ON & !(1 << 2) | START);
    driver.pass(SimTime::from_us(100));
    assert!(driver.take().is_none(), "receiver off");
}

#[test]
fn the_phy_is_at_address_0() {
    let mut driver = Driver::on(Sink::new().0);
    let read = |driver: &mut Driver, phy: u32, register: u32| {
        driver.write(PHYMNTNC, 1 << 30 | 2 << 28 | phy << 23 | register << 18 | 2 << 16);
        assert_eq!(driver.read(NWSTATUS) & 4, 0, "busy");
        // 64 cycles of 100 MHz / 48.
        driver.pass(SimTime::from_ns(64 * 480));
        assert_eq!(driver.read(NWSTATUS) & 4, 4);
        driver.read(PHYMNTNC) & 0xFFFF
    };
    assert_eq!([2, 3].map(|register| read(&mut driver, 0, register)), [0x0141, 0x0CC2]);
    assert_eq!(read(&mut driver, 0, 1) & 0x24, 0x24, "link, negotiated");
    assert_eq!(read(&mut driver, 7, 2), 0xFFFF, "nobody there");
    assert_eq!(driver.read(ISR), 1);
    driver.write(PHYMNTNC, 1 << 30 | 1 << 28 | 2 << 16 | 1 << 11);
    driver.pass(SimTime::from_us(50));
    assert_eq!(read(&mut driver, 0, 1) & 0x24, 0, "powered down");
    assert!(driver.exchange(&frame(OTHER, 60)).is_none());
    driver.write(NWCTRL, ON & !(1 << 4));
    driver.write(PHYMNTNC, 1 << 30 | 2 << 28 | 2 << 18 | 2 << 16);
    assert_eq!(driver.read(NWSTATUS) & 4, 4, "the port is disabled");
}

#[test]
fn traffic_needs_a_cable_and_the_right_clock() {
    let mut driver = Driver::new(None);
    driver.send(&frame(OTHER, 60));
    driver.pass(SimTime::from_us(100));
    assert_eq!(driver.cx.word(TX_RING + 4) & USED, USED, "into the void");
    let mut driver = Driver::on(Echo::new());
    for (offset, wrong, right) in [(NWCFG, PLAIN & !(1 << 10), PLAIN), (MANAGEMENT_OFFSET, 1, 0)] {
        driver.write(offset, wrong);
        assert!(driver.exchange(&frame(OTHER, 60)).is_none());
        driver.write(offset, right);
        assert!(driver.exchange(&frame(OTHER, 60)).is_some());
    }
    // Local loopback needs neither.
    let mut driver = Driver::new(None);
    driver.write(NWCTRL, ON | LOOPBACK);
    driver.queue(&frame(STATION, 60), 0);
    driver.write(NWCTRL, ON | LOOPBACK | START);
    driver.pass(SimTime::from_us(100));
    assert!(driver.take().is_some());
}

#[test]
fn checksums_are_filled_in_and_judged() {
    // An IPv4 UDP datagram with both checksums left out.
    let mut sent = frame(OTHER, 60);
    sent[12..14].copy_from_slice(&[0x08, 0x00]);
    sent[14..34].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 2, 15, 10, 0, 2, 2]);
    sent[34..42].copy_from_slice(&[0, 9, 0, 9, 0, 26, 0, 0]);
    let mut driver = Driver::on(Loopback::new());
    driver.write(NWCFG, PLAIN | COPY_ALL | 1 << 24);
    assert!(driver.exchange(&sent).is_none(), "a bad header is dropped");
    assert_eq!(driver.read(0x1A8), 1);
    driver.write(DMACFG, 0x0020_0784 | 1 << 11);
    let (got, status) = driver.exchange(&sent).unwrap();
    assert_eq!(status >> 22 & 3, 3, "IP and UDP good");
    // As in the test of the AXI NIC, by hand.
    assert_eq!(got[24..26], 0x22AFu16.to_be_bytes());
    // What is not IPv4 passes, and the descriptor says so.
    let slot = driver.sent % SLOTS;
    let (_, status) = driver.exchange(&frame(OTHER, 60)).unwrap();
    assert_eq!((status >> 22 & 3, driver.cx.word(TX_RING + 8 * slot + 4) >> 20 & 7), (0, 4));
}

#[test]
fn addresses_of_64_bits_take_longer_descriptors() {
    let (sink, counters) = Sink::new();
    let mut driver = Driver::on(sink);
    driver.write(NWCTRL, 0);
    driver.write(DMACFG, 0x0020_0784 | 1 << 30);
    for (slot, high) in [(0, 0), (1, 1)] {
        for (word, value) in [TX_BUFFERS as u32, 60 | LAST, high, 0].into_iter().enumerate() {
            driver.cx.set_word(TX_RING + 16 * slot + 4 * word as u64, value);
        }
    }
    driver.write(TXQBASE, TX_RING as u32);
    driver.write(NWCTRL, ON | START);
    driver.pass(SimTime::from_us(100));
    assert_eq!((counters.frames(), driver.read(TXSTATUS)), (1, 1 << 5 | 1 << 4), "the second lies above all RAM");
    driver.write(0x4C8, 1);
    assert_eq!((driver.read(0x4C8), driver.read(TXQBASE)), (1, (TX_RING + 32) as u32));
}

#[test]
fn the_wire_is_the_limit_for_long_frames() {
    let (sink, counters) = Sink::new();
    let mut driver = Driver::on(sink);
    for _ in 0..SLOTS {
        driver.queue(&frame(OTHER, 1514), 0);
    }
    driver.write(NWCTRL, ON | START);
    driver.pass(SimTime::from_us(100));
    assert_eq!((counters.last() - counters.first()).as_ns(), (SLOTS - 1) * (1514 + 24) * 8);
}

#[test]
fn damaged_frames_are_counted() {
    let config = LinkConfig { damage_ppm: 300_000, ..LinkConfig::default() };
    let mut driver = Driver::new(Some(Link::new(config, Box::new(Echo::new()))));
    let good: u32 = (0..100).map(|_| u32::from(driver.exchange(&frame(OTHER, 60)).is_some())).sum();
    let damaged = driver.read(0x190);
    assert!(damaged > 10 && good > 30, "{damaged} damaged, {good} good");
    assert_eq!(driver.read(0x158), good);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Rings full of anything, registers written with anything: the host survives.
    #[test]
    fn no_guest_breaks_the_host(
        rings in proptest::collection::vec(any::<u32>(), 64),
        writes in proptest::collection::vec((0u64..0x40, any::<u32>()), 0..40),
    ) {
        let mut driver = Driver::on(Echo::new());
        driver.write(NWCFG, PLAIN | COPY_ALL);
        for (index, &word) in rings.iter().enumerate() {
            // Some descriptors have good addresses, or nothing would get far.
            let word = if index % 2 == 0 && word & 1 == 0 { TX_BUFFERS as u32 | word & 0xFFFE } else { word };
            let base = if index < 32 { TX_RING } else { RX_RING - 128 };
            driver.cx.set_word(base + 4 * index as u64, word);
        }
        driver.write(NWCTRL, ON | START);
        driver.pass(SimTime::from_us(300));
        for (register, value) in writes {
            driver.write(4 * register, value);
            driver.write(NWCTRL, ON | START);
            driver.pass(SimTime::from_us(20));
        }
        driver.write(NWCTRL, 0);
        prop_assert_eq!(driver.read(NWCTRL), 0);
    }
}

#[test]
fn upper_halves_of_queue_pointers_count_with_64_bit_addresses_only() {
    let mut driver = Driver::on(Echo::new());
    driver.write(0x4C8, 1);
    driver.write(0x4D4, 1);
    let sent = frame(OTHER, 100);
    let (got, _) = driver.exchange(&sent).expect("the rings are where the lower halves say");
    assert_eq!(got[..6], STATION);
}
