//! The system: all programs and channels of `system.dtb`.

use crate::archive;
use crate::channel::{self, Link};
use crate::failure::{Failure, Result};
use crate::machine::Machine;
use crate::memory::Memory;
use crate::process::Process;
use alloc::vec::Vec;
use dtoolkit::Node;
use dtoolkit::fdt::{Fdt, FdtNode};
use userlib::cap::{Endpoint, ObjectType};

/// What runs.
pub struct System {
    /// The programs, in the order of the description: a badge's program is an index into it.
    pub processes: Vec<Process>,
    /// The channels.
    pub links: Vec<Link>,
    /// Where they report.
    pub supervisor: Endpoint,
}

impl System {
    /// Builds everything, then starts it.
    pub fn build(machine: &Machine, memory: &mut Memory) -> Result<Self> {
        let file = archive::member(|name| name == "system.dtb", "system.dtb")?;
        let tree = Fdt::new(file).map_err(|_| Failure::Archive("system.dtb"))?;
        let supervisor = Endpoint(memory.object(ObjectType::Endpoint)?);
        let mut processes = Vec::new();
        for (index, node) in (0..).zip(children(tree, "programs")) {
            let process = Process::new(memory, machine, &node, index, supervisor);
            processes.push(process.map_err(|failure| failure.of(node.name()))?);
        }
        for (process, node) in processes.iter().zip(children(tree, "programs")) {
            process.grant_spaces(&node, &processes).map_err(|failure| failure.of(node.name()))?;
            process.grant_supervision(&node, &processes).map_err(|failure| failure.of(node.name()))?;
        }
        let mut links = Vec::new();
        for node in children(tree, "channels") {
            links.push(channel::connect(memory, &processes, &node).map_err(|failure| failure.of(node.name()))?);
        }
        processes.iter().try_for_each(|process| process.start().map_err(|failure| failure.of(process.name)))?;
        Ok(Self { processes, links, supervisor })
    }
}

fn children(tree: Fdt<'static>, group: &str) -> impl Iterator<Item = FdtNode<'static>> + use<> {
    tree.root().child(group).into_iter().flat_map(|group| group.children())
}
