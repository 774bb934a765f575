//! User-interrupt instructions, CSRs and UINTC formats as typed calls.
