//! virtio over MMIO, version 2 (VIRTIO 1.2, section 4.2): what all virtio devices have in common. A [`Function`] is what one of them
//! does behind it; [`queue`] moves buffers between the two.
//!
//! ```text
//!   status:  0 ─▶ ACKNOWLEDGE ─▶ DRIVER ─▶ FEATURES_OK ─▶ DRIVER_OK ─▶ (NEEDS_RESET) ─▶ 0
//!                                          refused unless          queues live only here
//!                                          a subset of the offer
//!                                          with VERSION_1
//! ```
//!
//! The rings are the guest's and are not trusted: whatever breaks the specification sets NEEDS_RESET, raises a configuration
//! interrupt and stops the device until the driver writes 0 to the status. Neither a register nor a ring can do more to the host.
//!
//! Registers take 32-bit accesses, the configuration space 8, 16 and 32 bits; anything else is a bus error. Of what the specification leaves
//! to choice there are indirect descriptors and event indices, and no packed rings, queue reset or shared memory.

mod block;
mod cost;
mod network;
mod queue;

use super::irq_line::IrqLine;
use crate::device::state_is_all;
use crate::device::{BusError, Context, Device};
use crate::disk::Disk;
use crate::error::SocError;
use crate::snapshot::State;
use crate::wire::Link;
use queue::{Broken, Chain, MAX_SIZE, Negotiated, Queue};
use serde::{Deserialize, Serialize};

/// Size of a slot's register window.
pub const WINDOW: u64 = 0x1000;

const MAGIC: u32 = 0x7472_6976;
const VERSION: u32 = 2;
/// As QEMU: some kernels look for it.
const VENDOR: u32 = 0x554D_4551;

const DEVICE_FEATURES: u64 = 0x010;
const DEVICE_FEATURES_SEL: u64 = 0x014;
const DRIVER_FEATURES: u64 = 0x020;
const DRIVER_FEATURES_SEL: u64 = 0x024;
const QUEUE_SEL: u64 = 0x030;
const QUEUE_NUM_MAX: u64 = 0x034;
const QUEUE_NUM: u64 = 0x038;
const QUEUE_READY: u64 = 0x044;
const INTERRUPT_STATUS: u64 = 0x060;
const INTERRUPT_ACK: u64 = 0x064;
const STATUS: u64 = 0x070;
const QUEUE_DESC: u64 = 0x080;
const QUEUE_DRIVER: u64 = 0x090;
const QUEUE_DEVICE: u64 = 0x0A0;
/// Length and base of a shared memory region: all ones, there is none.
const SHARED_MEMORY: core::ops::Range<u64> = 0x0B0..0x0C0;
const CONFIG: u64 = 0x100;

const STATUS_DRIVER_OK: u32 = 4;
const STATUS_FEATURES_OK: u32 = 8;
const STATUS_NEEDS_RESET: u32 = 0x40;
const STATUS_FAILED: u32 = 0x80;
/// Bits that the driver sets.
const STATUS_DRIVER: u32 = 0x8F;
const INTERRUPT_USED: u32 = 1;
const INTERRUPT_CONFIG: u32 = 2;

const FEATURE_INDIRECT: u64 = 1 << 28;
const FEATURE_EVENT_INDEX: u64 = 1 << 29;
const FEATURE_VERSION_1: u64 = 1 << 32;
/// What the transport offers beside the function.
const FEATURES: u64 = FEATURE_INDIRECT | FEATURE_EVENT_INDEX | FEATURE_VERSION_1;

/// What a virtio device does.
trait Function: Send {
    /// Device type (section 5).
    fn id(&self) -> u32;
    /// Feature bits of its own.
    fn features(&self) -> u64;
    /// Number of queues.
    fn queues(&self) -> usize;
    /// Byte `offset` of the configuration space; 0 beyond its end.
    fn config(&self, offset: u64) -> u8;
    /// Forgets everything under way.
    fn reset(&mut self);
    /// Goes on as far as it can at this time.
    fn run(&mut self, cx: &mut dyn Context, queues: &mut Queues) -> Result<(), Broken>;
    /// A time asked for has come.
    fn event(&mut self, cx: &mut dyn Context, queues: &mut Queues, token: u64) -> Result<(), Broken>;
    /// As [`Device::save`].
    fn save(&self) -> Result<State, SocError>;
    /// As [`Device::restore`].
    fn restore(&mut self, state: &State) -> Result<(), SocError>;
}

/// The queues as a function sees them: dead until the driver is ready.
#[derive(Serialize, Deserialize)]
struct Queues {
    all: Vec<Queue>,
    live: bool,
    with: Negotiated,
    /// A used buffer that the driver wants to hear of.
    interrupt: bool,
}

impl Queues {
    fn new(count: usize) -> Self {
        Self { all: vec![Queue::default(); count], live: false, with: Negotiated::default(), interrupt: false }
    }

    /// The next chain of queue `index`; none while the device is not live.
    fn pop(&mut self, cx: &mut dyn Context, index: usize) -> Result<Option<Chain>, Broken> {
        if self.live { self.all[index].pop(cx, self.with) } else { Ok(None) }
    }

    /// Gives a chain of queue `index` back. If the driver has taken the queue out of use meanwhile, nobody waits for it.
    fn push(&mut self, cx: &mut dyn Context, index: usize, chain: &Chain, written: u32) -> Result<(), Broken> {
        if self.live && self.all[index].ready() {
            self.interrupt |= self.all[index].push(cx, self.with, chain, written)?;
        }
        Ok(())
    }
}

/// A virtio device in its slot.
pub struct VirtioMmio {
    function: Box<dyn Function>,
    queues: Queues,
    line: IrqLine,
    status: u32,
    interrupts: u32,
    device_features_bank: u32,
    driver_features_bank: u32,
    driver_features: u64,
    selected: usize,
}

impl VirtioMmio {
    /// A network device (section 5.1) with a cable in it or none.
    pub fn network(link: Option<Link>, station: [u8; 6]) -> Self {
        Self::new(Box::new(network::Net::new(link, station)))
    }

    /// A block device (section 5.2) over `disk`.
    pub fn block(disk: Disk) -> Self {
        Self::new(Box::new(block::Block::new(disk)))
    }

    fn new(function: Box<dyn Function>) -> Self {
        let queues = Queues::new(function.queues());
        Self {
            function,
            queues,
            line: IrqLine::new(0),
            status: 0,
            interrupts: 0,
            device_features_bank: 0,
            driver_features_bank: 0,
            driver_features: 0,
            selected: 0,
        }
    }

    fn offer(&self) -> u64 {
        self.function.features() | FEATURES
    }

    fn reset(&mut self) {
        self.function.reset();
        self.queues = Queues::new(self.function.queues());
        self.status = 0;
        self.interrupts = 0;
        self.device_features_bank = 0;
        self.driver_features_bank = 0;
        self.driver_features = 0;
        self.selected = 0;
    }

    fn write_status(&mut self, value: u32) {
        if value == 0 {
            self.reset();
            return;
        }
        self.status |= value & STATUS_DRIVER & !(STATUS_FEATURES_OK | STATUS_DRIVER_OK);
        let features = self.driver_features;
        let acceptable = features & !self.offer() == 0 && features & FEATURE_VERSION_1 != 0;
        if value & STATUS_FEATURES_OK != 0 && acceptable {
            self.status |= STATUS_FEATURES_OK;
        }
        // Without agreement on features there is nothing that a driver could start.
        if value & STATUS_DRIVER_OK != 0 && self.status & STATUS_FEATURES_OK != 0 {
            self.status |= STATUS_DRIVER_OK;
        }
        self.queues.with =
            Negotiated { indirect: features & FEATURE_INDIRECT != 0, event_index: features & FEATURE_EVENT_INDEX != 0 };
        self.queues.live = self.status & (STATUS_DRIVER_OK | STATUS_NEEDS_RESET | STATUS_FAILED) == STATUS_DRIVER_OK;
    }

    /// What the guest did cannot be gone on from.
    fn fail(&mut self) {
        self.queues.live = false;
        self.status |= STATUS_NEEDS_RESET;
        if self.status & STATUS_DRIVER_OK != 0 {
            self.interrupts |= INTERRUPT_CONFIG;
        }
    }

    /// Lets the function act, and draws the consequences.
    fn act(
        &mut self,
        cx: &mut dyn Context,
        act: impl FnOnce(&mut dyn Function, &mut dyn Context, &mut Queues) -> Result<(), Broken>,
    ) {
        if act(self.function.as_mut(), cx, &mut self.queues).is_err() {
            self.fail();
        }
        if core::mem::take(&mut self.queues.interrupt) {
            self.interrupts |= INTERRUPT_USED;
        }
        self.line.set(cx, self.interrupts != 0);
    }

    fn read_register(&self, offset: u64) -> u32 {
        let queue = self.queues.all.get(self.selected);
        match offset {
            0x000 => MAGIC,
            0x004 => VERSION,
            0x008 => self.function.id(),
            0x00C => VENDOR,
            DEVICE_FEATURES => bank(self.offer(), self.device_features_bank),
            QUEUE_NUM_MAX => queue.map_or(0, |_| MAX_SIZE.into()),
            QUEUE_READY => queue.map_or(0, |queue| queue.ready().into()),
            INTERRUPT_STATUS => self.interrupts,
            STATUS => self.status,
            _ if SHARED_MEMORY.contains(&offset) => u32::MAX,
            // The configuration never changes, so its generation (0x0FC) is 0 as all that is not there.
            _ => 0,
        }
    }

    fn write_register(&mut self, offset: u64, value: u32) {
        match offset {
            DEVICE_FEATURES_SEL => self.device_features_bank = value,
            DRIVER_FEATURES_SEL => self.driver_features_bank = value,
            DRIVER_FEATURES if self.status & STATUS_FEATURES_OK == 0 => {
                if let shift @ (0 | 32) = self.driver_features_bank.saturating_mul(32) {
                    self.driver_features &= !(0xFFFF_FFFF << shift);
                    self.driver_features |= u64::from(value) << shift;
                }
            }
            QUEUE_SEL => self.selected = value as usize,
            INTERRUPT_ACK => self.interrupts &= !value,
            STATUS => self.write_status(value),
            QUEUE_READY => {
                if let Some(queue) = self.queues.all.get_mut(self.selected)
                    && queue.set_ready(value & 1 != 0).is_err()
                {
                    self.fail();
                }
            }
            QUEUE_NUM | QUEUE_DESC..0x0A8 => self.write_queue(offset, value),
            // QueueNotify (0x050) needs no more than that the function runs, which every write brings about.
            _ => {}
        }
    }

    /// Size and addresses of the selected queue; they cannot be changed once it is ready.
    fn write_queue(&mut self, offset: u64, value: u32) {
        let Some(queue) = self.queues.all.get_mut(self.selected).filter(|queue| !queue.ready()) else { return };
        let high = offset & 4 != 0;
        let address = match offset & !4 {
            QUEUE_NUM => return queue.size = value,
            QUEUE_DESC => &mut queue.descriptors,
            QUEUE_DRIVER => &mut queue.available,
            QUEUE_DEVICE => &mut queue.used,
            _ => return,
        };
        let value = u64::from(value);
        *address = if high { *address & 0xFFFF_FFFF | value << 32 } else { *address & !0xFFFF_FFFF | value };
    }
}

/// 32 of the feature bits.
fn bank(features: u64, bank: u32) -> u32 {
    match bank {
        0 => features as u32,
        1 => (features >> 32) as u32,
        _ => 0,
    }
}

impl Device for VirtioMmio {
    fn read(&mut self, _cx: &mut dyn Context, offset: u64, size: u8) -> Result<u64, BusError> {
        match (offset, size) {
            (CONFIG.., 1 | 2 | 4) => {
                let bytes = (0..u64::from(size)).rev().map(|byte| self.function.config(offset - CONFIG + byte));
                Ok(bytes.fold(0, |word, byte| word << 8 | u64::from(byte)))
            }
            (..CONFIG, 4) => Ok(self.read_register(offset).into()),
            _ => Err(BusError::Size),
        }
    }

    fn write(&mut self, cx: &mut dyn Context, offset: u64, size: u8, value: u64) -> Result<(), BusError> {
        match (offset, size) {
            // No function has a field that the driver may write.
            (CONFIG.., 1 | 2 | 4) => {}
            (..CONFIG, 4) => self.write_register(offset, value as u32),
            _ => return Err(BusError::Size),
        }
        self.act(cx, |function, cx, queues| function.run(cx, queues));
        Ok(())
    }

    fn event(&mut self, cx: &mut dyn Context, token: u64) {
        self.act(cx, |function, cx, queues| {
            function.event(cx, queues, token)?;
            function.run(cx, queues)
        });
    }

    fn save(&self) -> Result<State, SocError> {
        State::of(&Saved {
            function: self.function.save()?,
            queues: &self.queues,
            line: &self.line,
            status: self.status,
            interrupts: self.interrupts,
            device_features_bank: self.device_features_bank,
            driver_features_bank: self.driver_features_bank,
            driver_features: self.driver_features,
            selected: self.selected,
        })
    }

    fn restore(&mut self, state: &State) -> Result<(), SocError> {
        let saved: Saved<State, Queues, IrqLine> = state.read()?;
        self.function.restore(&saved.function)?;
        self.queues = saved.queues;
        self.line = saved.line;
        self.status = saved.status;
        self.interrupts = saved.interrupts;
        self.device_features_bank = saved.device_features_bank;
        self.driver_features_bank = saved.driver_features_bank;
        self.driver_features = saved.driver_features;
        self.selected = saved.selected;
        Ok(())
    }
}

/// The registers of a slot, in a snapshot.
#[derive(Serialize, Deserialize)]
struct Saved<F, Q, L> {
    function: F,
    queues: Q,
    line: L,
    status: u32,
    interrupts: u32,
    device_features_bank: u32,
    driver_features_bank: u32,
    driver_features: u64,
    selected: usize,
}

/// A slot with nothing in it: device type 0 (section 4.2.2).
#[derive(Serialize, Deserialize)]
pub struct EmptySlot;

impl Device for EmptySlot {
    fn read(&mut self, _cx: &mut dyn Context, offset: u64, size: u8) -> Result<u64, BusError> {
        if size != 4 {
            return Err(BusError::Size);
        }
        Ok(match offset {
            0x000 => MAGIC.into(),
            0x004 => VERSION.into(),
            0x00C => VENDOR.into(),
            _ => 0,
        })
    }

    fn write(&mut self, _cx: &mut dyn Context, _offset: u64, size: u8, _value: u64) -> Result<(), BusError> {
        if size == 4 { Ok(()) } else { Err(BusError::Size) }
    }

    state_is_all!();
}
