//! Packed files, as linkers process them.

use super::{assert_holds, blob_of, golden};
use crate::support::skip::skipped;
use std::process::Command;
use tvmspec::blob::container::{self, FileForm, Role};
use tvmspec::blob::pack::{self, Arch, LinkOptions, ObjectFormat, ObjectTarget, SymbolNaming};
use tvmspec::release::Release;

/// Returns the program called `name`. If it is not installed, reports a skipped test.
fn program(name: &str) -> Option<Command> {
    let there = Command::new(name).arg("--version").output().is_ok();
    if !there {
        skipped(format_args!("`{name}` is not installed"));
    }
    there.then(|| Command::new(name))
}

fn succeed(mut command: Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn linkers_keep_what_we_pack() {
    let blob = golden("cuda-0.27.library_bin");
    let naming = SymbolNaming::library(Release::of(27));
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, target| {
        std::fs::write(at(name), pack::object(&blob, &naming, target).unwrap()).unwrap()
    };
    let check = |name: &str, form: FileForm| {
        let library = std::fs::read(at(name)).unwrap();
        assert_eq!(FileForm::detect(&library), form, "{name}");
        assert_holds(&library, naming.symbol(), &blob, name);
    };
    if program("ld.lld").is_some() {
        let machines = [
            (Arch::X86_64, "elf_x86_64"),
            (Arch::I386, "elf_i386"),
            (Arch::Aarch64, "aarch64linux"),
            (Arch::Arm, "armelf_linux_eabi"),
            (Arch::Riscv64, "elf64lriscv"),
        ];
        for (arch, emulation) in machines {
            write("elf.o", ObjectTarget::new(ObjectFormat::Elf, arch));
            let mut lld = Command::new("ld.lld");
            lld.args(["-m", emulation, "-shared", "-o"])
                .arg(at("elf.so"))
                .arg(at("elf.o"));
            succeed(lld);
            check("elf.so", FileForm::ElfShared);
        }
    }
    if let Some(mut lld) = program("ld64.lld-14") {
        write(
            "macho.o",
            ObjectTarget::new(ObjectFormat::MachO, Arch::Aarch64),
        );
        lld.args([
            "-dylib",
            "-arch",
            "arm64",
            "-platform_version",
            "macos",
            "11.0",
            "11.0",
            "-o",
        ]);
        lld.arg(at("macho.dylib")).arg(at("macho.o"));
        succeed(lld);
        check("macho.dylib", FileForm::MachOShared);
    }
    if let Some(mut lld) = program("lld-link") {
        write(
            "coff.obj",
            ObjectTarget::new(ObjectFormat::Coff, Arch::X86_64),
        );
        // Without /export, because the object contains the directive.
        lld.args(["/dll", "/noentry"])
            .arg(format!("/out:{}", at("coff.dll").display()))
            .arg(at("coff.obj"));
        succeed(lld);
        check("coff.dll", FileForm::PeShared);
    }
}

#[test]
fn a_shared_library_is_linked_with_its_host_code() {
    if program("cc").is_none() {
        return;
    }
    let blob = golden("cuda-0.27.library_bin");
    let naming = SymbolNaming::library(Release::of(27));
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("host.c");
    std::fs::write(
        &host,
        "void* __tvm_ffi__library_ctx = 0;\nint __tvm_ffi_hello(void* s, void* a, int n, void* r) { return 0; }\n",
    )
    .unwrap();
    let output = folder.path().join("made.so");
    let mut with = LinkOptions::default();
    with.inputs = vec![host];
    pack::shared(&blob, &naming, &with, &output).unwrap();
    let library = std::fs::read(&output).unwrap();
    assert_holds(&library, naming.symbol(), &blob, "made.so");
    let file = container::open(&library).unwrap();
    assert_eq!(file.parts[0].functions().collect::<Vec<_>>(), ["hello"]);
    let has_context = |part: &container::ContainerPart<'_>| {
        part.symbols
            .iter()
            .any(|symbol| matches!(symbol.role, Role::Context(_)))
    };
    assert!(has_context(&file.parts[0]));
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "scratch files are left: {left:?}");
}

#[test]
fn a_failed_link_leaves_the_old_library_and_shows_the_message_of_the_compiler() {
    if program("cc").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.c");
    std::fs::write(&broken, "int f( {").unwrap();
    let output = folder.path().join("kept.so");
    std::fs::write(&output, "old").unwrap();
    let mut with = LinkOptions::default();
    with.inputs = vec![broken];
    let naming = SymbolNaming::library(Release::of(8));
    let error = pack::shared(&blob_of(&[0; 8]), &naming, &with, &output).unwrap_err();
    assert!(error.to_string().contains("broken.c"), "{error}");
    assert_eq!(std::fs::read(&output).unwrap(), b"old");
}

#[test]
fn a_system_library_registers_itself_before_main() {
    if program("cc").is_none()
        || !cfg!(all(
            target_os = "linux",
            any(target_arch = "x86_64", target_arch = "aarch64")
        ))
    {
        return;
    }
    let blob = golden("const_loader.bin");
    let naming = SymbolNaming::system(Release::of(27), "modA_").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(
        at("devc.o"),
        pack::object(&blob, &naming, ObjectTarget::host().unwrap()).unwrap(),
    )
    .unwrap();
    std::fs::write(
        at("main.c"),
        "#include <stdio.h>\nstatic const char* seen; static const unsigned char* bytes;\n\
         int TVMFFIEnvModRegisterSystemLibSymbol(const char* name, void* at) { seen = name; bytes = at; return 0; }\n\
         int main(void) { printf(\"%s %d\", seen, bytes[0]); return 0; }\n",
    )
    .unwrap();
    let mut link = Command::new("cc");
    link.arg("-o")
        .arg(at("program"))
        .arg(at("main.c"))
        .arg(at("devc.o"));
    succeed(link);
    let reply = Command::new(at("program")).output().unwrap();
    let expected = format!("modA___tvm_ffi__library_bin {}", blob[0]);
    assert_eq!(String::from_utf8_lossy(&reply.stdout), expected);
    // The library binary is also found in a program: a static executable or a PIE.
    assert_holds(
        &std::fs::read(at("program")).unwrap(),
        naming.symbol(),
        &blob,
        "program",
    );
}

#[test]
fn a_system_library_for_aarch64_links() {
    let Some(mut lld) = program("ld.lld") else {
        return;
    };
    let blob = golden("const_loader.bin");
    let naming = SymbolNaming::system(Release::of(8), "").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let target = ObjectTarget::new(ObjectFormat::Elf, Arch::Aarch64);
    std::fs::write(at("devc.o"), pack::object(&blob, &naming, target).unwrap()).unwrap();
    lld.args(["-m", "aarch64linux", "-shared", "-o"])
        .arg(at("devc.so"))
        .arg(at("devc.o"));
    succeed(lld);
    assert_holds(
        &std::fs::read(at("devc.so")).unwrap(),
        naming.symbol(),
        &blob,
        "devc.so",
    );
}
