//! Memory to stream: the transmit engine.
//!
//! ```text
//!           tail write            descriptor there          data in the MAC            written back
//!   Paused ────────────▶ Fetching ────────────────▶ Moving ────────────────▶ Updating ─────────────▶ Fetching | Paused
//!                                    └ MAC full ▶ Stalled ┘ (kick)
//! ```
//!
//! One descriptor at a time: the fit of the board's figures shows no overlap between the descriptors of this engine.

use super::channel::{Channel, SR_DMA_DEC_ERR, SR_DMA_INT_ERR, SR_SG_DEC_ERR, SR_SG_INT_ERR, after};
use super::descriptor::{Descriptor, STATUS_CMPLT, STATUS_DEC_ERR, STATUS_INT_ERR};
use super::{Build, Streams, TxPacket};
use crate::device::Context;
use crate::devices::timer::Timer;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
enum State {
    Paused,
    Fetching,
    /// The MAC has no room for this buffer.
    Stalled(Descriptor),
    Moving(Descriptor),
    Updating(Descriptor),
}

/// The engine.
#[derive(Serialize, Deserialize)]
pub(super) struct Mm2s {
    pub(super) channel: Channel,
    build: Build,
    state: State,
    step: Timer,
    /// The packet so far.
    packet: TxPacket,
    /// In the middle of a packet.
    open: bool,
}

impl Mm2s {
    pub(super) fn new(channel: Channel, build: Build, step_kind: u8) -> Self {
        Self {
            channel,
            build,
            state: State::Paused,
            step: Timer::new(step_kind),
            packet: TxPacket::default(),
            open: false,
        }
    }

    pub(super) fn reset(&mut self, cx: &mut dyn Context) {
        self.channel.reset(cx);
        self.state = State::Paused;
        self.step.disarm();
        self.packet = TxPacket::default();
        self.open = false;
    }

    /// TAILDESC was written.
    pub(super) fn tail(&mut self, cx: &mut dyn Context) {
        if matches!(self.state, State::Paused) {
            self.fetch(cx);
        }
    }

    /// RS was cleared: what is under way is finished first.
    pub(super) fn stop(&mut self) {
        match self.state {
            State::Paused => self.channel.halt(),
            State::Stalled(descriptor) => {
                self.channel.next = descriptor.address;
                self.state = State::Paused;
                self.channel.halt();
            }
            State::Fetching | State::Moving(_) | State::Updating(_) => {}
        }
    }

    /// The MAC may have room now.
    pub(super) fn kick(&mut self, cx: &mut dyn Context, streams: &mut dyn Streams) {
        if let State::Stalled(descriptor) = self.state {
            self.move_data(cx, streams, descriptor);
        }
    }

    /// Takes an event of this channel.
    pub(super) fn event(&mut self, cx: &mut dyn Context, streams: &mut dyn Streams, token: u64) {
        if self.channel.event(cx, token) || !self.step.fires(token) {
            return;
        }
        match core::mem::replace(&mut self.state, State::Paused) {
            State::Fetching => self.fetched(cx, streams),
            State::Moving(descriptor) => self.moved(cx, streams, descriptor),
            State::Updating(descriptor) => self.updated(cx, descriptor),
            state @ (State::Paused | State::Stalled(_)) => self.state = state,
        }
    }

    fn fetch(&mut self, cx: &mut dyn Context) {
        self.channel.at_work_on(self.channel.next);
        self.state = State::Fetching;
        after(&mut self.step, cx, self.build.timing.tail_to_fetch + self.build.timing.fetch);
    }

    fn fetched(&mut self, cx: &mut dyn Context, streams: &mut dyn Streams) {
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
        self.move_data(cx, streams, descriptor);
    }

    fn move_data(&mut self, cx: &mut dyn Context, streams: &mut dyn Streams, descriptor: Descriptor) {
        let length = descriptor.length(self.build.length_bits);
        if !streams.tx_ready(self.packet.bytes.len() + length as usize) {
            self.state = State::Stalled(descriptor);
            return;
        }
        if !self.open {
            self.open = true;
            self.packet.app = descriptor.app;
            self.channel.packet_begins(cx);
        }
        let at = cx.now() + self.build.timing.transmit_data(u64::from(length));
        self.state = State::Moving(descriptor);
        self.step.arm(cx, at);
    }

    fn moved(&mut self, cx: &mut dyn Context, streams: &mut dyn Streams, descriptor: Descriptor) {
        let mut bytes = vec![0; descriptor.length(self.build.length_bits) as usize];
        if cx.dma_read(descriptor.buffer, &mut bytes).is_err() {
            return self.fail(cx, &descriptor, STATUS_DEC_ERR, SR_DMA_DEC_ERR);
        }
        // A packet that the MAC cannot hold is only counted, so that a chain without an end takes no memory of the host.
        self.packet.dropped |= self.packet.bytes.len() + bytes.len() > streams.tx_limit();
        if self.packet.dropped {
            self.packet.bytes.clear();
        } else {
            self.packet.bytes.append(&mut bytes);
        }
        if descriptor.ends_packet() {
            streams.tx(core::mem::take(&mut self.packet));
            self.open = false;
        }
        self.state = State::Updating(descriptor);
        after(&mut self.step, cx, self.build.timing.transmit_update);
    }

    fn updated(&mut self, cx: &mut dyn Context, descriptor: Descriptor) {
        let status = STATUS_CMPLT | descriptor.length(self.build.length_bits);
        if descriptor.update(cx, status).is_err() {
            return self.channel.fail(cx, SR_SG_DEC_ERR);
        }
        if descriptor.ends_packet() {
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
