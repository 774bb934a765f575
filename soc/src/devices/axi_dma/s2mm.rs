//! Stream to memory: the receive engine.
//!
//! ```text
//!           tail write            descriptor there         packet there            bytes written            written back
//!   Paused ────────────▶ Fetching ────────────────▶ Ready ──────────────▶ Moving ───────────────▶ Updating ─────────────▶ Fetching | Paused
//!                                                        (kick)
//! ```
//!
//! A packet longer than one buffer goes on in the next one. While the engine is paused the packet waits in the MAC's memory.

use super::channel::{Channel, SR_DMA_DEC_ERR, SR_DMA_INT_ERR, SR_SG_DEC_ERR, SR_SG_INT_ERR, after};
use super::descriptor::{Descriptor, STATUS_CMPLT, STATUS_DEC_ERR, STATUS_EOF, STATUS_INT_ERR, STATUS_SOF};
use super::{Build, Streams};
use crate::device::Context;
use crate::devices::timer::Timer;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
enum State {
    Paused,
    Fetching,
    /// The descriptor waits for a packet.
    Ready(Descriptor),
    Moving(Descriptor),
    /// The word to write back; with the packet's last buffer, also the APP words.
    Updating(Descriptor, u32, Option<[u32; 5]>),
}

/// The engine.
#[derive(Serialize, Deserialize)]
pub(super) struct S2mm {
    pub(super) channel: Channel,
    build: Build,
    state: State,
    step: Timer,
    /// Bytes of the foremost packet that are in memory.
    offset: usize,
}

impl S2mm {
    pub(super) fn new(channel: Channel, build: Build, step_kind: u8) -> Self {
        Self { channel, build, state: State::Paused, step: Timer::new(step_kind), offset: 0 }
    }

    pub(super) fn reset(&mut self, cx: &mut dyn Context) {
        self.channel.reset(cx);
        self.state = State::Paused;
        self.step.disarm();
        self.offset = 0;
    }

    /// TAILDESC was written.
    pub(super) fn tail(&mut self, cx: &mut dyn Context) {
        if matches!(self.state, State::Paused) {
            self.fetch(cx);
        }
    }

    /// RS was cleared: what is under way is finished first; a descriptor that waits for a packet is given up.
    pub(super) fn stop(&mut self) {
        match self.state {
            State::Paused => self.channel.halt(),
            State::Ready(descriptor) => {
                self.channel.next = descriptor.address;
                self.state = State::Paused;
                self.channel.halt();
            }
            State::Fetching | State::Moving(_) | State::Updating(..) => {}
        }
    }

    /// A packet may be waiting.
    pub(super) fn kick(&mut self, cx: &mut dyn Context, streams: &mut dyn Streams) {
        let State::Ready(descriptor) = self.state else { return };
        let Some(packet) = streams.rx_front() else { return };
        if self.offset == 0 {
            self.channel.packet_begins(cx);
        }
        let count = self.count(&descriptor, packet.bytes.len());
        let at = cx.now() + self.build.timing.receive_data(count as u64);
        self.state = State::Moving(descriptor);
        self.step.arm(cx, at);
    }

    /// Bytes of a packet of `length` that go into this buffer.
    fn count(&self, descriptor: &Descriptor, length: usize) -> usize {
        (length - self.offset).min(descriptor.length(self.build.length_bits) as usize)
    }

    /// Takes an event of this channel.
    pub(super) fn event(&mut self, cx: &mut dyn Context, streams: &mut dyn Streams, token: u64) {
        if self.channel.event(cx, token) || !self.step.fires(token) {
            return;
        }
        match core::mem::replace(&mut self.state, State::Paused) {
            State::Fetching => self.fetched(cx),
            State::Moving(descriptor) => self.moved(cx, streams, descriptor),
            State::Updating(descriptor, status, app) => self.updated(cx, descriptor, status, app),
            state @ (State::Paused | State::Ready(_)) => self.state = state,
        }
    }

    fn fetch(&mut self, cx: &mut dyn Context) {
        self.channel.at_work_on(self.channel.next);
        self.state = State::Fetching;
        after(&mut self.step, cx, self.build.timing.tail_to_fetch + self.build.timing.fetch);
    }

    fn fetched(&mut self, cx: &mut dyn Context) {
        let Ok(descriptor) = Descriptor::fetch(cx, self.channel.next, self.build.address_mask()) else {
            return self.channel.fail(cx, SR_SG_DEC_ERR);
        };
        if descriptor.is_complete() && !self.channel.cyclic() {
            return self.channel.fail(cx, SR_SG_INT_ERR);
        }
        if descriptor.length(self.build.length_bits) == 0 {
            return self.fail(cx, &descriptor, STATUS_INT_ERR, SR_DMA_INT_ERR);
        }
        if !self.channel.running() {
            // Stopped while the descriptor was on its way: it stays the next one.
            return self.channel.halt();
        }
        self.state = State::Ready(descriptor);
    }

    fn moved(&mut self, cx: &mut dyn Context, streams: &mut dyn Streams, descriptor: Descriptor) {
        let Some(packet) = streams.rx_front() else {
            // A stream that breaks off in the middle of a packet.
            return self.fail(cx, &descriptor, STATUS_INT_ERR, SR_DMA_INT_ERR);
        };
        let count = self.count(&descriptor, packet.bytes.len());
        let end = self.offset + count;
        if cx.dma_write(descriptor.buffer, &packet.bytes[self.offset..end]).is_err() {
            return self.fail(cx, &descriptor, STATUS_DEC_ERR, SR_DMA_DEC_ERR);
        }
        let first = if self.offset == 0 { STATUS_SOF } else { 0 };
        let mut status = STATUS_CMPLT | first | count as u32;
        let mut app = None;
        self.offset = end;
        if end == packet.bytes.len() {
            status |= STATUS_EOF;
            app = Some(packet.app);
            streams.rx_pop();
            self.offset = 0;
        }
        self.state = State::Updating(descriptor, status, app);
        after(&mut self.step, cx, self.build.timing.receive_update);
    }

    fn updated(&mut self, cx: &mut dyn Context, descriptor: Descriptor, status: u32, app: Option<[u32; 5]>) {
        let written = match &app {
            Some(app) => descriptor.update_with_app(cx, status, app),
            None => descriptor.update(cx, status),
        };
        if written.is_err() {
            return self.channel.fail(cx, SR_SG_DEC_ERR);
        }
        if app.is_some() {
            self.channel.packet_ends(cx);
        }
        if self.channel.may_go_on(descriptor.address, descriptor.next) {
            self.fetch(cx);
        }
    }

    /// Stops on an error of the data mover, which the descriptor tells too.
    fn fail(&mut self, cx: &mut dyn Context, descriptor: &Descriptor, status: u32, errors: u32) {
        let unwritable = descriptor.update(cx, STATUS_CMPLT | status).is_err();
        self.channel.fail(cx, if unwritable { errors | SR_SG_DEC_ERR } else { errors });
    }
}
