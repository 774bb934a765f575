//! The riscv64 member of [`Arch`]: each name hands over to the file of its mechanism.

use super::context::{FpuState, UserInterruptState};
use super::plic::Plic;
use super::sv39::{ENTRIES, Pte};
use super::{console, csr, fpu, irq, mmu, sbi, smp, stall, start, timer, uintc};
use crate::arch::{Arch, Interrupt};
use crate::mem::{Kva, Paddr, Ref};
use crate::object::tcb::Tcb;

/// The machine, as the holder of the big lock uses it.
pub struct Riscv64 {
    plic: Option<Plic>,
    fpu: bool,
    /// While fences are held back: harts that are owed one (mask of hart ids).
    held_fences: Option<usize>,
}

impl Riscv64 {
    /// The machine with this interrupt controller; `fpu`: every hart has F and D.
    pub const fn new(plic: Option<Plic>, fpu: bool) -> Self {
        Self { plic, fpu, held_fences: None }
    }

    /// Prepares the interrupt controller for this core.
    pub fn init_core(&mut self) {
        if let Some(plic) = &self.plic {
            plic.init_core(super::core_number());
        }
        irq::init_core();
    }
}

impl Arch for Riscv64 {
    #[inline(always)]
    fn pointer(&self, address: Kva, _bytes: usize) -> *mut u8 {
        address.0 as *mut u8
    }

    #[inline]
    fn cores(&self) -> usize {
        smp::cores()
    }

    #[inline(always)]
    fn core(&self) -> usize {
        super::core_number()
    }

    fn call_cores(&mut self, mask: usize) {
        smp::call(mask);
    }

    #[inline(always)]
    fn hand_over(&mut self, core: usize, thread: Ref<Tcb>) -> bool {
        smp::hand_over(core, thread)
    }

    fn handed(&self, core: usize) -> Option<Ref<Tcb>> {
        smp::attention(core).handed()
    }

    #[inline(always)]
    fn take_handed(&mut self) -> Option<Ref<Tcb>> {
        irq::take_handed()
    }

    fn take_back(&mut self, core: usize) -> Option<Ref<Tcb>> {
        smp::attention(core).take_back()
    }

    #[inline(always)]
    fn claim(&self, address: Kva) {
        // SAFETY: a load of RAM that the kernel maps; the reservation is dropped before a thread runs (entry.S, `resume`).
        unsafe { core::arch::asm!("lr.d zero, ({})", in(reg) address.0, options(nostack, preserves_flags)) }
    }

    fn stall_core(&mut self, core: usize) {
        stall::stall(core);
    }

    #[inline(always)]
    fn switch_space(&mut self, root: Paddr, asid: u16) {
        mmu::switch(root.0, asid);
    }

    fn switch_to_kernel_space(&mut self) {
        mmu::switch_to_kernel();
    }

    fn evict_space(&mut self, asid: u16) {
        let own = super::core_number();
        if mmu::core_is_in(own, asid) {
            mmu::switch_to_kernel();
        }
        (0..smp::cores()).filter(|&core| core != own && mmu::core_is_in(core, asid)).for_each(stall::evict);
        mmu::fence_space(asid);
    }

    fn fence_page(&mut self, asid: u16, vaddr: u64) {
        let others = mmu::fence_page_here(asid, vaddr);
        match &mut self.held_fences {
            Some(held) => *held |= others,
            None => mmu::fence_page_there(others, vaddr),
        }
    }

    #[inline]
    fn hold_fences(&mut self) {
        // A core that enters the address space later drops its translations then.
        self.held_fences.get_or_insert(0);
    }

    #[inline]
    fn owes_fences(&self) -> bool {
        self.held_fences.is_some_and(|others| others != 0)
    }

    #[inline]
    fn release_fences(&mut self) {
        if let Some(others) = self.held_fences.take() {
            mmu::fence_there(others);
        }
    }

    fn fence_space(&mut self, asid: u16) {
        mmu::fence_space(asid);
    }

    fn kernel_half(&self) -> [Pte; ENTRIES / 2] {
        start::kernel_half()
    }

    fn code_changed(&mut self) {
        mmu::code_changed();
    }

    fn pending_interrupt(&mut self) -> Option<Interrupt> {
        irq::pending(self.plic.as_ref())
    }

    #[inline]
    fn preempts(&self) -> bool {
        csr::read!("sip") & csr::read!("sie") & (csr::interrupt::EXTERNAL | csr::interrupt::TIMER) != 0
    }

    #[inline]
    fn lock_is_wanted(&self) -> bool {
        smp::several() && smp::lock_is_wanted()
    }

    fn enable_source(&mut self, source: usize) {
        if let Some(plic) = &self.plic {
            plic.enable(super::core_number(), source);
        }
    }

    fn disable_source(&mut self, source: usize) {
        if let Some(plic) = &self.plic {
            plic.disable(smp::cores(), source);
        }
    }

    fn complete_source(&mut self, source: usize) {
        if let Some(plic) = &self.plic {
            plic.complete(source);
        }
    }

    fn now(&self) -> u64 {
        timer::now()
    }

    fn tick_length(&self) -> u64 {
        timer::tick_length()
    }

    fn set_timer(&mut self, at: u64) {
        sbi::set_timer(at);
    }

    fn cycles(&self) -> u64 {
        csr::read!("cycle") as u64
    }

    fn put_char(&mut self, byte: u8) {
        console::put_char(byte);
    }

    fn halt(&mut self) -> ! {
        sbi::shut_down(sbi::Reason::None)
    }

    fn has_fpu(&self) -> bool {
        self.fpu
    }

    fn enter_fpu(&mut self, state: &mut FpuState, load: bool) {
        fpu::enter(state, load);
    }

    fn leave_fpu(&mut self, state: &mut FpuState) {
        fpu::leave(state);
    }

    #[inline]
    fn receivers(&self) -> u16 {
        uintc::receivers()
    }

    fn reset_receiver(&mut self, receiver: u16) {
        uintc::reset(receiver);
    }

    fn post_receiver(&mut self, receiver: u16, bits: u64) {
        uintc::post(receiver, bits);
    }

    fn take_receiver(&mut self, receiver: u16) -> u64 {
        uintc::take(receiver)
    }

    /// A remote fence interrupts the other harts in machine mode, and an interrupt is taken between instructions. (An emulated send
    /// holds the kernel lock.)
    fn fence_senders(&mut self) {
        let others = smp::other_harts();
        if others != 0 {
            sbi::remote_sfence_vma(others, 0, 4096);
        }
    }

    /// Taken and put back: the line of this hart may fall and rise in between, which nobody sees while the hart is in the kernel, and
    /// for a thread on another hart the bits come a moment later.
    fn receiver_pending(&mut self, receiver: u16) -> bool {
        let bits = self.take_receiver(receiver);
        if bits != 0 {
            self.post_receiver(receiver, bits);
        }
        bits != 0
    }

    fn unload_user_interrupts(&mut self, state: &mut UserInterruptState) {
        uintc::unload(state);
    }

    fn load_user_interrupts(&mut self, state: &mut UserInterruptState) {
        uintc::load(state);
    }
}
