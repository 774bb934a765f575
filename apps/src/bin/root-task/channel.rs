//! What two programs share: notifications or an endpoint, rings, buffers.

use crate::failure::{Failure, Result, Step};
use crate::memory::{Memory, own};
use crate::process::Process;
use crate::vspace::{Access, map_new};
use dtoolkit::Node;
use dtoolkit::fdt::FdtNode;
use userlib::cap::{Cap, Rights};
use userlib::tree;

/// One end, as the system description tells it.
struct End<'a> {
    process: &'a Process,
    peer: u64,
    vector: u32,
    ring: u64,
    arena: u64,
}

/// Connects client and server of the channel `node`.
pub fn connect(memory: &mut Memory, processes: &[Process], node: &FdtNode<'static>) -> Result<()> {
    let client = end(processes, node, "client")?;
    let server = end(processes, node, "server")?;
    match tree::text(node, "transport")? {
        "sync" => {
            let endpoint = server.process.endpoint.ok_or(Failure::Archive("endpoint of a server"))?;
            let badge = tree::number::<u64>(node, "index")? + 1;
            let rights = Rights::WRITE.with(Rights::GRANT_REPLY);
            let place = client.process.slot(client.peer);
            place.mint(own(endpoint.cptr().0), rights, badge).step("granting an endpoint")?;
        }
        _ => {
            for (from, to) in [(&client, &server), (&server, &client)] {
                let doorbell = own(to.process.doorbell.cptr().0);
                let place = from.process.slot(from.peer);
                place.mint(doorbell, Rights::WRITE, 1 << to.vector).step("granting a doorbell")?;
            }
            share(memory, tree::long(node, "ring")?, (&client, client.ring), (&server, server.ring))?;
        }
    }
    share(memory, tree::long(node, "arena")?, (&client, client.arena), (&server, server.arena))
}

fn end<'a>(processes: &'a [Process], node: &FdtNode<'static>, role: &str) -> Result<End<'a>> {
    let node = node.child(role).ok_or(Failure::Archive("end of a channel"))?;
    let program = tree::text(&node, "program")?;
    Ok(End {
        process: processes
            .iter()
            .find(|process| process.name == program)
            .ok_or(Failure::Archive("program of a channel"))?,
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
