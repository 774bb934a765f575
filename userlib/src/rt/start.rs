//! From the first instruction to `main`.

/// How `main` ends: the exit code of the program.
pub trait Outcome {
    /// 0 for success.
    fn code(self) -> i32;
}

impl Outcome for () {
    fn code(self) -> i32 {
        0
    }
}

impl Outcome for i32 {
    fn code(self) -> i32 {
        self
    }
}

impl<E: core::fmt::Display> Outcome for Result<(), E> {
    fn code(self) -> i32 {
        match self {
            Ok(()) => 0,
            Err(error) => {
                crate::println!("error: {error}");
                1
            }
        }
    }
}

/// Makes `main` the program: `fn main(env: &'static Env, thread: usize) -> impl Outcome`.
///
/// Thread 0 returning ends the program with the outcome's code. Another thread returning 0 ends that thread only.
#[macro_export]
macro_rules! program {
    ($main:path) => {
        /// First instructions of every thread: a0 = environment, a1 = thread, sp and tp set (`userlib::rt`).
        ///
        /// # Safety
        /// For the root task only.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn _start() -> ! {
            // A frame pointer and a return address of 0 end every backtrace.
            ::core::arch::naked_asm!(
                ".option push",
                ".option norelax",
                "la gp, __global_pointer$",
                ".option pop",
                "mv s0, zero",
                "mv ra, zero",
                "tail {}",
                sym __program,
            )
        }

        extern "C" fn __program(tree: usize, thread: usize) -> ! {
            // SAFETY: only `_start` comes here, with what the root task passed.
            unsafe { $crate::rt::start::program(tree, thread, $main) }
        }
    };
}

/// Makes `main` the root task: `fn main(boot_info: &'static BootInfo) -> !`, with a stack and a heap of its own.
#[macro_export]
macro_rules! root_task {
    ($main:path, stack = $stack:expr, heap = $heap:expr) => {
        #[repr(C, align(4096))]
        struct __Memory<const SIZE: usize>(::core::cell::UnsafeCell<[u8; SIZE]>);
        // SAFETY: the stack is used by the only thread, the heap by the allocator.
        unsafe impl<const SIZE: usize> Sync for __Memory<SIZE> {}
        static __STACK: __Memory<{ $stack }> = __Memory(::core::cell::UnsafeCell::new([0; $stack]));
        static __HEAP: __Memory<{ $heap }> = __Memory(::core::cell::UnsafeCell::new([0; $heap]));

        /// First instructions: a0 = BootInfo, all other registers 0.
        ///
        /// # Safety
        /// For the kernel only.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn _start() -> ! {
            ::core::arch::naked_asm!(
                ".option push",
                ".option norelax",
                "la gp, __global_pointer$",
                ".option pop",
                "la sp, {stack}",
                "li t0, {size}",
                "add sp, sp, t0",
                "ld tp, {ipc_buffer}(a0)",
                "mv s0, zero",
                "mv ra, zero",
                "tail {main}",
                stack = sym __STACK,
                size = const $stack,
                ipc_buffer = const ::core::mem::offset_of!($crate::BootInfo, ipc_buffer),
                main = sym __root_task,
            )
        }

        extern "C" fn __root_task(boot_info: usize) -> ! {
            // SAFETY: only `_start` comes here, with what the kernel passed; nothing else names `__HEAP`.
            unsafe { $crate::rt::start::root_task(boot_info, __HEAP.0.get() as usize, $heap, $main) }
        }
    };
}

#[cfg(all(target_arch = "riscv64", target_os = "none"))]
pub use guest::{name, program, root_task};

#[cfg(all(target_arch = "riscv64", target_os = "none"))]
mod guest {
    use super::Outcome;
    use crate::env::Env;
    use crate::rt::{console, exit, heap, park, rest};
    use crate::supervisor::{LAST_RITES, SERVER_GONE};
    use crate::syscall;
    use abi::bootinfo::BootInfo;
    use abi::message::MessageInfo;
    use alloc::boxed::Box;
    use core::sync::atomic::{AtomicPtr, Ordering};

    /// The environment, once thread 0 has read it.
    static ENV: AtomicPtr<Env> = AtomicPtr::new(core::ptr::null_mut());

    /// Name of the program; before there is an environment, and in the root task, what the thread is.
    pub fn name() -> &'static str {
        match env() {
            Some(env) => env.name(),
            None if console::is_kernel() => "root",
            None => "a starting program",
        }
    }

    fn env() -> Option<&'static Env> {
        // SAFETY: the pointer is null or, since the release store in `initialise`, that of an `Env` never changed or freed.
        unsafe { ENV.load(Ordering::Acquire).as_ref() }
    }

    /// Where `_start` of [`crate::program!`] goes on.
    ///
    /// # Safety
    /// To be called once per thread, from `_start`, with what the root task passed: the address of the environment's tree, readable
    /// for ever, and the index of the thread. The heap region that the tree names belongs to this program alone.
    pub unsafe fn program<T: Outcome>(tree: usize, thread: usize, main: fn(&'static Env, usize) -> T) -> ! {
        // A former life of this thread may have received a call and died before it answered.
        syscall::reply(MessageInfo::new(SERVER_GONE, 0, 0, 0), [0; 4]);
        if thread & LAST_RITES != 0 {
            rest()
        }
        if thread == 0 {
            // SAFETY: passed on to the caller.
            unsafe { initialise(tree) };
        }
        let env = loop {
            match env() {
                Some(env) => break env,
                None => syscall::yield_now(),
            }
        };
        let code = main(env, thread).code();
        if thread == 0 || code != 0 { exit(code) } else { park() }
    }

    /// Reads the environment and sets up the heap.
    ///
    /// # Safety
    /// As `program`, thread 0 only.
    unsafe fn initialise(tree: usize) {
        // SAFETY: the caller vouches for the tree; the second word of its header is its total size, big endian (device tree
        // specification 0.4, 5.2).
        let data = unsafe {
            let header = core::slice::from_raw_parts(tree as *const u8, 8);
            let size = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
            core::slice::from_raw_parts(tree as *const u8, size as usize)
        };
        let env = match Env::new(data) {
            Ok(env) => env,
            Err(error) => panic!("{error}"),
        };
        // SAFETY: the root task mapped the heap region for this purpose, and this is the only time it is given away.
        unsafe { heap::add(env.heap().address, env.heap().size) };
        // Release pairs with the acquire in `env`: a thread that sees the pointer sees the environment and the heap behind it.
        ENV.store(Box::leak(Box::new(env)), Ordering::Release);
    }

    /// Where `_start` of [`crate::root_task!`] goes on.
    ///
    /// # Safety
    /// To be called once, from `_start`, with the BootInfo address that the kernel passed and a heap that belongs to nobody else.
    pub unsafe fn root_task(boot_info: usize, heap: usize, size: usize, main: fn(&'static BootInfo) -> !) -> ! {
        console::use_kernel();
        // SAFETY: passed on to the caller.
        unsafe { heap::add(heap, size) };
        // SAFETY: the kernel maps a BootInfo page there and does not touch it again (seL4 manual, "Initial thread's environment").
        main(unsafe { &*(boot_info as *const BootInfo) })
    }
}
