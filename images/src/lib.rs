//! Turns a manifest into a bootable image.
