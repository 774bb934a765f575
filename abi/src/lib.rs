//! Numbers and layouts that both sides of a trap agree on.
