//! The ring against a queue, with a producer that may also lie.
#![cfg(not(loom))]

use std::collections::VecDeque;

use libipc::PeerMisbehaviour;
use libipc::entry::{Entry, Kind, Packet};
use libipc::message::{Message, WORDS};
use libipc::ring::{Consumer, Producer};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Push(Packet),
    Pop,
}

fn packet() -> impl Strategy<Value = Packet> {
    let kind = prop_oneof![Just(Kind::Call), Just(Kind::OneWay), Just(Kind::Reply), Just(Kind::Dropped)];
    (kind, any::<u64>(), any::<u16>(), 0..=WORDS as u8, any::<[u64; WORDS]>())
        .prop_map(|(kind, cookie, op, len, words)| Packet { kind, cookie, message: Message { op, len, words } })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![packet().prop_map(Step::Push), Just(Step::Pop)]
}

fn entries(shift: u32) -> &'static [Entry] {
    Box::leak((0..1 << shift).map(|_| Entry::new()).collect())
}

/// Takes the next packet.
fn pop(consumer: &Consumer) -> Result<Option<Packet>, PeerMisbehaviour> {
    let Some(arrival) = consumer.peek()? else { return Ok(None) };
    let kinds = [Kind::Call, Kind::OneWay, Kind::Reply, Kind::Dropped];
    let kind = kinds.into_iter().find(|kind| arrival.is(*kind)).ok_or_else(|| arrival.fault())?;
    let packet = Packet { kind, cookie: arrival.cookie(), message: arrival.message() };
    consumer.advance();
    Ok(Some(packet))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 8 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// With credits respected, the ring is a queue: nothing lost, doubled, reordered or changed.
    #[test]
    fn an_honest_ring_is_a_queue(shift in 1u32..5, steps in prop::collection::vec(step(), 0..200)) {
        let entries = entries(shift);
        let (producer, consumer) = (Producer::new(entries), Consumer::new(entries));
        let mut queue = VecDeque::new();
        for step in steps {
            match step {
                Step::Push(packet) if queue.len() < entries.len() => {
                    producer.push(&packet);
                    queue.push_back(packet);
                }
                Step::Push(_) => (), // no credit
                Step::Pop => {
                    prop_assert_eq!(consumer.is_ready(), !queue.is_empty());
                    prop_assert_eq!(pop(&consumer), Ok(queue.pop_front()));
                }
            }
            prop_assert_eq!(producer.pushed() - consumer.taken(), queue.len() as u64);
        }
    }

    /// Whatever words a peer writes wherever it likes, a consumer gives a well-formed packet, nothing, or a typed error, and
    /// advances only with a packet.
    #[test]
    fn a_lying_producer_gets_no_further_than_an_error(
        writes in prop::collection::vec((0usize..4, 0usize..8, lie()), 1..100),
    ) {
        let entries = entries(2);
        let consumer = Consumer::new(entries);
        for (index, word, value) in writes {
            scribble(&entries[index], word, value);
            let before = consumer.taken();
            let ready = consumer.is_ready();
            match pop(&consumer) {
                Ok(Some(packet)) => {
                    prop_assert!(ready);
                    prop_assert!(usize::from(packet.message.len) <= WORDS);
                    prop_assert!(packet.message.payload().len() <= WORDS);
                    prop_assert_eq!(consumer.taken(), before + 1);
                }
                Ok(None) => {
                    prop_assert!(!ready);
                    prop_assert_eq!(consumer.taken(), before);
                }
                Err(error) => {
                    prop_assert!(ready, "an error is worth a look");
                    prop_assert!(matches!(error, PeerMisbehaviour::Sequence | PeerMisbehaviour::Kind | PeerMisbehaviour::Length));
                    prop_assert_eq!(consumer.taken(), before);
                }
            }
        }
    }
}

/// Words that are close to right, and any other.
fn lie() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0u64..20, 0u64..9, 0u64..6, any::<u16>())
            .prop_map(|(mark, len, kind, op)| mark << 32 | u64::from(op) | len << 16 | kind << 24),
        any::<u64>(),
    ]
}

/// Writes one word of an entry as a peer that shares the memory can.
fn scribble(entry: &Entry, word: usize, value: u64) {
    use std::sync::atomic::{AtomicU64, Ordering};
    let start = std::ptr::from_ref(entry).cast::<AtomicU64>();
    // SAFETY: an entry is eight atomic words (its layout is asserted), and `word` is below eight.
    unsafe { &*start.add(word) }.store(value, Ordering::Relaxed);
}
