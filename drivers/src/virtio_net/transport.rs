//! virtio over MMIO registers (VIRTIO 1.2, section 4.2; version 1: section 4.2.4).
//!
//! The two versions differ in how a queue is named (addresses or a page number), in how many features there are, and in that only
//! version 2 can refuse them. Version 1 is here because it is what QEMU's boards have unless they are told otherwise.

use super::Error;
use super::queue::{PAGE, Queue};
use crate::mmio::Registers;

const MAGIC_VALUE: usize = 0x000;
const VERSION: usize = 0x004;
const DEVICE_ID: usize = 0x008;
const DEVICE_FEATURES: usize = 0x010;
const DEVICE_FEATURES_SEL: usize = 0x014;
const DRIVER_FEATURES: usize = 0x020;
const DRIVER_FEATURES_SEL: usize = 0x024;
const GUEST_PAGE_SIZE: usize = 0x028;
const QUEUE_SEL: usize = 0x030;
const QUEUE_NUM_MAX: usize = 0x034;
const QUEUE_NUM: usize = 0x038;
const QUEUE_ALIGN: usize = 0x03C;
const QUEUE_PFN: usize = 0x040;
const QUEUE_READY: usize = 0x044;
const QUEUE_NOTIFY: usize = 0x050;
const INTERRUPT_STATUS: usize = 0x060;
const INTERRUPT_ACK: usize = 0x064;
const STATUS: usize = 0x070;
const QUEUE_DESC: usize = 0x080;
const QUEUE_DRIVER: usize = 0x090;
const QUEUE_DEVICE: usize = 0x0A0;
const CONFIG: usize = 0x100;

const MAGIC: u32 = 0x7472_6976;
const NETWORK: u32 = 1;
const ACKNOWLEDGE: u32 = 1;
const DRIVER: u32 = 2;
const DRIVER_OK: u32 = 4;
const FEATURES_OK: u32 = 8;
const NEEDS_RESET: u32 = 0x40;
const FEATURE_VERSION_1: u64 = 1 << 32;
/// Interrupt status: buffers were used.
pub const USED: u32 = 1;
/// Reads of the status until a reset is given up.
const RESET_TRIES: u32 = 100_000;

/// The registers of a device.
pub struct Transport<R> {
    registers: R,
    legacy: bool,
}

impl<R: Registers> Transport<R> {
    /// The network device behind `registers`.
    pub fn new(mut registers: R) -> Result<Self, Error> {
        if registers.read(MAGIC_VALUE) != MAGIC || registers.read(DEVICE_ID) != NETWORK {
            return Err(Error::NoNetworkDevice);
        }
        match registers.read(VERSION) {
            1 => Ok(Self { registers, legacy: true }),
            2 => Ok(Self { registers, legacy: false }),
            version => Err(Error::Version(version)),
        }
    }

    /// Whether this is version 1.
    pub fn is_legacy(&self) -> bool {
        self.legacy
    }

    /// Resets the device and agrees on the features of `wanted` that it has; gives them.
    pub fn start(&mut self, wanted: u64) -> Result<u64, Error> {
        self.registers.write(STATUS, 0);
        self.registers.poll(STATUS, RESET_TRIES, |status| status == 0).ok_or(Error::Reset)?;
        self.registers.write(STATUS, ACKNOWLEDGE);
        self.registers.write(STATUS, ACKNOWLEDGE | DRIVER);
        if self.legacy {
            let features = u64::from(self.features(0)) & wanted;
            self.accept(0, features as u32);
            self.registers.write(GUEST_PAGE_SIZE, PAGE as u32);
            return Ok(features);
        }
        let offered = u64::from(self.features(1)) << 32 | u64::from(self.features(0));
        if offered & FEATURE_VERSION_1 == 0 {
            return Err(Error::Features);
        }
        let features = offered & (wanted | FEATURE_VERSION_1);
        self.accept(0, features as u32);
        self.accept(1, (features >> 32) as u32);
        self.registers.write(STATUS, ACKNOWLEDGE | DRIVER | FEATURES_OK);
        if self.registers.read(STATUS) & FEATURES_OK == 0 {
            return Err(Error::Features);
        }
        Ok(features)
    }

    fn features(&mut self, bank: u32) -> u32 {
        self.registers.write(DEVICE_FEATURES_SEL, bank);
        self.registers.read(DEVICE_FEATURES)
    }

    fn accept(&mut self, bank: u32, features: u32) {
        self.registers.write(DRIVER_FEATURES_SEL, bank);
        self.registers.write(DRIVER_FEATURES, features);
    }

    /// The largest size of queue `index`; 0 if there is no such queue.
    pub fn queue_limit(&mut self, index: u32) -> usize {
        self.registers.write(QUEUE_SEL, index);
        self.registers.read(QUEUE_NUM_MAX) as usize
    }

    /// Makes `queue` queue `index` of the device.
    pub fn set_queue(&mut self, index: u32, queue: &Queue) -> Result<(), Error> {
        self.registers.write(QUEUE_SEL, index);
        let in_use = if self.legacy { QUEUE_PFN } else { QUEUE_READY };
        if self.registers.read(in_use) != 0 {
            return Err(Error::Queue);
        }
        self.registers.write(QUEUE_NUM, queue.size());
        if self.legacy {
            let page = u32::try_from(queue.descriptors() / PAGE as u64).map_err(|_| Error::DmaMemoryTooHigh)?;
            self.registers.write(QUEUE_ALIGN, PAGE as u32);
            self.registers.write(QUEUE_PFN, page);
            return Ok(());
        }
        for (register, address) in [
            (QUEUE_DESC, queue.descriptors()),
            (QUEUE_DRIVER, queue.available_ring()),
            (QUEUE_DEVICE, queue.used_ring()),
        ] {
            self.registers.write(register, address as u32);
            self.registers.write(register + 4, (address >> 32) as u32);
        }
        self.registers.write(QUEUE_READY, 1);
        Ok(())
    }

    /// The set-up is complete: the device may work.
    pub fn go(&mut self) {
        let status = self.registers.read(STATUS);
        self.registers.write(STATUS, status | DRIVER_OK);
    }

    /// Tells the device to look at queue `index`.
    pub fn notify(&mut self, index: u32) {
        self.registers.write(QUEUE_NOTIFY, index);
    }

    /// Reads and acknowledges the interrupt; gives its reasons.
    pub fn take_interrupt(&mut self) -> u32 {
        let reasons = self.registers.read(INTERRUPT_STATUS);
        if reasons != 0 {
            self.registers.write(INTERRUPT_ACK, reasons);
        }
        reasons
    }

    /// Whether the device asks to be reset.
    pub fn needs_reset(&mut self) -> bool {
        self.registers.read(STATUS) & NEEDS_RESET != 0
    }

    /// Word `index` of the configuration space.
    pub fn config(&mut self, index: usize) -> u32 {
        self.registers.read(CONFIG + 4 * index)
    }
}
