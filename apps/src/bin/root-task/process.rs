//! A program as a protection domain: its CNode, its address space, its threads.

use crate::archive;
use crate::device;
use crate::failure::{Failure, Result, Step};
use crate::machine::Machine;
use crate::memory::{Memory, PAGE, own};
use crate::vspace::{Access, Area, map, map_new};
use abi::register;
use alloc::vec;
use alloc::vec::Vec;
use dtoolkit::fdt::FdtNode;
use dtoolkit::fdt_mut::{FdtMut, SliceBuffer};
use dtoolkit::{Node, Property};
use userlib::cap::{
    AsidPool, CNode, CPtr, Cap, Code, Endpoint, Error, Frame, Notification, ObjectType, PageTable, Rights, SenderTable,
    Slot, Tcb, UserContext, VSpace, slot,
};
use userlib::supervisor::{LAST_RITES, SERVER_GONE};
use userlib::{MessageInfo, syscall, tree};

const ASID_POOL: AsidPool = AsidPool(CPtr(abi::bootinfo::slot::ASID_POOL));

/// What a fault of a program does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnFault {
    /// It ends the machine.
    Stop,
    /// The others go on without it.
    Continue,
    /// It starts again.
    Restart,
}

/// A segment that the program can change, with what it holds at the start.
struct Writable {
    start: u64,
    size: u64,
    content: &'static [u8],
    area: Area,
}

/// A program.
pub struct Process {
    /// Name in the manifest.
    pub name: &'static str,
    /// Hart of its threads.
    pub hart: u64,
    /// Its exit counts for the end of the machine.
    pub main: bool,
    /// What a fault of it does.
    pub on_fault: OnFault,
    /// How often it was started.
    pub starts: u32,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Its address space.
    pub vspace: VSpace,
    /// Its doorbell.
    pub doorbell: Notification,
    /// The endpoint of its synchronous channels, if it serves any.
    pub endpoint: Option<Endpoint>,
    /// Where it saves callers to answer them later.
    reply_slots: [u64; 2],
    /// Code with which it has left.
    pub exited: Option<i32>,
    /// User interrupts ring its doorbell too.
    user_interrupts: bool,
    cnode: CNode,
    cnode_bits: u64,
    /// The page with the first stack, data and heap, if the builder has planned one (`images/src/plan.rs`).
    private: Option<Area>,
    writable: Vec<Writable>,
    sender_table: Option<SenderTable>,
    syscall_ring: Option<SyscallRing>,
}

/// The system-call ring of thread 0, as it is set again when the program starts again.
struct SyscallRing {
    page: Area,
    bell: Notification,
}

/// A thread.
pub struct Thread {
    /// Its TCB.
    pub tcb: Tcb,
    /// Lowest address of its stack.
    pub stack: u64,
    /// Bytes of its stack.
    pub stack_size: u64,
    /// The memory that contains its stack.
    pub area: Area,
    context: UserContext,
}

impl Process {
    /// Builds the program that `node` of the system description tells, with no thread running yet. `index` is its number, and
    /// `supervisor` the endpoint that is to hear of it.
    pub fn new(
        memory: &mut Memory,
        machine: &Machine,
        node: &FdtNode<'static>,
        index: u64,
        supervisor: Endpoint,
    ) -> Result<Self> {
        let cnode_bits: u8 = tree::number(node, "cnode-bits")?;
        let root = PageTable(memory.object(ObjectType::PageTable)?);
        let vspace = ASID_POOL.assign(root).step("making an address space")?;
        let mut process = Self {
            name: node.name(),
            hart: tree::number(node, "hart")?,
            main: tree::flag(node, "main"),
            on_fault: match tree::text(node, "on-fault")? {
                "stop" => OnFault::Stop,
                "continue" => OnFault::Continue,
                "restart" => OnFault::Restart,
                _ => return Err(Failure::Archive("on-fault")),
            },
            starts: 1,
            private: None,
            writable: Vec::new(),
            sender_table: None,
            syscall_ring: None,
            threads: Vec::new(),
            vspace,
            doorbell: Notification(memory.object(ObjectType::Notification)?),
            endpoint: None,
            reply_slots: tree::pair(node, "reply-slots")?,
            exited: None,
            user_interrupts: false,
            cnode: CNode(memory.object(ObjectType::CNode(cnode_bits))?),
            cnode_bits: cnode_bits.into(),
        };
        if process.hart >= machine.harts.into() {
            return Err(Failure::Hart(process.hart, machine.harts));
        }
        let [private, size] = tree::pair(node, "private")?;
        if size > 0 {
            process.private = Some(map_new(memory, vspace, private, size, Access::READ_WRITE)?);
        }
        process.load(memory, node)?;
        let [heap, size] = tree::pair(node, "heap")?;
        process.area(memory, heap, [heap, size], Access::READ_WRITE)?;
        process.make_threads(memory, node)?;
        process.fill_cspace(memory, node, index, supervisor)?;
        process.grant_memory(memory, node)?;
        process.make_syscall_ring(memory, node)?;
        process.tell(memory, machine, node)?;
        Ok(process)
    }

    /// A slot of the program's CNode.
    pub fn slot(&self, index: u64) -> Slot {
        Slot { root: self.cnode, index, depth: self.cnode_bits }
    }

    /// Guard of the program's CNode: all bits of an address above the slot number, which must be zero.
    fn guard(&self) -> u64 {
        64 - self.cnode_bits
    }

    /// Copies the program's segments into new frames and maps them with their rights.
    fn load(&mut self, memory: &mut Memory, node: &FdtNode<'static>) -> Result<()> {
        let name = self.name;
        let file = archive::member(|member| member.strip_suffix(".elf") == Some(name), "program")?;
        let segments = node.child("segments").ok_or(Failure::Archive("segments"))?;
        for segment in segments.children() {
            let [start, size] = tree::pair(&segment, "memory")?;
            let pages = tree::pair(&segment, "pages")?;
            let [offset, file_size] = tree::pair(&segment, "file")?;
            let content =
                file.get(offset as usize..(offset + file_size) as usize).ok_or(Failure::Archive("segment"))?;
            let access = match (tree::flag(&segment, "write"), tree::flag(&segment, "execute")) {
                (false, false) => Access::READ,
                (true, false) => Access::READ_WRITE,
                (false, true) => Access::EXECUTE,
                (true, true) => return Err(Failure::Archive("segment: it is writable and executable")),
            };
            let area = self.area(memory, start, pages, access)?;
            area.write(memory, start, content, start + content.len() as u64)?;
            if tree::flag(&segment, "write") {
                self.writable.push(Writable { start, size, content, area });
            }
        }
        Ok(())
    }

    /// The private page if `address` is in it; otherwise new memory for the range `pages`.
    fn area(&self, memory: &mut Memory, address: u64, [start, size]: [u64; 2], access: Access) -> Result<Area> {
        match self.private {
            Some(private) if private.contains(address) => Ok(private),
            _ => map_new(memory, self.vspace, start, size, access),
        }
    }

    fn make_threads(&mut self, memory: &mut Memory, node: &FdtNode<'static>) -> Result<()> {
        let count: u64 = tree::number(node, "threads")?;
        let priority = tree::number(node, "priority")?;
        let [buffers, _] = tree::pair(node, "ipc-buffers")?;
        let [stacks, _] = tree::pair(node, "stacks")?;
        let first_stack = tree::long(node, "first-stack")?;
        let [fault_slots, _] = tree::pair(node, "fault-slots")?;
        let [environment, _] = tree::pair(node, "environment")?;
        let stack_size = tree::long(node, "stack")?;
        for thread in 0..count {
            let tcb = Tcb(memory.object(ObjectType::Tcb)?);
            let buffer = Frame(memory.object(ObjectType::Frame)?);
            let buffer_address = buffers + thread * PAGE;
            map(memory, self.vspace, buffer, buffer_address, Access::READ_WRITE)?;
            let stack = if thread == 0 { first_stack } else { stacks + thread * (stack_size + PAGE) + PAGE };
            let area = self.area(memory, stack, [stack, stack_size], Access::READ_WRITE)?;
            let fault_slot = if thread == 0 { slot::SUPERVISOR.cptr().0 } else { fault_slots + thread - 1 };
            tcb.configure(CPtr(fault_slot), self.cnode, self.guard(), self.vspace, buffer_address, buffer)
                .step("configuring a thread")?;
            tcb.set_sched_params(slot::TCB, 0, priority).step("setting a priority")?;
            tcb.set_affinity(self.hart).step("moving a thread to its hart")?;
            if thread == 0 {
                tcb.bind_notification(self.doorbell).step("binding a doorbell")?;
            }
            tcb.debug_name(&alloc::format!("{}:{thread}", self.name));
            let mut context = UserContext::default();
            context.0[register::PC] = tree::long(node, "entry")?;
            context.0[register::SP] = stack + stack_size;
            context.0[register::TP] = buffer_address;
            context.0[register::A0] = environment;
            context.0[register::A1] = thread;
            self.threads.push(Thread { tcb, stack, stack_size, area, context });
        }
        Ok(())
    }

    /// The slots that every program has (docs/architecture.md, section 4).
    fn fill_cspace(
        &mut self,
        memory: &mut Memory,
        node: &FdtNode<'static>,
        index: u64,
        supervisor: Endpoint,
    ) -> Result<()> {
        let put = |place: CPtr, capability: CPtr, rights, badge: Option<u64>| {
            let (to, from) = (self.slot(place.0), own(capability.0));
            match badge {
                Some(badge) => to.mint(from, rights, badge),
                None => to.copy(from, rights),
            }
            .step("filling a CSpace")
        };
        let tcb = self.threads[0].tcb;
        put(slot::TCB.cptr(), tcb.cptr(), Rights::ALL, None)?;
        put(slot::CNODE.cptr(), self.cnode.cptr(), Rights::ALL, Some(self.guard()))?;
        put(slot::VSPACE.cptr(), self.vspace.cptr(), Rights::ALL, None)?;
        put(slot::DOORBELL.cptr(), self.doorbell.cptr(), Rights::READ_WRITE, None)?;
        let [fault_slots, _] = tree::pair(node, "fault-slots")?;
        for thread in 0..self.threads.len() as u64 {
            let place = if thread == 0 { slot::SUPERVISOR.cptr() } else { CPtr(fault_slots + thread - 1) };
            let badge = Some(badge(index, thread));
            put(place, supervisor.cptr(), Rights::WRITE.with(Rights::GRANT_REPLY), badge)?;
        }
        let endpoint = match tree::flag(node, "serves") {
            false => None,
            true => {
                let endpoint = Endpoint(memory.object(ObjectType::Endpoint)?);
                put(slot::ENDPOINT.cptr(), endpoint.cptr(), Rights::READ, None)?;
                Some(endpoint)
            }
        };
        // Kernels without user interrupts refuse; the program is reached by signals then.
        let bound = tree::flag(node, "doorbell").then(|| tcb.bind_user_interrupt(self.doorbell));
        let user_interrupts = match bound {
            None | Some(Err(Error { code: Code::IllegalOperation, .. })) => false,
            Some(result) => result.map(|()| true).step("binding user interrupts")?,
        };
        if user_interrupts {
            let table = SenderTable(memory.object(ObjectType::SenderTable)?);
            put(slot::SENDER_TABLE.cptr(), table.cptr(), Rights::ALL, None)?;
            tcb.set_sender_table(table).step("setting a sender table")?;
            self.sender_table = Some(table);
        }
        self.endpoint = endpoint;
        self.user_interrupts = user_interrupts;
        Ok(())
    }

    /// Completes the program's environment, maps it, and grants its devices and its DMA memory on the way.
    fn tell(&self, memory: &mut Memory, machine: &Machine, node: &FdtNode<'static>) -> Result<()> {
        let name = self.name;
        let known = archive::member(|member| member.strip_suffix(".env.dtb") == Some(name), "environment")?;
        let [address, room] = tree::pair(node, "environment")?;
        let mut buffer = vec![0; room as usize];
        buffer.get_mut(..known.len()).ok_or(Failure::Archive("environment"))?.copy_from_slice(known);
        let unusable = |_| Failure::Archive("environment");
        let mut told = FdtMut::from_slice(&mut buffer).map_err(unusable)?;
        add(&mut told, "timebase-frequency", &machine.timebase.to_be_bytes())?;
        add(&mut told, "harts", &machine.harts.to_be_bytes())?;
        if self.user_interrupts {
            add(&mut told, "user-interrupts", &[])?;
        }
        let devices = node.child("devices").ok_or(Failure::Archive("devices"))?;
        devices.children().try_for_each(|device| device::grant(memory, machine, self, &device, &mut told))?;
        self.grant_dma(memory, node)?;
        let size = told.as_read_only().data().len();
        let area = map_new(memory, self.vspace, address, size as u64, Access::READ)?;
        area.write(memory, address, &buffer[..size], address + size as u64)
    }

    fn grant_dma(&self, memory: &mut Memory, node: &FdtNode<'static>) -> Result<()> {
        let [address, _] = tree::pair(node, "dma")?;
        let [slots, count] = tree::pair(node, "dma-slots")?;
        let first = memory.contiguous(ObjectType::MegaFrame, count)?;
        for index in 0..count {
            let frame = Frame(CPtr(first + index));
            map(memory, self.vspace, frame, address + (index << 21), Access::READ_WRITE)?;
            self.slot(slots + index).copy(own(first + index), Rights::ALL).step("granting a DMA frame")?;
        }
        Ok(())
    }

    fn grant_memory(&self, memory: &mut Memory, node: &FdtNode<'static>) -> Result<()> {
        let Some(node) = node.child("untyped") else { return Ok(()) };
        let block = memory.object(ObjectType::Untyped(tree::number(&node, "bits")?))?;
        let slot = self.slot(tree::number::<u32>(&node, "slot")?.into());
        // Moved, not copied: what is made of it descends from the only capability.
        slot.take(own(block.0)).step("granting untyped memory")
    }

    /// Grants the threads and CSpaces of the programs that the program supervises, once all programs are there.
    pub fn grant_supervision(&self, node: &FdtNode<'static>, others: &[Process]) -> Result<()> {
        let Some(programs) = node.child("supervises") else { return Ok(()) };
        for program in programs.children() {
            let other = others.iter().find(|other| other.name == program.name());
            let other = other.ok_or(Failure::Archive("supervised program"))?;
            let slot: u64 = tree::number::<u32>(&program, "slot")?.into();
            let [tcb, cnode] = [slot, slot + 1].map(|slot| self.slot(slot));
            tcb.copy(own(other.threads[0].tcb.cptr().0), Rights::ALL).step("granting a thread")?;
            cnode.mint(own(other.cnode.cptr().0), Rights::ALL, other.guard()).step("granting a CSpace")?;
        }
        Ok(())
    }

    /// Grants the address spaces that the program manages, once all programs are there.
    pub fn grant_spaces(&self, node: &FdtNode<'static>, others: &[Process]) -> Result<()> {
        let Some(node) = node.child("spaces") else { return Ok(()) };
        for property in node.properties() {
            let other = others.iter().find(|other| other.name == property.name());
            let vspace = other.ok_or(Failure::Archive("program of an address space"))?.vspace;
            let slot: u32 = property.value_as().map_err(|_| Failure::Archive("slot of an address space"))?;
            self.slot(slot.into()).copy(own(vspace.cptr().0), Rights::ALL).step("granting an address space")?;
        }
        Ok(())
    }

    fn make_syscall_ring(&mut self, memory: &mut Memory, node: &FdtNode<'static>) -> Result<()> {
        let Some(node) = node.child("syscall-ring") else { return Ok(()) };
        let [address, size] = tree::pair(&node, "reg")?;
        let page = map_new(memory, self.vspace, address, size, Access::READ_WRITE)?;
        let bell = memory.slot()?;
        let badge = 1 << tree::number::<u32>(&node, "bit")?;
        bell.mint(own(self.doorbell.cptr().0), Rights::WRITE, badge).step("badging a doorbell")?;
        let ring = SyscallRing { page, bell: Notification(CPtr(bell.index)) };
        self.set_syscall_ring(&ring)?;
        self.syscall_ring = Some(ring);
        Ok(())
    }

    fn set_syscall_ring(&self, ring: &SyscallRing) -> Result<()> {
        self.threads[0].tcb.set_syscall_ring(ring.page.first_small(), ring.bell).step("setting a system-call ring")
    }

    /// Lets all threads run.
    pub fn start(&self) -> Result<()> {
        self.threads
            .iter()
            .try_for_each(|thread| thread.tcb.write_registers(&thread.context, true).step("starting a thread"))
    }

    /// Makes everything that the program could change and that it relies on at its start as it was then. It does not run. What its stacks and
    /// its heap held stays, as what fresh memory holds is nobody's business.
    pub fn reset(&mut self, memory: &mut Memory) -> Result<()> {
        for Writable { start, size, content, area } in &self.writable {
            area.write(memory, *start, content, start + size)?;
        }
        if let Some(table) = self.sender_table {
            for index in 0..abi::extension::SENDER_TABLE_ENTRIES {
                // Fails for an entry that is not in use.
                let _ = table.unregister(index);
            }
        }
        if let Some(ring) = &self.syscall_ring {
            // From its first line again, with nothing queued.
            ring.page.write(memory, ring.page.start(), &[], ring.page.start() + PAGE)?;
            self.set_syscall_ring(ring)?;
        }
        Ok(())
    }

    /// Answers those whose calls this program, a server over an endpoint that has died, has received and not answered: the ones that it has
    /// saved. The last one that each of its threads has received is the thread's to answer, when it starts again (`userlib::rt::start`).
    pub fn answer_saved(&self, memory: &mut Memory) -> Result<()> {
        let [first, count] = self.reply_slots;
        if self.endpoint.is_none() || count == 0 {
            return Ok(());
        }
        let place = memory.slot()?;
        for index in first..first + count {
            // Fails for a slot with nothing in it.
            if place.take(self.slot(index)).is_ok() {
                let gone = MessageInfo::new(SERVER_GONE, 0, 0, 0);
                syscall::send(CPtr(place.index), gone, [0; 4]);
                // The kernel has deleted it with the answer, unless its caller is gone: then it is in the way.
                place.delete().step("forgetting a caller")?;
            }
        }
        memory.release(place);
        Ok(())
    }

    /// Lets each thread of a stopped server over an endpoint run once more, only to answer the last call that it has received.
    pub fn give_last_rites(&self) -> Result<()> {
        if self.endpoint.is_none() {
            return Ok(());
        }
        self.threads.iter().try_for_each(|thread| {
            let mut context = thread.context;
            context.0[register::A1] |= LAST_RITES as u64;
            thread.tcb.write_registers(&context, true).step("giving a thread its last rites")
        })
    }

    /// Stops all threads for good.
    pub fn stop(&self) {
        for thread in &self.threads {
            if let Err(error) = thread.tcb.suspend() {
                userlib::println!("root: cannot stop a thread of {}: {error}", self.name);
            }
        }
    }
}

/// The badge by which the supervisor knows a thread.
pub fn badge(process: u64, thread: u64) -> u64 {
    (process + 1) << 16 | thread
}

/// Process and thread of a badge.
pub fn of_badge(badge: u64) -> Option<(usize, usize)> {
    Some(((badge >> 16).checked_sub(1)? as usize, (badge & 0xFFFF) as usize))
}

fn add(tree: &mut FdtMut<SliceBuffer<'_>>, name: &str, value: &[u8]) -> Result<()> {
    match tree.root_mut().add_property(name, value) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::Archive("room in an environment")),
    }
}
