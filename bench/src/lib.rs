//! One file per published experiment.
