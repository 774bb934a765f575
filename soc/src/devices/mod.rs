//! The devices of the board, one file each.
