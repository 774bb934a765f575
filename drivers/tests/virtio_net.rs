//! The virtio-net driver against a small model of the device, of both versions of the transport, which does what a test says: also what
//! no device should.

use std::cell::RefCell;
use std::rc::Rc;

use drivers::dma::host::{DeviceView, region};
use drivers::nic::{Counters, Event, Link, MIN_RX_BUFFER, TxRefused};
use drivers::virtio_net::Error;
use drivers::{DmaBuffer, DmaRegion, NicDriver, Registers, VirtioNet};

const REGION: u64 = 0x8800_0000;
const MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
/// Buffers of each queue.
const BUFFERS: usize = 4;
const RX: usize = 0;
const TX: usize = 1;

#[derive(Clone, Copy, Default)]
struct Ring {
    size: u64,
    descriptors: u64,
    available: u64,
    used: u64,
    ready: bool,
    seen: u16,
    done: u16,
}

/// The device.
struct Model {
    version: u32,
    id: u32,
    offers: u64,
    accepts: bool,
    resets: bool,
    limit: u32,
    link: bool,
    memory: DeviceView,
    status: u32,
    bank: u32,
    driver: u64,
    selected: usize,
    align: u64,
    rings: [Ring; 2],
    interrupts: u32,
    notified: Vec<u32>,
}

/// A descriptor chain: where it starts, and its pieces (address, bytes, the device may write).
struct Chain {
    head: u32,
    pieces: Vec<(u64, u32, bool)>,
}

impl Model {
    fn word(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read(at, &mut bytes).expect("inside the region");
        u64::from_le_bytes(bytes)
    }

    fn half(&self, at: u64) -> u16 {
        let mut bytes = [0; 2];
        self.memory.read(at, &mut bytes).expect("inside the region");
        u16::from_le_bytes(bytes)
    }

    /// The next chain of a queue.
    fn take(&mut self, queue: usize) -> Option<Chain> {
        let ring = self.rings[queue];
        if ring.seen == self.half(ring.available + 2) {
            return None;
        }
        let head = u32::from(self.half(ring.available + 4 + 2 * (u64::from(ring.seen) % ring.size)));
        self.rings[queue].seen = ring.seen.wrapping_add(1);
        let (mut pieces, mut index) = (vec![], u64::from(head));
        loop {
            let at = ring.descriptors + 16 * index;
            let rest = self.word(at + 8);
            pieces.push((self.word(at), rest as u32, rest >> 32 & 2 != 0));
            if rest >> 32 & 1 == 0 {
                return Some(Chain { head, pieces });
            }
            index = rest >> 48;
        }
    }

    /// Puts an element into a used ring.
    fn done(&mut self, queue: usize, id: u32, length: u32) {
        let ring = self.rings[queue];
        let element = [id.to_le_bytes(), length.to_le_bytes()].concat();
        self.memory.write(ring.used + 4 + 8 * (u64::from(ring.done) % ring.size), &element).unwrap();
        self.claim(queue, ring.done.wrapping_add(1));
        if self.half(ring.available) & 1 == 0 {
            self.interrupts |= 1;
        }
    }

    /// Says how far a used ring goes.
    fn claim(&mut self, queue: usize, index: u16) {
        self.rings[queue].done = index;
        self.memory.write(self.rings[queue].used + 2, &index.to_le_bytes()).unwrap();
    }

    fn header(&self) -> u32 {
        if self.version == 1 { 10 } else { 12 }
    }

    /// Receives a frame into the next buffer.
    fn receive(&mut self, frame: &[u8]) {
        let Chain { head, pieces } = self.take(RX).expect("a receive buffer");
        assert_eq!(pieces.len(), 2);
        assert!(pieces.iter().all(|piece| piece.2), "the device may write");
        assert_eq!((pieces[0].1, pieces[1].1), (self.header(), MIN_RX_BUFFER as u32));
        self.memory.write(pieces[0].0, &vec![0xEE; self.header() as usize]).unwrap();
        self.memory.write(pieces[1].0, frame).unwrap();
        let length = self.header() + frame.len() as u32;
        self.done(RX, head, length);
    }

    /// The frame of a transmit chain.
    fn frame(&self, chain: &Chain) -> Vec<u8> {
        assert!(chain.pieces.iter().all(|piece| !piece.2), "the device may only read");
        let mut bytes: Vec<u8> = vec![];
        for &(at, length, _) in &chain.pieces {
            let mut piece = vec![0; length as usize];
            self.memory.read(at, &mut piece).unwrap();
            bytes.extend(piece);
        }
        let frame = bytes.split_off(self.header() as usize);
        assert!(bytes.iter().all(|byte| *byte == 0), "the header asks for nothing");
        frame
    }

    fn read(&self, offset: usize) -> u32 {
        let ring = &self.rings[self.selected.min(1)];
        match offset {
            0x000 => 0x7472_6976,
            0x004 => self.version,
            0x008 => self.id,
            0x010 => (self.offers >> (32 * self.bank)) as u32,
            0x034 => self.limit,
            0x040 => (ring.descriptors / 4096) as u32,
            0x044 => ring.ready.into(),
            0x060 => self.interrupts,
            0x070 => self.status,
            0x100 => u32::from_le_bytes([MAC[0], MAC[1], MAC[2], MAC[3]]),
            0x104 => u32::from_le_bytes([MAC[4], MAC[5], self.link.into(), 0]),
            _ => panic!("register {offset:#x} is not for reading"),
        }
    }

    fn write(&mut self, offset: usize, value: u32) {
        let legacy = self.version == 1;
        let ring = &mut self.rings[self.selected.min(1)];
        match offset {
            0x014 | 0x024 => self.bank = value,
            0x020 => {
                self.driver = self.driver & !(0xFFFF_FFFF << (32 * self.bank)) | u64::from(value) << (32 * self.bank)
            }
            0x028 if legacy => assert_eq!(value, 4096),
            0x030 => self.selected = value as usize,
            0x038 => ring.size = value.into(),
            0x03C if legacy => self.align = value.into(),
            0x040 if legacy => {
                ring.descriptors = u64::from(value) * 4096;
                ring.available = ring.descriptors + 16 * ring.size;
                ring.used = (ring.available + 6 + 2 * ring.size).next_multiple_of(self.align);
                ring.ready = true;
            }
            0x044 if !legacy => ring.ready = value == 1,
            0x050 => self.notified.push(value),
            0x064 => self.interrupts &= !value,
            0x070 if value == 0 => {
                (self.rings, self.interrupts) = (Default::default(), 0);
                self.status = if self.resets { 0 } else { self.status | 1 };
            }
            0x070 if value & 8 != 0 && !self.accepts => self.status = value & !8,
            0x070 => self.status = value,
            0x080..=0x0A4 if !legacy => {
                let address = match offset & !0xF {
                    0x080 => &mut ring.descriptors,
                    0x090 => &mut ring.available,
                    _ => &mut ring.used,
                };
                let shift = 8 * (offset & 4);
                *address = *address & !(0xFFFF_FFFF << shift) | u64::from(value) << shift;
            }
            _ => panic!("register {offset:#x} is not for writing"),
        }
    }
}

struct Window(Rc<RefCell<Model>>);

impl Registers for Window {
    fn read(&mut self, offset: usize) -> u32 {
        self.0.borrow().read(offset)
    }
    fn write(&mut self, offset: usize, value: u32) {
        self.0.borrow_mut().write(offset, value);
    }
}

fn model(version: u32, memory: DeviceView) -> Model {
    Model {
        version,
        id: 1,
        // Checksums, address, link state; control queue; event indices: more than the driver wants.
        offers: 1 << 0 | 1 << 5 | 1 << 16 | 1 << 17 | 1 << 29 | u64::from(version == 2) << 32,
        accepts: true,
        resets: true,
        limit: 256,
        link: true,
        memory,
        status: 0x80,
        bank: 0,
        driver: 0,
        selected: 0,
        align: 0,
        rings: Default::default(),
        interrupts: 0,
        notified: vec![],
    }
}

struct Bench {
    nic: VirtioNet<Window>,
    device: Rc<RefCell<Model>>,
    region: DmaRegion,
}

impl Bench {
    fn new(version: u32) -> Self {
        let (mut region, memory) = region(REGION, 0x4_0000);
        let device = Rc::new(RefCell::new(model(version, memory)));
        let nic = VirtioNet::new(Window(device.clone()), &mut region, BUFFERS).unwrap();
        let mut bench = Self { nic, device, region };
        for _ in 0..BUFFERS {
            let buffer = bench.carve();
            bench.nic.rx_provide(buffer).unwrap();
        }
        bench.nic.rx_publish();
        bench
    }

    fn carve(&mut self) -> DmaBuffer {
        self.region.carve(MIN_RX_BUFFER, 64).unwrap()
    }

    fn with<T>(&self, act: impl FnOnce(&mut Model) -> T) -> T {
        act(&mut self.device.borrow_mut())
    }

    /// Received frames; their buffers go back to the device.
    fn drain(&mut self) -> Vec<Vec<u8>> {
        let mut frames = vec![];
        while let Some(frame) = self.nic.rx_return() {
            frames.push(frame.bytes().to_vec());
            self.nic.rx_provide(frame.buffer).unwrap();
        }
        self.nic.rx_publish();
        frames
    }

    fn send(&mut self, mut buffer: DmaBuffer, frame: &[u8]) {
        buffer.bytes_mut()[..frame.len()].copy_from_slice(frame);
        self.nic.tx_provide(buffer, frame.len()).unwrap();
        self.nic.tx_publish();
    }
}

#[test]
fn what_is_agreed_on() {
    for (version, features) in [(1, 1 << 5 | 1 << 16), (2, 1 << 5 | 1 << 16 | 1 << 32)] {
        let mut b = Bench::new(version);
        assert_eq!(b.nic.mac_address(), Some(MAC));
        assert_eq!(b.nic.link(), Ok(Link::Up(0)));
        b.with(|device| device.link = false);
        assert_eq!(b.nic.link(), Ok(Link::Down));
        b.with(|device| {
            assert_eq!(device.driver, features);
            assert_eq!(device.status, if version == 1 { 7 } else { 15 });
            assert!(device.rings.iter().all(|ring| ring.ready && ring.size == 2 * BUFFERS as u64));
        });
    }
}

#[test]
fn frames_come_and_go_over_many_laps() {
    for version in [1, 2] {
        let mut b = Bench::new(version);
        let mut spare = Some(b.carve());
        for lap in 0..40u8 {
            let frame = vec![lap; 60 + usize::from(lap) * 7];
            b.with(|device| device.receive(&frame));
            assert_eq!(b.nic.acknowledge(), Event::Packets);
            assert_eq!(b.nic.acknowledge(), Event::None);
            assert_eq!(b.drain(), core::slice::from_ref(&frame));
            b.send(spare.take().unwrap(), &frame);
            assert!(b.nic.tx_return().is_none(), "not sent yet");
            b.with(|device| {
                let chain = device.take(TX).expect("a frame");
                assert_eq!(device.frame(&chain), frame);
                device.done(TX, chain.head, 0);
                assert_eq!(device.interrupts, 0, "sending does not interrupt");
            });
            spare = b.nic.tx_return();
        }
        assert_eq!(b.nic.counters(), Counters { rx_frames: 40, tx_frames: 40, ..Counters::default() });
    }
}

#[test]
fn buffers_may_come_back_in_any_order() {
    let mut b = Bench::new(2);
    for number in 0..BUFFERS as u8 {
        let buffer = b.carve();
        b.send(buffer, &[number; 60]);
    }
    let full = b.carve();
    assert!(matches!(b.nic.tx_provide(full, 60), Err(TxRefused::Full(_))));
    let chains: Vec<Chain> = (0..BUFFERS).map(|_| b.with(|device| device.take(TX)).unwrap()).collect();
    for place in [2, 0, 3, 1] {
        b.with(|device| device.done(TX, chains[place].head, 0));
        assert_eq!(b.nic.tx_return().unwrap().bytes()[0], place as u8);
    }
    assert!(b.nic.tx_return().is_none());
    assert_eq!(b.nic.acknowledge(), Event::None);
}

#[test]
fn who_waits_for_a_buffer_is_interrupted() {
    let mut b = Bench::new(2);
    let buffer = b.carve();
    b.send(buffer, &[1; 60]);
    b.nic.tx_notify(true);
    b.with(|device| {
        let chain = device.take(TX).unwrap();
        device.done(TX, chain.head, 0);
    });
    assert_eq!(b.nic.acknowledge(), Event::Packets);
    assert!(b.nic.tx_return().is_some());
}

#[test]
fn the_device_is_notified_once_a_batch_unless_it_does_not_want_to() {
    let mut b = Bench::new(2);
    assert_eq!(b.with(|device| core::mem::take(&mut device.notified)), [RX as u32]);
    for _ in 0..2 {
        let buffer = b.carve();
        b.nic.tx_provide(buffer, 60).unwrap();
    }
    b.nic.tx_publish();
    b.nic.tx_publish();
    assert_eq!(b.with(|device| core::mem::take(&mut device.notified)), [TX as u32]);
    b.with(|device| device.memory.write(device.rings[TX].used, &[1, 0]).unwrap());
    let buffer = b.carve();
    b.send(buffer, &[2; 60]);
    assert!(b.with(|device| device.notified.is_empty()));
}

#[test]
fn impossible_lengths_are_dropped_and_the_buffer_is_used_again() {
    for version in [1, 2] {
        let mut b = Bench::new(version);
        for length in [0, 9, 12 + MIN_RX_BUFFER as u32 + 1, u32::MAX] {
            let head = b.with(|device| device.take(RX)).unwrap().head;
            b.with(|device| device.done(RX, head, length));
            assert!(b.drain().is_empty(), "{length}");
        }
        assert_eq!(b.nic.counters().rx_dropped, 4);
        b.with(|device| device.receive(&[7; 64]));
        assert_eq!(b.drain(), [[7; 64]]);
    }
}

#[test]
fn a_device_that_lies_is_reset_and_works_again() {
    type Lie = fn(&mut Model);
    let lies: [(&str, Lie); 7] = [
        ("more than it has", |device| device.claim(RX, BUFFERS as u16 + 1)),
        ("backwards", |device| device.claim(RX, u16::MAX)),
        ("no head of a chain", |device| device.done(RX, 1, 80)),
        ("no slot", |device| device.done(RX, 2 * BUFFERS as u32, 80)),
        ("far outside", |device| device.done(RX, u32::MAX - 1, 80)),
        ("one twice", |device| {
            let head = device.take(RX).unwrap().head;
            device.done(RX, head, 80);
            device.done(RX, head, 80);
        }),
        ("nothing was sent", |device| device.done(TX, 0, 0)),
    ];
    for version in [1, 2] {
        for (name, lie) in lies {
            let mut b = Bench::new(version);
            let waiting = b.carve();
            b.nic.tx_provide(waiting, 60).unwrap();
            b.with(lie);
            while b.nic.rx_return().is_some() {}
            assert!(b.nic.tx_return().is_none(), "{name}");
            assert_eq!(b.nic.acknowledge(), Event::Error, "{name}");
            b.nic.recover().unwrap();
            assert!(
                b.nic.tx_return().is_some() && b.nic.tx_return().is_none(),
                "{name}: not sent, and given back once"
            );
            b.nic.rx_publish();
            assert_ne!(b.nic.acknowledge(), Event::Error, "{name}");
            b.with(|device| device.receive(&[9; 70]));
            assert_eq!(b.drain(), [[9; 70]], "{name}");
            assert_eq!((b.nic.counters().resets, b.nic.counters().tx_failed), (1, 1), "{name}");
        }
    }
}

#[test]
fn a_device_that_asks_for_it_is_reset() {
    let mut b = Bench::new(2);
    b.with(|device| device.interrupts |= 2);
    assert_eq!(b.nic.acknowledge(), Event::None, "the configuration changed");
    b.with(|device| (device.interrupts, device.status) = (2, device.status | 0x40));
    assert_eq!(b.nic.acknowledge(), Event::Error);
    b.nic.recover().unwrap();
    b.nic.rx_publish();
    assert_eq!(b.with(|device| (0..).take_while(|_| device.take(RX).is_some()).count()), BUFFERS);
}

#[test]
fn devices_that_cannot_be_used() {
    type Change = fn(&mut Model);
    let cases: [(u32, Error, Change); 8] = [
        (2, Error::NoNetworkDevice, |device| device.id = 0),
        (2, Error::NoNetworkDevice, |device| device.id = 2),
        (3, Error::Version(3), |_| ()),
        (2, Error::Reset, |device| device.resets = false),
        (2, Error::Features, |device| device.offers &= !(1 << 32)),
        (2, Error::Features, |device| device.accepts = false),
        (1, Error::Queue, |device| device.limit = 0),
        (2, Error::Queue, |device| device.limit = 3),
    ];
    for (version, error, change) in cases {
        let (mut region, memory) = region(REGION, 0x4_0000);
        let mut model = model(version, memory);
        change(&mut model);
        let made = VirtioNet::new(Window(Rc::new(RefCell::new(model))), &mut region, BUFFERS);
        assert_eq!(made.err(), Some(error));
    }
    let (mut small, memory) = region(REGION, 0x1000);
    let made = VirtioNet::new(Window(Rc::new(RefCell::new(model(2, memory)))), &mut small, BUFFERS);
    assert_eq!(made.err(), Some(Error::OutOfDmaMemory));
}

#[test]
fn bad_frames_and_buffers_are_refused() {
    let mut b = Bench::new(2);
    for length in [0, 1515, MIN_RX_BUFFER + 1] {
        let buffer = b.carve();
        assert!(matches!(b.nic.tx_provide(buffer, length), Err(TxRefused::BadFrame(_))));
    }
    let small = b.region.carve(MIN_RX_BUFFER - 8, 64).unwrap();
    assert!(b.nic.rx_provide(small).is_err());
}
