//! The virtio devices through registers and rings only, as a driver sees them: the transport's rules, the network device against the
//! wire's peers, the block device against a file, and guests that break every rule of a ring.

use proptest::prelude::*;
use soc::board::MAC_ADDRESS;
use soc::device::{BusError, Device};
use soc::devices::virtio::{EmptySlot, VirtioMmio};
use soc::disk::{Disk, DiskSpec};
use soc::testing::{FakeContext, RAM_BASE};
use soc::time::SimTime;
use soc::wire::{Echo, Link, LinkConfig, Sink};
use std::path::{Path, PathBuf};

const DEVICE_FEATURES: u64 = 0x010;
const DRIVER_FEATURES: u64 = 0x020;
const QUEUE_SEL: u64 = 0x030;
const QUEUE_NUM: u64 = 0x038;
const QUEUE_READY: u64 = 0x044;
const QUEUE_NOTIFY: u64 = 0x050;
const INTERRUPTS: u64 = 0x060;
const INTERRUPT_ACK: u64 = 0x064;
const STATUS: u64 = 0x070;

const ACKNOWLEDGE_DRIVER: u32 = 3;
const FEATURES_OK: u32 = 8;
const DRIVER_OK: u32 = 4;
const NEEDS_RESET: u32 = 0x40;

const INDIRECT: u64 = 1 << 28;
const EVENT_INDEX: u64 = 1 << 29;
const VERSION_1: u64 = 1 << 32;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const TABLE: u16 = 4;

const RAM_BYTES: usize = 1 << 20;
const SIZE: u16 = 8;
const BUFFERS: u64 = RAM_BASE + 0x1_0000;

/// Rings of queue `queue`.
fn descriptors(queue: u64) -> u64 {
    RAM_BASE + 0x1000 * queue
}
fn available(queue: u64) -> u64 {
    descriptors(queue) + 0x400
}
fn used(queue: u64) -> u64 {
    descriptors(queue) + 0x800
}

struct Driver {
    device: VirtioMmio,
    cx: FakeContext,
}

impl Driver {
    fn asleep(device: VirtioMmio) -> Self {
        Self { device, cx: FakeContext::new(RAM_BYTES) }
    }

    /// Negotiated, with queues set up.
    fn new(device: VirtioMmio, features: u64, queues: u32) -> Self {
        let mut driver = Self::asleep(device);
        driver.start(features, queues);
        driver
    }

    fn start(&mut self, features: u64, queues: u32) {
        self.negotiate(features);
        assert_eq!(self.read(STATUS), ACKNOWLEDGE_DRIVER | FEATURES_OK);
        for queue in 0..queues {
            self.cx.ram_mut(descriptors(queue.into()), 0x1000).fill(0);
            self.set_up(queue, u32::from(SIZE), descriptors(queue.into()));
            assert_eq!(self.read(QUEUE_READY), 1);
        }
        self.write(STATUS, ACKNOWLEDGE_DRIVER | FEATURES_OK | DRIVER_OK);
    }

    fn negotiate(&mut self, features: u64) {
        self.write(STATUS, 0);
        self.write(STATUS, 1);
        self.write(STATUS, ACKNOWLEDGE_DRIVER);
        for (bank, word) in [features as u32, (features >> 32) as u32].into_iter().enumerate() {
            self.write(DRIVER_FEATURES + 4, bank as u32);
            self.write(DRIVER_FEATURES, word);
        }
        self.write(STATUS, ACKNOWLEDGE_DRIVER | FEATURES_OK);
    }

    fn set_up(&mut self, queue: u32, size: u32, base: u64) {
        self.write(QUEUE_SEL, queue);
        self.write(QUEUE_NUM, size);
        for (register, address) in [(0x080, base), (0x090, base + 0x400), (0x0A0, base + 0x800)] {
            self.write(register, address as u32);
            self.write(register + 4, (address >> 32) as u32);
        }
        self.write(QUEUE_READY, 1);
    }

    fn read(&mut self, offset: u64) -> u32 {
        self.device.read(&mut self.cx, offset, 4).unwrap() as u32
    }

    fn write(&mut self, offset: u64, value: u32) {
        self.device.write(&mut self.cx, offset, 4, value.into()).unwrap();
    }

    fn pass(&mut self, span: SimTime) {
        self.cx.advance(&mut self.device, span);
    }

    fn offer(&mut self) -> u64 {
        self.write(DEVICE_FEATURES + 4, 1);
        let high = self.read(DEVICE_FEATURES);
        self.write(DEVICE_FEATURES + 4, 0);
        u64::from(high) << 32 | u64::from(self.read(DEVICE_FEATURES))
    }

    fn set_half(&mut self, address: u64, value: u16) {
        self.cx.ram_mut(address, 2).copy_from_slice(&value.to_le_bytes());
    }

    fn half(&self, address: u64) -> u16 {
        self.cx.word(address & !3).to_le_bytes()[(address & 3) as usize..][..2]
            .try_into()
            .map(u16::from_le_bytes)
            .expect("two bytes")
    }

    fn descriptor(&mut self, table: u64, index: u64, (address, length, flags, next): (u64, u32, u16, u16)) {
        let at = table + 16 * index;
        self.cx.ram_mut(at, 8).copy_from_slice(&address.to_le_bytes());
        self.cx.set_word(at + 8, length);
        self.set_half(at + 12, flags);
        self.set_half(at + 14, next);
    }

    /// Descriptors 0, 1, ... of `queue` as one chain.
    fn chain(&mut self, queue: u64, pieces: &[(u64, u32, u16)]) {
        for (index, &(address, length, flags)) in pieces.iter().enumerate() {
            let last = index + 1 == pieces.len();
            let link = if last { (flags, 0) } else { (flags | NEXT, index as u16 + 1) };
            self.descriptor(descriptors(queue), index as u64, (address, length, link.0, link.1));
        }
    }

    /// Makes the chain at `head` available.
    fn offer_chain(&mut self, queue: u64, head: u16) {
        let index = self.half(available(queue) + 2);
        self.set_half(available(queue) + 4 + 2 * u64::from(index % SIZE), head);
        self.set_half(available(queue) + 2, index.wrapping_add(1));
    }

    fn notify(&mut self, queue: u64) {
        self.write(QUEUE_NOTIFY, queue as u32);
    }

    fn used_index(&self, queue: u64) -> u16 {
        self.half(used(queue) + 2)
    }

    /// Head and length of used element `index`.
    fn used_element(&self, queue: u64, index: u16) -> (u32, u32) {
        let at = used(queue) + 4 + 8 * u64::from(index % SIZE);
        (self.cx.word(at), self.cx.word(at + 4))
    }
}

fn plugged(peer: impl soc::wire::Peer + 'static) -> VirtioMmio {
    VirtioMmio::network(Some(Link::new(LinkConfig::default(), Box::new(peer))), MAC_ADDRESS)
}

/// A file of `sectors` sectors, sector n filled with n.
fn disk_file(name: &str, sectors: u8) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let bytes: Vec<u8> = (0..sectors).flat_map(|sector| [sector; 512]).collect();
    std::fs::write(&path, bytes).expect("the target directory can be written");
    path
}

fn block(path: &Path, read_only: bool) -> VirtioMmio {
    VirtioMmio::block(Disk::open(&DiskSpec { path: path.to_owned(), read_only }).expect("a good disk"))
}

#[test]
fn identity_and_sizes_of_access() {
    let mut driver = Driver::asleep(plugged(Echo::new()));
    assert_eq!([0, 4, 8, 12].map(|at| driver.read(at)), [0x7472_6976, 2, 1, 0x554D_4551]);
    assert_eq!(driver.offer(), VERSION_1 | EVENT_INDEX | INDIRECT | 1 << 16 | 1 << 5);
    driver.write(DEVICE_FEATURES + 4, 2);
    assert_eq!(driver.read(DEVICE_FEATURES), 0);
    assert_eq!([0x0B0, 0x0BC].map(|at| driver.read(at)), [u32::MAX; 2], "no shared memory");
    let sizes = |device: &mut VirtioMmio, cx: &mut FakeContext, offset: u64| {
        [1, 2, 4, 8].map(|size| device.read(cx, offset, size).is_ok())
    };
    assert_eq!(sizes(&mut driver.device, &mut driver.cx, 0x070), [false, false, true, false]);
    assert_eq!(sizes(&mut driver.device, &mut driver.cx, 0x100), [true, true, true, false]);
    assert_eq!(driver.device.write(&mut driver.cx, STATUS, 1, 1), Err(BusError::Size));
    let mac: Vec<u64> = (0..8).map(|byte| driver.device.read(&mut driver.cx, 0x100 + byte, 1).unwrap()).collect();
    assert_eq!(mac, [0x02, 0x57, 0x4B, 0x4C, 0x00, 0x01, 1, 0], "address, link up");
    assert_eq!(driver.device.read(&mut driver.cx, 0x102, 4), Ok(0x0100_4C4B));
    let mut unplugged = VirtioMmio::network(None, MAC_ADDRESS);
    assert_eq!(unplugged.read(&mut driver.cx, 0x106, 2), Ok(0), "link down");
    let registers = [0, 4, 8, 0x34].map(|at| EmptySlot.read(&mut driver.cx, at, 4).unwrap());
    assert_eq!(registers, [0x7472_6976, 2, 0, 0]);
}

#[test]
fn features_are_agreed_on_or_refused() {
    let mut driver = Driver::asleep(plugged(Echo::new()));
    for refused in [0, EVENT_INDEX, VERSION_1 | 1, VERSION_1 | 1 << 63, 1 << 33] {
        driver.negotiate(refused);
        assert_eq!(driver.read(STATUS), ACKNOWLEDGE_DRIVER, "{refused:#x}");
        driver.write(STATUS, DRIVER_OK);
        assert_eq!(driver.read(STATUS), ACKNOWLEDGE_DRIVER, "nothing starts without agreement");
    }
    driver.negotiate(VERSION_1);
    assert_eq!(driver.read(STATUS), ACKNOWLEDGE_DRIVER | FEATURES_OK);
    driver.write(STATUS, 0);
    assert_eq!(driver.read(STATUS), 0);
}

#[test]
fn queues_are_checked_when_they_become_ready_and_fixed_then() {
    let base = descriptors(0);
    for (size, base) in [(0, base), (3, base), (2048, base), (8, base + 8), (8, base + 1)] {
        let mut driver = Driver::asleep(plugged(Echo::new()));
        driver.negotiate(VERSION_1);
        driver.set_up(0, size, base);
        assert_eq!((driver.read(QUEUE_READY), driver.read(STATUS) & NEEDS_RESET), (0, NEEDS_RESET), "{size} {base:#x}");
        assert_eq!(driver.read(INTERRUPTS), 0, "the driver is not running yet");
    }
    let mut driver = Driver::asleep(plugged(Echo::new()));
    driver.negotiate(VERSION_1);
    for (queue, max) in [(0, 1024), (1, 1024), (2, 0), (u32::MAX, 0)] {
        driver.write(QUEUE_SEL, queue);
        assert_eq!(driver.read(0x034), max);
    }
    driver.set_up(0, 8, base);
    driver.write(QUEUE_NUM, 3);
    driver.write(QUEUE_READY, 1);
    assert_eq!((driver.read(QUEUE_READY), driver.read(STATUS) & NEEDS_RESET), (1, 0), "a ready queue does not change");
    driver.write(QUEUE_READY, 0);
    driver.write(QUEUE_NUM, 3);
    driver.write(QUEUE_READY, 1);
    assert_eq!(driver.read(STATUS) & NEEDS_RESET, NEEDS_RESET);
}

/// A header and `length` bytes to transmit at [`BUFFERS`].
fn put_frame(driver: &mut Driver, length: usize) -> Vec<u8> {
    let frame: Vec<u8> = (0..length).map(|byte| byte as u8 | 1).collect();
    driver.cx.ram_mut(BUFFERS, 12).fill(0);
    driver.cx.ram_mut(BUFFERS + 12, length).copy_from_slice(&frame);
    frame
}

#[test]
fn a_frame_goes_out_and_its_echo_comes_in() {
    let mut driver = Driver::new(plugged(Echo::new()), VERSION_1, 2);
    driver.chain(0, &[(BUFFERS + 0x4000, 7, WRITE), (BUFFERS + 0x4800, 2000, WRITE)]);
    driver.offer_chain(0, 0);
    driver.notify(0);
    let sent = put_frame(&mut driver, 100);
    driver.chain(1, &[(BUFFERS, 30, 0), (BUFFERS + 30, 82, 0)]);
    driver.offer_chain(1, 0);
    driver.notify(1);
    assert_eq!(driver.used_index(1), 0, "reading takes time");
    driver.pass(SimTime::from_us(20));
    assert_eq!((driver.used_index(1), driver.used_element(1, 0)), (1, (0, 0)));
    assert_eq!((driver.used_index(0), driver.used_element(0, 0)), (1, (0, 112)));
    let mut got = driver.cx.ram(BUFFERS + 0x4000, 7).to_vec();
    got.extend(driver.cx.ram(BUFFERS + 0x4800, 105));
    assert_eq!(got[..12], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], "no flags, one buffer");
    assert_eq!((&got[12..18], &got[18..24], &got[24..]), (&sent[6..12], &sent[..6], &sent[12..]));
    assert_eq!((driver.read(INTERRUPTS), driver.cx.line(0)), (1, true));
    driver.write(INTERRUPT_ACK, 1);
    assert_eq!((driver.read(INTERRUPTS), driver.cx.line(0)), (0, false));
}

#[test]
fn interrupts_come_when_they_are_wanted() {
    for (features, wanted) in
        [(VERSION_1, true), (VERSION_1, false), (VERSION_1 | EVENT_INDEX, true), (VERSION_1 | EVENT_INDEX, false)]
    {
        let mut driver = Driver::new(plugged(Sink::new().0), features, 2);
        put_frame(&mut driver, 60);
        // Without event indices the flag decides, with them the index, and the flag says nothing.
        let by_index = features & EVENT_INDEX != 0;
        driver.set_half(available(1), u16::from(wanted == by_index));
        driver.set_half(available(1) + 4 + 2 * u64::from(SIZE), if wanted { 1 } else { 9 });
        driver.chain(1, &[(BUFFERS, 72, 0)]);
        for sent in 1..=2 {
            driver.offer_chain(1, 0);
            driver.notify(1);
            driver.pass(SimTime::from_us(10));
            assert_eq!(driver.used_index(1), sent);
            // An event index of 1 asks for the second.
            let now = if by_index { wanted && sent == 2 } else { wanted };
            assert_eq!(driver.cx.line(0), now, "{features:#x} {wanted} {sent}");
            let event = driver.half(used(1) + 4 + 8 * u64::from(SIZE));
            assert_eq!(event, if by_index { sent } else { 0 }, "the device wants to hear of the next one");
        }
    }
}

#[test]
fn a_table_of_descriptors_is_as_good_as_a_chain() {
    let (sink, counters) = Sink::new();
    let mut driver = Driver::new(plugged(sink), VERSION_1 | INDIRECT, 2);
    put_frame(&mut driver, 500);
    let table = BUFFERS + 0x8000;
    driver.descriptor(table, 0, (BUFFERS, 12, NEXT, 2));
    driver.descriptor(table, 2, (BUFFERS + 12, 500, 0, 0));
    driver.descriptor(descriptors(1), 5, (table, 48, TABLE, 0));
    driver.offer_chain(1, 5);
    driver.notify(1);
    driver.pass(SimTime::from_us(20));
    assert_eq!((driver.used_element(1, 0), counters.frames(), counters.bytes()), ((5, 0), 1, 500));
}

#[test]
fn frames_that_cannot_be_are_dropped_and_short_ones_padded() {
    let (sink, counters) = Sink::new();
    let mut driver = Driver::new(plugged(sink), VERSION_1, 2);
    for (length, frames, bytes) in [(42, 1, 60), (1514, 2, 1574), (1518, 3, 3092), (1519, 3, 3092), (60_000, 3, 3092)] {
        put_frame(&mut driver, length);
        driver.chain(1, &[(BUFFERS, 12 + length as u32, 0)]);
        driver.offer_chain(1, 0);
        driver.notify(1);
        driver.pass(SimTime::from_us(100));
        assert_eq!((counters.frames(), counters.bytes()), (frames, bytes), "{length}");
    }
    assert_eq!(driver.used_index(1), 5, "each buffer comes back");
}

#[test]
fn a_buffer_too_small_waits_for_a_frame_that_fits() {
    let mut driver = Driver::new(plugged(Echo::new()), VERSION_1, 2);
    driver.chain(0, &[(BUFFERS + 0x8000, 12 + 100, WRITE)]);
    driver.offer_chain(0, 0);
    for (length, received) in [(101, 0), (100, 1)] {
        put_frame(&mut driver, length);
        driver.chain(1, &[(BUFFERS, 12 + length as u32, 0)]);
        driver.offer_chain(1, 0);
        driver.notify(1);
        driver.pass(SimTime::from_us(20));
        assert_eq!(driver.used_index(0), received, "{length}");
    }
}

#[test]
fn transmission_reaches_the_rate_of_the_wire() {
    let (sink, counters) = Sink::new();
    let mut driver = Driver::new(plugged(sink), VERSION_1, 2);
    put_frame(&mut driver, 1514);
    driver.chain(1, &[(BUFFERS, 12 + 1514, 0)]);
    for _ in 0..SIZE {
        driver.offer_chain(1, 0);
    }
    driver.notify(1);
    driver.pass(SimTime::from_us(200));
    assert_eq!(counters.frames(), u64::from(SIZE));
    assert_eq!((counters.last() - counters.first()).as_ns(), 7 * (1514 + 24) * 8);
}

/// Makes one chain of `queue` available in a ring that is broken in some way, and checks the consequences.
#[track_caller]
fn breaks(device: VirtioMmio, features: u64, queues: u32, queue: u64, ruin: impl FnOnce(&mut Driver)) {
    let mut driver = Driver::new(device, features, queues);
    ruin(&mut driver);
    driver.notify(queue);
    driver.pass(SimTime::from_us(100));
    assert_eq!(driver.read(STATUS) & NEEDS_RESET, NEEDS_RESET);
    assert_eq!((driver.read(INTERRUPTS) & 2, driver.cx.line(0)), (2, true), "a configuration interrupt");
    assert_eq!(driver.used_index(queue), 0, "nothing is given back");
    // Dead until it is reset, alive then.
    driver.notify(queue);
    driver.write(STATUS, ACKNOWLEDGE_DRIVER | FEATURES_OK | DRIVER_OK);
    assert_eq!(driver.read(STATUS) & NEEDS_RESET, NEEDS_RESET);
    driver.start(features, queues);
    assert_eq!((driver.read(STATUS) & NEEDS_RESET, driver.read(INTERRUPTS), driver.cx.line(0)), (0, 0, false));
}

#[test]
fn whatever_breaks_a_ring_asks_for_a_reset() {
    let outside = RAM_BASE + RAM_BYTES as u64;
    let chains: [&[(u64, u32, u16, u16)]; 9] = [
        &[(BUFFERS, 11, 0, 0)],
        &[(outside - 11, 72, 0, 0)],
        &[(u64::MAX - 5, 72, 0, 0)],
        &[(BUFFERS, 72, NEXT, 8)],
        &[(BUFFERS, 72, NEXT, 0)],
        &[(BUFFERS, 72, WRITE | NEXT, 1), (BUFFERS, 72, 0, 0)],
        &[(BUFFERS, 40, TABLE, 0)],
        &[(outside, 32, TABLE, 0)],
        &[(BUFFERS, 72, NEXT, 1), (descriptors(1) + 16, 32, TABLE | NEXT, 0)],
    ];
    for chain in chains {
        breaks(plugged(Echo::new()), VERSION_1 | INDIRECT, 2, 1, |driver| {
            for (index, &descriptor) in chain.iter().enumerate() {
                driver.descriptor(descriptors(1), index as u64, descriptor);
            }
            driver.offer_chain(1, 0);
        });
    }
    // A table in a table; a table that was not agreed on.
    for features in [VERSION_1 | INDIRECT, VERSION_1] {
        breaks(plugged(Echo::new()), features, 2, 1, |driver| {
            driver.descriptor(descriptors(1), 0, (descriptors(1), 16, TABLE, 0));
            driver.offer_chain(1, 0);
        });
    }
    breaks(plugged(Echo::new()), VERSION_1, 2, 1, |driver| driver.offer_chain(1, SIZE));
    breaks(plugged(Echo::new()), VERSION_1, 2, 1, |driver| driver.set_half(available(1) + 2, SIZE + 1));
    // A receive buffer outside RAM is found out when a frame comes.
    breaks(plugged(Echo::new()), VERSION_1, 2, 0, |driver| {
        driver.chain(0, &[(outside, 2000, WRITE)]);
        driver.offer_chain(0, 0);
        put_frame(driver, 60);
        driver.chain(1, &[(BUFFERS, 72, 0)]);
        driver.offer_chain(1, 0);
    });
    let path = disk_file("virtio-breaks.img", 2);
    for chain in
        [&[(BUFFERS, 15, 0), (BUFFERS, 1, WRITE)][..], &[(BUFFERS, 16, 0)], &[(BUFFERS, 16, 0), (outside, 513, WRITE)]]
    {
        breaks(block(&path, false), VERSION_1, 1, 0, |driver| {
            driver.chain(0, chain);
            driver.offer_chain(0, 0);
        });
    }
}

const STATUS_BYTE: u64 = BUFFERS + 0x8000;

/// One request with `data` between header and status; gives status and used length.
fn request(driver: &mut Driver, kind: u32, sector: u64, data: &[(u64, u32, u16)]) -> (u8, u32) {
    driver.cx.set_word(BUFFERS, kind);
    driver.cx.set_word(BUFFERS + 4, 0);
    driver.cx.ram_mut(BUFFERS + 8, 8).copy_from_slice(&sector.to_le_bytes());
    driver.cx.ram_mut(STATUS_BYTE, 1)[0] = 0xEE;
    let mut pieces = vec![(BUFFERS, 16, 0)];
    pieces.extend(data);
    pieces.push((STATUS_BYTE, 1, WRITE));
    driver.chain(0, &pieces);
    let index = driver.used_index(0);
    driver.offer_chain(0, 0);
    driver.notify(0);
    driver.pass(SimTime::from_us(1000));
    assert_eq!(driver.used_index(0), index.wrapping_add(1));
    (driver.cx.ram(STATUS_BYTE, 1)[0], driver.used_element(0, index).1)
}

const DATA: u64 = BUFFERS + 0x1000;

#[test]
fn a_disk_reads_and_writes_its_file() {
    let path = disk_file("virtio-disk.img", 5);
    let mut driver = Driver::new(block(&path, false), VERSION_1, 1);
    assert_eq!(driver.read(8), 2);
    assert_eq!(driver.offer(), VERSION_1 | EVENT_INDEX | INDIRECT | 1 << 9 | 1 << 6 | 1 << 2);
    assert_eq!([0x100, 0x104, 0x10C, 0x114].map(|at| driver.read(at)), [5, 0, 1022, 512]);
    // Three sectors, cut without regard to sectors.
    let pieces = [(DATA, 100, WRITE), (DATA + 100, 1436, WRITE)];
    assert_eq!(request(&mut driver, 0, 2, &pieces), (0, 1537));
    let got: Vec<u8> = driver.cx.ram(DATA, 1536).to_vec();
    assert!(got.chunks(512).zip(2u8..).all(|(sector, number)| sector.iter().all(|&byte| byte == number)));
    driver.cx.ram_mut(DATA, 512).fill(0xA5);
    assert_eq!(request(&mut driver, 1, 4, &[(DATA, 512, 0)]), (0, 1));
    assert_eq!(request(&mut driver, 4, 0, &[]), (0, 1));
    let file = std::fs::read(&path).unwrap();
    assert!(file[4 * 512..].iter().all(|&byte| byte == 0xA5) && file[3 * 512..4 * 512].iter().all(|&byte| byte == 3));
    assert_eq!(request(&mut driver, 8, 0, &[(DATA, 20, WRITE)]), (0, 21));
    assert_eq!(driver.cx.ram(DATA, 14), b"wakeline-disk\0");
}

#[test]
fn a_disk_refuses_what_it_cannot_do() {
    let path = disk_file("virtio-refuse.img", 4);
    let mut driver = Driver::new(block(&path, true), VERSION_1, 1);
    assert_eq!(driver.offer() & 1 << 5, 1 << 5, "read-only");
    for (kind, sector, data, status) in [
        (0, 4, (DATA, 512, WRITE), 1),
        (0, 3, (DATA, 1024, WRITE), 1),
        (0, u64::MAX, (DATA, 512, WRITE), 1),
        (0, 0, (DATA, 511, WRITE), 1),
        (0, 0, (DATA, 1 << 25, WRITE), 1),
        (1, 0, (DATA, 512, 0), 1),
        (11, 0, (DATA, 512, 0), 2),
        (0, 3, (DATA, 512, WRITE), 0),
    ] {
        let (got, _) = request(&mut driver, kind, sector, &[data]);
        assert_eq!(got, status, "type {kind} sector {sector} {data:x?}");
    }
    assert_eq!(std::fs::read(&path).unwrap()[0], 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Rings full of anything, registers written with anything: the host survives, and a reset helps.
    #[test]
    fn no_guest_breaks_the_host(
        seed in proptest::collection::vec(any::<u8>(), 0x800),
        writes in proptest::collection::vec((0u64..0x30, prop_oneof![0u32..16, any::<u32>()]), 0..40),
        is_disk in any::<bool>(),
    ) {
        let (device, queues) = if is_disk {
            (block(&disk_file("virtio-any.img", 2), true), 1)
        } else {
            (plugged(Echo::new()), 2)
        };
        let mut driver = Driver::new(device, VERSION_1 | EVENT_INDEX | INDIRECT, queues);
        for queue in 0..u64::from(queues) {
            for (index, bytes) in seed.chunks(16).enumerate() {
                // Half of the addresses near RAM, or nothing would get far.
                let at = descriptors(queue) + 16 * index as u64;
                driver.cx.ram_mut(at, 16).copy_from_slice(bytes);
                if bytes[0] & 1 == 0 {
                    driver.cx.set_word(at, RAM_BASE as u32 + u32::from(bytes[1]) * 64);
                    driver.cx.set_word(at + 4, 0);
                    driver.cx.set_word(at + 8, u32::from(bytes[8]) * 8);
                    driver.set_half(at + 14, u16::from(bytes[14] % 8));
                }
            }
            driver.set_half(available(queue) + 2, 1 + u16::from(seed[0] % 8));
            for slot in 0..8 {
                driver.set_half(available(queue) + 4 + 2 * slot, u16::from(seed[slot as usize] % 9));
            }
            driver.notify(queue);
        }
        driver.pass(SimTime::from_us(500));
        for (register, value) in writes {
            driver.write(4 * register, value);
            driver.pass(SimTime::from_us(5));
        }
        driver.pass(SimTime::from_us(500));
        driver.start(VERSION_1, queues);
        prop_assert_eq!(driver.read(STATUS) & NEEDS_RESET, 0);
    }
}
