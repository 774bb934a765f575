//! DMA, MAC, wire and peer together, through registers and memory only, as a driver sees them.

use soc::device::{Device, Exit};
use soc::devices::axi_nic::{AxiNic, Build, DMA_OFFSET, ETHERNET_OFFSET, LINE_ETHERNET, LINE_MM2S, LINE_S2MM};
use soc::testing::{FakeContext, RAM_BASE};
use soc::time::SimTime;
use soc::wire::{Echo, Link, LinkConfig, LoadGen, Loopback, Next, Peer, Sink};

const MM2S: u64 = DMA_OFFSET;
const S2MM: u64 = DMA_OFFSET + 0x30;
const RCW1: u64 = ETHERNET_OFFSET + 0x404;
const TC: u64 = ETHERNET_OFFSET + 0x408;
const IS: u64 = ETHERNET_OFFSET + 0x00C;
const IE: u64 = ETHERNET_OFFSET + 0x014;
const UAW0: u64 = ETHERNET_OFFSET + 0x700;
const UAW1: u64 = ETHERNET_OFFSET + 0x704;
const FMI: u64 = ETHERNET_OFFSET + 0x708;
const EMMC: u64 = ETHERNET_OFFSET + 0x410;

const ENABLE: u32 = 1 << 28;
const JUMBO: u32 = 1 << 30;
const IN_BAND_FCS: u32 = 1 << 29;
const COMPLETE: u32 = 1 << 31;
const WHOLE: u32 = 3 << 26;

const STATION: [u8; 6] = [0x02, 0, 0, 0, 0, 0x15];
const SLOTS: u64 = 64;
const TX_RING: u64 = RAM_BASE + 0x1_0000;
const RX_RING: u64 = RAM_BASE + 0x2_0000;
const TX_BUFFERS: u64 = RAM_BASE + 0x10_0000;
const RX_BUFFERS: u64 = RAM_BASE + 0x20_0000;
const SLOT_BYTES: u64 = 0x4000;

/// The smallest driver: rings of 64 slots, polled.
struct Driver {
    nic: AxiNic,
    cx: FakeContext,
    sent: u64,
    received: u64,
}

impl Driver {
    fn new(link: Option<Link>) -> Self {
        Self::with_build(Build::default(), link)
    }

    fn with_build(build: Build, link: Option<Link>) -> Self {
        let nic = AxiNic::with_build(build, link);
        let mut driver = Self { nic, cx: FakeContext::new(8 << 20), sent: 0, received: 0 };
        driver.bring_up();
        driver
    }

    fn on(peer: impl Peer + 'static) -> Self {
        Self::new(Some(Link::new(LinkConfig::default(), Box::new(peer))))
    }

    fn read(&mut self, offset: u64) -> u32 {
        self.nic.read(&mut self.cx, offset, 4).unwrap() as u32
    }

    fn write(&mut self, offset: u64, value: u32) {
        self.nic.write(&mut self.cx, offset, 4, u64::from(value)).unwrap();
    }

    fn pass(&mut self, span: SimTime) {
        self.cx.advance(&mut self.nic, span);
    }

    fn bring_up(&mut self) {
        self.write(MM2S, 4);
        self.pass(SimTime::from_us(50));
        assert_eq!(self.read(MM2S) & 4, 0);
        assert_eq!(self.read(IS) & 0x1C0, 0x1C0);
        self.write(UAW0, 0x0000_0002);
        self.write(UAW1, 0x1500);
        self.ring(TX_RING, TX_BUFFERS, 0);
        self.ring(RX_RING, RX_BUFFERS, SLOT_BYTES as u32);
        for (base, ring) in [(MM2S, TX_RING), (S2MM, RX_RING)] {
            self.write(base + 0x08, ring as u32);
            self.write(base, 0x0001_7001);
        }
        self.write(S2MM + 0x10, (RX_RING + 64 * (SLOTS - 2)) as u32);
    }

    fn ring(&mut self, ring: u64, buffers: u64, length: u32) {
        for index in 0..SLOTS {
            let at = ring + 64 * index;
            self.cx.set_word(at, (ring + 64 * ((index + 1) % SLOTS)) as u32);
            self.cx.set_word(at + 0x08, (buffers + SLOT_BYTES * index) as u32);
            self.cx.set_word(at + 0x18, length);
            self.cx.set_word(at + 0x1C, 0);
        }
    }

    fn queue(&mut self, frame: &[u8]) {
        let index = self.sent % SLOTS;
        let at = TX_RING + 64 * index;
        self.cx.ram_mut(TX_BUFFERS + SLOT_BYTES * index, frame.len()).copy_from_slice(frame);
        self.cx.set_word(at + 0x18, WHOLE | frame.len() as u32);
        self.cx.set_word(at + 0x1C, 0);
        self.write(MM2S + 0x10, at as u32);
        self.sent += 1;
    }

    /// The next received frame, if there is one, and its APP words.
    fn take(&mut self) -> Option<(Vec<u8>, [u32; 5])> {
        let index = self.received % SLOTS;
        let at = RX_RING + 64 * index;
        let status = self.cx.word(at + 0x1C);
        if status & COMPLETE == 0 {
            return None;
        }
        assert_eq!(status & 0x7C00_0000, WHOLE);
        let app = core::array::from_fn(|word| self.cx.word(at + 0x20 + 4 * word as u64));
        let length = status & 0xFFFF;
        assert_eq!(length, app[4] & 0xFFFF, "both lengths agree");
        let frame = self.cx.ram(RX_BUFFERS + SLOT_BYTES * index, length as usize).to_vec();
        self.cx.set_word(at + 0x1C, 0);
        let behind = RX_RING + 64 * ((self.received + SLOTS - 1) % SLOTS);
        self.write(S2MM + 0x10, behind as u32);
        self.received += 1;
        Some((frame, app))
    }

    /// Sends `frame`, waits, and returns what came back.
    fn exchange(&mut self, frame: &[u8]) -> Option<(Vec<u8>, [u32; 5])> {
        self.queue(frame);
        self.pass(SimTime::from_us(500));
        self.take()
    }

    fn counter(&mut self, index: u64) -> u32 {
        self.read(ETHERNET_OFFSET + 0x200 + 8 * index)
    }
}

fn frame(destination: [u8; 6], length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|index| index as u8).collect();
    frame[..6].copy_from_slice(&destination);
    frame[6..12].copy_from_slice(&STATION);
    frame[12..14].copy_from_slice(&[0x88, 0xB5]);
    frame
}

const OTHER: [u8; 6] = [0x02, 0, 0, 0, 0, 0x02];

#[test]
fn frames_go_out_and_come_back_whole() {
    let mut driver = Driver::on(Echo::new());
    for length in [60, 61, 64, 128, 1000, 1514] {
        let sent = frame(OTHER, length);
        let (got, _) = driver.exchange(&sent).expect("an answer");
        assert_eq!((&got[..6], &got[6..12], &got[12..]), (&STATION[..], &OTHER[..], &sent[12..]));
    }
    assert!(driver.cx.rises(LINE_MM2S) >= 1 && driver.cx.rises(LINE_S2MM) >= 1);
    // 6 frames, sizes with check sequence 64, 65, 68, 132, 1004, 1518.
    for (index, value) in [(27, 6), (18, 6), (1, 2851), (0, 2851), (11, 1), (12, 2), (13, 1), (15, 1), (16, 1)] {
        assert_eq!(driver.counter(index), value, "counter {index}");
    }
    driver.write(ETHERNET_OFFSET, 1 << 13);
    assert_eq!(driver.counter(27), 0);
}

#[test]
fn short_frames_are_padded_with_zeros() {
    let mut driver = Driver::on(Echo::new());
    let (got, _) = driver.exchange(&frame(OTHER, 20)).unwrap();
    assert_eq!(got.len(), 60);
    assert!(got[20..].iter().all(|&byte| byte == 0));
}

#[test]
fn the_address_filter_decides() {
    let mut driver = Driver::on(Loopback::new());
    let passes = |driver: &mut Driver, destination| driver.exchange(&frame(destination, 60)).is_some();
    assert!(passes(&mut driver, STATION) && passes(&mut driver, [0xFF; 6]));
    assert!(!passes(&mut driver, OTHER) && !passes(&mut driver, [0x01, 0, 0x5E, 0, 0, 1]));
    assert_eq!(driver.read(IS) & 1 << 3, 1 << 3, "RxRject");
    driver.write(FMI, 1 << 31);
    assert!(passes(&mut driver, OTHER) && passes(&mut driver, [0x01, 0, 0x5E, 0, 0, 1]));
    driver.write(FMI, 0);
    driver.write(RCW1, 0);
    assert!(!passes(&mut driver, STATION), "receiver off");
}

#[test]
fn status_words_describe_the_frame() {
    let mut driver = Driver::on(Loopback::new());
    driver.write(FMI, 1 << 31);
    let words = |driver: &mut Driver, destination| driver.exchange(&frame(destination, 100)).unwrap().1;
    let unicast = words(&mut driver, STATION);
    assert_eq!((unicast[0], unicast[1], unicast[2] & 7), (0, 0, 0));
    assert_eq!((unicast[3] >> 16, unicast[4] & 0xFFFF), (0x88B5, 100));
    let group = words(&mut driver, [0x01, 0, 0x5E, 7, 8, 9]);
    assert_eq!((group[0], group[1], group[2] & 7), (0x0908, 0x075E_0001, 0b011));
    assert_eq!(words(&mut driver, [0xFF; 6])[2] & 7, 0b100);
}

#[test]
fn jumbo_frames_need_the_jumbo_bit_on_both_sides() {
    let mut driver = Driver::on(Echo::new());
    assert!(driver.exchange(&frame(OTHER, 1515)).is_none());
    assert_eq!(driver.counter(17), 1, "too long to send");
    driver.write(TC, ENABLE | JUMBO);
    assert!(driver.exchange(&frame(OTHER, 1515)).is_none());
    assert_eq!(driver.counter(10), 1, "too long to receive");
    driver.write(RCW1, ENABLE | JUMBO);
    let (got, _) = driver.exchange(&frame(OTHER, 16_128)).unwrap();
    assert_eq!(got[12..], frame(OTHER, 16_128)[12..]);
    // A limit of its own.
    driver.write(ETHERNET_OFFSET + 0x414, 1 << 16 | 9000);
    assert!(driver.exchange(&frame(OTHER, 8997)).is_none());
    assert!(driver.exchange(&frame(OTHER, 8996)).is_some());
}

#[test]
fn tagged_frames_may_be_four_bytes_longer() {
    let mut driver = Driver::on(Echo::new());
    let mut tagged = frame(OTHER, 1518);
    tagged[12..14].copy_from_slice(&[0x81, 0x00]);
    assert!(driver.exchange(&tagged).is_none());
    driver.write(TC, ENABLE | 1 << 27);
    driver.write(RCW1, ENABLE | 1 << 27);
    assert!(driver.exchange(&tagged).is_some());
}

#[test]
fn the_check_sequence_can_be_software_s() {
    let mut driver = Driver::on(Echo::new());
    driver.write(RCW1, ENABLE | IN_BAND_FCS);
    let (got, _) = driver.exchange(&frame(OTHER, 60)).unwrap();
    assert_eq!(got.len(), 64);
    // Sent back with a wrong one it never arrives; with the right one, which the MAC has just taught us, it does.
    driver.write(TC, ENABLE | IN_BAND_FCS);
    let mut returned = got.clone();
    returned[..12].rotate_left(6);
    assert!(driver.exchange(&returned).is_none());
    driver.write(TC, ENABLE);
    let mut with_fcs = driver.exchange(&returned[..60]).unwrap().0;
    assert_eq!(with_fcs, got);
    // The echo swaps the addresses, so a frame from and to ourselves keeps its check sequence.
    driver.write(FMI, 1 << 31);
    let mut own = frame(STATION, 60);
    own[6..12].copy_from_slice(&STATION);
    with_fcs = driver.exchange(&own).unwrap().0;
    driver.write(TC, ENABLE | IN_BAND_FCS);
    assert_eq!(driver.exchange(&with_fcs).unwrap().0, with_fcs);
}

#[test]
fn damaged_frames_are_counted_and_dropped() {
    let config = LinkConfig { damage_ppm: 300_000, ..LinkConfig::default() };
    let mut driver = Driver::new(Some(Link::new(config, Box::new(Echo::new()))));
    let mut good = 0;
    for _ in 0..200 {
        good += u32::from(driver.exchange(&frame(OTHER, 60)).is_some());
    }
    let damaged = driver.counter(19);
    assert!(damaged > 20 && good > 60, "{damaged} damaged, {good} good");
    assert_eq!(driver.counter(18), good);
}

#[test]
fn a_length_field_must_fit() {
    let mut driver = Driver::on(Echo::new());
    let mut with_length = |length: u16, total: usize| {
        let mut sent = frame(OTHER, total);
        sent[12..14].copy_from_slice(&length.to_be_bytes());
        driver.exchange(&sent).is_some()
    };
    assert!(with_length(46, 60) && with_length(3, 60) && with_length(200, 214));
    assert!(!with_length(47, 60) && !with_length(100, 214));
    assert_eq!(driver.counter(23), 2);
    driver.write(RCW1, ENABLE | 1 << 25);
    let mut sent = frame(OTHER, 60);
    sent[12..14].copy_from_slice(&[0, 47]);
    assert!(driver.exchange(&sent).is_some());
}

/// Sends frames back to back from time zero on.
struct Flood {
    frames: u32,
}

impl Peer for Flood {
    fn deliver(&mut self, _now: SimTime, _frame: &[u8]) {}
    fn next(&mut self, now: SimTime) -> Next {
        if now < SimTime::from_us(100) {
            return Next::At(SimTime::from_us(100));
        }
        match self.frames.checked_sub(1) {
            Some(left) => {
                self.frames = left;
                Next::Frame(frame([0xFF; 6], 1000))
            }
            None => Next::Idle,
        }
    }
}

#[test]
fn a_full_receive_memory_drops_and_says_so() {
    let mut driver = Driver::on(Flood { frames: 200 });
    // 63 slots are taken by the ring, 32 KiB hold 32 frames of 1000 bytes, the rest is lost.
    driver.pass(SimTime::from_us(10_000));
    assert_eq!(driver.read(IS) & 1 << 4, 1 << 4, "RxFifoOvr");
    assert_eq!(driver.nic.ethernet().rx_overflows(), 200 - 63 - 32);
    let mut got = 0;
    while driver.take().is_some() {
        got += 1;
        driver.pass(SimTime::from_us(100));
    }
    assert_eq!(got, 63 + 32);
}

#[test]
fn the_wire_is_the_limit_for_long_frames() {
    let (sink, counters) = Sink::new();
    let mut driver = Driver::on(sink);
    for _ in 0..32 {
        driver.queue(&frame(OTHER, 1514));
    }
    driver.pass(SimTime::from_us(2000));
    assert_eq!(counters.frames(), 32);
    // The DMA takes 9.8 us for a frame, the wire 12.3.
    assert_eq!((counters.last() - counters.first()).as_ns(), 31 * (1514 + 24) * 8);
}

#[test]
fn interrupts_of_the_mac() {
    let mut driver = Driver::on(Echo::new());
    driver.write(IS, 0x1FF);
    driver.write(IE, 1 << 5 | 1 << 2);
    assert!(!driver.cx.line(LINE_ETHERNET));
    driver.exchange(&frame(OTHER, 60)).unwrap();
    assert!(driver.cx.line(LINE_ETHERNET));
    assert_eq!(driver.read(ETHERNET_OFFSET + 0x010), 1 << 5 | 1 << 2);
    driver.write(IS, 1 << 5);
    assert!(driver.cx.line(LINE_ETHERNET));
    driver.write(IS, 1 << 2);
    assert!(!driver.cx.line(LINE_ETHERNET));
}

#[test]
fn resetting_the_dma_resets_the_mac() {
    let mut driver = Driver::on(Echo::new());
    driver.write(RCW1, ENABLE | JUMBO);
    driver.queue(&frame(OTHER, 60));
    driver.queue(&frame(OTHER, 60));
    driver.write(S2MM, 4);
    assert_eq!(driver.read(IS), 0xC0, "the PHY is not ready yet");
    assert_eq!((driver.read(RCW1), driver.read(UAW0)), (ENABLE, 0));
    driver.pass(SimTime::from_us(50));
    assert_eq!(driver.read(IS), 0x1C0);
    assert_eq!(driver.counter(27), 0, "what was queued is gone");
}

/// One MDIO access: waits for ready, gives the command, waits again.
fn mdio(driver: &mut Driver, phy: u32, register: u32, write: Option<u16>) -> u16 {
    let base = ETHERNET_OFFSET + 0x500;
    driver.write(base, 1 << 6 | 19);
    driver.write(base + 8, u32::from(write.unwrap_or(0)));
    let operation = if write.is_some() { 1 } else { 2 };
    driver.write(base + 4, phy << 24 | register << 16 | operation << 14 | 1 << 11);
    assert_eq!(driver.read(base + 4) & 1 << 7, 0, "busy");
    // 64 cycles of 2.5 MHz.
    driver.pass(SimTime::from_ns(25_599));
    assert_eq!(driver.read(base + 4) & 1 << 7, 0);
    driver.pass(SimTime::from_ns(1));
    assert_eq!(driver.read(base + 4) & 1 << 7, 1 << 7);
    driver.read(base + 0xC) as u16
}

#[test]
fn the_phy_is_found_and_has_a_link() {
    let mut driver = Driver::on(Sink::new().0);
    assert_eq!((mdio(&mut driver, 1, 2, None), mdio(&mut driver, 1, 3, None)), (0x0022, 0x1622));
    assert_eq!(mdio(&mut driver, 1, 1, None) & 0x24, 0x24, "link, negotiated");
    assert_eq!(mdio(&mut driver, 1, 10, None) & 1 << 11, 1 << 11, "the partner can 1000 Mb/s");
    assert_eq!(mdio(&mut driver, 2, 2, None), 0xFFFF, "nobody there");
    mdio(&mut driver, 1, 0, Some(1 << 12 | 1 << 9));
    assert_eq!(mdio(&mut driver, 1, 0, None), 1 << 12, "restart clears itself");
    mdio(&mut driver, 1, 0, Some(1 << 11));
    assert_eq!(mdio(&mut driver, 1, 1, None) & 0x24, 0, "powered down");
    // Without the enable bit nothing happens.
    driver.write(ETHERNET_OFFSET + 0x500, 19);
    driver.write(ETHERNET_OFFSET + 0x504, 1 << 24 | 2 << 16 | 2 << 14 | 1 << 11);
    assert_eq!(driver.read(ETHERNET_OFFSET + 0x504) & 1 << 7, 1 << 7);
}

#[test]
fn no_cable_no_link_and_the_wrong_speed_no_traffic() {
    let mut driver = Driver::new(None);
    assert_eq!(mdio(&mut driver, 1, 1, None) & 0x24, 0);
    driver.queue(&frame(OTHER, 60));
    driver.pass(SimTime::from_us(100));
    assert_eq!(driver.cx.word(TX_RING + 0x1C), COMPLETE | 60, "the DMA does not care");
    assert_eq!(driver.counter(27), 0);

    let mut driver = Driver::on(Echo::new());
    driver.write(EMMC, 1 << 30);
    assert!(driver.exchange(&frame(OTHER, 60)).is_none());
    driver.write(EMMC, 2 << 30);
    assert!(driver.exchange(&frame(OTHER, 60)).is_some());
}

#[test]
fn only_whole_registers_and_nothing_between_the_blocks() {
    let mut driver = Driver::new(None);
    for (offset, size) in [(ETHERNET_OFFSET + 0x700, 8), (ETHERNET_OFFSET, 2), (MM2S, 1), (0x1_0000, 4), (0x8_0000, 4)]
    {
        assert!(driver.nic.read(&mut driver.cx, offset, size).is_err(), "{offset:#x}");
        assert!(driver.nic.write(&mut driver.cx, offset, size, 0).is_err(), "{offset:#x}");
    }
}

#[test]
fn checksum_offload_fills_in_what_the_peer_would_check() {
    // An IPv4 UDP datagram with both checksums left out; APP0 = 2 asks for all of it.
    let mut sent = frame(OTHER, 60);
    sent[12..14].copy_from_slice(&[0x08, 0x00]);
    sent[14..34].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 2, 15, 10, 0, 2, 2]);
    sent[34..42].copy_from_slice(&[0, 9, 0, 9, 0, 26, 0, 0]);
    let mut driver = Driver::on(Loopback::new());
    driver.write(FMI, 1 << 31);
    let plain = driver.exchange(&sent).unwrap();
    assert_eq!(plain.1[2] >> 3 & 7, 5, "IP bad");
    driver.cx.set_word(TX_RING + 64 * driver.sent + 0x20, 2);
    let (got, words) = driver.exchange(&sent).unwrap();
    assert_eq!(words[2] >> 3 & 7, 3, "IP and UDP good");
    // The header's sum by hand: 0x4500 + 0x002E + 0x4000 + 0x4011 + 0x0A00 + 0x020F + 0x0A00 + 0x0202 = 0xDD50.
    assert_eq!(got[24..26], 0x22AFu16.to_be_bytes());
}

#[test]
fn a_finished_peer_stops_the_machine() {
    /// Wants one frame.
    struct One(bool);
    impl Peer for One {
        fn deliver(&mut self, _now: SimTime, _frame: &[u8]) {
            self.0 = true;
        }
        fn next(&mut self, _now: SimTime) -> Next {
            Next::Idle
        }
        fn finished(&self) -> bool {
            self.0
        }
    }
    let mut driver = Driver::on(One(false));
    driver.pass(SimTime::from_us(100));
    assert_eq!(driver.cx.stopped(), None);
    driver.queue(&frame(OTHER, 60));
    driver.pass(SimTime::from_us(100));
    assert_eq!(driver.cx.stopped(), Some(Exit::PeerDone));
}

#[test]
fn the_load_generator_asks_for_the_guest_over_the_wire() {
    let (generator, report) = LoadGen::new(Default::default()).unwrap();
    let mut driver = Driver::on(generator);
    driver.pass(SimTime::from_us(3_500));
    // At 0 (the receiver is on after a reset), 1, 2 and 3 ms.
    let mut asked = 0;
    while let Some((got, _)) = driver.take() {
        assert_eq!((&got[..6], &got[12..14], &got[38..42]), (&[0xFF; 6][..], &[0x08, 0x06][..], &[10, 0, 2, 15][..]));
        asked += 1;
    }
    assert_eq!(asked, 4);
    assert!(report.report().guest_ready.is_none() && !report.finished());
}
