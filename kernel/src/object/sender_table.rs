//! Sender tables: what `uipi.send` reads, and behind every entry a capability.
//!
//! The first page is the hardware's: 512 entries, of which the first 128 can be valid. The entries after them hold links between the
//! entries that post to the same receiver: slot addresses, whose bit 0 is clear, which the hardware reads as "not valid". The second
//! page holds one capability slot per entry. The capability is a child of the notification capability that was registered (mdb.rs);
//! when it goes, the hardware entry goes first.

use abi::extension::{SENDER_TABLE_BITS, SENDER_TABLE_ENTRIES, SENDER_TABLE_REGISTER, SENDER_TABLE_UNREGISTER};
use abi::rights::Rights;
use uintr::format::SenderEntry;

use super::cap::{Cap, Cte};
use super::notification::Notification;
use super::{delete, user_interrupt};
use crate::api::error::{Preempted, Refusal, Stop};
use crate::api::invocation::{Answer, Invocation};
use crate::arch::Arch;
use crate::mem::{Kva, Object, Ref};
use crate::state::Kernel;

const ENTRIES: usize = SENDER_TABLE_ENTRIES;
const PAGE_WORDS: usize = 512;
/// Most entries that can post to one receiver: copying or deleting its notification's capability walks past them.
const MAX_SENDERS: u16 = 512;

/// A sender table.
#[repr(C, align(8192))]
pub struct SenderTable {
    /// Hardware entries.
    pub entries: [u64; ENTRIES],
    /// By entry: the next entry that posts to the same receiver.
    next: [Option<Ref<Cte>>; ENTRIES],
    /// By entry: the one before.
    prev: [Option<Ref<Cte>>; ENTRIES],
    zero: [u64; PAGE_WORDS - 3 * ENTRIES],
    /// By entry: its capability.
    pub slots: [Cte; ENTRIES],
}

const _: () = assert!(size_of::<SenderTable>() == 1 << SENDER_TABLE_BITS);
// SAFETY: plain words and links; zero is an empty table.
unsafe impl Object for SenderTable {}

const SLOTS_OFFSET: u64 = core::mem::offset_of!(SenderTable, slots) as u64;

/// Table and index of the entry whose capability slot is `slot`.
fn place(slot: Ref<Cte>) -> (Ref<SenderTable>, usize) {
    let base = slot.word() & !((1 << SENDER_TABLE_BITS) - 1);
    let index = (slot.word() - base - SLOTS_OFFSET) as usize / size_of::<Cte>();
    // SAFETY: only slots of sender tables, which are aligned to their size, hold capabilities to entries.
    (unsafe { Ref::assume(Kva(base)) }, index)
}

fn slot_of(table: Ref<SenderTable>, index: usize) -> Ref<Cte> {
    debug_assert!(index < ENTRIES);
    // SAFETY: part of the table.
    unsafe { Ref::assume(table.kva().offset(SLOTS_OFFSET + (index * size_of::<Cte>()) as u64)) }
}

/// SenderTable invocations.
pub fn decode(k: &mut Kernel, call: &Invocation) -> Result<Answer, Stop> {
    let Some(table) = call.cap.object::<SenderTable>() else { return Err(Refusal::IllegalOperation.into()) };
    match call.label {
        SENDER_TABLE_REGISTER => {
            let source = call.extra(0)?;
            let (notification, badge) = check_notification(k, k.cap(source))?;
            let receiver = k.get(notification).receiver();
            let free = k.get(table).slots.iter().position(|slot| slot.cap.is_null()).ok_or(Refusal::DeleteFirst)?;
            let entry = SenderEntry::new(receiver, badge.trailing_zeros() as u8).ok_or(Refusal::InvalidArgument(0))?;
            if k.receivers[usize::from(receiver)].entry_count == MAX_SENDERS {
                return Err(Refusal::NotEnoughMemory(0).into());
            }
            call.commit(k);
            invoke_register(k, table, free, source, Cap::sender_entry(notification, badge), entry);
            Ok(Answer::word(free as u64))
        }
        SENDER_TABLE_UNREGISTER => {
            call.need(1)?;
            let index = call.word(k, 0) as usize;
            if index >= ENTRIES {
                return Err(Refusal::Range(0, ENTRIES as u64 - 1).into());
            }
            call.commit(k);
            delete::delete_one(k, slot_of(table, index));
            Ok(Answer::Empty)
        }
        _ => Err(Refusal::IllegalOperation.into()),
    }
}

/// The hardware entry that posts the bit of `badge` to `receiver`.
pub fn hardware_entry(receiver: u16, badge: u64) -> Option<u64> {
    SenderEntry::new(receiver, badge.trailing_zeros() as u8).map(SenderEntry::bits)
}

/// The hardware entry behind a capability slot.
pub fn entry_at(k: &Kernel, slot: Ref<Cte>) -> u64 {
    let (table, index) = place(slot);
    k.get(table).entries[index]
}

/// The notification to register: writable, a doorbell, its badge one bit.
fn check_notification(k: &Kernel, cap: Cap) -> Result<(Ref<Notification>, u64), Refusal> {
    let notification = cap
        .object::<Notification>()
        .filter(|&notification| cap.rights().contains(Rights::WRITE) && k.get(notification).receiver() != 0)
        .ok_or(Refusal::InvalidCapability(1))?;
    if cap.badge().is_power_of_two() { Ok((notification, cap.badge())) } else { Err(Refusal::InvalidArgument(0)) }
}

fn invoke_register(
    k: &mut Kernel,
    table: Ref<SenderTable>,
    index: usize,
    source: Ref<Cte>,
    cap: Cap,
    entry: SenderEntry,
) {
    let slot = slot_of(table, index);
    k.insert_leaf(cap, source, slot);
    let receiver = usize::from(entry.receiver());
    k.receivers[receiver].entry_count += 1;
    let first = k.receivers[receiver].entries.replace(slot);
    if let Some(first) = first {
        let (other, place) = place(first);
        k.get_mut(other).prev[place] = Some(slot);
    }
    let object = k.get_mut(table);
    object.next[index] = first;
    object.prev[index] = None;
    // One store makes it valid.
    object.entries[index] = entry.bits();
}

/// Makes the hardware entry behind a capability that is being deleted invalid, and takes it off its receiver's list.
pub fn disable(k: &mut Kernel, slot: Ref<Cte>, cap: Cap) {
    let (table, index) = place(slot);
    let receiver = usize::from(k.get(cap.entry_notification()).receiver());
    let object = k.get_mut(table);
    object.entries[index] = 0;
    let (next, prev) = (object.next[index].take(), object.prev[index].take());
    if let Some(next) = next {
        let (other, place) = place(next);
        k.get_mut(other).prev[place] = prev;
    }
    match prev {
        Some(prev) => {
            let (other, place) = place(prev);
            k.get_mut(other).next[place] = next;
        }
        None => k.receivers[receiver].entries = next,
    }
    k.receivers[receiver].entry_count -= 1;
    k.arch.fence_senders();
    k.count_costly_work();
}

/// A capability to a table goes away: the thread that uses it through this one has none; with the last one, all entries go.
pub fn finalise(k: &mut Kernel, cap: Cap, last: bool) -> Result<(), Preempted> {
    if let Some(thread) = cap.installed_in() {
        user_interrupt::set_table(k, thread, None);
    }
    if let (true, Some(table)) = (last, cap.object::<SenderTable>()) {
        for slot in (0..ENTRIES).map(|index| slot_of(table, index)) {
            if !k.cap(slot).is_null() {
                delete::delete_one(k, slot);
                k.preemption_point()?;
            }
        }
    }
    Ok(())
}
