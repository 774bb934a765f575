//! User interrupts: receivers, threads and notifications agree; every valid hardware entry has its capability.

use super::survey::{Mark, Survey};
use crate::object::cap::Kind;
use crate::object::sender_table::{self, SenderTable};
use crate::state::{Kernel, RECEIVERS};

/// Checks receivers and sender tables.
pub fn check(k: &Kernel, survey: &mut Survey) {
    for number in 1..RECEIVERS {
        let receiver = &k.receivers[number];
        let Some(notification) = receiver.notification else {
            assert!(receiver.entries.is_none(), "somebody can post to the free receiver {number}");
            continue;
        };
        assert_eq!(usize::from(k.get(notification).receiver()), number, "receiver of a notification");
        let thread = receiver.thread.expect("a receiver in use has a thread");
        assert!(survey.has(thread.word(), Mark::Thread), "receiver of no thread");
        assert_eq!(usize::from(k.get(thread).user_interrupt.receiver), number, "receiver of a thread");
    }
    for index in 0..survey.len() {
        let slot = survey.slot(index);
        let cap = k.cap(slot);
        match cap.kind() {
            Kind::SenderEntry => {
                let parent = core::iter::successors(k.get(slot).mdb.prev(), |&prev| k.get(prev).mdb.prev())
                    .find(|&prev| !k.cap(prev).is(Kind::SenderEntry))
                    .expect("an entry has a parent");
                assert_eq!(k.cap(parent).badge(), cap.badge(), "an entry and its parent");
                assert_eq!(k.cap(parent).object(), Some(cap.entry_notification()), "an entry and its parent");
                let receiver = k.get(cap.entry_notification()).receiver();
                assert_ne!(receiver, 0, "an entry without receiver");
                let expected = sender_table::hardware_entry(receiver, cap.badge());
                assert_eq!(Some(sender_table::entry_at(k, slot)), expected, "a hardware entry and its capability");
            }
            Kind::SenderTable => {
                if let Some(table) = cap.object::<SenderTable>() {
                    let table = k.get(table);
                    for (entry, slot) in table.entries.iter().zip(&table.slots) {
                        assert_eq!(*entry != 0, !slot.cap.is_null(), "a hardware entry without capability");
                    }
                }
            }
            _ => {}
        }
    }
}
