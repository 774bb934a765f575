//! Asynchronous IPC over shared rings woken by user interrupts.
