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

/// The library with `cxx` contains code that needs the C++ library. A release has no such C library.
const CXX: &[&str] = if cfg!(feature = "cxx") {
    &["-lstdc++"]
} else {
    &[]
};

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

/// The C library of the tests in a folder of its own, as a package would contain it.
struct Installed {
    folder: tempfile::TempDir,
    prefix: PathBuf,
    libraries: PathBuf,
}

/// Installs the C library of the tests into a new folder. The error states why this is not possible.
fn install(libdir: &str) -> Result<Installed, String> {
    let built = cargo::c_library()?;
    let folder = tempfile::tempdir().unwrap();
    let mut script = Command::new(root().join("release/install-c"));
    script.arg("--destdir").arg(folder.path());
    script.args(["--libdir", libdir, "/opt/tvmspec"]);
    printed(script.arg(built.parent().expect("a folder")));
    let prefix = folder.path().join("opt/tvmspec");
    Ok(Installed {
        libraries: prefix.join(libdir),
        prefix,
        folder,
    })
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

/// Runs an example that calls a function of its own.
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
    // With `cxx`, the library also exports the symbols of C++ that replace libtvm_ffi.so.
    names.retain(|name| !cfg!(feature = "cxx") || !name.contains("3tvm3ffi"));
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

/// Writes a stand-in for upstream's `c_runtime_api.h`, which no package of the newer releases contains: the types of our header.
fn write_runtime_header(folder: &Path) {
    let ours = fs::read_to_string(root().join("include/tvm_c_runtime_api.h")).unwrap();
    let guard = "TVM_RUNTIME_C_RUNTIME_API_H_\n";
    let (_, rest) = ours.split_once(&format!("#ifndef {guard}")).unwrap();
    let (types, _) = rest.split_once("#endif").unwrap();
    let folder = folder.join("tvm/runtime");
    fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "#ifndef {guard}#define {guard}#include <dlpack/dlpack.h>\n#include <stddef.h>\n{types}#endif\n"
    );
    fs::write(folder.join("c_runtime_api.h"), text).unwrap();
}

#[test]
fn headers_compile_in_every_standard_and_in_any_order_with_upstream() {
    if !is_installed("cc") || !is_installed("c++") {
        return skipped("there is no C and C++ compiler (cc, c++)");
    }
    let Some(python) = python::python("tvm_ffi") else {
        return;
    };
    let script =
        "import tvm_ffi, pathlib; print(pathlib.Path(tvm_ffi.__file__).parent / 'include')";
    let upstream = python::run(&python, script, &[]);
    let folder = tempfile::tempdir().unwrap();
    write_runtime_header(folder.path());

    let include = |names: &[&str]| -> String {
        let lines = names.iter().map(|name| format!("#include <{name}>\n"));
        lines.collect()
    };
    let mut backwards = HEADERS;
    backwards.reverse();
    let mut alone = vec![include(&HEADERS), include(&backwards)];
    alone.extend(HEADERS.iter().map(|header| include(&[header, header])));
    let mut beside = Vec::new();
    for other in [
        "dlpack/dlpack.h",
        "tvm/runtime/c_runtime_api.h",
        "tvm/ffi/c_api.h",
        "tvm/ffi/extra/c_env_api.h",
    ] {
        for ours in [HEADERS, backwards] {
            beside.push(include(&[&[other][..], &ours].concat()));
            beside.push(include(&[&ours[..], &[other]].concat()));
        }
    }

    let mut compiled = 0;
    for (compiler, ending, standards) in [
        ("cc", "c", &["c99", "c11", "c17"][..]),
        ("c++", "cc", &["c++11", "c++14", "c++17", "c++20", "c++23"]),
    ] {
        let file = folder.path().join(format!("source.{ending}"));
        let sources = alone.iter().map(|source| (source, false));
        for (source, has_upstream) in sources.chain(beside.iter().map(|source| (source, true))) {
            fs::write(&file, source).unwrap();
            for standard in standards {
                let mut command = Command::new(compiler);
                command.arg(format!("-std={standard}"));
                command.args(["-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wshadow"]);
                command.args(["-Werror", "-fsyntax-only", "-I"]);
                command.arg(root().join("include"));
                if has_upstream {
                    // `-isystem`, because the upstream header itself has warnings in C99.
                    command.arg("-isystem").arg(folder.path());
                    command.arg("-isystem").arg(&upstream);
                }
                printed(command.arg(&file));
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
    let installed = match install("lib/x86_64-linux-gnu") {
        Ok(installed) => installed,
        Err(why) => return skipped(why),
    };
    let pkg_config = |question: &str, package: &str| -> Vec<String> {
        let answer = printed(
            Command::new("pkg-config")
                .args([question, package])
                .env("PKG_CONFIG_PATH", installed.libraries.join("pkgconfig")),
        );
        answer.split_whitespace().map(str::to_owned).collect()
    };
    let build = |package: &str, source: &Path, options: &[&str]| -> PathBuf {
        let version = pkg_config("--modversion", package);
        assert_eq!(version, [env!("CARGO_PKG_VERSION")]);
        let program = installed.folder.path().join(source.file_stem().unwrap());
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror"]);
        compiler.args(pkg_config("--cflags", package)).args(options);
        compiler
            .arg(source)
            .args(pkg_config("--libs", package))
            .args(CXX);
        printed(compiler.arg("-o").arg(&program));
        program
    };

    let shared = build("tvmspec", &root().join("examples/c/load.c"), &[]);
    let bytes = fs::read(&shared).unwrap();
    let abi = tvmspec::capi::extras::tvmspec_abi();
    let name = format!("libtvmspec.so.{abi}\0").into_bytes();
    let needed = bytes.windows(name.len()).any(|window| window == name);
    assert!(needed, "the program does not need libtvmspec.so.{abi}");
    runs_load(&shared, &installed.libraries);

    let example = root().join("examples/c/callback.c");
    let nowhere = installed.folder.path().join("nowhere");
    runs_callback(&build("tvmspec-static", &example, &[]), &nowhere);

    let plugin = installed.folder.path().join("plugin.c");
    let text =
        "#include <tvmspec.h>\nint plugin(void);\nint plugin(void) { return tvmspec_abi(); }\n";
    fs::write(&plugin, text).unwrap();
    let library = fs::read(build("tvmspec-static", &plugin, &["-shared", "-fPIC"])).unwrap();
    let file = object::File::parse(&*library).unwrap();
    let symbols = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition());
    let names: Vec<&str> = symbols.filter_map(|symbol| symbol.name().ok()).collect();
    assert_eq!(
        names,
        ["plugin"],
        "the exports of a library that links libtvmspec.a"
    );
}

#[test]
fn cmake_builds_every_example_with_each_library() {
    if !is_installed("cc") || !is_installed("cmake") || !is_installed("make") {
        return skipped("there is no C compiler (cc), no cmake or no make");
    }
    let installed = match install("lib") {
        Ok(installed) => installed,
        Err(why) => return skipped(why),
    };
    // The package finds its own folders, so that it may be moved.
    let moved = installed.folder.path().join("moved");
    fs::rename(&installed.prefix, &moved).unwrap();
    let built = installed.folder.path().join("built");
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(root().join("examples/c"));
    cmake.arg("-B").arg(&built);
    cmake.arg(format!("-DCMAKE_C_STANDARD_LIBRARIES={}", CXX.concat()));
    printed(cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", moved.display())));
    printed(Command::new("cmake").arg("--build").arg(&built));
    let nowhere = installed.folder.path().join("nowhere");
    for ending in ["", "_static"] {
        runs_load(&built.join(format!("load{ending}")), &nowhere);
        runs_callback(&built.join(format!("callback{ending}")), &nowhere);
    }

    let uninstall = "xargs rm <share/tvmspec/installed-files.txt && find . -not -type d";
    let mut shell = Command::new("sh");
    let left = printed(shell.args(["-c", uninstall]).current_dir(&moved));
    assert!(left.is_empty(), "not in installed-files.txt:\n{left}");
}

#[test]
fn cmake_finds_the_package_by_version() {
    if !is_installed("cc") || !is_installed("cmake") || !is_installed("make") {
        return skipped("there is no C compiler (cc), no cmake or no make");
    }
    let installed = match install("lib64") {
        Ok(installed) => installed,
        Err(why) => return skipped(why),
    };
    let (major, minor) = (
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
    );
    let own = format!("{major}.{minor}");
    let next = format!("{major}.{}", minor.parse::<u32>().unwrap() + 1);
    let questions = [
        (String::new(), true),
        (own.clone(), true),
        (format!("{} EXACT", env!("CARGO_PKG_VERSION")), true),
        (format!("0.0...{next}"), true),
        (format!("{own}...<{next}"), true),
        ("OPTIONAL_COMPONENTS nosuch".to_owned(), true),
        (next.clone(), false),
        (format!("{own}.9999"), false),
        (format!("{next}...9"), false),
        (format!("0.0...<{own}"), false),
        ("COMPONENTS nosuch".to_owned(), false),
    ];
    let mut lists = "cmake_minimum_required(VERSION 3.19)\nproject(versions C)\n".to_owned();
    for (arguments, _) in &questions {
        lists.push_str("unset(tvmspec_FOUND)\nset(tvmspec_DIR ${PACKAGE})\n");
        lists.push_str(&format!("find_package(tvmspec {arguments} QUIET)\n"));
        lists.push_str(
            "if(tvmspec_FOUND)\n  message(\"found\")\nelse()\n  message(\"not found\")\nendif()\n",
        );
    }
    // A compiler for 32 bits.
    lists.push_str(
        "set(CMAKE_SIZEOF_VOID_P 4)\nset(tvmspec_DIR ${PACKAGE})\nfind_package(tvmspec QUIET)\n",
    );
    lists.push_str("message(\"${tvmspec_FOUND}\")\n");
    let source = installed.folder.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("CMakeLists.txt"), lists).unwrap();
    let package = installed.libraries.join("cmake/tvmspec");
    let output = Command::new("cmake")
        .arg(format!("-DPACKAGE={}", package.display()))
        .args(["-S", ".", "-B", "built"])
        .current_dir(&source)
        .output()
        .unwrap();
    // `message` without a mode writes to stderr.
    let text = String::from_utf8_lossy(&output.stderr);
    let expected = questions
        .iter()
        .map(|(_, is_found)| if *is_found { "found" } else { "not found" });
    let expected: Vec<&str> = expected.chain(["0"]).collect();
    let questions: Vec<&String> = questions.iter().map(|(arguments, _)| arguments).collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{questions:?}");
}
