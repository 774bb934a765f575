//! A simulator of generated Rocket RTL: made by Verilator from the Verilog of a PyPI package and `rtl/testbench.cpp`.
//!
//! Everything lies in `target/rtl/`: the package in `python/`, a folder for each configuration. What is there and newer than its
//! sources is not made again.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use soc::elf::Executable;

use crate::boot::Boot;
use crate::error::Error;
use crate::results;

/// The package with the Verilog, at the version that `published/rocket.csv` holds for (rocket-chip 850e1d5d5).
const PACKAGE: &str = "pythondata-cpu-rocket==0.0.post7146";
const TOP: &str = "ExampleRocketSystem";
/// Where the test bench's RAM begins.
const RAM: u64 = 0x8000_0000;
const RAM_BYTES: usize = 16 << 20;
/// A run that takes longer than this hangs.
const CYCLE_LIMIT: u64 = 100_000_000;

/// A configuration of the package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Configuration {
    /// `LitexFullConfig`: one big core, 64-bit memory port.
    OneHart,
    /// `LitexFull4DConfig`: four big cores, 128-bit memory port.
    FourHarts,
}

impl Configuration {
    /// Its name in the package.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneHart => "LitexFullConfig",
            Self::FourHarts => "LitexFull4DConfig",
        }
    }

    fn c_flags(self) -> &'static str {
        match self {
            Self::OneHart => "-DHARTS=1",
            Self::FourHarts => "-DHARTS=4",
        }
    }
}

/// A tool that Debian has and this needs.
const TOOLS: [(&str, &str); 4] =
    [("verilator", "verilator"), ("g++", "g++"), ("make", "make"), ("python3", "python3-pip")];

/// The first tool that is not there, as a line that says what to install.
pub fn missing_tool() -> Option<String> {
    let absent = |tool: &str| {
        let status = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        !status.is_ok_and(|status| status.success())
    };
    let (tool, package) = TOOLS.into_iter().find(|(tool, _)| absent(tool))?;
    Some(format!("{tool} is not installed (Debian: {package})"))
}

/// The folder of the package's Verilog; the package is fetched with pip if it is not there. `Err` is a line that says what to do.
///
/// # Errors
/// pip cannot get it.
pub fn verilog(folder: &Path) -> Result<PathBuf, String> {
    let python = folder.join("python");
    let verilog = python.join("pythondata_cpu_rocket/verilog");
    if !verilog.join("generated-src").is_dir() {
        eprintln!("rtl: fetching {PACKAGE} with pip into {} (41 MB, 430 MB unpacked)", python.display());
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(&python).arg(PACKAGE);
        let got = pip.status().is_ok_and(|status| status.success());
        if !got {
            let python = python.display();
            return Err(format!("no {PACKAGE}: run `python3 -m pip install --no-deps --target {python} {PACKAGE}`"));
        }
    }
    Ok(verilog)
}

/// A simulator that can be run.
#[derive(Debug)]
pub struct Simulator {
    binary: PathBuf,
    folder: PathBuf,
}

impl Simulator {
    /// Makes the simulator of `configuration` in `folder`.
    ///
    /// # Errors
    /// Verilator or the C++ compiler refuses its input.
    pub fn build(configuration: Configuration, verilog: &Path, folder: &Path) -> Result<Self, Error> {
        let name = configuration.name();
        let folder = folder.join(name);
        results::make_folder(&folder)?;
        let testbench = folder.join("testbench.cpp");
        let source = include_bytes!("../../rtl/testbench.cpp");
        // Verilator and make go by dates: the same text is not written again.
        if fs::read(&testbench).is_ok_and(|found| found == source) {
            eprintln!("rtl: {name}: up to date, or a matter of minutes");
        } else {
            eprintln!("rtl: {name}: making the simulator (one to three minutes)");
            results::write_file(&testbench, source)?;
        }
        let generated = verilog.join("generated-src");
        let mut translate = Command::new("verilator");
        translate
            // Assertions and monitors of the generator are left out: they take most of the time.
            .args(["--cc", "--exe", "-O3", "--noassert", "--x-assign", "fast", "--x-initial", "fast", "-DSYNTHESIS"])
            // What the generator writes is not lint-free.
            .args(["-Wno-fatal", "-Wno-lint", "-Wno-style", "--output-split", "20000", "--top-module", TOP])
            .args(["-CFLAGS", configuration.c_flags(), "-Mdir"])
            .arg(&folder)
            .arg(generated.join(format!("freechips.rocketchip.system.{name}.v")))
            .arg(generated.join(format!("freechips.rocketchip.system.{name}.behav_srams.v")))
            .args([verilog.join("vsrc/plusarg_reader.v"), verilog.join("vsrc/EICG_wrapper.v"), testbench]);
        run(&mut translate, name)?;
        let mut compile = Command::new("make");
        compile.arg("-C").arg(&folder).args(["-f", &format!("V{TOP}.mk"), "OPT_FAST=-O2", "OPT_SLOW=-O0"]);
        run(&mut compile, name)?;
        Ok(Self { binary: folder.join(format!("V{TOP}")), folder })
    }

    /// Runs `boot`'s program with its memory latencies; gives what it prints.
    ///
    /// # Errors
    /// The program does not fit, or ends without success.
    pub fn run(&self, boot: &Boot) -> Result<String, Error> {
        let soc::Config { rl, wl, .. } = boot.config;
        let image = self.folder.join(&boot.name).with_extension("ram");
        results::write_file(&image, &ram(boot)?)?;
        let mut simulator = Command::new(&self.binary);
        simulator.arg(&image).args([rl.to_string(), wl.to_string(), CYCLE_LIMIT.to_string()]);
        let output = run(&mut simulator, &boot.label)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// What RAM holds at the start.
fn ram(boot: &Boot) -> Result<Vec<u8>, Error> {
    let mut ram = Vec::new();
    for segment in Executable::parse(&boot.image)?.segments()? {
        let start = segment.address.checked_sub(RAM).and_then(|start| usize::try_from(start).ok());
        let end = start.and_then(|start| start.checked_add(segment.bytes.len())).filter(|&end| end <= RAM_BYTES);
        let (Some(start), Some(end)) = (start, end) else {
            let reason = format!("a segment at {:#x} is not within RAM", segment.address);
            return Err(Error::Measurement { label: boot.label.clone(), reason });
        };
        ram.resize(ram.len().max(end), 0);
        ram[start..end].copy_from_slice(segment.bytes);
    }
    Ok(ram)
}

/// Runs a command to its end.
fn run(command: &mut Command, label: &str) -> Result<Output, Error> {
    let program = command.get_program().to_os_string();
    let fail = |reason| Error::Measurement { label: label.to_owned(), reason };
    let output = command.output().map_err(|error| fail(format!("{}: {error}", name(&program))))?;
    if !output.status.success() {
        eprint!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        return Err(fail(format!("{}: {}; what it said is above", name(&program), output.status)));
    }
    Ok(output)
}

fn name(program: &OsStr) -> String {
    Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
}
