//! `images`: list, check, build and run the systems of this tree.

use clap::{Parser, Subcommand};
use images::{Builder, Error, Image, Manifest, Options};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Turns manifests into bootable images.
#[derive(Parser)]
#[command(name = "images", version)]
struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the manifests
    List,
    /// Check a manifest without building
    Check(System),
    /// Build an image
    Build {
        #[command(flatten)]
        system: System,
        #[command(flatten)]
        output: Output,
    },
    /// Build an image and run it on the soc; exits with the guest's code
    Run {
        #[command(flatten)]
        system: System,
        /// Options of `soc run`, after `--`
        #[arg(last = true)]
        soc: Vec<OsString>,
    },
    /// Build an image around a seL4 root server that knows nothing of manifests
    RootServer {
        /// The root server, an ELF file linked against libsel4
        file: PathBuf,
        #[command(flatten)]
        output: Output,
        /// The root server was built for one core (CONFIG_MAX_NUM_NODES = 1)
        #[arg(long)]
        up: bool,
    },
}

#[derive(clap::Args)]
struct System {
    /// Name of a manifest in images/, or path of one
    manifest: String,
    /// Change a value of the manifest, such as program.client.hart=1 (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

#[derive(clap::Args, Default)]
struct Output {
    /// Where to write the image [default: target/images/NAME.elf]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Leave the firmware out, for machines that bring their own (stock QEMU)
    #[arg(long)]
    without_firmware: bool,
}

impl Output {
    fn options(&self) -> Options<'_> {
        Options {
            out: self.out.clone(),
            without_firmware: self.without_firmware,
            progress: &|step| eprintln!("{step}"),
            ..Options::default()
        }
    }
}

impl System {
    fn load(&self) -> Result<Manifest, Error> {
        let mut manifest = match self.manifest.ends_with(".toml") {
            true => Manifest::load(self.manifest.as_ref())?,
            false => Manifest::named(&self.manifest)?,
        };
        for change in &self.set {
            let (key, value) = change.split_once('=').ok_or_else(|| Error::Manifest {
                place: format!("--set {change}"),
                message: "write KEY=VALUE".into(),
            })?;
            manifest.set(key, value)?;
        }
        Ok(manifest)
    }
}

fn main() -> ExitCode {
    match perform(&Command::parse().action) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn perform(action: &Action) -> Result<ExitCode, Error> {
    match action {
        Action::List => images::manifest::names()?.iter().for_each(|name| println!("{name}")),
        Action::Check(system) => {
            Builder::new()?.check(&system.load()?)?;
            println!("{} is good", system.manifest);
        }
        Action::Build { system, output } => report(&images::build(&system.load()?, &output.options())?),
        Action::RootServer { file, output, up } => {
            let labels = if *up { abi::label::Table::Up } else { abi::label::Table::Smp };
            report(&Builder::new()?.build_root_server(file, labels, &output.options())?);
        }
        Action::Run { system, soc } => {
            let image = images::build(&system.load()?, &Output::default().options())?;
            let words = ["soc".into(), "run".into(), image.path.into_os_string()];
            return Ok(soc::cli::perform(words.into_iter().chain(soc.iter().cloned())));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn report(image: &Image) {
    println!("{} ({} bytes)", image.path.display(), image.bytes.len());
}
