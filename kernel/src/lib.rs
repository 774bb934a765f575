//! The Wakeline microkernel: seL4's ABI with user-interrupt objects.
