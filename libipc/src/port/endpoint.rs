//! Synchronous channels: the server receives while its executor parks, the client calls.
//!
//! An answer that is ready when the executor parks goes out with the next receive, as one `ReplyRecv`: the kernel's fast path.
//! A caller who is not answered by then is saved into a reply slot of the CSpace and gets a `Send` later. With no slot left
//! it is turned away ([`FULL`]). For a server that has died the root task answers ([`SERVER_GONE`]).
//!
//! The doorbell is bound to the thread, so its bits arrive at the same receive. Bits of devices are 63 downwards and badges
//! of channels small numbers, so a badge from 2^32 up is bits of the doorbell.

use alloc::rc::Rc;

use userlib::cap::{CPtr, Cap, Endpoint, Reply, slot};
use userlib::env::{Env, Slots};
use userlib::supervisor::SERVER_GONE;
use userlib::syscall::{self, Received, Registers};
use userlib::{MessageInfo, ipc_buffer};

use crate::error::CallError;
use crate::mailbox::{Caller, Mailbox};
use crate::message::{Message, WORDS};

/// Label of the answer to a request that the server dropped. Operations are 16 bits.
const DROPPED: u64 = 1 << 16;
/// Label of the answer to a call that the server has no slot for.
const FULL: u64 = 2 << 16;
/// Badges from here up are bits of the doorbell.
const FIRST_DOORBELL: u64 = 1 << 32;
/// Message words in registers.
const REGISTERS: usize = 4;

#[inline] // hot path: shuffles registers
fn pack(message: &Message) -> (MessageInfo, Registers) {
    let payload = message.payload();
    for (index, word) in payload.iter().enumerate().skip(REGISTERS) {
        ipc_buffer::set_message_word(index, *word);
    }
    let [a, b, c, d, ..] = message.words;
    (MessageInfo::new(message.op.into(), 0, 0, payload.len()), [a, b, c, d])
}

#[inline] // hot path: shuffles registers
fn unpack(received: &Received) -> Message {
    let len = received.info.length().min(WORDS);
    let mut words = [0; WORDS];
    words[..REGISTERS].copy_from_slice(&received.words);
    for (index, word) in words.iter_mut().enumerate().take(len).skip(REGISTERS) {
        *word = ipc_buffer::message_word(index);
    }
    Message { op: received.info.label() as u16, len: len as u8, words }
}

fn receive(until: Option<u64>) -> Received {
    match until {
        None => slot::ENDPOINT.recv(),
        Some(until) => syscall::recv_until(CPtr::NULL, slot::ENDPOINT.cptr(), until),
    }
}

#[inline] // hot path
fn pack_answer(answer: &Option<Message>) -> (MessageInfo, Registers) {
    match answer {
        Some(message) => pack(message),
        None => (MessageInfo::new(DROPPED, 0, 0, 0), [0; REGISTERS]),
    }
}

/// The receiving side, inside the port of a server.
pub(crate) struct EndpointServer {
    mailbox: Rc<Mailbox>,
    slots: Slots,
}

impl EndpointServer {
    pub(crate) fn new(env: &Env) -> Self {
        let slots = env.reply_slots();
        Self { mailbox: Rc::new(Mailbox::new(slots.count as usize)), slots }
    }

    pub(crate) fn mailbox(&self) -> Rc<Mailbox> {
        self.mailbox.clone()
    }

    /// Sends the answers to saved callers.
    fn send_outgoing(&self) {
        while let Some((index, answer)) = self.mailbox.outgoing() {
            let (info, words) = pack_answer(&answer);
            Reply(CPtr(self.slots.first + index as u64)).send(info, words);
        }
    }

    /// The executor goes on without parking: answers leave now.
    pub(crate) fn flush(&self) {
        self.send_outgoing();
        if let Caller::Answered(answer) = self.mailbox.caller() {
            let (info, words) = pack_answer(&answer);
            syscall::reply(info, words);
            self.mailbox.caller_gone();
        }
    }

    /// Answers, receives until `until` at most, and leaves the message in the mailbox. Returns bits of the doorbell, if it was those that
    /// came.
    pub(crate) fn park(&self, until: Option<u64>) -> u64 {
        self.send_outgoing();
        let received = match (self.mailbox.caller(), until) {
            (Caller::Answered(answer), None) => {
                let (info, words) = pack_answer(&answer);
                slot::ENDPOINT.reply_recv(info, words)
            }
            (Caller::Answered(answer), _) => {
                let (info, words) = pack_answer(&answer);
                syscall::reply(info, words);
                receive(until)
            }
            (Caller::Waiting(ticket), _) => {
                self.save(ticket);
                receive(until)
            }
            (Caller::Nobody, _) => receive(until),
        };
        self.mailbox.caller_gone();
        if received.badge >= FIRST_DOORBELL {
            return received.badge;
        }
        if !self.mailbox.arrive(received.badge, unpack(&received)) {
            // The time has come, and nobody hears this; or a badge that the root task gives to nobody: answer rather than leave its
            // holder waiting for ever.
            syscall::reply(MessageInfo::new(DROPPED, 0, 0, 0), [0; REGISTERS]);
        }
        0
    }

    /// Saves the caller, or turns it away.
    fn save(&self, ticket: u64) {
        match self.mailbox.reserve(ticket) {
            Some(index) => {
                // Fails if the message was sent without wanting a reply: then the later answer goes to an empty slot, and
                // nobody misses it.
                let _ = slot::CNODE.slot(self.slots.first + index as u64).save_caller();
            }
            None => syscall::reply(MessageInfo::new(FULL, 0, 0, 0), [0; REGISTERS]),
        }
    }
}

/// The calling side. Any thread may have its own.
#[derive(Clone, Copy)]
pub struct SyncClient {
    endpoint: Endpoint,
}

impl SyncClient {
    /// A client of the server behind `endpoint`.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    /// The client of the synchronous channel `name`; `None` if this program has no such channel or it is asynchronous.
    pub fn from_env(env: &Env, name: &str) -> Option<Self> {
        use userlib::env::{Role, Transport};
        match env.channel(name)? {
            channel if channel.role != Role::Client => None,
            channel => match channel.transport {
                Transport::Sync { endpoint } => Some(Self { endpoint }),
                Transport::Async { .. } => None,
            },
        }
    }

    /// Sends `message` and waits in the kernel for the reply.
    ///
    /// # Errors
    /// If the server dropped the request, had no slot to answer it later, or has died.
    #[inline] // hot path: the trap should be the only call
    pub fn call(&self, message: Message) -> Result<Message, CallError> {
        let (info, words) = pack(&message);
        let reply = self.endpoint.call(info, words);
        match reply.info.label() {
            DROPPED => Err(CallError::Dropped),
            FULL => Err(CallError::Full),
            SERVER_GONE => Err(CallError::Closed),
            _ => Ok(unpack(&reply)),
        }
    }

    /// Sends `message` and waits until the server has received it.
    pub fn send(&self, message: Message) {
        let (info, words) = pack(&message);
        syscall::send(self.endpoint.cptr(), info, words);
    }
}
