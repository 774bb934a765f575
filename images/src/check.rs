//! What a manifest must satisfy beyond its form. Each check names the key that is to be changed.

use crate::manifest::{Kernel, Machine, Program, System, Transport};
use crate::size::Size;
use abi::config::MAX_NUM_NODES;

/// Greatest priority of a program; the root task has 255.
const MAX_PRIORITY: u64 = 254;
/// Most threads of a program.
const MAX_THREADS: usize = 64;
/// Most entries of a ring.
const MAX_ENTRIES: u64 = 1 << 15;
/// Most devices of a program.
pub const MAX_DEVICES: usize = 8;
/// Most bytes of a heap or of an arena.
const MAX_AREA: Size = Size(256 << 20);
/// Least RAM that firmware, kernel and root task need.
const MIN_MEMORY: Size = Size(32 << 20);
/// Radices of a root CNode: seL4 allows 4 to 27 (`KernelRootCNodeSizeBits`).
const ROOT_CNODE_BITS: std::ops::RangeInclusive<u32> = 4..=27;
/// Physically contiguous memory comes in frames of this size.
const DMA_UNIT: Size = Size(2 << 20);

/// Untyped memory of a program.
const UNTYPED: std::ops::RangeInclusive<Size> = Size(4 << 10)..=Size(64 << 20);

/// The key that is wrong, and why.
type Complaint = (String, String);

/// Checks a system. Reports the first complaint in the order machine, programs, channels.
pub fn system(system: &System) -> Result<(), Complaint> {
    machine(&system.machine)?;
    kernel(&system.kernel)?;
    require(!system.program.is_empty(), "program", || "a system needs at least one [program.NAME]".into())?;
    system.program.iter().try_for_each(|(name, one)| program(system, name, one))?;
    system.channel.keys().try_for_each(|name| channel(system, name))?;
    let ends = system.program.iter().any(|(name, program)| program.main.unwrap_or(!serves(system, name)));
    require(ends, "program", || {
        "no program is a main one, so the system would never end; set main = true on one".into()
    })
}

/// Checks what a system asks of the machine.
pub fn machine(machine: &Machine) -> Result<(), Complaint> {
    require((1..=MAX_NUM_NODES).contains(&machine.harts), "machine.harts", || {
        format!("{} is outside 1..={MAX_NUM_NODES}", machine.harts)
    })?;
    require(machine.memory >= MIN_MEMORY, "machine.memory", || {
        format!("{} is too little; at least {MIN_MEMORY} is needed", machine.memory)
    })?;
    Ok(())
}

/// Checks the configuration of the kernel.
pub fn kernel(kernel: &Kernel) -> Result<(), Complaint> {
    require(kernel.timer_tick > 0, "kernel.timer-tick", || "must be at least 1 millisecond".into())?;
    require(kernel.time_slice > 0, "kernel.time-slice", || "must be at least 1 tick".into())?;
    let bits = kernel.root_cnode_bits;
    require(ROOT_CNODE_BITS.contains(&bits), "kernel.root-cnode-bits", || {
        format!("{bits} is outside {}..={}", ROOT_CNODE_BITS.start(), ROOT_CNODE_BITS.end())
    })
}

/// The compatible string of a device of a manifest, and whether the program can do without it: such a one ends with `?`.
pub fn device(word: &str) -> (&str, bool) {
    word.strip_suffix('?').map_or((word, false), |name| (name, true))
}

fn program(system: &System, name: &str, program: &Program) -> Result<(), Complaint> {
    let key = |field: &str| format!("program.{name}.{field}");
    valid_name(name, &format!("program.{name}"))?;
    require(name != "root" && name != "kernel" && name != "firmware", &format!("program.{name}"), || {
        format!("`{name}` is taken by the system itself; choose another name")
    })?;
    require((1..=MAX_PRIORITY).contains(&program.priority), &key("priority"), || {
        format!("{} is outside 1..={MAX_PRIORITY}", program.priority)
    })?;
    require(program.hart < system.machine.harts, &key("hart"), || {
        format!("{} does not exist; machine.harts is {}", program.hart, system.machine.harts)
    })?;
    require((1..=MAX_THREADS).contains(&program.threads), &key("threads"), || {
        format!("{} is outside 1..={MAX_THREADS}", program.threads)
    })?;
    pages(program.stack, &key("stack"), Size(4096), Size(4 << 20))?;
    pages(program.heap, &key("heap"), Size(4096), MAX_AREA)?;
    require(program.dma.0.is_multiple_of(DMA_UNIT.0) && program.dma <= Size(64 << 20), &key("dma"), || {
        format!("{} is not a multiple of {DMA_UNIT} up to 64M", program.dma)
    })?;
    require(program.devices.len() <= MAX_DEVICES, &key("devices"), || format!("at most {MAX_DEVICES} devices"))?;
    let names = |program: &Program| program.devices.iter().map(|word| device(word).0.to_owned()).collect::<Vec<_>>();
    let devices = names(program);
    for (index, device) in devices.iter().enumerate() {
        require(!devices[..index].contains(device), &key("devices"), || format!("`{device}` is named twice"))?;
    }
    for device in &devices {
        let other = system.program.iter().find(|(other, program)| *other != name && names(program).contains(device));
        require(other.is_none(), &key("devices"), || {
            format!(
                "`{device}` is also granted to `{}`; a device belongs to one program",
                other.map_or("", |(other, _)| other)
            )
        })?;
    }
    let untyped = program.untyped;
    require(untyped.0 == 0 || untyped.0.is_power_of_two() && UNTYPED.contains(&untyped), &key("untyped"), || {
        format!("{untyped} is not a power of two from {} to {}", UNTYPED.start(), UNTYPED.end())
    })?;
    for (field, others) in [("spaces", &program.spaces), ("supervises", &program.supervises)] {
        for (index, other) in others.iter().enumerate() {
            require(system.program.contains_key(other), &key(field), || format!("there is no program `{other}`"))?;
            require(!others[..index].contains(other), &key(field), || format!("`{other}` is named twice"))?;
        }
    }
    require(program.reply_slots.is_none_or(|count| count <= 1024), &key("reply-slots"), || "at most 1024".into())?;
    for (word, value) in &program.args {
        valid_name(word, &key(&format!("args.{word}")))?;
        require(!value.contains('\0'), &key(&format!("args.{word}")), || "contains a NUL".into())?;
    }
    Ok(())
}

fn channel(system: &System, name: &str) -> Result<(), Complaint> {
    let channel = &system.channel[name];
    let key = |field: &str| format!("channel.{name}.{field}");
    valid_name(name, &format!("channel.{name}"))?;
    for (field, end) in [("client", &channel.client), ("server", &channel.server)] {
        require(system.program.contains_key(end), &key(field), || {
            let known: Vec<&str> = system.program.keys().map(String::as_str).collect();
            format!("there is no program `{end}`; there are: {}", known.join(", "))
        })?;
    }
    require(channel.client != channel.server, &key("server"), || "a program cannot be its own server".into())?;
    require(
        channel.entries.is_power_of_two() && (2..=MAX_ENTRIES).contains(&channel.entries),
        &key("entries"),
        || format!("{} is not a power of two from 2 to {MAX_ENTRIES}", channel.entries),
    )?;
    pages(channel.arena, &key("arena"), Size(0), MAX_AREA)
}

/// Whether a program is the server of a channel.
pub fn serves(system: &System, program: &str) -> bool {
    system.channel.values().any(|channel| channel.server == program)
}

/// Whether a program is the server of a synchronous channel.
pub fn serves_sync(system: &System, program: &str) -> bool {
    system.channel.values().any(|channel| channel.server == program && channel.transport == Transport::Sync)
}

/// Names become node names, file names and lines of output.
fn valid_name(name: &str, key: &str) -> Result<(), Complaint> {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    require(!name.is_empty() && name.len() <= 31 && name.bytes().all(good), key, || {
        format!("`{name}` is not a name; use up to 31 of a-z, 0-9, - and _")
    })
}

fn pages(size: Size, key: &str, least: Size, most: Size) -> Result<(), Complaint> {
    require(size.0.is_multiple_of(4096) && (least..=most).contains(&size), key, || {
        format!("{size} is not a multiple of 4K from {least} to {most}")
    })
}

fn require(condition: bool, key: &str, message: impl FnOnce() -> String) -> Result<(), Complaint> {
    if condition { Ok(()) } else { Err((key.into(), message())) }
}
