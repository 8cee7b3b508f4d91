//! Builds with cargo from within a test: the C library, or a program that depends on this crate.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the features of this test build, in the form for cargo.
fn features() -> String {
    macro_rules! built {
        ($($name:literal)*) => { [$(($name, cfg!(feature = $name))),*] };
    }
    // With `default`, which names no code, the crate has the features of the compiled one and is not compiled again.
    let all = built!["default" "runtime" "frontend" "graph" "vm" "inspect" "suite" "check" "cli" "cuda" "hip" "opencl" "vulkan" "rpc" "target" "web" "cxx"];
    let built = all.into_iter().filter(|(_, is_built)| *is_built);
    built.map(|(name, _)| name).collect::<Vec<_>>().join(",")
}

/// Returns cargo with `command`, for builds that share their dependencies with this test. The error says why cargo cannot be used.
fn cargo(command: &str) -> Result<Command, String> {
    let cargo = std::env::var_os("CARGO").ok_or("cargo did not start this test")?;
    let mut cargo = Command::new(cargo);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    cargo.args([command, "--quiet", "--offline", "--target-dir"]);
    cargo.arg(target.ok_or("there is no folder above the one for temporary files")?);
    if cfg!(debug_assertions) {
        // As in the profile of tests. `cargo rustc --profile test` would build a test program.
        cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        cargo.env("CARGO_PROFILE_DEV_LTO", "off");
    } else {
        cargo.arg("--release");
    }
    Ok(cargo)
}

/// Finds the last line of `output` that names a file with one of these endings.
fn built(output: &[u8], endings: [&str; 3]) -> Option<PathBuf> {
    let lines = String::from_utf8_lossy(output);
    let messages = lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let mut files = messages.flat_map(|message: serde_json::Value| {
        let names = message["filenames"].as_array().cloned().unwrap_or_default();
        names
            .into_iter()
            .filter_map(|name| Some(PathBuf::from(name.as_str()?)))
    });
    let wanted = |file: &PathBuf| {
        let name = file.to_string_lossy();
        endings.iter().any(|ending| name.ends_with(ending))
    };
    files.rfind(wanted)
}

fn run(mut cargo: Command, endings: [&str; 3]) -> Result<PathBuf, String> {
    let output = cargo.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{cargo:?}\n{text}");
    built(&output.stdout, endings).ok_or_else(|| format!("{cargo:?} names no such file"))
}

/// Builds the C library with the features of this test, in a folder where a linker finds it. The error says why it is missing.
#[allow(dead_code)]
pub(crate) fn c_library() -> Result<PathBuf, String> {
    let mut cargo = cargo("rustc")?;
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args(["--example", "tvmspec", "--no-default-features"]);
    cargo.args(["--features", &features(), "--message-format", "json"]);
    // As `release/install-c` names it.
    let header = include_str!("../../include/tvmspec.h");
    let (_, abi) = header.split_once("#define TVMSPEC_ABI ").expect("a number");
    let name = format!("libtvmspec.so.{}", abi.lines().next().expect("a number"));
    if cfg!(target_os = "linux") {
        cargo.args(["--", &format!("-Clink-arg=-Wl,-soname,{name}")]);
    }
    let library = run(cargo, ["tvmspec.so", "tvmspec.dylib", "tvmspec.dll"])?;
    #[cfg(target_os = "linux")]
    {
        let named = library.with_file_name(name);
        // Another test may have created it.
        if !named.exists() {
            let _ = std::os::unix::fs::symlink("libtvmspec.so", named);
        }
    }
    Ok(library)
}

/// Builds the program of the package in `folder`.
#[allow(dead_code)]
pub(crate) fn program(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let mut cargo = cargo("build")?;
    cargo.current_dir(folder).args(["--message-format", "json"]);
    let end = format!("/{name}");
    run(
        cargo,
        [&end, &format!("\\{name}.exe"), &format!("{end}.exe")],
    )
}
