//! Everything outside the harts: RAM, the address map of devices, their interrupt lines and events.
//!
//! A device reaches the rest of the machine only through [`Door`], which borrows the parts it may touch while the device
//! itself is borrowed; interrupt requests are collected and given to the PLIC when the device returns.

use crate::board::{self, CYCLE, RAM_BASE, Window};
use crate::config::{MAX_HARTS, UserInterrupts};
use crate::console::Console;
use crate::device::{BusError, Context, Device, Exit};
use crate::devices::ats_intc::AtsIntc;
use crate::devices::clint::{self, Clint};
use crate::devices::htif::{self, Htif};
use crate::devices::plic::Plic;
use crate::devices::uart::{self, Keyboard, Uart};
use crate::devices::uintc::Uintc;
use crate::error::SocError;
use crate::event::{EventQueue, RISE};
use crate::hart::csr::irq;
use crate::memory::{Memory, PAGE_BYTES};
use crate::snapshot::State;
use crate::time::SimTime;
use crate::timing::{Path, params};
use serde::{Deserialize, Serialize};

/// Interrupt lines into the harts, in `mip` positions.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Lines {
    bits: [u64; MAX_HARTS],
    /// As the devices drive them now; a rise reaches the hart some cycles later.
    driven: [u64; MAX_HARTS],
    /// Lines that only set a latch in the hart, which software clears.
    latching: u64,
    latched: [u64; MAX_HARTS],
    changed: bool,
}

impl Lines {
    #[inline]
    pub fn of(&self, hart: usize) -> u64 {
        self.bits[hart % MAX_HARTS]
    }

    /// Drives a line. True if it has risen and the hart does not know: [`Lines::arrive`] tells it.
    fn drive(&mut self, hart: usize, bit: u32, level: bool) -> bool {
        let Some(driven) = self.driven.get_mut(hart) else { return false };
        if self.latching >> bit & 1 != 0 {
            self.latched[hart] |= u64::from(level) << bit;
            self.changed |= level;
            return false;
        }
        let risen = level && *driven >> bit & 1 == 0;
        *driven = if level { *driven | 1 << bit } else { *driven & !(1 << bit) };
        if !level {
            let bits = self.bits[hart] & !(1 << bit);
            self.changed |= bits != self.bits[hart];
            self.bits[hart] = bits;
        }
        risen
    }

    /// The hart sees its lines as they are driven.
    fn arrive(&mut self, hart: usize) {
        self.changed |= self.bits[hart] != self.driven[hart];
        self.bits[hart] = self.driven[hart];
    }

    /// Takes what has been latched for `hart` since the last time.
    pub fn take_latched(&mut self, hart: usize) -> u64 {
        core::mem::take(&mut self.latched[hart])
    }

    /// True after any change that waiting harts have not been told of.
    #[inline]
    pub fn changed(&self) -> bool {
        self.changed
    }

    /// Waiting harts have been told.
    pub fn clear_changed(&mut self) {
        self.changed = false;
    }
}

/// A cycle that does not come.
pub(crate) const NEVER: u64 = u64::MAX;

/// Where these are among the slots.
const CLINT_SLOT: usize = 1;
const UART_SLOT: usize = 2;
const HTIF_SLOT: usize = 3;

enum Model {
    Plic,
    Uintc,
    Clint,
    AtsIntc,
    Uart,
    Htif,
    Boxed(Box<dyn Device>),
}

struct Slot {
    window: Window,
    model: Model,
    sources: Vec<u32>,
    path: Path,
}

/// The bus and what hangs on it.
pub(crate) struct Bus {
    pub ram: Memory,
    pub lines: Lines,
    pub console: Console,
    /// Set when the guest asked the machine to end.
    pub stop: Option<Exit>,
    /// In timed mode: no device access at a later time than this, unless it is the hart's next instruction anyway.
    pub order_limit: u64,
    /// Interrupt lines take time.
    pub timed: bool,
    /// A device has acted: lines, events or the end of the run may be others than before.
    pub stirred: bool,
    slots: Vec<Slot>,
    events: EventQueue,
    plic: Plic,
    uintc: Uintc,
    clint: Clint,
    ats_intc: AtsIntc,
    uart: Uart,
    /// Of a bare program that has `tohost`.
    htif: Option<Htif>,
    requests: Vec<(u32, bool)>,
    /// Time never goes back for devices, although harts of a fast machine are not strictly ordered.
    latest: SimTime,
}

/// A bus in a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedBus {
    ram: State,
    lines: Lines,
    console: State,
    stop: Option<Exit>,
    order_limit: u64,
    stirred: bool,
    /// By slot; none for a `tohost` that is not there.
    devices: Vec<Option<State>>,
    events: EventQueue,
    latest: SimTime,
}

/// A device's [`Context`].
struct Door<'a> {
    now: SimTime,
    slot: usize,
    sources: &'a [u32],
    ram: &'a mut Memory,
    lines: &'a mut Lines,
    events: &'a mut EventQueue,
    requests: &'a mut Vec<(u32, bool)>,
    stop: &'a mut Option<Exit>,
    console: &'a mut Console,
    /// How long a rise takes to the hart; none: no time at all.
    line_delay: Option<SimTime>,
}

/// Drives a line of a hart; a rise arrives at time `arrival`, or now.
fn raise(lines: &mut Lines, events: &mut EventQueue, arrival: Option<SimTime>, hart: usize, bit: u32, level: bool) {
    if lines.drive(hart, bit, level) {
        match arrival {
            // The token of a rise is the hart that it reaches.
            Some(time) => events.push(time, RISE, hart as u64),
            None => lines.arrive(hart),
        }
    }
}

impl Context for Door<'_> {
    fn now(&self) -> SimTime {
        self.now
    }
    fn alarm(&mut self, token: u64, at: SimTime) {
        self.events.set_alarm(at, self.slot, token);
    }
    fn irq(&mut self, line: usize, level: bool) {
        if let Some(&source) = self.sources.get(line) {
            self.requests.push((source, level));
        }
    }
    fn dma_read(&mut self, paddr: u64, buf: &mut [u8]) -> Result<(), BusError> {
        let bytes = self.ram.get(paddr.wrapping_sub(RAM_BASE), buf.len()).ok_or(BusError::Refused)?;
        buf.copy_from_slice(bytes);
        Ok(())
    }
    fn dma_write(&mut self, paddr: u64, bytes: &[u8]) -> Result<(), BusError> {
        let done = self.ram.store_coherent(paddr.wrapping_sub(RAM_BASE), bytes);
        if done { Ok(()) } else { Err(BusError::Refused) }
    }
    fn hart_line(&mut self, hart: usize, bit: u32, level: bool) {
        let arrival = self.line_delay.map(|delay| self.now + delay);
        raise(self.lines, self.events, arrival, hart, bit, level);
    }
    fn stop(&mut self, exit: Exit) {
        self.stop.get_or_insert(exit);
    }
    fn console(&mut self, byte: u8) {
        self.console.put(byte);
    }
    fn flush_console(&mut self) {
        self.console.flush();
    }
}

impl Bus {
    /// A bus with RAM, the interrupt controllers and the timer.
    pub fn new(memory_bytes: u64, harts: usize, user_interrupts: UserInterrupts) -> Self {
        let slot = |window, model, path| Slot { window, model, sources: Vec::new(), path };
        Self {
            ram: Memory::new(memory_bytes),
            lines: Lines {
                latching: if user_interrupts == UserInterrupts::Latch { 1 << irq::USI } else { 0 },
                ..Lines::default()
            },
            console: Console::default(),
            stop: None,
            order_limit: 0,
            timed: false,
            stirred: false,
            slots: vec![
                slot(board::PLIC, Model::Plic, Path::Plic),
                slot(board::CLINT, Model::Clint, Path::Control),
                Slot { sources: vec![board::UART_IRQ], ..slot(board::UART, Model::Uart, Path::Axi) },
                // It has no registers.
                slot(Window { base: 0, size: 0 }, Model::Htif, Path::Control),
                slot(board::ATS_INTC, Model::AtsIntc, Path::Control),
                slot(board::UINTC, Model::Uintc, Path::Control),
            ],
            events: EventQueue::default(),
            plic: Plic::new(harts),
            uintc: Uintc::new(harts, user_interrupts),
            clint: Clint::new(harts),
            ats_intc: AtsIntc::default(),
            uart: Uart::default(),
            htif: None,
            requests: Vec::new(),
            latest: SimTime::ZERO,
        }
    }

    /// Takes the UINTC off: its window is a hole then.
    pub fn remove_uintc(&mut self) {
        self.slots.retain(|slot| !matches!(slot.model, Model::Uintc));
    }

    /// Puts a device on the bus; `sources` are the PLIC sources of its interrupt lines. Gives its number for [`Bus::inject`].
    pub fn attach(&mut self, window: Window, sources: &[u32], path: Path, device: Box<dyn Device>) -> usize {
        debug_assert!(self.slots.iter().all(|slot| {
            slot.window.base + slot.window.size <= window.base || window.base + window.size <= slot.window.base
        }));
        self.slots.push(Slot { window, model: Model::Boxed(device), sources: sources.to_vec(), path });
        self.slots.len() - 1
    }

    /// Schedules an event for device number `slot` from outside, `time` from power-on.
    pub fn inject(&mut self, slot: usize, time: SimTime, token: u64) {
        self.events.push(time.max(self.latest), slot, token);
    }

    /// Something happened that the running block must not outlive.
    #[inline]
    pub fn attention(&self) -> bool {
        self.ram.attention
            || self.lines.changed
            || self.stop.is_some()
            || self
                .next_event()
                .is_some_and(|time| time < SimTime::from_ps(self.order_limit.saturating_mul(CYCLE.as_ps())))
    }

    /// Reads `size` aligned bytes at physical address `at`, in cycle `now`. Gives the value and what the access cost.
    pub fn read(&mut self, at: u64, size: u8, now: u64) -> Result<(u64, Path, u64), BusError> {
        let (slot, offset) = self.find(at, size)?;
        let mut value = 0;
        self.enter(slot, cycles(now), params::LINE_OF_ACCESS, |device, door| {
            value = device.read(door, offset, size)?;
            Ok(())
        })?;
        Ok((value, self.slots[slot].path, self.latency(slot)))
    }

    /// Writes, as [`Bus::read`].
    pub fn write(&mut self, at: u64, size: u8, value: u64, now: u64) -> Result<(Path, u64), BusError> {
        let (slot, offset) = self.find(at, size)?;
        self.enter(slot, cycles(now), params::LINE_OF_ACCESS, |device, door| device.write(door, offset, size, value))?;
        Ok((self.slots[slot].path, self.latency(slot)))
    }

    /// Time of the next event.
    #[inline]
    pub fn next_event(&self) -> Option<SimTime> {
        self.events.next_time()
    }

    /// The first cycle at or after the next event; without one, [`NEVER`].
    #[inline]
    pub fn next_event_cycle(&self) -> u64 {
        self.next_event().map_or(NEVER, |time| time.as_ps().div_ceil(CYCLE.as_ps()))
    }

    /// Time of the latest access or event.
    pub fn latest(&self) -> SimTime {
        self.latest
    }

    /// Events that have been asked for and have not come.
    pub fn pending_events(&self) -> usize {
        self.events.len()
    }

    /// Runs all events that are due at `now`.
    pub fn run_events(&mut self, now: SimTime) {
        while self.run_event(now) {}
    }

    /// Runs the next event if it is due at `now`. False if it is not.
    pub fn run_event(&mut self, now: SimTime) -> bool {
        let Some(event) = self.events.pop_due(now) else { return false };
        let token = event.token;
        if event.device == RISE {
            self.lines.arrive(token as usize);
            return true;
        }
        // An event handler has nobody to report an error to.
        let _ = self.enter(event.device, event.time, 0, |device, door| {
            device.event(door, token);
            Ok(())
        });
        true
    }

    /// Lets a hart act on the UINTC by instruction.
    pub fn uintc_act(&mut self, act: impl FnOnce(&mut Uintc)) {
        self.stirred = true;
        act(&mut self.uintc);
        let Self { uintc, lines, events, .. } = self;
        uintc.drive_lines(|hart, level| raise(lines, events, None, hart, irq::USI, level));
    }

    /// The supervisor timer of `hart` (Sstc) compares with `compare` from cycle `now` on, or is off.
    pub fn set_supervisor_timer(&mut self, hart: usize, compare: Option<u64>, now: u64) {
        self.clint.set_supervisor_timer(hart, compare);
        // An event has nobody to refuse it to.
        let _ = self.enter(CLINT_SLOT, cycles(now), 0, |device, door| {
            device.event(door, clint::supervisor_token(hart));
            Ok(())
        });
    }

    fn latency(&self, slot: usize) -> u64 {
        match &self.slots[slot].model {
            Model::Plic => self.plic.latency_cycles(),
            Model::Uintc => self.uintc.latency_cycles(),
            Model::Clint => self.clint.latency_cycles(),
            Model::AtsIntc => self.ats_intc.latency_cycles(),
            Model::Uart => self.uart.latency_cycles(),
            Model::Htif => 0,
            Model::Boxed(device) => device.latency_cycles(),
        }
    }

    fn find(&self, at: u64, size: u8) -> Result<(usize, u64), BusError> {
        for (number, slot) in self.slots.iter().enumerate() {
            let offset = at.wrapping_sub(slot.window.base);
            if offset < slot.window.size {
                let fits = offset + u64::from(size) <= slot.window.size;
                return if fits { Ok((number, offset)) } else { Err(BusError::Size) };
            }
        }
        Err(BusError::Unmapped)
    }

    /// Lets device `slot` act at `now`; interrupt lines that it raises reach the harts `line_delay` cycles later, and later through
    /// the PLIC.
    fn enter(
        &mut self,
        slot: usize,
        now: SimTime,
        line_delay: u64,
        act: impl FnOnce(&mut dyn Device, &mut Door) -> Result<(), BusError>,
    ) -> Result<(), BusError> {
        self.stirred = true;
        self.latest = self.latest.max(now);
        let delay = |cycles: u64| (self.timed && cycles != 0).then(|| SimTime::from_ps(cycles * CYCLE.as_ps()));
        let plic_delay = delay(line_delay + params::LINE_OF_PLIC);
        let Slot { model, sources, .. } = &mut self.slots[slot];
        let mut door = Door {
            now: self.latest,
            slot,
            sources,
            ram: &mut self.ram,
            lines: &mut self.lines,
            events: &mut self.events,
            requests: &mut self.requests,
            stop: &mut self.stop,
            console: &mut self.console,
            line_delay: delay(line_delay),
        };
        let device: &mut dyn Device = match model {
            Model::Plic => &mut self.plic,
            Model::Uintc => &mut self.uintc,
            Model::Clint => &mut self.clint,
            Model::AtsIntc => &mut self.ats_intc,
            Model::Uart => &mut self.uart,
            Model::Htif => match &mut self.htif {
                Some(htif) => htif,
                None => return Err(BusError::Unmapped),
            },
            Model::Boxed(device) => device.as_mut(),
        };
        let result = act(device, &mut door);
        if !self.requests.is_empty() {
            for (source, level) in self.requests.drain(..) {
                self.plic.set_source(source, level);
                self.ats_intc.set_source(source, level);
            }
            let Self { plic, lines, events, latest, .. } = self;
            let arrival = plic_delay.map(|delay| *latest + delay);
            plic.drive_lines(|hart, bit, level| raise(lines, events, arrival, hart, bit, level));
        }
        result
    }

    /// The state of everything but RAM's pages.
    pub fn save(&self) -> Result<SavedBus, SocError> {
        let devices =
            (0..self.slots.len()).map(|slot| self.device(slot).map_or(Ok(None), |device| device.save().map(Some)));
        let mut events = self.events.clone();
        // Whoever types is not saved, and a new one is asked from its first event on.
        events.retain(|device, token| (device, token) != (UART_SLOT, uart::ASK_KEYBOARD));
        Ok(SavedBus {
            ram: self.ram.save()?,
            lines: self.lines.clone(),
            console: State::of(&self.console)?,
            stop: self.stop,
            order_limit: self.order_limit,
            stirred: self.stirred,
            devices: devices.collect::<Result<_, _>>()?,
            events,
            latest: self.latest,
        })
    }

    /// Takes the state of a bus with the same devices. Error: it had others.
    pub fn restore(&mut self, saved: SavedBus) -> Result<(), SocError> {
        if saved.devices.len() != self.slots.len() || !saved.events.only_for(self.slots.len()) {
            return Err(SocError::Snapshot { reason: "it is of a machine with other devices".to_owned() });
        }
        self.ram.restore(&saved.ram)?;
        self.lines = saved.lines;
        self.console.restore(&saved.console)?;
        self.stop = saved.stop;
        self.order_limit = saved.order_limit;
        self.stirred = saved.stirred;
        for (slot, state) in saved.devices.iter().enumerate() {
            if let (HTIF_SLOT, Some(state)) = (slot, state) {
                self.htif = Some(state.read()?);
            } else if let (Some(device), Some(state)) = (self.device_mut(slot), state) {
                device.restore(state)?;
            }
        }
        self.events = saved.events;
        self.latest = saved.latest;
        Ok(())
    }

    fn device(&self, slot: usize) -> Option<&dyn Device> {
        Some(match &self.slots[slot].model {
            Model::Plic => &self.plic,
            Model::Uintc => &self.uintc,
            Model::Clint => &self.clint,
            Model::AtsIntc => &self.ats_intc,
            Model::Uart => &self.uart,
            Model::Htif => self.htif.as_ref()?,
            Model::Boxed(device) => device.as_ref(),
        })
    }

    fn device_mut(&mut self, slot: usize) -> Option<&mut dyn Device> {
        Some(match &mut self.slots[slot].model {
            Model::Plic => &mut self.plic,
            Model::Uintc => &mut self.uintc,
            Model::Clint => &mut self.clint,
            Model::AtsIntc => &mut self.ats_intc,
            Model::Uart => &mut self.uart,
            Model::Htif => self.htif.as_mut()?,
            Model::Boxed(device) => device.as_mut(),
        })
    }

    /// A byte for the UART, and a program's `fromhost`, to receive, `time` from power-on.
    pub fn type_byte(&mut self, time: SimTime, byte: u8) {
        self.inject(UART_SLOT, time, byte.into());
        if self.htif.is_some() {
            self.inject(HTIF_SLOT, time, htif::TYPED | u64::from(byte));
        }
    }

    /// Lets somebody type at the UART.
    pub fn attach_keyboard(&mut self, keyboard: Box<dyn Keyboard>) {
        self.uart.set_keyboard(keyboard);
        self.inject(UART_SLOT, SimTime::ZERO, uart::ASK_KEYBOARD);
    }

    /// Watches the words `tohost` and `fromhost` at these physical addresses.
    pub fn watch_to_host(&mut self, to_host: u64, from_host: Option<u64>) {
        if self.ram.get(to_host.wrapping_sub(RAM_BASE), 8).is_some() {
            self.htif = Some(Htif::new(to_host, from_host));
        }
    }

    /// True if the page of `offset` must stay out of the write TLB because of `tohost`, which lies in one page.
    pub fn is_to_host_page(&self, offset: u64) -> bool {
        self.htif.as_ref().is_some_and(|htif| (htif.to_host() - RAM_BASE) / PAGE_BYTES == offset / PAGE_BYTES)
    }

    /// After a slow store of `bytes` bytes to `offset` in cycle `now`: acts on `tohost`.
    pub fn check_to_host(&mut self, offset: u64, bytes: u8, now: u64) {
        if self.htif.as_mut().is_some_and(|htif| htif.note(RAM_BASE + offset, bytes)) {
            // An event has nobody to refuse it to.
            let _ = self.enter(HTIF_SLOT, cycles(now), 0, |device, door| {
                device.event(door, htif::STORED);
                Ok(())
            });
        }
    }
}

/// Simulated time of core cycle `now`.
fn cycles(now: u64) -> SimTime {
    board::at_cycle(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus() -> Bus {
        Bus::new(1 << 20, 1, UserInterrupts::Level)
    }

    #[test]
    fn decode() {
        let mut bus = bus();
        assert_eq!(bus.read(0x1000_0005, 1, 0).unwrap().0, 0x60);
        assert_eq!(bus.read(0x1000_0100, 1, 0), Err(BusError::Unmapped));
        assert_eq!(bus.read(0x0300_0008, 4, 0), Err(BusError::Size));
        assert_eq!(bus.read(u64::MAX - 7, 8, 0), Err(BusError::Unmapped));
    }

    #[test]
    fn a_device_line_goes_through_the_plic() {
        let mut bus = bus();
        bus.write(0x0C00_0028, 4, 1, 0).unwrap();
        bus.write(0x0C00_2080, 4, 1 << 10, 0).unwrap();
        bus.write(0x1000_0001, 1, 2, 0).unwrap();
        assert_eq!(bus.lines.of(0), 1 << irq::SEI);
        assert!(bus.attention());
        assert_eq!(bus.read(0x0C20_1004, 4, 0).unwrap().0, 10);
        assert_eq!(bus.lines.of(0), 0);
    }
}
