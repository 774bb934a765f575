//! The block device (VIRTIO 1.2, section 5.2) over a [`Disk`]: one queue, one request at a time, in order.
//!
//! A request is a header of 16 bytes and data to be read by the device, then data to be written by it and one status byte; how the
//! guest cuts that into descriptors does not matter.

use super::queue::{Broken, Chain};
use super::{Function, Queues, cost};
use crate::device::Context;
use crate::devices::timer::Timer;
use crate::disk::{Disk, SECTOR_BYTES};
use crate::error::SocError;
use crate::snapshot::State;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};

const KIND_REQUEST: u8 = 0;
const REQUESTS: usize = 0;

const FEATURE_SEGMENTS: u64 = 1 << 2;
const FEATURE_READ_ONLY: u64 = 1 << 5;
const FEATURE_BLOCK_SIZE: u64 = 1 << 6;
const FEATURE_FLUSH: u64 = 1 << 9;

const TYPE_READ: u32 = 0;
const TYPE_WRITE: u32 = 1;
const TYPE_FLUSH: u32 = 4;
const TYPE_IDENTITY: u32 = 8;
const STATUS_OK: u8 = 0;
const STATUS_ERROR: u8 = 1;
const STATUS_UNSUPPORTED: u8 = 2;

const HEADER_BYTES: u64 = 16;
const IDENTITY: &[u8; 20] = b"wakeline-disk\0\0\0\0\0\0\0";
/// Most data of one request; with descriptors that all name the same RAM a guest could ask for a terabyte.
const DATA_LIMIT: u64 = 16 << 20;
/// Pieces of data per request: what a queue of 1024 takes, less header and status.
const SEGMENTS: u32 = 1022;
/// From request to data. There is no medium to be calibrated by; this is about what a good memory card needs for a command.
const ACCESS: SimTime = SimTime::from_us(20);

/// The device.
pub(super) struct Block {
    disk: Disk,
    request: Option<Request>,
    done: Timer,
}

/// A request under way.
#[derive(Serialize, Deserialize)]
struct Request {
    chain: Chain,
    kind: u32,
    sector: u64,
}

impl Request {
    fn decode(cx: &mut dyn Context, chain: Chain) -> Result<Self, Broken> {
        let mut header = [0; HEADER_BYTES as usize];
        chain.read(cx, 0, &mut header)?;
        if chain.writable_bytes() == 0 {
            return Err(Broken);
        }
        let [t0, t1, t2, t3, _, _, _, _, s @ ..] = header;
        Ok(Self { chain, kind: u32::from_le_bytes([t0, t1, t2, t3]), sector: u64::from_le_bytes(s) })
    }

    /// Bytes between header and status: (to the disk, from the disk).
    fn data_bytes(&self) -> (u64, u64) {
        (self.chain.readable_bytes() - HEADER_BYTES, self.chain.writable_bytes() - 1)
    }

    fn duration(&self) -> SimTime {
        let (to_disk, from_disk) = self.data_bytes();
        // What is refused for its length is not moved.
        let moved = |bytes| if bytes <= DATA_LIMIT { bytes } else { 0 };
        let move_data = match self.kind {
            TYPE_WRITE => cost::reading(&self.chain, moved(to_disk)),
            _ => cost::writing(&self.chain, moved(from_disk)),
        };
        ACCESS + move_data
    }

    /// Does it; gives the status and the number of bytes written to the chain's data. Error: the guest's buffers are not RAM.
    fn perform(&self, cx: &mut dyn Context, disk: &mut Disk) -> Result<(u8, u64), Broken> {
        let (to_disk, from_disk) = self.data_bytes();
        let data = if self.kind == TYPE_WRITE { to_disk } else { from_disk };
        if data > DATA_LIMIT || !data.is_multiple_of(SECTOR_BYTES) && matches!(self.kind, TYPE_READ | TYPE_WRITE) {
            return Ok((STATUS_ERROR, 0));
        }
        // At most the limit.
        let mut buffer = vec![0; data as usize];
        let done = match self.kind {
            TYPE_READ => {
                if disk.read(self.sector, &mut buffer).is_err() {
                    return Ok((STATUS_ERROR, 0));
                }
                self.chain.write(cx, 0, &buffer)?;
                return Ok((STATUS_OK, data));
            }
            TYPE_WRITE => {
                self.chain.read(cx, HEADER_BYTES, &mut buffer)?;
                disk.write(self.sector, &buffer)
            }
            TYPE_FLUSH => disk.flush(),
            TYPE_IDENTITY => {
                let length = IDENTITY.len().min(buffer.len());
                self.chain.write(cx, 0, &IDENTITY[..length])?;
                return Ok((STATUS_OK, length as u64));
            }
            _ => return Ok((STATUS_UNSUPPORTED, 0)),
        };
        Ok((if done.is_ok() { STATUS_OK } else { STATUS_ERROR }, 0))
    }
}

impl Block {
    pub(super) fn new(disk: Disk) -> Self {
        Self { disk, request: None, done: Timer::new(KIND_REQUEST) }
    }
}

impl Function for Block {
    fn id(&self) -> u32 {
        2
    }

    fn features(&self) -> u64 {
        let read_only = if self.disk.read_only() { FEATURE_READ_ONLY } else { 0 };
        FEATURE_SEGMENTS | FEATURE_BLOCK_SIZE | FEATURE_FLUSH | read_only
    }

    fn queues(&self) -> usize {
        1
    }

    fn config(&self, offset: u64) -> u8 {
        let byte = |value: u64, at: u64| (value >> (8 * (offset - at))) as u8;
        match offset {
            0..8 => byte(self.disk.sectors(), 0),
            12..16 => byte(SEGMENTS.into(), 12),
            20..24 => byte(SECTOR_BYTES, 20),
            _ => 0,
        }
    }

    fn reset(&mut self) {
        self.request = None;
        self.done.disarm();
    }

    fn run(&mut self, cx: &mut dyn Context, queues: &mut Queues) -> Result<(), Broken> {
        if self.request.is_none()
            && let Some(chain) = queues.pop(cx, REQUESTS)?
        {
            let request = Request::decode(cx, chain)?;
            let at = cx.now() + request.duration();
            self.done.arm(cx, at);
            self.request = Some(request);
        }
        Ok(())
    }

    fn event(&mut self, cx: &mut dyn Context, queues: &mut Queues, token: u64) -> Result<(), Broken> {
        if self.done.fires(token)
            && let Some(request) = self.request.take()
            && queues.live
        {
            let (status, written) = request.perform(cx, &mut self.disk)?;
            let (_, status_at) = request.data_bytes();
            request.chain.write(cx, status_at, &[status])?;
            // Data up to the limit, and the status byte.
            queues.push(cx, REQUESTS, &request.chain, written as u32 + 1)?;
        }
        Ok(())
    }

    fn save(&self) -> Result<State, SocError> {
        State::of(&(self.disk.digest()?, &self.request, &self.done))
    }

    fn restore(&mut self, state: &State) -> Result<(), SocError> {
        let (digest, request, done) = state.read::<(String, _, _)>()?;
        if digest != self.disk.digest()? {
            let reason = format!("disk {} is not what it was then: put that content back", self.disk.name());
            return Err(SocError::Snapshot { reason });
        }
        (self.request, self.done) = (request, done);
        Ok(())
    }
}
