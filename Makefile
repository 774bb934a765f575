# Names for cargo commands, and nothing else. `make help` lists them.
# Needs rustup, make and a C linker; rustup reads rust-toolchain.toml and installs the toolchain on first use.

GUEST := riscv64imac-unknown-none-elf
# What runs on the guest target only; everything else is checked with the workspace on the host.
GUEST_PACKAGES := -p kernel -p kernel-guest -p firmware -p apps -p nwp-server -p bench-guest -p soc-guest -p sel4-conformance

.DEFAULT_GOAL := help
.PHONY: help run test fmt fmt-check lint doc unit loom model soak fuzz-soc fuzz miri qemu fuzz-kernel foreign bench-kernel bench-ipc bench-nic bench-soc calibrate bench-check toolchain clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 16

run: toolchain ## the main job: build the images, run every experiment on the soc, print the tables
	cargo run --release -p bench -- tour

test: fmt-check lint loom unit ## every check: format, lints, models of the races, host and guest tests

fmt: toolchain ## format all code
	cargo fmt --all

fmt-check: toolchain
	cargo fmt --all --check

lint: toolchain ## clippy, warnings are errors: the workspace for the host, the guest programs for the guest
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy --release --target $(GUEST) $(GUEST_PACKAGES) -- -D warnings

qemu: toolchain ## boot, IPC and echo on stock QEMU's virt board, 1 and 2 harts (needs qemu-system-riscv64)
	cargo run --release -p images -- qemu

doc: toolchain ## the documentation of every package, target/doc/
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

unit: toolchain ## unit tests, and the tests that boot images on the soc
	cargo test --workspace

loom: toolchain ## every interleaving of ring, bell and executor
	RUSTFLAGS="--cfg loom" cargo test --release --target-dir target/loom -p libipc --test loom

model: toolchain ## every state of the wake protocol, the large configurations too (minutes)
	WAKE_MODEL=full cargo test --release -p libipc --test wake_model -- --nocapture

soak: toolchain ## IPC over 200 schedules while programs die, move, are cut off or destroy their channel (long)
	SOAK_SEEDS=$${SOAK_SEEDS:-200} cargo test --release -p images --test soak -- --nocapture

fuzz-soc: toolchain ## random programs on the machine and on a second interpreter, many (minutes)
	DIFFERENTIAL_PROGRAMS=20000 cargo test --release -p soc --test differential

fuzz: ## libFuzzer on the soc's loader, devices, rings and frames, nightly (optional; FUZZ_SECONDS=60 for each)
	@cargo fuzz --version >/dev/null 2>&1 || { echo "make fuzz needs cargo-fuzz and nightly Rust: see soc/fuzz/README.md"; exit 1; }
	for target in elf_loader device_registers dma_descriptors frames; do \
		(cd soc && cargo +nightly fuzz run $$target -- -max_total_time=$${FUZZ_SECONDS:-60} -max_len=8192) || exit 1; done

miri: ## undefined behaviour, on nightly (optional)
	MIRIFLAGS=-Zmiri-ignore-leaks cargo +nightly miri test --target-dir target/miri -p abi -p uintr -p libipc -p kernel --lib

foreign: ## Debian's riscv64 Linux into target/foreign, for the tests that boot it (optional; apt, 113 MB)
	soc/tests/foreign/fetch-linux.sh target/foreign/linux

fuzz-kernel: toolchain ## 10 million random system calls on 1 and 4 harts, on a kernel that checks itself (two hours)
	FUZZ_CALLS=$${FUZZ_CALLS:-2500000} cargo test --release -p images --test fuzz -- --nocapture

bench-kernel: toolchain ## cycles of calls, signals, mappings; target/results/kernel.json
	cargo run --release -p bench -- kernel

bench-soc: toolchain ## MIPS of both modes on this host beside QEMU's TCG (if installed); target/results/host.json
	cargo run --release -p bench -- soc

bench-nic: toolchain ## transmit rate of the NIC driver, frame sizes and thresholds; target/results/nic.json
	cargo run --release -p bench -- nic

calibrate: toolchain ## the timing model beside Rocket RTL, the NIC beside its board; target/results/calibrate.json (RTL=1: the RTL itself, live)
	cargo run --release -p bench -- calibrate $(if $(RTL),--rtl)

bench-ipc: toolchain ## cycles of calls, 1 to 512 in flight, six server loads, beside the published claims; target/results/ipc.json (BENCH="--quick": a few points)
	cargo run --release -p bench -- ipc $(BENCH)

bench-check: toolchain ## exact cycle counts against the stored tables (UPDATE=1 stores the new ones)
	cargo test --release -p bench --test shape --test exact

toolchain:
	@rustup target list --installed | grep -qx $(GUEST) || rustup target add $(GUEST)

clean: ## remove everything that was built
	cargo clean
