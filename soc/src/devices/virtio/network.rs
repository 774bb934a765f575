//! The network device (VIRTIO 1.2, section 5.1): queue 0 receives, queue 1 transmits, a header of 12 bytes before each frame.
//!
//! ```text
//!   transmit:  chain ──(reading takes time)──▶ one staged frame ──(wire free)──▶ Port::send
//!   receive:   Port::poll ──▶ receive memory ──(a chain, writing takes time)──▶ used
//! ```
//!
//! A chain is used as soon as its frame has been read, so that the next one is read while the wire is busy. Frames that find the
//! receive memory full, or the next buffer too small, are lost, as those of a real NIC. No offloads: headers are zero, and frames are whole.

use super::queue::{Broken, Chain};
use super::{Function, Queues, cost};
use crate::device::Context;
use crate::devices::port::Port;
use crate::devices::timer::Timer;
use crate::error::SocError;
use crate::snapshot::State;
use crate::wire::{Arrival, Link, MIN_FRAME_BYTES};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

const RECEIVE: usize = 0;
const TRANSMIT: usize = 1;

const KIND_LINK: u8 = 0;
const KIND_READ: u8 = 1;
const KIND_WIRE: u8 = 2;
const KIND_WRITE: u8 = 3;

const FEATURE_MAC: u64 = 1 << 5;
const FEATURE_STATUS: u64 = 1 << 16;
const HEADER_BYTES: usize = 12;
/// Longest frame: 1500 bytes behind a header with a VLAN tag.
const FRAME_LIMIT: usize = 1518;
/// Bytes of frames that wait for buffers, at most; as the board's MAC.
const RECEIVE_MEMORY: usize = 32 << 10;

/// The device.
#[derive(Serialize, Deserialize)]
pub(super) struct Net {
    station: [u8; 6],
    port: Port,
    /// The chain that is being read.
    reading: Option<Chain>,
    read: Timer,
    /// Read, and waiting for the wire.
    staged: Option<Vec<u8>>,
    wire: Timer,
    arrived: VecDeque<Vec<u8>>,
    arrived_bytes: usize,
    /// A buffer for the next frame.
    provided: Option<Chain>,
    /// The frame that is being written.
    writing: Option<(Chain, Vec<u8>)>,
    write: Timer,
}

impl Net {
    pub(super) fn new(link: Option<Link>, station: [u8; 6]) -> Self {
        Self {
            station,
            port: Port::new(link, KIND_LINK),
            reading: None,
            read: Timer::new(KIND_READ),
            staged: None,
            wire: Timer::new(KIND_WIRE),
            arrived: VecDeque::new(),
            arrived_bytes: 0,
            provided: None,
            writing: None,
            write: Timer::new(KIND_WRITE),
        }
    }

    fn take_in(&mut self, arrival: Arrival, live: bool) {
        let length = arrival.frame.len();
        let fits = length <= FRAME_LIMIT && self.arrived_bytes + length <= RECEIVE_MEMORY;
        if live && arrival.intact && fits {
            self.arrived_bytes += length;
            self.arrived.push_back(arrival.frame);
        }
    }

    fn receive(&mut self, cx: &mut dyn Context, queues: &mut Queues) -> Result<(), Broken> {
        while self.writing.is_none() && !self.arrived.is_empty() {
            if self.provided.is_none() {
                self.provided = queues.pop(cx, RECEIVE)?;
            }
            let Some(chain) = self.provided.take() else { return Ok(()) };
            let Some(frame) = self.arrived.pop_front() else { return Ok(()) };
            self.arrived_bytes -= frame.len();
            let bytes = (HEADER_BYTES + frame.len()) as u64;
            if chain.writable_bytes() < bytes {
                self.provided = Some(chain);
                continue;
            }
            let at = cx.now() + cost::writing(&chain, bytes);
            self.write.arm(cx, at);
            self.writing = Some((chain, frame));
        }
        Ok(())
    }

    fn transmit(&mut self, cx: &mut dyn Context, queues: &mut Queues) -> Result<(), Broken> {
        if self.wire.due().is_none()
            && let Some(frame) = self.staged.take()
            && let Some(free) = self.port.send(cx, frame, true)
        {
            self.wire.arm(cx, free);
        }
        if self.reading.is_none()
            && self.staged.is_none()
            && let Some(chain) = queues.pop(cx, TRANSMIT)?
        {
            let bytes = chain.readable_bytes();
            if bytes < HEADER_BYTES as u64 {
                return Err(Broken);
            }
            // What is too long is not even fetched.
            let at = cx.now() + cost::reading(&chain, bytes.min((HEADER_BYTES + FRAME_LIMIT) as u64));
            self.read.arm(cx, at);
            self.reading = Some(chain);
        }
        Ok(())
    }

    /// The frame of `chain`; none if it is longer than a frame can be.
    fn frame(&self, cx: &mut dyn Context, chain: &Chain) -> Result<Option<Vec<u8>>, Broken> {
        let length = chain.readable_bytes() - HEADER_BYTES as u64;
        if length > FRAME_LIMIT as u64 {
            return Ok(None);
        }
        let mut frame = vec![0; length as usize];
        chain.read(cx, HEADER_BYTES as u64, &mut frame)?;
        frame.resize(frame.len().max(MIN_FRAME_BYTES), 0);
        Ok(Some(frame))
    }
}

impl Function for Net {
    fn id(&self) -> u32 {
        1
    }

    fn features(&self) -> u64 {
        FEATURE_MAC | FEATURE_STATUS
    }

    fn queues(&self) -> usize {
        2
    }

    fn config(&self, offset: u64) -> u8 {
        match offset {
            0..6 => self.station[offset as usize],
            // Status: bit 0 is the link.
            6 => self.port.link().is_some().into(),
            _ => 0,
        }
    }

    fn reset(&mut self) {
        self.reading = None;
        self.read.disarm();
        self.staged = None;
        self.arrived.clear();
        self.arrived_bytes = 0;
        self.provided = None;
        self.writing = None;
        self.write.disarm();
        // A frame on the wire leaves whole, so the wire's timer goes on.
    }

    fn run(&mut self, cx: &mut dyn Context, queues: &mut Queues) -> Result<(), Broken> {
        for arrival in self.port.poll(cx) {
            self.take_in(arrival, queues.live);
        }
        self.receive(cx, queues)?;
        self.transmit(cx, queues)?;
        // What has just been sent may have something to tell.
        for arrival in self.port.poll(cx) {
            self.take_in(arrival, queues.live);
        }
        Ok(())
    }

    fn event(&mut self, cx: &mut dyn Context, queues: &mut Queues, token: u64) -> Result<(), Broken> {
        self.port.event(token);
        self.wire.fires(token);
        if self.read.fires(token)
            && let Some(chain) = self.reading.take()
            && queues.live
        {
            self.staged = self.frame(cx, &chain)?;
            queues.push(cx, TRANSMIT, &chain, 0)?;
        }
        if self.write.fires(token)
            && let Some((chain, frame)) = self.writing.take()
            && queues.live
        {
            let mut header = [0; HEADER_BYTES];
            // num_buffers (section 5.1.6.4.1).
            header[10] = 1;
            chain.write(cx, 0, &header)?;
            chain.write(cx, HEADER_BYTES as u64, &frame)?;
            queues.push(cx, RECEIVE, &chain, (HEADER_BYTES + frame.len()) as u32)?;
        }
        Ok(())
    }

    fn save(&self) -> Result<State, SocError> {
        self.port.check_repeatable()?;
        State::of(self)
    }

    fn restore(&mut self, state: &State) -> Result<(), SocError> {
        let mut saved: Self = state.read()?;
        saved.port.plug_in(&mut self.port)?;
        *self = saved;
        Ok(())
    }
}
