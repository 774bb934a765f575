//! What two programs share: notifications or an endpoint, rings, buffers.

use crate::failure::{Failure, Result, Step};
use crate::memory::{Memory, own};
use crate::process::Process;
use crate::vspace::{Access, Area, map_new};
use dtoolkit::Node;
use dtoolkit::fdt::FdtNode;
use libipc::bell::Doze;
use libipc::channel::DOZE_OFFSETS;
use userlib::cap::{CPtr, Cap, Notification, Rights};
use userlib::tree;

/// One end, as the system description tells it.
struct End<'a> {
    index: usize,
    process: &'a Process,
    peer: u64,
    vector: u32,
    ring: u64,
    arena: u64,
}

/// An asynchronous channel as the root task keeps it: to say for a program that has died what it cannot say itself.
pub struct Link {
    /// Client and server, by number of the program.
    ends: [usize; 2],
    /// The doorbells of client and server, with the bit of this channel.
    doorbells: [Notification; 2],
    /// The rings, at their address in the client.
    rings: Area,
    address: u64,
}

impl Link {
    /// The program `index` runs no more: marks its ends closed and wakes the peers, whose calls then end with an error.
    pub fn bury(&self, memory: &mut Memory, index: usize) -> Result<()> {
        for (end, peer) in [(0, 1), (1, 0)] {
            if self.ends[end] == index {
                self.rings.store(memory, self.address + DOZE_OFFSETS[end] as u64, Doze::Closed as u32)?;
                self.doorbells[peer].signal();
            }
        }
        Ok(())
    }
}

/// Connects client and server of the channel `node`.
pub fn connect(memory: &mut Memory, processes: &[Process], node: &FdtNode<'static>) -> Result<Option<Link>> {
    let client = end(processes, node, "client")?;
    let server = end(processes, node, "server")?;
    let link = match tree::text(node, "transport")? {
        "sync" => {
            let endpoint = server.process.endpoint.ok_or(Failure::Archive("endpoint of a server"))?;
            let badge = tree::number::<u64>(node, "index")? + 1;
            let rights = Rights::WRITE.with(Rights::GRANT_REPLY);
            let place = client.process.slot(client.peer);
            place.mint(own(endpoint.cptr().0), rights, badge).step("granting an endpoint")?;
            None
        }
        _ => {
            let mut doorbells = [Notification(CPtr::NULL); 2];
            for (doorbell, from, to) in [(1, &client, &server), (0, &server, &client)] {
                let (source, badge) = (own(to.process.doorbell.cptr().0), 1 << to.vector);
                from.process.slot(from.peer).mint(source, Rights::WRITE, badge).step("granting a doorbell")?;
                let kept = memory.slot()?;
                kept.mint(source, Rights::WRITE, badge).step("keeping a doorbell")?;
                doorbells[doorbell] = Notification(CPtr(kept.index));
            }
            let size = tree::long(node, "ring")?;
            let rings = map_new(memory, client.process.vspace, client.ring, size, Access::READ_WRITE)?;
            rings.map_again(memory, server.process.vspace, server.ring, Access::READ_WRITE)?;
            Some(Link { ends: [client.index, server.index], doorbells, rings, address: client.ring })
        }
    };
    share(memory, tree::long(node, "arena")?, (&client, client.arena), (&server, server.arena))?;
    Ok(link)
}

fn end<'a>(processes: &'a [Process], node: &FdtNode<'static>, role: &str) -> Result<End<'a>> {
    let node = node.child(role).ok_or(Failure::Archive("end of a channel"))?;
    let program = tree::text(&node, "program")?;
    let index = processes.iter().position(|process| process.name == program);
    let index = index.ok_or(Failure::Archive("program of a channel"))?;
    Ok(End {
        index,
        process: &processes[index],
        peer: tree::long(&node, "peer")?,
        vector: tree::number(&node, "vector")?,
        ring: tree::long(&node, "ring")?,
        arena: tree::long(&node, "arena")?,
    })
}

/// Maps new memory in both programs.
fn share(memory: &mut Memory, size: u64, first: (&End, u64), second: (&End, u64)) -> Result<()> {
    if size == 0 {
        return Ok(());
    }
    let frames = map_new(memory, first.0.process.vspace, first.1, size, Access::READ_WRITE)?;
    frames.map_again(memory, second.0.process.vspace, second.1, Access::READ_WRITE)
}
