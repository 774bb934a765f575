#![doc = include_str!("../README.md")]

mod assemble;
mod blob;
mod check;
mod cpio;
mod error;
pub mod guest;
pub mod manifest;
mod plan;
mod program;
pub mod qemu;
#[cfg(test)]
mod sample;
mod size;
mod tree;

pub use error::{Error, Result};
pub use manifest::Manifest;
pub use size::Size;

use abi::label::Table;
use assemble::{Parts, assemble};
use blob::Blob;
use guest::{Profile, Workspace};
use manifest::{Kernel, Machine, System};
use plan::{Plan, ProgramPlan};
use program::Program;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Package and binary of what every image has beside its programs.
const FIRMWARE: (&str, &str) = ("firmware", "firmware");
const KERNEL: (&str, &str) = ("kernel", "kernel");
const ROOT: (&str, &str) = ("apps", "root");

/// How to build. Start from [`Options::default`].
pub struct Options<'a> {
    /// Where to write the image; `target/images/NAME.elf` by default.
    pub out: Option<PathBuf>,
    /// Leave the firmware out: for a machine that brings its own, such as stock QEMU with OpenSBI.
    pub without_firmware: bool,
    /// Hide cargo's progress.
    pub quiet: bool,
    /// Told before each step, in words.
    pub progress: &'a dyn Fn(&str),
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { out: None, without_firmware: false, quiet: false, progress: &|_| () }
    }
}

/// A seL4 root task that knows nothing of manifests, and the kernel that it was built for.
#[derive(Clone, Debug)]
pub struct RootServer {
    /// Its ELF file.
    pub path: PathBuf,
    /// Configuration of the kernel.
    pub kernel: Kernel,
    /// Numbering of the invocations: UP or SMP (`KernelMaxNumNodes`).
    pub labels: Table,
    /// Machine defaults of the image.
    pub machine: Machine,
}

impl RootServer {
    /// The root task of an ELF file, with the defaults of everything else.
    pub fn new(path: PathBuf) -> Self {
        Self { path, kernel: Kernel::default(), labels: Table::Smp, machine: Machine::default() }
    }
}

/// A bootable image.
#[derive(Clone, Debug)]
pub struct Image {
    /// The ELF file.
    pub bytes: Vec<u8>,
    /// Where it was written.
    pub path: PathBuf,
    /// Machine defaults of its manifest.
    pub machine: Machine,
}

/// Builds images. Several images through one builder call cargo only for what none of them has needed before.
pub struct Builder {
    workspace: Workspace,
}

impl Builder {
    /// A builder for the workspace of this crate.
    ///
    /// # Errors
    /// If cargo cannot list its packages.
    pub fn new() -> Result<Self> {
        Ok(Self { workspace: Workspace::open()? })
    }

    /// Cargo's target folder, where the images go too.
    pub fn target(&self) -> &Path {
        self.workspace.target()
    }

    /// Checks a manifest without building: its form, its sense, and that its packages and binaries exist.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, manifest: &Manifest) -> Result<()> {
        self.plan(manifest).map(drop)
    }

    /// Builds binary `bin` of `package`, which runs without firmware and kernel; gives its file.
    ///
    /// # Errors
    /// If it does not compile.
    pub fn bare(&mut self, package: &str, bin: &str) -> Result<PathBuf> {
        self.workspace.build(Profile::Release, package, &BTreeSet::from([bin]), true)?;
        Ok(self.workspace.binary(Profile::Release, bin))
    }

    fn plan(&self, manifest: &Manifest) -> Result<(System, Plan)> {
        let system = manifest.system()?;
        self.workspace.check(manifest, &system)?;
        let plan =
            Plan::new(&system).map_err(|(key, message)| Error::Manifest { place: manifest.place(&key), message })?;
        Ok((system, plan))
    }

    /// Builds the image of a manifest: guest programs by cargo, everything else here. Equal sources and manifest give equal bytes.
    ///
    /// # Errors
    /// The first thing that is wrong with the manifest, the programs or their fit.
    pub fn build(&mut self, manifest: &Manifest, options: &Options) -> Result<Image> {
        let (system, plan) = self.plan(manifest)?;
        let mut packages = BTreeMap::from([(ROOT.0, BTreeSet::from([ROOT.1]))]);
        for ProgramPlan { target: (package, bin), .. } in &plan.programs {
            packages.entry(package).or_default().insert(bin);
        }
        let (firmware, kernel) = self.base(system.kernel.checked, options)?;
        for (package, bins) in packages {
            (options.progress)(&format!("building {package}"));
            self.workspace.build(Profile::Release, package, &bins, options.quiet)?;
        }

        (options.progress)("assembling the image");
        let root = Program::load(&self.workspace.binary(Profile::Release, ROOT.1))?;
        let programs = plan
            .programs
            .iter()
            .map(|program| user_program(&self.workspace.binary(Profile::Release, &program.target.1), program));
        let programs = programs.collect::<Result<Vec<_>>>()?;
        let archive = boot_archive(&plan, &programs);
        let mut symbols = vec![("firmware", &firmware.elf[..]), ("kernel", &kernel.elf[..]), ("root", &root.bytes[..])];
        symbols.extend(
            plan.programs.iter().zip(&programs).map(|(plan, program)| (plan.name.as_str(), &program.bytes[..])),
        );
        let code: u64 = programs.iter().map(|program| program.pages() * plan::PAGE).sum();
        let bytes = assemble(&Parts {
            firmware: (!options.without_firmware).then_some(&firmware),
            kernel: &kernel,
            root: &root,
            archive: Some(&archive),
            config: &system.kernel,
            labels: Table::Smp,
            root_slots: plan.root_slots() + code / plan::PAGE,
            machine: &system.machine,
            program_memory: plan.memory() + code,
            symbols,
        })?;
        self.write(bytes, manifest.name(), system.machine, options)
    }

    /// Builds one program of the workspace for the guest, without an image around it; gives its ELF file.
    ///
    /// # Errors
    /// If it does not compile.
    pub fn program(&mut self, package: &str, bin: &str, options: &Options) -> Result<PathBuf> {
        (options.progress)(&format!("building {package}"));
        self.workspace.build(Profile::Release, package, &BTreeSet::from([bin]), options.quiet)?;
        Ok(self.workspace.binary(Profile::Release, bin))
    }

    /// Builds an image around a foreign seL4 root task, such as one linked against libsel4: no archive, no programs, only the kernel
    /// below it, configured as the root task was.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn build_root_server(&mut self, server: &RootServer, options: &Options) -> Result<Image> {
        let refuse = |(key, message)| Error::Manifest { place: key, message };
        check::machine(&server.machine).and_then(|()| check::kernel(&server.kernel)).map_err(refuse)?;
        let root = Program::load_foreign(&server.path)?;
        let (firmware, kernel) = self.base(server.kernel.checked, options)?;
        (options.progress)("assembling the image");
        let bytes = assemble(&Parts {
            firmware: (!options.without_firmware).then_some(&firmware),
            kernel: &kernel,
            root: &root,
            archive: None,
            config: &server.kernel,
            labels: server.labels,
            root_slots: 0,
            machine: &server.machine,
            program_memory: 0,
            symbols: vec![("firmware", &firmware.elf[..]), ("kernel", &kernel.elf[..]), ("root", &root.bytes[..])],
        })?;
        let name = root.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        self.write(bytes, &name, server.machine.clone(), options)
    }

    /// Firmware and kernel; `checked`: the kernel that checks itself.
    fn base(&mut self, checked: bool, options: &Options) -> Result<(Blob, Blob)> {
        let mut part = |profile, (package, bin)| {
            (options.progress)(&format!("building {package}"));
            self.workspace.build(profile, package, &BTreeSet::from([bin]), options.quiet)?;
            Blob::load(&self.workspace.binary(profile, bin))
        };
        let kernel = if checked { Profile::Checked } else { Profile::Release };
        Ok((part(Profile::Release, FIRMWARE)?, part(kernel, KERNEL)?))
    }

    fn write(&self, bytes: Vec<u8>, name: &str, machine: Machine, options: &Options) -> Result<Image> {
        let path = match &options.out {
            Some(path) => path.clone(),
            None => self.workspace.target().join("images").join(format!("{name}.elf")),
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        fs::write(&path, &bytes).map_err(Error::io(&path))?;
        Ok(Image { bytes, path, machine })
    }
}

/// Builds one image: [`Builder::build`].
///
/// # Errors
/// As there.
pub fn build(manifest: &Manifest, options: &Options) -> Result<Image> {
    Builder::new()?.build(manifest, options)
}

/// Loads a program and checks that its addresses are those that the plan leaves to images.
fn user_program(path: &Path, plan: &ProgramPlan) -> Result<Program> {
    let program = Program::load(path)?;
    if plan.large_pages && !program.allows_large_pages() {
        let reason =
            "its code, constants and data are not where userlib/program.ld puts them; see apps/build.rs".into();
        return Err(Error::Elf { path: path.into(), reason });
    }
    if program.start() < plan::IMAGE_START || program.end() > plan::IMAGE_END {
        let reason = format!(
            "it is linked to {:#x}..{:#x}, but images have {:#x}..{:#x}",
            program.start(),
            program.end(),
            plan::IMAGE_START,
            plan::IMAGE_END
        );
        return Err(Error::Elf { path: path.into(), reason });
    }
    Ok(program)
}

fn boot_archive(plan: &Plan, programs: &[Program]) -> Vec<u8> {
    let mut members = vec![(String::from("system.dtb"), tree::system(plan, programs))];
    for (plan_of, program) in plan.programs.iter().zip(programs) {
        members.push((format!("{}.elf", plan_of.name), program.stripped()));
        members.push((format!("{}.env.dtb", plan_of.name), tree::environment(plan, plan_of)));
    }
    cpio::archive(members.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))
}
