//! Who used the cores: seL4's `track_utilisation`, for images that ask for it.
//!
//! Entries and exits of the slow path take the cycle counter. What passes between an exit and the next entry belongs to the thread that
//! ran; what passes inside belongs to the thread that runs afterwards, as in seL4. The fast paths take no time stamps, so a kernel that
//! keeps this account has none. Each core has its own account, begun and ended by a thread of that core (`BenchmarkResetLog`,
//! `BenchmarkFinalizeLog`).

use crate::arch::Arch;
use crate::mem::Ref;
use crate::object::tcb::Tcb;
use crate::state::Kernel;

/// What a thread, or an idle core, has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Usage {
    /// When it got its core, in cycles.
    pub since: u64,
    /// Cycles outside of the kernel.
    pub cycles: u64,
    /// Times that it got a core.
    pub schedules: u64,
    /// Cycles in the kernel that ended with it.
    pub kernel_cycles: u64,
    /// Kernel entries that ended with it.
    pub kernel_entries: u64,
}

/// The account of a core.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// Begun and not ended.
    open: bool,
    /// When, in cycles.
    began: u64,
    ended: u64,
    /// Last kernel entry, and who ran then; `None`: it was deleted.
    entered: u64,
    before: Option<Ref<Tcb>>,
    schedules: u64,
    kernel_cycles: u64,
    kernel_entries: u64,
}

impl Account {
    /// Nothing yet.
    pub const NEW: Self = Self {
        open: false,
        began: 0,
        ended: 0,
        entered: 0,
        before: None,
        schedules: 0,
        kernel_cycles: 0,
        kernel_entries: 0,
    };
}

/// Words of an answer to `BenchmarkGetThreadUtilisation`.
pub const WORDS: usize = 13;

/// The kernel was entered.
#[inline]
pub fn enter(k: &mut Kernel) {
    if k.config.utilisation {
        stamp(k);
    }
}

#[cold]
fn stamp(k: &mut Kernel) {
    let (now, current) = (k.arch.cycles(), k.current());
    let core = k.core();
    let account = &mut k.accounts[core];
    (account.entered, account.before) = (now, Some(current));
}

/// The kernel is about to be left.
#[inline]
pub fn leave(k: &mut Kernel) {
    if k.config.utilisation && k.accounts[k.core()].open {
        charge(k);
    }
}

#[cold]
fn charge(k: &mut Kernel) {
    let (now, current) = (k.arch.cycles(), k.current());
    let Account { entered, before, .. } = k.accounts[k.core()];
    if before != Some(current) {
        hand_over(k, before, Some(current), entered);
    }
    let inside = now.wrapping_sub(entered);
    let usage = &mut k.get_mut(current).usage;
    usage.kernel_cycles += inside;
    usage.kernel_entries += 1;
    let core = k.core();
    let account = &mut k.accounts[core];
    account.kernel_cycles += inside;
    account.kernel_entries += 1;
}

/// At time `when`, the core goes from one thread to another.
fn hand_over(k: &mut Kernel, from: Option<Ref<Tcb>>, to: Option<Ref<Tcb>>, when: u64) {
    if let Some(from) = from {
        let usage = &mut k.get_mut(from).usage;
        usage.cycles += when.wrapping_sub(usage.since);
    }
    if let Some(to) = to {
        let usage = &mut k.get_mut(to).usage;
        usage.since = when;
        usage.schedules += 1;
        let core = k.core();
        k.accounts[core].schedules += 1;
    }
}

/// A thread is being deleted: the time before this entry was nobody's.
pub fn forget(k: &mut Kernel, thread: Ref<Tcb>) {
    for account in &mut k.accounts {
        if account.before == Some(thread) {
            account.before = None;
        }
    }
}

/// `BenchmarkResetLog`: begins the account of this core.
pub fn begin(k: &mut Kernel) {
    let (now, current, idle) = (k.arch.cycles(), k.current(), k.idle());
    k.get_mut(idle).usage = Usage::default();
    let core = k.core();
    k.accounts[core] = Account { open: true, began: now, entered: now, before: Some(current), ..Account::NEW };
    hand_over(k, None, Some(current), now);
}

/// `BenchmarkFinalizeLog`: ends it.
pub fn end(k: &mut Kernel) {
    if !k.accounts[k.core()].open {
        return;
    }
    let (now, current) = (k.arch.cycles(), k.current());
    hand_over(k, Some(current), None, now);
    let core = k.core();
    let account = &mut k.accounts[core];
    (account.open, account.ended) = (false, now);
}

/// `BenchmarkResetThreadUtilisation`.
pub fn reset(k: &mut Kernel, thread: Ref<Tcb>) {
    k.get_mut(thread).usage = Usage::default();
}

/// `BenchmarkGetThreadUtilisation`: the thread, the idle core, all.
pub fn report(k: &Kernel, thread: Ref<Tcb>) -> [u64; WORDS] {
    let usage = k.get(thread).usage;
    let idle_of = |core: usize| k.cores[core].idle.map_or(Usage::default(), |idle| k.get(idle).usage);
    let (idle, theirs) = (idle_of(k.core()), idle_of(usize::from(k.get(thread).core)));
    let account = &k.accounts[k.core()];
    [
        usage.cycles,
        usage.schedules,
        usage.kernel_cycles,
        usage.kernel_entries,
        idle.cycles,
        theirs.cycles,
        idle.schedules,
        idle.kernel_cycles,
        idle.kernel_entries,
        account.ended.wrapping_sub(account.began),
        account.schedules,
        account.kernel_cycles,
        account.kernel_entries,
    ]
}
