//! A plan as device trees: `system.dtb` for the root task, an environment for each program.
//!
//! `system.dtb` (64-bit numbers are two cells; `range` is two numbers):
//!
//! ```text
//! / { programs { NAME { priority, hart, threads, cnode-bits = <u32>; main; on-fault = <text>; serves; doorbell;
//!                       entry = <u64>; environment, ipc-buffers, stacks, heap, fault-slots, reply-slots = <range>; stack = <u64>;
//!                       segments { segment@0 { memory = <range>; file = <range>; write; execute; }; };
//!                       devices { device@0 { compatible = "..."; optional; window, slots = <range>; first-bit = <u32>; }; };
//!                       dma = <range>; dma-slots = <range>; untyped { slot, bits = <u32>; }; spaces { NAME = <u32>; };
//!                       supervises { NAME { slot = <u32>; }; };
//!                       syscall-ring { reg = <range>; bit = <u32>; }; }; };
//!     channels { NAME { index, entries = <u32>; transport = "async"; ring, arena = <u64>;
//!                       client { program = "..."; peer = <u64>; vector = <u32>; ring, arena = <u64>; }; server { ... }; }; }; };
//! ```
//!
//! The form of an environment is told by `userlib::env`; its `devices` have no registers and interrupts yet, and it has no time base,
//! because those belong to the machine: the root task adds them.

use crate::manifest::{OnFault, OnMisbehaviour, Transport};
use crate::plan::{ChannelPlan, EndPlan, MEGA_PAGE, PAGE, PRIVATE, Plan, ProgramPlan, Range};
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
    let segments =
        program.segments.iter().enumerate().map(|(index, segment)| segment_node(index, segment, plan.large_pages));
    let devices = plan.devices.iter().enumerate().map(|(index, device)| {
        node(format!("device@{index}"))
            .with("compatible", device.compatible.as_str())
            .flag("optional", device.optional)
            .with("window", range(device.window))
            .with("slots", range(device.slots))
            .with("first-bit", device.first_bit)
    });
    let node = node(plan.name.as_str())
        .with("priority", plan.priority as u32)
        .with("hart", plan.hart as u32)
        .with("threads", plan.threads as u32)
        .with("cnode-bits", plan.cnode_bits)
        .flag("main", plan.main)
        .with("on-fault", on_fault(plan.on_fault))
        .flag("serves", plan.serves)
        .flag("doorbell", plan.user_interrupts)
        .with("entry", program.entry)
        .with("environment", range(plan.environment))
        .with("ipc-buffers", range(plan.ipc_buffers))
        .with("private", range(if plan.large_pages { PRIVATE } else { Range::default() }))
        .with("first-stack", plan.first_stack)
        .with("stacks", range(plan.stacks))
        .with("stack", plan.stack)
        .with("heap", range(plan.heap))
        .with("fault-slots", range(plan.fault_slots))
        .with("reply-slots", range(plan.reply_slots))
        .with_child(group("segments", segments))
        .with_child(group("devices", devices))
        .with("dma", range(plan.dma.map_or(Range::default(), |(area, _)| area)))
        .with("dma-slots", range(plan.dma.map_or(Range::default(), |(_, slots)| slots)));
    granted(plan).into_iter().fold(node, Builder::with_child)
}

/// What root task and program are told alike.
fn granted(plan: &ProgramPlan) -> Vec<Builder> {
    let untyped = plan.untyped.map(|(slot, bits)| node("untyped").with("slot", slot as u32).with("bits", bits));
    let spaces =
        plan.spaces.iter().fold(node("spaces"), |node, (program, slot)| node.with(program.as_str(), *slot as u32));
    let supervised = |(program, slot): &(String, u64)| node(program.as_str()).with("slot", *slot as u32);
    let supervises = group("supervises", plan.supervises.iter().map(supervised));
    let ring = plan.syscall_ring.map(|(page, bit)| node("syscall-ring").with("reg", range(page)).with("bit", bit));
    untyped.into_iter().chain([spaces, supervises]).chain(ring).collect()
}

fn segment_node(index: usize, segment: &Segment, large_pages: bool) -> Builder {
    let page = if large_pages && segment.execute { MEGA_PAGE } else { PAGE };
    node(format!("segment@{index}"))
        .with("memory", range(segment.memory))
        .with("pages", range(segment.memory.rounded(page)))
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
        .flag("fault-client", channel.on_misbehaviour == OnMisbehaviour::FaultClient)
        .flag("fault-server", channel.on_misbehaviour == OnMisbehaviour::FaultServer)
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
            .with("peer-hart", end.peer_hart as u32)
            .with("ring", range(Range { start: end.ring, size: channel.ring }))
            .with("arena", range(Range { start: end.arena, size: channel.arena }))
    });
    let devices = program.devices.iter().enumerate().map(|(index, device)| {
        let node = node(format!("device@{index}")).with("compatible", device.compatible.as_str());
        node.flag("optional", device.optional)
    });
    let root = node("")
        .with("program", program.name.as_str())
        .with("hart", program.hart as u32)
        .with("threads", program.threads as u32)
        .with(
            "heap",
            range(Range {
                start: program.heap.start + program.heap_offset,
                size: program.heap.size - program.heap_offset,
            }),
        )
        .with("reply-slots", range(program.reply_slots))
        .with_child(args)
        .with_child(group("channels", channels))
        .with_child(group("devices", devices));
    let root = granted(program).into_iter().fold(root, Builder::with_child);
    document(match program.dma {
        None => root,
        Some((area, slots)) => root.with_child(node("dma").with("reg", range(area)).with("frames", range(slots))),
    })
}

fn on_fault(on_fault: OnFault) -> &'static str {
    match on_fault {
        OnFault::Stop => "stop",
        OnFault::Continue => "continue",
        OnFault::Restart => "restart",
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;
    use dtoolkit::fdt::Fdt;
    use dtoolkit::fdt_mut::FdtMut;
    use std::path::Path;
    use userlib::Env;
    use userlib::cap::{CPtr, Cap};
    use userlib::env::{Region, Role, Slots, Transport as EnvTransport};
    use userlib::tree as read;

    const SYSTEM: &str = r#"
        [machine]
        harts = 2
        [program.client]
        package = "apps"
        bin = "hello"
        priority = 10
        hart = 1
        threads = 2
        heap = "2M"
        args = { count = "12", word = "a b" }
        [program.server]
        package = "apps"
        bin = "hello"
        priority = 20
        devices = ["x,nic", "x,timer", "x,disk?"]
        dma = "4M"
        on-fault = "continue"
        untyped = "1M"
        spaces = ["client"]
        supervises = ["client"]
        syscall-ring = true
        [channel.calls]
        client = "client"
        server = "server"
        transport = "sync"
        arena = "8K"
        [channel.rings]
        client = "client"
        server = "server"
        entries = 64
        arena = "16K"
    "#;

    fn plan() -> Plan {
        Plan::new(&Manifest::parse("t".into(), Path::new("t.toml"), SYSTEM.into()).unwrap().system().unwrap()).unwrap()
    }

    /// What the root task does to an environment.
    fn completed(plan: &Plan, index: usize) -> Env {
        let mut tree = FdtMut::new(environment(plan, &plan.programs[index])).unwrap();
        tree.root_mut().add_property("timebase-frequency", 10_000_000u32).unwrap();
        tree.root_mut().add_property("harts", 2u32).unwrap();
        tree.root_mut().add_property("user-interrupts", [0u8; 0]).unwrap();
        // The machine has no x,disk.
        for device in 0..plan.programs[index].devices.len().min(2) {
            let mut node = tree.find_node_mut(&format!("/devices/device@{device}")).unwrap();
            node.add_property("reg", [0u32, 0x7000_0000 + device as u32, 0, 0x1000]).unwrap();
            node.add_property("irq-slots", [18u32, 19]).unwrap();
            node.add_property("irq-bits", [63u32, 62]).unwrap();
            node.add_property("local-mac-address", [2u8, 0, 0, 0, 0, 1]).unwrap();
        }
        Env::new(tree.data_mut().to_vec().leak()).unwrap()
    }

    #[test]
    fn a_client_reads_what_the_manifest_says() {
        let env = completed(&plan(), 0);
        assert_eq!((env.name(), env.hart(), env.threads(), env.harts()), ("client", 1, 2, 2));
        assert_eq!((env.arg("count"), env.arg("word"), env.arg("none")), (Some("12"), Some("a b"), None));
        assert_eq!((env.arg_or("count", 1u32), env.arg_or("none", 7u8)), (12, 7));
        assert_eq!(env.heap(), Region { address: 0x6000_0200, size: (2 << 20) - 0x200 });
        assert!(
            env.user_interrupts()
                && env.dma().is_none()
                && env.syscall_ring().is_none()
                && env.devices().next().is_none()
        );

        let channels: Vec<_> = env.channels().collect();
        assert_eq!(channels.len(), 2);
        let calls = env.channel("calls").unwrap();
        assert_eq!((calls.index, calls.role, calls.arena.size), (0, Role::Client, 8 << 10));
        let EnvTransport::Sync { endpoint } = calls.transport else { panic!("{calls:?}") };
        assert_eq!(endpoint.cptr(), CPtr(17));
        let EnvTransport::Async { vector, peer, peer_hart, entries, ring } = env.channel("rings").unwrap().transport
        else {
            panic!()
        };
        assert_eq!((vector, peer.cptr(), peer_hart, entries), (0, CPtr(18), 0, 64));
        assert_eq!(ring.size, 0x200 + 2 * 64 * 64 + 0xE00);
    }

    #[test]
    fn a_driver_reads_what_the_root_task_adds() {
        let env = completed(&plan(), 1);
        let devices: Vec<_> = env.devices().map(|device| device.compatible).collect();
        assert_eq!(devices, ["x,nic", "x,timer"]);
        assert!(env.device("x,disk").is_none());
        let nic = env.device("x,nic").unwrap();
        assert_eq!(nic.registers, Region { address: 0x7000_0000, size: 0x1000 });
        assert_eq!(nic.property("local-mac-address"), Some(&[2, 0, 0, 0, 0, 1][..]));
        let interrupts: Vec<_> =
            nic.interrupts().map(|interrupt| (interrupt.handler.cptr().0, interrupt.bit)).collect();
        assert_eq!(interrupts, [(18, 63), (19, 62)]);
        let dma = env.dma().unwrap();
        assert_eq!((dma.region.size, dma.frames.count), (4 << 20, 2));
        let EnvTransport::Sync { endpoint } = env.channel("calls").unwrap().transport else { panic!() };
        assert_eq!(endpoint.cptr(), CPtr(6));
        assert_eq!(env.reply_slots().count, 64);
        let untyped = env.untyped().unwrap();
        assert_eq!(untyped.bits, 20);
        let supervised: Vec<_> = env.supervised().map(|one| (one.name, one.tcb.cptr().0, one.spare)).collect();
        let first = untyped.untyped.cptr().0 + 1;
        assert_eq!(supervised, [("client", first, first + 2)]);
        let space = env.space("client").unwrap();
        assert_eq!((space.cptr().0, env.space("server")), (first + 4, None));
        let ring = env.syscall_ring().unwrap();
        assert_eq!((ring.region.size, ring.bit), (4096, 1), "behind the channel's bit");
        assert_ne!(env.reply_slots(), Slots::default());
    }

    #[test]
    fn an_environment_that_nobody_completed_is_refused() {
        let plan = plan();
        let tree = environment(&plan, &plan.programs[0]);
        assert_eq!(Env::new(tree.leak()).unwrap_err(), userlib::env::EnvError::Property("harts"));
        assert_eq!(Env::new(b"no tree").unwrap_err(), userlib::env::EnvError::NotATree);
    }

    #[test]
    fn the_root_task_reads_the_same_plan() {
        let plan = plan();
        let segment = Segment {
            memory: Range { start: 0x1_0318, size: 0x2000 },
            file: Range { start: 0x318, size: 0x1800 },
            write: false,
            execute: true,
        };
        let program = Program { path: "p".into(), bytes: Vec::new(), entry: 0x1_0318, segments: vec![segment] };
        let tree: &'static [u8] = system(&plan, &[program.clone(), program]).leak();
        let tree = Fdt::new(tree).unwrap();
        let server = tree.find_node("/programs/server").unwrap();
        assert_eq!(read::pair(&server, "dma").unwrap(), [0x7800_0000, 4 << 20]);
        assert_eq!(read::long(&server, "entry").unwrap(), 0x1_0318);
        assert!(
            read::flag(&server, "serves")
                && read::flag(&server, "doorbell")
                && read::text(&server, "on-fault") == Ok("continue")
        );
        assert!(!read::flag(&server, "main"));
        let segment = tree.find_node("/programs/client/segments/segment@0").unwrap();
        assert_eq!(read::pair(&segment, "file").unwrap(), [0x318, 0x1800]);
        assert!(read::flag(&segment, "execute") && !read::flag(&segment, "write"));
        let device = tree.find_node("/programs/server/devices/device@1").unwrap();
        assert_eq!(read::number::<u32>(&device, "first-bit").unwrap(), 59);
        assert!(!read::flag(&device, "optional"));
        let device = tree.find_node("/programs/server/devices/device@2").unwrap();
        assert_eq!((read::text(&device, "compatible"), read::flag(&device, "optional")), (Ok("x,disk"), true));
        let end = tree.find_node("/channels/rings/server").unwrap();
        assert_eq!(read::text(&end, "program").unwrap(), "server");
    }
}
