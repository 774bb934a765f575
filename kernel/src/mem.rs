//! Memory by name: addresses, typed names of objects ([`Ref`]), and the token's accessors.
//!
//! Objects are made at run time from untyped memory, so they cannot be owned by Rust variables. A `Ref<T>` names an object; alone
//! it gives no access. The token [`Kernel`], which the holder of the big lock has, turns it into a borrow for as long as the token
//! is borrowed: two live `&mut` into kernel objects do not compile.
//!
//! The unsafe part of the portable kernel is this file. A `Ref<T>` is made in two ways only: from the address field of a
//! capability of T's type (`object/cap.rs`), or from a link that another object holds (which came from a capability). The invariant:
//! *while a `Ref<T>` can be reached, its memory holds a `T`*. Untyped_Retype establishes it (zeroed memory; every object type is valid
//! when zero), deletion of the last capability ends it after every link to the object has been cut.

use core::fmt;
use core::marker::PhantomData;
use core::num::NonZeroU64;
use core::sync::atomic::AtomicU64;

use abi::syscall_ring::{LINE_WORDS, LINES};

use crate::arch::{Arch, Current, DIRECT_MAP};
use crate::state::Kernel;

/// A physical address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Paddr(pub u64);

/// A kernel address in the direct map of physical memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Kva(pub u64);

impl Paddr {
    /// Where the kernel sees it.
    #[inline]
    pub const fn kva(self) -> Kva {
        Kva(self.0.wrapping_add(DIRECT_MAP as u64))
    }
}

impl Kva {
    /// The physical address behind it.
    #[inline]
    pub const fn paddr(self) -> Paddr {
        Paddr(self.0.wrapping_sub(DIRECT_MAP as u64))
    }
    /// `bytes` further.
    #[inline]
    pub const fn offset(self, bytes: u64) -> Kva {
        Kva(self.0.wrapping_add(bytes))
    }
}

impl fmt::Debug for Kva {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Types that kernel objects are made of.
///
/// # Safety
/// Every bit pattern that the kernel stores, and all zeroes, must be a valid value; no part may be user memory.
pub unsafe trait Object: Sized {
    /// The object at `place` is about to be changed: for checks that look only at what was.
    #[cfg(debug_assertions)]
    fn note_opened(&self, _place: Ref<Self>, _journal: &mut crate::invariants::Journal) {}
}

/// The name of a kernel object.
#[repr(transparent)]
pub struct Ref<T>(NonZeroU64, PhantomData<fn() -> T>);

impl<T> Clone for Ref<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ref<T> {}
impl<T> PartialEq for Ref<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<T> Eq for Ref<T> {}
impl<T> fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl<T> Ref<T> {
    /// The object at `address`.
    ///
    /// # Safety
    /// The memory there holds a `T` for as long as the name can be reached (head of this file), and `address` is not 0.
    #[inline]
    pub const unsafe fn assume(address: Kva) -> Self {
        // SAFETY: the caller promises that it is not zero.
        Self(unsafe { NonZeroU64::new_unchecked(address.0) }, PhantomData)
    }
    /// Its address.
    #[inline]
    pub const fn kva(self) -> Kva {
        Kva(self.0.get())
    }
    /// Its address as a word.
    #[inline]
    pub const fn word(self) -> u64 {
        self.0.get()
    }
}

/// An IPC buffer: user memory, so it is read and written word by word and never borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer(Kva);

impl Buffer {
    /// The buffer at `address`.
    ///
    /// # Safety
    /// 1024 bytes of a frame in RAM start there, 1024-aligned, and stay a frame while the value is in use.
    #[inline]
    pub const unsafe fn assume(address: Kva) -> Self {
        Self(address)
    }
}

/// The page of a system-call ring: user memory too, which other cores write at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPage(Kva);

impl RingPage {
    /// The ring at `address`.
    ///
    /// # Safety
    /// A frame in RAM starts there, and stays a frame while the value is in use.
    #[inline]
    pub const unsafe fn assume(address: Kva) -> Self {
        Self(address)
    }
}

impl Kernel {
    /// Borrows an object.
    #[inline(always)]
    pub fn get<T: Object>(&self, name: Ref<T>) -> &T {
        // SAFETY: by the invariant of `Ref` the memory holds a T; `&self` excludes any `&mut` made by this token.
        unsafe { &*self.arch.pointer(name.kva(), size_of::<T>()).cast::<T>() }
    }

    /// Borrows an object for change.
    #[inline(always)]
    pub fn get_mut<T: Object>(&mut self, name: Ref<T>) -> &mut T {
        // SAFETY: as in `get`; `&mut self` excludes every other borrow made by this token.
        let object = unsafe { &mut *self.arch.pointer(name.kva(), size_of::<T>()).cast::<T>() };
        #[cfg(debug_assertions)]
        object.note_opened(name, &mut self.journal);
        object
    }

    /// The word at `offset` of an object is going to be read and then written, and another core may have written it last
    /// (`Arch::claim`).
    #[inline(always)]
    pub fn claim<T: Object>(&self, name: Ref<T>, offset: usize) {
        debug_assert!(offset + 8 <= size_of::<T>() && offset.is_multiple_of(8));
        self.arch.claim(name.kva().offset(offset as u64));
    }

    /// Borrows two objects for change.
    ///
    /// # Panics
    /// If they overlap.
    #[inline(always)]
    pub fn pair_mut<T: Object, U: Object>(&mut self, first: Ref<T>, second: Ref<U>) -> (&mut T, &mut U) {
        let (a, b) = (first.word(), second.word());
        assert!(a + size_of::<T>() as u64 <= b || b + size_of::<U>() as u64 <= a, "one object twice");
        // SAFETY: as in `get_mut`; the two do not overlap.
        unsafe {
            (
                &mut *self.arch.pointer(first.kva(), size_of::<T>()).cast::<T>(),
                &mut *self.arch.pointer(second.kva(), size_of::<U>()).cast::<U>(),
            )
        }
    }

    /// Borrows the architecture and an object, which is never part of it.
    #[inline(always)]
    pub fn with_arch<T: Object>(&mut self, name: Ref<T>) -> (&mut Current, &mut T) {
        let object = self.arch.pointer(name.kva(), size_of::<T>()).cast::<T>();
        // SAFETY: as in `get_mut`; objects lie in untyped memory, the token does not.
        (&mut self.arch, unsafe { &mut *object })
    }

    /// Reads a word of an IPC buffer.
    #[inline]
    pub fn buffer_word(&self, buffer: Buffer, index: usize) -> u64 {
        assert!(index < abi::ipc_buffer::WORDS);
        let address = self.arch.pointer(buffer.0.offset(8 * index as u64), 8).cast::<u64>();
        // SAFETY: inside the buffer, which is aligned memory of a frame. Volatile: threads may write it at any time.
        unsafe { address.read_volatile() }
    }

    /// Writes a word of an IPC buffer.
    #[inline]
    pub fn set_buffer_word(&mut self, buffer: Buffer, index: usize, value: u64) {
        assert!(index < abi::ipc_buffer::WORDS);
        let address = self.arch.pointer(buffer.0.offset(8 * index as u64), 8).cast::<u64>();
        // SAFETY: as in `buffer_word`.
        unsafe { address.write_volatile(value) }
    }

    /// A line of a system-call ring.
    #[inline]
    pub fn ring_line(&self, page: RingPage, line: usize) -> &[AtomicU64; LINE_WORDS] {
        let offset = line % LINES * size_of::<[AtomicU64; LINE_WORDS]>();
        let address = self.arch.pointer(page.0.offset(offset as u64), size_of::<[AtomicU64; LINE_WORDS]>());
        // SAFETY: inside the page, which is aligned memory of a frame; everybody in the kernel reaches it through these atomics only.
        unsafe { &*address.cast() }
    }

    /// Copies message words of one IPC buffer to the same places of another.
    ///
    /// # Panics
    /// If there are no such words.
    #[inline]
    pub fn copy_message_words(&mut self, from: Buffer, to: Buffer, words: core::ops::Range<usize>) {
        use abi::ipc_buffer::MESSAGE;
        assert!(words.end <= abi::message::MAX_LENGTH);
        const _: () = assert!(MESSAGE + abi::message::MAX_LENGTH <= abi::ipc_buffer::WORDS);
        for index in words {
            let offset = 8 * (MESSAGE + index) as u64;
            let source = self.arch.pointer(from.0.offset(offset), 8).cast::<u64>();
            let target = self.arch.pointer(to.0.offset(offset), 8).cast::<u64>();
            // SAFETY: as in `buffer_word`; the two may be one buffer.
            unsafe { target.write_volatile(source.read_volatile()) }
        }
    }

    /// Zeroes memory that no capability but the caller's untyped covers.
    ///
    /// # Safety
    /// The bytes lie in RAM, inside one untyped block that has no children.
    pub unsafe fn zero(&mut self, address: Kva, bytes: usize) {
        // SAFETY: the caller promises that nothing else lives there.
        unsafe { self.arch.pointer(address, bytes).write_bytes(0, bytes) }
    }
}
