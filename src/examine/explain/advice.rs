//! Advice for a file that no release opens as it is: how to link its code, with which compiler, for which machine.

use super::linked_image::is_image;
use super::package::Package;
use crate::blob::container::{ContainerFile, ContainerPart, FileForm, Machine, is_native};
use std::env::consts::{ARCH, OS};

/// Returns the reason why no release opens the file as it is, and what to do, as sentences that begin with "it is". Returns `None` for
/// a file that is opened as it is.
pub fn advice(file: &ContainerFile<'_>) -> Option<String> {
    let image = file.parts.iter().find(|part| is_image(part.form));
    let linked: Vec<&ContainerPart<'_>> =
        file.parts.iter().filter(|part| is_linked(part)).collect();
    let code = linked.iter().find(|part| part.form.is_object());
    let linker = Linker::choose_linker(code.copied());
    if let Some(package) = Package::recognize(file) {
        return Some(package.advice(&linker));
    }
    let form = file.form.title();
    if let Some(mixed) = mixed_machines(file) {
        return Some(format!("it is an archive, and {mixed}."));
    }
    if is_codeless(file) {
        let codeless =
            "it is an archive without code: no member of it is a library, or is linked into one.";
        return Some(codeless.to_owned());
    }
    let is_web = code.is_some_and(|part| part.form == FileForm::WasmObject);
    if is_web {
        let with = if file.form.is_archive() {
            " with objects for WebAssembly"
        } else {
            ""
        };
        return Some(format!(
            "it is a {form}{with}. Link it into a module: `tvm.contrib.emcc.create_tvmjs_wasm(\"lib.wasm\", objects)` in Python calls `emcc` with its objects and the runtime of tvmjs."
        ));
    }
    let Linker {
        command, output, ..
    } = &linker;
    let machine = linker.machine();
    Some(match file.form {
        FileForm::ElfObject | FileForm::MachOObject | FileForm::CoffObject => {
            let python = linker.python(".o");
            format!(
                "it is an object file{machine}. Link it into a library first: `{command} -o {output} FILE.o`.{python}"
            )
        }
        FileForm::MachOFat if code.is_some() && image.is_none() => {
            "it is an object file for several machines. Link it into a library first, for each machine: `clang -arch ARCH -shared -undefined dynamic_lookup -o lib.dylib FILE.o`.".to_owned()
        }
        FileForm::Archive => {
            let all = linker.whole_archive();
            format!(
                "it is a static archive{machine}. Link it into a library first: `{command} -o {output} {all}`."
            )
        }
        FileForm::Tar | FileForm::GzipTar => match image {
            Some(image) => format!(
                "it is an archive with a library inside. Unpack it, `tar -xf FILE.tar`, and load `{}`.",
                image.member
            ),
            None => {
                let python = linker.python(".tar");
                let headers = if linked.iter().any(|part| part.form == FileForm::CText) {
                    " (and `-I` for the folders of TVM's headers)"
                } else {
                    ""
                };
                format!(
                    "it is an archive of object files or sources{machine}. Unpack it and link its members into a library first: `tar -xf FILE.tar` in an empty folder, then `{command} -o {output}` with every member{headers}.{python}"
                )
            }
        },
        FileForm::CText => {
            "it is source text. Compile and link it, with the host code that belongs to it: `cc -shared -fPIC -o lib.so FILE.c` (and `-I` for the folders of TVM's headers).".to_owned()
        }
        FileForm::WasmModule => {
            "it is a WebAssembly module, which a JavaScript engine loads and no native runtime: give it to `tvmjs.instantiate`, of the release whose runtime was linked into it.".to_owned()
        }
        FileForm::ElfExecutable | FileForm::MachOExecutable | FileForm::PeExecutable => {
            "it is an executable, and the loader of the system opens libraries only. Link the same objects with `-shared`.".to_owned()
        }
        _ => return None,
    })
}

/// Returns whether a linker accepts this part: an object file, or source that is compiled first.
pub(super) fn is_linked(part: &ContainerPart<'_>) -> bool {
    matches!(
        part.form,
        FileForm::ElfObject
            | FileForm::MachOObject
            | FileForm::CoffObject
            | FileForm::WasmObject
            | FileForm::CText
    )
}

/// Returns whether an archive contains only data.
pub(super) fn is_codeless(file: &ContainerFile<'_>) -> bool {
    let is_data = |part: &ContainerPart<'_>| {
        matches!(
            part.form,
            FileForm::GraphJson
                | FileForm::ObjectJson
                | FileForm::FfiJson
                | FileForm::TensorCache
                | FileForm::Params
                | FileForm::Tensor
        )
    };
    file.form.is_archive() && !file.parts.is_empty() && file.parts.iter().all(is_data)
}

/// Returns the reason why a linker cannot combine these parts: their objects are for several machines. Returns `None` if all are for
/// one machine.
pub(super) fn mixed_machines(file: &ContainerFile<'_>) -> Option<String> {
    let objects = || {
        file.parts
            .iter()
            .filter(|part| is_linked(part) && part.form.is_object())
            .filter_map(|part| Some((part, part.machine.as_ref()?)))
    };
    // A fat Mach-O file contains one whole file for each machine, and a linker uses the file for its target.
    let (_, first) = objects()
        .next()
        .filter(|_| file.form != FileForm::MachOFat)?;
    let (other, machine) = objects().find(|(_, machine)| *machine != first)?;
    let (one, _) = objects().next()?;
    Some(format!(
        "its objects are for several machines, and no linker makes one library of them (`ld`: \"Relocations in generic ELF\", or \"is incompatible with\"): `{}` is for {}, `{}` for {}. Build all of them for one machine, which the triple of the target (`mtriple`) selects",
        one.member,
        describe_machine(first),
        other.member,
        describe_machine(machine),
    ))
}

/// Returns the reason why this machine cannot link an object file or an archive: its code is for another machine or system. Returns
/// `None` for code of this machine, for source, and for an image, whose header
/// [`incompatibility`](crate::blob::container::incompatibility) checks.
pub fn foreign_code(file: &ContainerFile<'_>) -> Option<String> {
    if is_image(file.form) {
        return None;
    }
    let mut code = file.parts.iter();
    let part = code.find(|part| (is_linked(part) || is_image(part.form)) && !is_native(part))?;
    let machine = part.machine.as_ref()?;
    let system = match part.form {
        FileForm::MachOObject | FileForm::MachOShared => " of macOS",
        FileForm::CoffObject | FileForm::PeShared => " of Windows",
        _ => "",
    };
    let who = if is_image(part.form) {
        "loader"
    } else {
        "linker"
    };
    Some(format!(
        "its code is for {}{system}, and the {who} of this machine ({ARCH}, {} bits, {OS}) rejects it",
        describe_machine(machine),
        usize::BITS
    ))
}

/// Describes a machine in words.
fn describe_machine(machine: &Machine) -> String {
    let order = if machine.little_endian {
        ""
    } else {
        ", big endian"
    };
    format!("{}, {} bits{order}", machine.architecture, machine.bits)
}

/// The way to link object files into a library.
pub(super) struct Linker<'p> {
    /// The compiler, with the options to build a library.
    pub(super) command: String,
    /// The name of the library.
    pub(super) output: &'static str,
    /// The object that is linked; `None` if there is only source.
    part: Option<&'p ContainerPart<'p>>,
}

impl<'p> Linker<'p> {
    /// Chooses the linker for an object file, or for source if `part` is `None`.
    fn choose_linker(part: Option<&'p ContainerPart<'p>>) -> Linker<'p> {
        let machine = part.and_then(|part| part.machine.as_ref());
        let arch = machine.map_or("", |machine| machine.architecture.as_str());
        let (command, output) = match part.map(|part| part.form) {
            Some(FileForm::MachOObject) => {
                let arch = match arch {
                    "aarch64" => "arm64",
                    "powerpc" => "ppc",
                    "powerpc64" => "ppc64",
                    arch => arch,
                };
                (
                    format!("clang -arch {arch} -shared -undefined dynamic_lookup"),
                    "lib.dylib",
                )
            }
            Some(FileForm::CoffObject) => {
                let arch = if arch == "i386" { "i686" } else { arch };
                (
                    format!("clang --target={arch}-pc-windows-msvc -shared"),
                    "lib.dll",
                )
            }
            Some(_) if part.is_some_and(|part| !is_native(part)) => {
                let compiler =
                    cross_compiler(arch, machine.is_none_or(|machine| machine.little_endian));
                (format!("{compiler} -shared -fPIC"), "lib.so")
            }
            _ => ("cc -shared -fPIC".to_owned(), "lib.so"),
        };
        Linker {
            command,
            output,
            part,
        }
    }

    /// Returns the machine as the end of a noun phrase.
    fn machine(&self) -> String {
        let machine = self.part.and_then(|part| part.machine.as_ref());
        machine.map_or(String::new(), |machine| {
            format!(" for {}", describe_machine(machine))
        })
    }

    /// Describes how Python's `load_module` treats a file with this extension.
    fn python(&self, extension: &str) -> String {
        match self.part {
            Some(part) if !is_native(part) => format!(
                " (Python's `load_module` links files that end in {extension} itself, but with the compiler of the machine that it runs on, which cannot link this code.)"
            ),
            _ => format!(
                " (Python's `load_module` does that itself for a name that ends in {extension}, and needs a compiler for it.)"
            ),
        }
    }

    /// Returns the options that include every member of an archive.
    fn whole_archive(&self) -> &'static str {
        match self.part.map(|part| part.form) {
            Some(FileForm::MachOObject) => "-Wl,-force_load,FILE.a",
            Some(FileForm::CoffObject) => "-Wl,-wholearchive:FILE.lib",
            _ => "-Wl,--whole-archive FILE.a -Wl,--no-whole-archive",
        }
    }
}

/// Returns Debian's compiler for a machine whose object files are ELF.
fn cross_compiler(arch: &str, little_endian: bool) -> String {
    let triple = match (arch, little_endian) {
        ("x86_64", _) => "x86_64-linux-gnu",
        ("i386", _) => "i686-linux-gnu",
        ("aarch64", true) => "aarch64-linux-gnu",
        ("arm", true) => "arm-linux-gnueabihf",
        ("riscv64", _) => "riscv64-linux-gnu",
        ("powerpc64", true) => "powerpc64le-linux-gnu",
        ("powerpc64", false) => "powerpc64-linux-gnu",
        ("s390x", _) => "s390x-linux-gnu",
        ("loongarch64", _) => "loongarch64-linux-gnu",
        ("mips", true) => "mipsel-linux-gnu",
        ("mips", false) => "mips-linux-gnu",
        ("hexagon", _) => return "hexagon-clang".to_owned(),
        // Distributions have no compiler for these machines, such as microcontrollers. clang knows most of them.
        (arch, _) => return format!("clang --target={arch}"),
    };
    format!("{triple}-gcc")
}
