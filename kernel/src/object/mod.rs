//! The nouns of the API, one file each: the object's layout, `decode_*` (checks, changes nothing), `invoke_*` (cannot be refused any
//! more, at most preempted).

pub mod cap;
pub mod cnode;
pub mod delete;
pub mod domain;
pub mod endpoint;
pub mod irq;
pub mod mdb;
pub mod notification;
pub mod reply;
pub mod sender_table;
pub mod tcb;
pub mod untyped;
pub mod user_interrupt;
pub mod vspace;
