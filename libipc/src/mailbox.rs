//! Where a server over an endpoint and its port meet.
//!
//! The port ([`crate::port::endpoint`]) receives while the executor parks, and leaves the message here; the server takes it from
//! here, and leaves the answer here. So the server touches no kernel object, and is the same code as over rings.
//!
//! ```text
//!   caller in the kernel's reply slot:      nobody ── arrive ──> Waiting(ticket) ── answer ──> Answered ── port ──> nobody
//!                                                                     │
//!                                             defer: next receive, before the answer ──> saved[slot] = ticket
//!                                                                     answer ──> outbox ── port ──> nobody
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::message::Message;

/// A request that the port received.
#[derive(Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) channel: usize,
    pub(crate) ticket: u64,
    pub(crate) message: Message,
}

/// What the kernel's reply slot of the thread holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Caller {
    /// Nobody.
    Nobody,
    /// The caller with this ticket, not yet answered.
    Waiting(u64),
    /// A caller who has this answer; `None` means dropped.
    Answered(Option<Message>),
}

/// The mailbox of one server.
pub(crate) struct Mailbox {
    badges: RefCell<Box<[u64]>>,
    arrived: Cell<Option<Arrived>>,
    caller: Cell<Caller>,
    tickets: Cell<u64>,
    /// Per reply slot: whose caller was saved there.
    saved: RefCell<Vec<Option<u64>>>,
    /// Answers to saved callers, by reply slot.
    outbox: RefCell<Vec<(usize, Option<Message>)>>,
}

impl Mailbox {
    /// A mailbox with room for `slots` deferred callers.
    #[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "made by the guest's port and by tests"))]
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            badges: RefCell::default(),
            arrived: Cell::new(None),
            caller: Cell::new(Caller::Nobody),
            tickets: Cell::new(0),
            saved: RefCell::new(alloc::vec![None; slots]),
            outbox: RefCell::new(Vec::with_capacity(slots)),
        }
    }
}

/// The server's side.
impl Mailbox {
    #[inline] // hot path
    pub(crate) fn take(&self) -> Option<Arrived> {
        self.arrived.take()
    }

    pub(crate) fn is_ready(&self) -> bool {
        let arrived = self.arrived.take();
        self.arrived.set(arrived);
        arrived.is_some()
    }

    /// Answers the caller with `ticket`; `None` means that the request was dropped. A caller who is not here any more was
    /// turned away for want of a reply slot.
    #[inline(never)] // its callers are servers over rings too
    pub(crate) fn answer(&self, ticket: u64, answer: Option<Message>) {
        if self.caller.get() == Caller::Waiting(ticket) {
            self.caller.set(Caller::Answered(answer));
            return;
        }
        let slot = self.saved.borrow().iter().position(|saved| *saved == Some(ticket));
        if let Some(slot) = slot {
            self.outbox.borrow_mut().push((slot, answer));
        }
    }
}

/// The port's side.
#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "called by the guest's port and by tests"))]
impl Mailbox {
    /// From now on requests with `badges[i]` belong to channel `i`.
    pub(crate) fn serve(&self, badges: Vec<u64>) {
        *self.badges.borrow_mut() = badges.into();
    }

    /// A message came with `badge`. Returns false if it is nobody's: badge of no channel.
    pub(crate) fn arrive(&self, badge: u64, message: Message) -> bool {
        let Some(channel) = self.badges.borrow().iter().position(|known| *known == badge) else {
            return false;
        };
        let ticket = self.tickets.get() + 1;
        self.tickets.set(ticket);
        self.caller.set(Caller::Waiting(ticket));
        self.arrived.set(Some(Arrived { channel, ticket, message }));
        true
    }

    /// What the kernel's reply slot holds.
    pub(crate) fn caller(&self) -> Caller {
        self.caller.get()
    }

    /// The caller has been answered, turned away or saved.
    pub(crate) fn caller_gone(&self) {
        self.caller.set(Caller::Nobody);
    }

    /// The reply slot into which the port may save the caller with `ticket`; `None` if all are taken.
    pub(crate) fn reserve(&self, ticket: u64) -> Option<usize> {
        let mut saved = self.saved.borrow_mut();
        let slot = saved.iter().position(Option::is_none)?;
        saved[slot] = Some(ticket);
        Some(slot)
    }

    /// The next answer to a saved caller; its slot is free from now on.
    pub(crate) fn outgoing(&self) -> Option<(usize, Option<Message>)> {
        let (slot, answer) = self.outbox.borrow_mut().pop()?;
        self.saved.borrow_mut()[slot] = None;
        Some((slot, answer))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use alloc::rc::Rc;

    use crate::executor::Executor;
    use crate::port::{Patience, Port};
    use crate::serve::Server;

    fn message(value: u64) -> Message {
        Message::new(1, [value])
    }

    /// Plays the kernel and the clients: delivers requests at each park, and writes down what the port would do.
    struct Script {
        mailbox: Rc<Mailbox>,
        requests: RefCell<Vec<(u64, u64)>>,
        trace: RefCell<Vec<String>>,
    }

    impl Script {
        fn log(&self, what: String) {
            self.trace.borrow_mut().push(what);
        }

        fn send_outgoing(&self) {
            while let Some((slot, answer)) = self.mailbox.outgoing() {
                self.log(format!("send {slot} {:?}", answer.map(|message| message.words[0])));
            }
        }
    }

    impl Port for Script {
        fn take(&self) -> u64 {
            0
        }
        fn can_arm(&self) -> bool {
            false
        }
        fn park(&self) -> u64 {
            self.send_outgoing();
            match self.mailbox.caller() {
                Caller::Answered(answer) => self.log(format!("reply {:?}", answer.map(|message| message.words[0]))),
                Caller::Waiting(ticket) => self.log(match self.mailbox.reserve(ticket) {
                    Some(slot) => format!("save {slot}"),
                    None => String::from("full"),
                }),
                Caller::Nobody => (),
            }
            self.mailbox.caller_gone();
            let (badge, value) = self.requests.borrow_mut().remove(0);
            if !self.mailbox.arrive(badge, message(value)) {
                self.log(format!("stranger {badge}"));
            }
            0
        }
        fn patience(&self) -> Patience {
            Patience::NONE
        }
    }

    fn script(slots: usize, requests: &[(u64, u64)]) -> (Script, Server) {
        let mailbox = Rc::new(Mailbox::new(slots));
        mailbox.serve(alloc::vec![3, 9]);
        let server = Server::over_mailbox(2, mailbox.clone());
        (Script { mailbox, requests: RefCell::new(requests.to_vec()), trace: RefCell::default() }, server)
    }

    #[test]
    fn an_answer_in_time_goes_out_with_the_next_receive() {
        let (script, server) = script(1, &[(3, 10), (9, 20), (5, 0), (3, 30)]);
        let executor = Executor::new(1);
        executor.attach(&server);
        let serve = async {
            for (channel, value) in [(0, 10), (1, 20), (0, 30)] {
                let request = server.recv().await;
                assert_eq!((request.channel(), request.message().words[0]), (channel, value));
                request.reply(message(value + 1));
            }
        };
        executor.spawn(serve).unwrap();
        executor.run(&script);
        assert_eq!(script.trace.take(), ["reply Some(11)", "reply Some(21)", "stranger 5"]);
        assert_eq!(script.mailbox.caller(), Caller::Answered(Some(message(31))), "left for the last flush");
    }

    #[test]
    fn a_late_answer_goes_to_the_saved_caller_and_frees_the_slot() {
        let (script, server) = script(1, &[(3, 10), (3, 20), (3, 30)]);
        let executor = Executor::new(1);
        executor.attach(&server);
        let serve = async {
            let first = server.recv().await;
            let second = server.recv().await; // parks with the first unanswered
            first.reply(message(11));
            second.reply(message(21));
            drop(server.recv().await);
        };
        executor.spawn(serve).unwrap();
        executor.run(&script);
        assert_eq!(script.trace.take(), ["save 0", "send 0 Some(11)", "reply Some(21)"]);
        assert_eq!(script.mailbox.caller(), Caller::Answered(None), "dropped unanswered");
        assert_eq!(script.mailbox.reserve(99), Some(0));
    }

    #[test]
    fn without_a_slot_the_caller_is_turned_away_and_its_answer_lost() {
        let (script, server) = script(1, &[(3, 10), (3, 20), (3, 30), (3, 40)]);
        let executor = Executor::new(1);
        executor.attach(&server);
        let serve = async {
            let first = server.recv().await;
            let second = server.recv().await;
            let third = server.recv().await; // the second finds no slot
            second.reply(message(21));
            first.reply(message(11));
            third.reply(message(31));
            server.recv().await.reply(message(41));
        };
        executor.spawn(serve).unwrap();
        executor.run(&script);
        assert_eq!(script.trace.take(), ["save 0", "full", "send 0 Some(11)", "reply Some(31)"]);
    }
}
