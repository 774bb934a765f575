//! A hart: its registers, and how it gets into and out of traps.
//!
//! Instructions are executed by [`exec`] over blocks that [`block`] decodes; [`mmu`], [`pmp`] and [`tlb`] translate; [`float`]
//! calculates.

pub(crate) mod block;
mod compressed;
pub(crate) mod csr;
mod decode;
pub(crate) mod exec;
pub(crate) mod float;
pub(crate) mod insn;
pub(crate) mod inspect;
pub(crate) mod mmu;
pub(crate) mod pmp;
mod tlb;
mod trap;

use crate::board::{CYCLES_PER_TICK, RAM_BASE};
use crate::config::{AccessedDirty, Config, Misaligned};
use crate::memory::Memory;
use crate::outcome::{HartStatistics, Privilege};
use block::Way;
use csr::{Csrs, Surroundings, status};
use mmu::{Fault, Space, Walk};
use pmp::Access;
use serde::{Deserialize, Serialize};
use tlb::{ContextKey, Tlb};

/// Register slots: x0 to x31, the sink for writes to x0, and padding so that any `u8` is in range without a test.
const SLOTS: usize = 256;

/// An exception before it is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exception {
    pub cause: u64,
    pub tval: u64,
}

/// What a hart was built with, where that can be chosen.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Build {
    pub accessed_dirty: AccessedDirty,
    pub misaligned: Misaligned,
    pub sstc: bool,
}

impl Build {
    /// That part of a configuration.
    pub fn of(config: &Config) -> Self {
        Self { accessed_dirty: config.accessed_dirty, misaligned: config.misaligned, sstc: config.sstc }
    }
}

/// A translated access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Translation {
    pub physical: u64,
    /// The translation and its permission hold for the whole page.
    pub whole_page: bool,
}

/// One hart.
#[derive(Serialize, Deserialize)]
pub(crate) struct Hart {
    pub id: usize,
    #[serde(with = "slots")]
    pub x: [u64; SLOTS],
    pub pc: u64,
    pub privilege: Privilege,
    /// Core cycles since power-on, without the static cost of the block that is being executed.
    pub clock: u64,
    /// Instructions retired, without those of the block that is being executed.
    pub instructions: u64,
    /// From the block executed last to the next one.
    #[serde(skip, default = "Way::unknown")]
    pub way: Way,
    /// In `wfi`.
    pub waiting: bool,
    /// `wfi` has just ended.
    pub woken: bool,
    /// The trap handler cannot be fetched: the hart would fault for ever, and is stopped instead.
    pub stuck: bool,
    /// Set by instructions after which another hart should get a turn (`wfi`, `pause`, failed `sc`).
    pub yields: bool,
    pub csrs: Csrs,
    pub tlb: Tlb,
    /// Context numbers, shifted for tags.
    #[serde(skip)]
    pub data_context: u64,
    #[serde(skip)]
    pub fetch_context: u64,
    #[serde(skip, default = "Space::bare")]
    pub data_space: Space,
    #[serde(skip, default = "Space::bare")]
    pub fetch_space: Space,
    #[serde(skip)]
    pub exception: Exception,
    /// f0 to f31; singles are boxed.
    pub f: [u64; 32],
    generation: u64,
    translation_generation: u64,
    pub build: Build,
    pub statistics: HartStatistics,
    /// Receiver of the latest `uipi.send` that had an effect.
    pub uipi_sent_to: u64,
}

impl Hart {
    /// A hart at reset: M-mode at `entry`, a0 = hart id, a1 = `device_tree`.
    pub fn new(id: usize, entry: u64, device_tree: u64, build: Build) -> Self {
        let mut hart = Self {
            id,
            x: [0; SLOTS],
            pc: entry,
            privilege: Privilege::M,
            clock: 0,
            instructions: 0,
            way: Way::UNKNOWN,
            waiting: false,
            woken: false,
            stuck: false,
            yields: false,
            csrs: Csrs::reset(build.sstc),
            tlb: Tlb::new(),
            data_context: 0,
            fetch_context: 0,
            data_space: Space::bare(),
            fetch_space: Space::bare(),
            exception: Exception::default(),
            f: [0; 32],
            generation: 0,
            translation_generation: 0,
            build,
            statistics: HartStatistics::default(),
            uipi_sent_to: 0,
        };
        hart.x[10] = id as u64;
        hart.x[11] = device_tree;
        hart.update_contexts();
        hart
    }

    /// Call after anything that changes privilege, `satp` or the relevant `mstatus` bits.
    pub fn update_contexts(&mut self) {
        let mstatus = self.csrs.mstatus;
        let data =
            if mstatus & status::MPRV != 0 && self.privilege == Privilege::M { self.mpp() } else { self.privilege };
        let sum = data == Privilege::S && mstatus & status::SUM != 0;
        let mxr = data != Privilege::M && mstatus & status::MXR != 0;
        (self.fetch_space, self.fetch_context) = self.space(self.privilege, false, false);
        (self.data_space, self.data_context) = if data == self.privilege && !sum && !mxr {
            (self.fetch_space, self.fetch_context)
        } else {
            self.space(data, sum, mxr)
        };
    }

    fn space(&mut self, privilege: Privilege, sum: bool, mxr: bool) -> (Space, u64) {
        let satp = if privilege == Privilege::M || self.csrs.satp >> 60 == 0 { 0 } else { self.csrs.satp };
        let mode = privilege as u8 | u8::from(sum) << 2 | u8::from(mxr) << 3;
        let root = (satp != 0).then_some(satp & ((1 << 44) - 1));
        (Space { root, privilege, sum, mxr }, self.tlb.context(ContextKey { satp, mode }))
    }

    fn mpp(&self) -> Privilege {
        match (self.csrs.mstatus & status::MPP) >> status::MPP_SHIFT {
            0 => Privilege::U,
            1 => Privilege::S,
            _ => Privilege::M,
        }
    }

    /// Drops TLB entries that stores, walks or decoding elsewhere have made doubtful.
    #[inline(always)]
    pub fn sync_translations(&mut self, ram: &Memory) {
        if self.generation != ram.generation {
            self.drop_translations(ram);
        }
    }

    #[cold]
    fn drop_translations(&mut self, ram: &Memory) {
        self.generation = ram.generation;
        self.tlb.store.clear();
        if self.translation_generation != ram.translation_generation {
            self.translation_generation = ram.translation_generation;
            self.tlb.clear();
            self.way = Way::UNKNOWN;
        }
    }

    /// PMP registers changed.
    pub fn pmp_changed(&mut self) {
        self.tlb.clear();
    }

    /// Translates for an access of `len` bytes that stays in one page.
    pub fn translate(&mut self, ram: &mut Memory, va: u64, len: u64, access: Access) -> Result<Translation, Exception> {
        let space = if access == Access::Fetch { self.fetch_space } else { self.data_space };
        let fault = |fault| Exception { cause: fault_cause(fault, access), tval: va };
        let physical = match space.root {
            None => va,
            Some(root) => {
                mmu::walk(ram, &self.csrs.pmp, &space, root, va, access, self.build.accessed_dirty)
                    .map_err(fault)?
                    .physical
            }
        };
        let verdict = self.csrs.pmp.check(physical, len, access, space.privilege);
        if !verdict.allowed {
            return Err(fault(Fault::Access));
        }
        // The walk may have marked page tables, also one that this hart could write until now.
        self.sync_translations(ram);
        Ok(Translation { physical, whole_page: verdict.whole_page })
    }

    /// The walk for `va`, for the timing model; none if there is no translation or it would fault.
    pub fn walk_for_timing(&self, ram: &mut Memory, va: u64, access: Access) -> Option<Walk> {
        let space = if access == Access::Fetch { &self.fetch_space } else { &self.data_space };
        mmu::walk(ram, &self.csrs.pmp, space, space.root?, va, access, self.build.accessed_dirty).ok()
    }

    /// RAM offset of the instruction at `va`.
    pub fn translate_fetch(&mut self, ram: &mut Memory, va: u64) -> Result<u64, Exception> {
        if let Some(offset) = self.tlb.fetch.hit::<2>(va, self.fetch_context) {
            return Ok(offset);
        }
        let found = self.translate(ram, va, 2, Access::Fetch)?;
        let offset = found.physical.wrapping_sub(RAM_BASE);
        if offset >= ram.size() {
            return Err(Exception { cause: fault_cause(Fault::Access, Access::Fetch), tval: va });
        }
        if found.whole_page {
            self.tlb.fetch.fill(va, self.fetch_context, offset);
        }
        Ok(offset)
    }

    /// The instruction at `self.pc` cannot be fetched; the caller takes the exception.
    pub fn fetch_fault(&mut self, exception: Exception) {
        self.clock += 1;
        self.exception = exception;
        // The machine-mode handler itself faults: nothing can change any more.
        if self.privilege == Privilege::M && self.pc == self.csrs.mtvec & !3 && self.pc == self.csrs.mepc {
            self.stuck = true;
            self.waiting = true;
        }
    }

    /// What a CSR access sees at `clock` after `instructions`.
    pub fn surroundings(&self, lines: u64, clock: u64, instructions: u64) -> Surroundings {
        Surroundings { lines, cycles: clock, instructions, time: clock / CYCLES_PER_TICK, hart: self.id as u64 }
    }
}

/// The registers among the slots, in a snapshot.
mod slots {
    use super::SLOTS;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(x: &[u64; SLOTS], out: S) -> Result<S::Ok, S::Error> {
        x[..32].serialize(out)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u64; SLOTS], D::Error> {
        let mut x = [0; SLOTS];
        x[..32].copy_from_slice(&<[u64; 32]>::deserialize(from)?);
        Ok(x)
    }
}

fn fault_cause(fault: Fault, access: Access) -> u64 {
    match (fault, access) {
        (Fault::Access, Access::Fetch) => 1,
        (Fault::Access, Access::Load) => 5,
        (Fault::Access, Access::Store) => 7,
        (Fault::Page, Access::Fetch) => 12,
        (Fault::Page, Access::Load) => 13,
        (Fault::Page, Access::Store) => 15,
    }
}
