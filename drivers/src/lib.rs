//! Network drivers as plain state machines over Mmio and a DMA region.
