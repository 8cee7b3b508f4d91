//! The C library as `release/install-c` installs it: its headers, its symbols, and programs that pkg-config and CMake build with it.
//!
//! `BLESS=1 cargo test --test foreign installed_c_library` writes `include/exports.txt`.
#![cfg(all(
    target_os = "linux",
    target_arch = "x86_64",
    feature = "frontend",
    feature = "inspect",
    feature = "rpc",
    feature = "target"
))]

use crate::support::skip::skipped;
use crate::support::{cargo, python};
use object::{Object as _, ObjectSymbol as _};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const HEADERS: [&str; 4] = [
    "tvm_c_runtime_api.h",
    "tvm_ffi_c_api.h",
    "tvmspec.h",
    "tvmspec_device.h",
];

fn root() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").unwrap().into()
}

/// Runs a command that must succeed, and returns its output.
fn printed(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}{errors}");
    text
}

fn is_installed(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}

/// Installs the C library of the tests into a new folder. The error states why this is not possible.
fn install() -> Result<tempfile::TempDir, String> {
    let built = cargo::c_library()?;
    let prefix = tempfile::tempdir().unwrap();
    let mut script = Command::new(root().join("release/install-c"));
    printed(
        script
            .arg(prefix.path())
            .arg(built.parent().expect("a folder")),
    );
    Ok(prefix)
}

/// Runs an example on a golden of 0.8, and checks its answers.
fn runs_load(program: &Path, libraries: &Path) {
    let text = printed(
        Command::new(program)
            .arg(root().join("golden/module/host-0.8.so"))
            .env("LD_LIBRARY_PATH", libraries),
    );
    for expected in [
        "twice(21) = 42",
        "twice(21, 21) fails: TypeError: twice takes one integer",
        "add1 = 1 2 3 4",
    ] {
        assert!(text.contains(expected), "{}: {text}", program.display());
    }
}

fn runs_callback(program: &Path, libraries: &Path) {
    let text = printed(Command::new(program).env("LD_LIBRARY_PATH", libraries));
    assert!(
        text.contains("example.add(40, 2) = 42"),
        "{}: {text}",
        program.display()
    );
}

#[test]
fn the_exported_symbols_are_the_committed_list() {
    let library = match cargo::c_library() {
        Ok(library) => library,
        Err(why) => return skipped(why),
    };
    let bytes = fs::read(library).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbols = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition());
    let mut names: BTreeSet<&str> = symbols.filter_map(|symbol| symbol.name().ok()).collect();
    // The suite is in the library of the tests, and not in that which is installed.
    names.remove("tvmspec_device_contract");
    // With `cxx`, the library also exports the symbols of C++ that replace libtvm_ffi.so.
    names.retain(|name| !cfg!(feature = "cxx") || !name.starts_with("_ZN3tvm3ffi"));
    let exported: String = names.iter().map(|name| format!("{name}\n")).collect();
    let path = root().join("include/exports.txt");
    if env::var_os("BLESS").is_some() {
        fs::write(&path, &exported).unwrap();
    }
    let listed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        listed == exported,
        "include/exports.txt is not the list of exported symbols. If one is missing or has another type, raise TVMSPEC_ABI. \
         `BLESS=1 cargo test --test foreign installed_c_library` writes the list"
    );
    let headers: String = HEADERS
        .iter()
        .map(|header| fs::read_to_string(root().join("include").join(header)).unwrap())
        .collect();
    let declared: BTreeSet<&str> = headers
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .collect();
    let is_of_c = |name: &&str| name.starts_with("TVM") || name.starts_with("tvmspec_");
    let undeclared: Vec<&&str> = names
        .iter()
        .filter(|name| is_of_c(name) && !declared.contains(**name))
        .collect();
    assert!(undeclared.is_empty(), "no header declares {undeclared:?}");
}

#[test]
fn headers_compile_in_every_standard_also_beside_upstream() {
    if !is_installed("cc") || !is_installed("c++") {
        return skipped("there is no C and C++ compiler (cc, c++)");
    }
    let Some(python) = python::python("tvm_ffi") else {
        return;
    };
    let script =
        "import tvm_ffi, pathlib; print(pathlib.Path(tvm_ffi.__file__).parent / 'include')";
    let upstream = python::run(&python, script, &[]);

    let include = |names: &[&str]| -> String {
        let lines = names.iter().map(|name| format!("#include <{name}>\n"));
        lines.collect()
    };
    let mut backwards = HEADERS;
    backwards.reverse();
    let upstream_first = ["tvm/ffi/c_api.h", "tvm/ffi/extra/c_env_api.h"];
    let mut sources = vec![include(&HEADERS), include(&backwards)];
    sources.extend(HEADERS.iter().map(|header| include(&[header])));
    sources.push(include(&[&upstream_first[..], &HEADERS].concat()));
    sources.push(include(&[&upstream_first[..], &backwards].concat()));

    let folder = tempfile::tempdir().unwrap();
    let mut compiled = 0;
    for (compiler, ending, standards) in [
        ("cc", "c", &["c99", "c11", "c17"][..]),
        ("c++", "cc", &["c++11", "c++14", "c++17", "c++20"]),
    ] {
        for (number, source) in sources.iter().enumerate() {
            let file = folder.path().join(format!("{number}.{ending}"));
            fs::write(&file, source).unwrap();
            for standard in standards {
                let mut command = Command::new(compiler);
                command.arg(format!("-std={standard}"));
                command.args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]);
                command.arg("-I").arg(root().join("include"));
                // `-isystem`, because the upstream header itself has warnings in C99.
                command.arg("-isystem").arg(&upstream).arg(&file);
                printed(&mut command);
                compiled += 1;
            }
        }
    }
    println!("{compiled} combinations of headers and standards compile");
}

#[test]
fn pkg_config_builds_an_example_with_each_library() {
    if !is_installed("cc") || !is_installed("pkg-config") {
        return skipped("there is no C compiler (cc) or no pkg-config");
    }
    let prefix = match install() {
        Ok(prefix) => prefix,
        Err(why) => return skipped(why),
    };
    let libraries = prefix.path().join("lib");
    let pkg_config = |question: &[&str]| -> Vec<String> {
        let answer = printed(
            Command::new("pkg-config")
                .args(question)
                .arg("tvmspec")
                .env("PKG_CONFIG_PATH", libraries.join("pkgconfig")),
        );
        answer.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(pkg_config(&["--modversion"]), [env!("CARGO_PKG_VERSION")]);
    let build = |example: &str, link: &[String]| -> PathBuf {
        let program = prefix.path().join(example);
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror"]);
        compiler.args(pkg_config(&["--cflags"]));
        compiler.arg(root().join(format!("examples/c/{example}.c")));
        printed(compiler.args(link).arg("-o").arg(&program));
        program
    };

    let shared = build("load", &pkg_config(&["--libs"]));
    let bytes = fs::read(&shared).unwrap();
    let abi = tvmspec::capi::extras::tvmspec_abi();
    let name = format!("libtvmspec.so.{abi}\0").into_bytes();
    let needed = bytes.windows(name.len()).any(|window| window == name);
    assert!(needed, "the program does not need libtvmspec.so.{abi}");
    runs_load(&shared, &libraries);

    let mut link = pkg_config(&["--libs", "--static"]);
    for part in &mut link {
        if part == "-ltvmspec" {
            *part = "-l:libtvmspec.a".to_owned();
        }
    }
    let nowhere = prefix.path().join("nowhere");
    runs_callback(&build("callback", &link), &nowhere);
}

#[test]
fn cmake_builds_every_example_with_each_library() {
    if !is_installed("cc") || !is_installed("cmake") || !is_installed("make") {
        return skipped("there is no C compiler (cc), no cmake or no make");
    }
    let prefix = match install() {
        Ok(prefix) => prefix,
        Err(why) => return skipped(why),
    };
    // The package finds its own folders, so that it may be moved.
    let moved = prefix.path().join("moved");
    fs::create_dir(&moved).unwrap();
    for folder in ["include", "lib"] {
        fs::rename(prefix.path().join(folder), moved.join(folder)).unwrap();
    }
    let built = prefix.path().join("built");
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(root().join("examples/c"));
    cmake.arg("-B").arg(&built);
    printed(cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", moved.display())));
    printed(Command::new("cmake").arg("--build").arg(&built));
    let nowhere = prefix.path().join("nowhere");
    for ending in ["", "_static"] {
        runs_load(&built.join(format!("load{ending}")), &nowhere);
        runs_callback(&built.join(format!("callback{ending}")), &nowhere);
    }
}
