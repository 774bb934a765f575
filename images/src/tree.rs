//! A plan as device trees: `system.dtb` for the root task, an environment for each program.
//!
//! `system.dtb` (64-bit numbers are two cells; `range` is two numbers):
//!
//! ```text
//! / { programs { NAME { priority, hart, threads, cnode-bits = <u32>; main; on-fault-continue; serves; doorbell;
//!                       entry = <u64>; environment, ipc-buffers, stacks, heap, fault-slots, reply-slots = <range>; stack = <u64>;
//!                       segments { segment@0 { memory = <range>; file = <range>; write; execute; }; };
//!                       devices { device@0 { compatible = "..."; window, slots = <range>; first-bit = <u32>; }; };
//!                       dma = <range>; dma-slots = <range>; }; };
//!     channels { NAME { index, entries = <u32>; transport = "async"; ring, arena = <u64>;
//!                       client { program = "..."; peer = <u64>; vector = <u32>; ring, arena = <u64>; }; server { ... }; }; }; };
//! ```
//!
//! The form of an environment is told by `userlib::env`; its `devices` have no registers and interrupts yet, and it has no time base,
//! because those belong to the machine: the root task adds them.

use crate::manifest::{OnFault, Transport};
use crate::plan::{ChannelPlan, EndPlan, Plan, ProgramPlan, Range};
use crate::program::{Program, Segment};
use dtoolkit::ToPropertyValue;
use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};

/// `system.dtb`. `programs` are the programs of the plan, in its order.
pub fn system(plan: &Plan, programs: &[Program]) -> Vec<u8> {
    let programs = plan.programs.iter().zip(programs).map(|(plan, program)| program_node(plan, program));
    let channels = plan.channels.iter().map(channel_node);
    document(node("").with_child(group("programs", programs)).with_child(group("channels", channels)))
}

fn program_node(plan: &ProgramPlan, program: &Program) -> Builder {
    let segments = program.segments.iter().enumerate().map(|(index, segment)| segment_node(index, segment));
    let devices = plan.devices.iter().enumerate().map(|(index, device)| {
        node(format!("device@{index}"))
            .with("compatible", device.compatible.as_str())
            .with("window", range(device.window))
            .with("slots", range(device.slots))
            .with("first-bit", device.first_bit)
    });
    node(plan.name.as_str())
        .with("priority", plan.priority as u32)
        .with("hart", plan.hart as u32)
        .with("threads", plan.threads as u32)
        .with("cnode-bits", plan.cnode_bits)
        .flag("main", plan.main)
        .flag("on-fault-continue", plan.on_fault == OnFault::Continue)
        .flag("serves", plan.serves)
        .flag("doorbell", plan.doorbell)
        .with("entry", program.entry)
        .with("environment", range(plan.environment))
        .with("ipc-buffers", range(plan.ipc_buffers))
        .with("stacks", range(plan.stacks))
        .with("stack", plan.stack)
        .with("heap", range(plan.heap))
        .with("fault-slots", range(plan.fault_slots))
        .with("reply-slots", range(plan.reply_slots))
        .with_child(group("segments", segments))
        .with_child(group("devices", devices))
        .with("dma", range(plan.dma.map_or(Range::default(), |(area, _)| area)))
        .with("dma-slots", range(plan.dma.map_or(Range::default(), |(_, slots)| slots)))
}

fn segment_node(index: usize, segment: &Segment) -> Builder {
    node(format!("segment@{index}"))
        .with("memory", range(segment.memory))
        .with("file", range(segment.file))
        .flag("write", segment.write)
        .flag("execute", segment.execute)
}

fn channel_node(channel: &ChannelPlan) -> Builder {
    let end = |name: &str, end: &EndPlan| {
        node(name)
            .with("program", end.program.as_str())
            .with("peer", end.peer)
            .with("vector", end.vector)
            .with("ring", end.ring)
            .with("arena", end.arena)
    };
    node(channel.name.as_str())
        .with("index", channel.index as u32)
        .with("entries", channel.entries as u32)
        .with("transport", transport(channel))
        .with("ring", channel.ring)
        .with("arena", channel.arena)
        .with_child(end("client", &channel.client))
        .with_child(end("server", &channel.server))
}

/// The environment of one program, as far as the builder knows it.
pub fn environment(plan: &Plan, program: &ProgramPlan) -> Vec<u8> {
    let args = program.args.iter().fold(node("args"), |args, (key, value)| args.with(key, value.as_str()));
    let ends = plan
        .channels
        .iter()
        .flat_map(|channel| [(channel, "client", &channel.client), (channel, "server", &channel.server)]);
    let channels = ends.filter(|(_, _, end)| end.program == program.name).map(|(channel, role, end)| {
        node(channel.name.as_str())
            .with("index", channel.index as u32)
            .with("role", role)
            .with("transport", transport(channel))
            .with("entries", channel.entries as u32)
            .with("vector", end.vector)
            .with("peer", end.peer as u32)
            .with("ring", range(Range { start: end.ring, size: channel.ring }))
            .with("arena", range(Range { start: end.arena, size: channel.arena }))
    });
    let devices = program
        .devices
        .iter()
        .enumerate()
        .map(|(index, device)| node(format!("device@{index}")).with("compatible", device.compatible.as_str()));
    let root = node("")
        .with("program", program.name.as_str())
        .with("hart", program.hart as u32)
        .with("threads", program.threads as u32)
        .with("heap", range(program.heap))
        .with("reply-slots", range(program.reply_slots))
        .with_child(args)
        .with_child(group("channels", channels))
        .with_child(group("devices", devices));
    document(match program.dma {
        None => root,
        Some((area, slots)) => root.with_child(node("dma").with("reg", range(area)).with("frames", range(slots))),
    })
}

fn transport(channel: &ChannelPlan) -> &'static str {
    match channel.transport {
        Transport::Async => "async",
        Transport::Sync => "sync",
    }
}

fn range(range: Range) -> [u32; 4] {
    let high_low = |number: u64| [(number >> 32) as u32, number as u32];
    let ([a, b], [c, d]) = (high_low(range.start), high_low(range.size));
    [a, b, c, d]
}

/// A node under construction.
struct Builder(DeviceTreeNode);

impl Builder {
    fn with<T: ToPropertyValue>(mut self, name: &str, value: T) -> Self {
        self.0.add_property(DeviceTreeProperty::new_unchecked(name, value));
        self
    }

    fn flag(self, name: &str, set: bool) -> Self {
        if set { self.with(name, [0u8; 0]) } else { self }
    }

    fn with_child(mut self, child: Builder) -> Self {
        self.0.add_child(child.0);
        self
    }
}

/// A node; names come from checked manifests or from here, so they need no check of their own.
fn node(name: impl Into<String>) -> Builder {
    Builder(DeviceTreeNode::new_unchecked(name))
}

fn group(name: &str, children: impl Iterator<Item = Builder>) -> Builder {
    children.fold(node(name), Builder::with_child)
}

fn document(root: Builder) -> Vec<u8> {
    let mut tree = DeviceTree::new();
    tree.root = root.0;
    tree.to_dtb()
}
