//! Guest programs from cargo.

use crate::error::{Error, Result};
use crate::manifest::{Manifest, System};
use cargo_metadata::{Metadata, MetadataCommand};
use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Target of all guest code.
const TARGET: &str = "riscv64imac-unknown-none-elf";

/// How cargo compiles a guest package (profiles of the workspace).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// For use.
    Release,
    /// With debug assertions and overflow checks.
    Checked,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Checked => "checked",
        }
    }
}

/// The workspace that the guest programs come from.
pub struct Workspace {
    metadata: Metadata,
    /// Profiles, packages and binaries that this has built.
    built: BTreeSet<(Profile, String, String)>,
}

impl Workspace {
    /// Lists the packages.
    ///
    /// # Errors
    /// If cargo cannot.
    pub fn open() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec();
        let metadata = metadata.map_err(|error| Error::Metadata(error.to_string()))?;
        Ok(Self { metadata, built: BTreeSet::new() })
    }

    /// Checks that the package and the binary of every program exist.
    pub(crate) fn check(&self, manifest: &Manifest, system: &System) -> Result<()> {
        for (name, program) in &system.program {
            let refuse = |field: &str, message: String| {
                Err(Error::Manifest { place: manifest.place(&format!("program.{name}.{field}")), message })
            };
            let Some(package) = self.metadata.packages.iter().find(|package| package.name.as_str() == program.package)
            else {
                return refuse("package", format!("there is no package `{}` in this workspace", program.package));
            };
            let bins: Vec<&str> =
                package.targets.iter().filter(|target| target.is_bin()).map(|target| target.name.as_str()).collect();
            if !bins.contains(&program.bin.as_str()) {
                let known = if bins.is_empty() { "none".into() } else { bins.join(", ") };
                return refuse(
                    "bin",
                    format!("package `{}` has no binary `{}`; it has: {known}", program.package, program.bin),
                );
            }
        }
        Ok(())
    }

    /// The workspace's target folder.
    pub fn target(&self) -> &Path {
        self.metadata.target_directory.as_std_path()
    }

    /// Where the binaries are after [`Workspace::build`].
    pub fn binary(&self, profile: Profile, name: &str) -> PathBuf {
        self.target().join("guest").join(TARGET).join(profile.name()).join(name)
    }

    /// Builds binaries of one package for the guest, if this has not been done. Cargo's messages go to stderr, unless `quiet` and
    /// there is nothing wrong.
    ///
    /// One call of cargo per package: within a call cargo unites the features that its packages ask of a dependency, so a kernel
    /// would get what a program with a heap asks for, and a binary would depend on what else is built beside it.
    ///
    /// # Errors
    /// If one does not compile.
    pub fn build(&mut self, profile: Profile, package: &str, bins: &BTreeSet<&str>, quiet: bool) -> Result<()> {
        let missing = |bin: &&&str| !self.built.contains(&(profile, package.to_owned(), (**bin).to_owned()));
        let bins: Vec<&str> = bins.iter().filter(missing).copied().collect();
        if bins.is_empty() {
            return Ok(());
        }
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&self.metadata.workspace_root);
        cargo
            .args(["build", "--profile", profile.name(), "--target", TARGET, "--target-dir"])
            .arg(self.target().join("guest"));
        cargo.args(["-p", package]).args(bins.iter().flat_map(|bin| ["--bin", bin]));
        if quiet {
            cargo.arg("--quiet");
        }
        // The environment of a `cargo test` or `cargo run` around this must not change what is built here.
        cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", self.flags().join("\x1f"));
        cargo.stdin(Stdio::null()).stdout(Stdio::null());
        let status = cargo.status().map_err(|error| Error::GuestBuild(error.to_string()))?;
        if !status.success() {
            return Err(Error::GuestBuild(status.to_string()));
        }
        self.built.extend(bins.into_iter().map(|bin| (profile, package.to_owned(), bin.to_owned())));
        Ok(())
    }

    /// Compiler flags of guest code: frame pointers for backtraces, and no path of this machine in the binaries, so that the same
    /// sources give the same image anywhere.
    fn flags(&self) -> Vec<String> {
        let mut flags = vec![String::from("-Cforce-frame-pointers=yes")];
        let mut remap = |from: &Path, to: &str| flags.push(format!("--remap-path-prefix={}={to}", from.display()));
        if let Some(home) =
            env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")))
        {
            remap(&home.join("registry").join("src"), "registry");
        }
        remap(self.metadata.workspace_root.as_std_path(), "wakeline");
        flags
    }
}
