//! The platform-level interrupt controller: source priorities, and per hart a context with enable bits, threshold and claim.
//!
//! A claimed source stays silent until it is completed *by a context that has it enabled*, so the kernel remembers which
//! context claimed it: `complete` works from whatever hart the handler runs on.

use core::sync::atomic::{AtomicU8, Ordering};

use abi::config::{MAX_NUM_NODES, MAX_PLIC_IRQ};

/// Register map of the RISC-V PLIC specification 1.0.
const ENABLE: usize = 0x2000;
const ENABLE_STRIDE: usize = 0x80;
const CONTEXT: usize = 0x20_0000;
const CONTEXT_STRIDE: usize = 0x1000;
const THRESHOLD: usize = 0;
const CLAIM: usize = 4;
/// All sources have the same priority, above the threshold 0 (seL4's choice).
const PRIORITY: u32 = 2;
const SOURCES: usize = MAX_PLIC_IRQ as usize + 1;
const NOBODY: u8 = u8::MAX;

/// The controller and the S-mode context of each core.
pub struct Plic {
    base: usize,
    context: [u16; MAX_NUM_NODES],
    claimed_by: [AtomicU8; SOURCES],
}

impl Plic {
    /// A controller at the kernel address `base`. `context[core]` is the S-mode context of a core.
    ///
    /// # Safety
    /// `base` must map the registers of a PLIC that has those contexts and at least `MAX_PLIC_IRQ` sources, for ever.
    pub unsafe fn new(base: usize, context: [u16; MAX_NUM_NODES]) -> Self {
        Self { base, context, claimed_by: [const { AtomicU8::new(NOBODY) }; SOURCES] }
    }

    fn read(&self, offset: usize) -> u32 {
        // SAFETY: `new`'s caller promised the registers; offsets come from the map above with checked indices.
        unsafe { ((self.base + offset) as *const u32).read_volatile() }
    }

    fn write(&self, offset: usize, value: u32) {
        // SAFETY: as in `read`.
        unsafe { ((self.base + offset) as *mut u32).write_volatile(value) }
    }

    fn enable_word(&self, core: usize, source: usize) -> usize {
        ENABLE + ENABLE_STRIDE * usize::from(self.context[core]) + source / 32 * 4
    }

    fn context_register(&self, core: usize, register: usize) -> usize {
        CONTEXT + CONTEXT_STRIDE * usize::from(self.context[core]) + register
    }

    /// All sources at one priority, none enabled, for the calling core's context.
    pub fn init_core(&self, core: usize) {
        for source in (0..SOURCES).step_by(32) {
            self.write(self.enable_word(core, source), 0);
        }
        self.write(self.context_register(core, THRESHOLD), 0);
    }

    /// Source priorities; once.
    pub fn init(&self) {
        (1..SOURCES).for_each(|source| self.write(4 * source, PRIORITY));
    }

    /// Lets `source` interrupt `core`.
    pub fn enable(&self, core: usize, source: usize) {
        let word = self.enable_word(core, source);
        self.write(word, self.read(word) | 1 << (source % 32));
    }

    /// Stops `source` from interrupting any core.
    pub fn disable(&self, cores: usize, source: usize) {
        for core in 0..cores {
            let word = self.enable_word(core, source);
            self.write(word, self.read(word) & !(1 << (source % 32)));
        }
    }

    /// The most urgent pending source of `core`, if any; it stays silent until `complete`.
    pub fn claim(&self, core: usize) -> Option<usize> {
        let source = self.read(self.context_register(core, CLAIM)) as usize;
        if source == 0 || source >= SOURCES {
            return None;
        }
        self.claimed_by[source].store(core as u8, Ordering::Relaxed);
        Some(source)
    }

    /// Lets `source` interrupt again. Harmless if it was not claimed.
    pub fn complete(&self, source: usize) {
        let core = self.claimed_by[source].swap(NOBODY, Ordering::Relaxed);
        if core != NOBODY {
            self.write(self.context_register(usize::from(core), CLAIM), source as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: usize = (CONTEXT + 8 * CONTEXT_STRIDE) / 4;

    fn with_plic(test: impl FnOnce(&Plic, &dyn Fn(usize) -> u32, &dyn Fn(usize, u32))) {
        let memory: Vec<core::cell::Cell<u32>> = vec![core::cell::Cell::new(0); WORDS];
        let mut context = [0; MAX_NUM_NODES];
        context[..2].copy_from_slice(&[1, 3]);
        // SAFETY: the memory is as large as the registers of four harts and lives as long as the controller.
        let plic = unsafe { Plic::new(memory.as_ptr().expose_provenance(), context) };
        test(&plic, &|offset| memory[offset / 4].get(), &|offset, value| memory[offset / 4].set(value));
    }

    #[test]
    fn registers_are_where_the_specification_puts_them() {
        with_plic(|plic, read, _| {
            plic.init();
            assert_eq!((read(0), read(4), read(4 * 95)), (0, PRIORITY, PRIORITY));
            plic.enable(0, 10);
            plic.enable(1, 33);
            assert_eq!(read(0x2000 + 0x80), 1 << 10);
            assert_eq!(read(0x2000 + 3 * 0x80 + 4), 1 << 1);
            plic.disable(2, 33);
            assert_eq!(read(0x2000 + 3 * 0x80 + 4), 0);
        });
    }

    #[test]
    fn completion_goes_to_the_context_that_claimed() {
        with_plic(|plic, read, write| {
            let claim = 0x20_0004 + 3 * 0x1000;
            write(claim, 11);
            assert_eq!(plic.claim(1), Some(11));
            write(claim, 0);
            plic.complete(11);
            assert_eq!(read(claim), 11);
            write(claim, 0);
            plic.complete(11);
            assert_eq!(read(claim), 0, "a source is completed once");
        });
    }

    #[test]
    fn a_source_out_of_range_is_not_believed() {
        with_plic(|plic, _, write| {
            write(0x20_0004 + 0x1000, SOURCES as u32);
            assert_eq!(plic.claim(0), None);
        });
    }
}
