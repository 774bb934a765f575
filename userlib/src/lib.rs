//! Typed seL4 capabilities and system calls, program start, heap, console.
