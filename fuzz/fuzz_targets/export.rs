//! Compiles and packs hostile input: modules for a generator, module graphs for an export, and files for a replacement.
//!
//! Checks: nothing panics. An exported library binary reads back without extra modules, and a replaced one is found.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use tvmspec::blob::pack::{self, ExportContent, ExportModule, HostCode, HostFormat, SymbolNaming, ObjectTarget};
use tvmspec::blob::{Blob, container};
use tvmspec::import_tree::Algorithm;
use tvmspec::release::{Layout, Release};
use tvmspec::target::LoweredModule;

fuzz_target!(|data: &[u8]| {
    let [choice, rest @ ..] = data else { return };
    match choice {
        0 => lowered(rest),
        1 => {
            let _ = export(&mut Unstructured::new(rest));
        }
        _ => replace(rest),
    }
});

/// Checks that an accepted module has sorted symbols, and that its kernels are among them.
fn lowered(text: &[u8]) {
    let Ok(module) = LoweredModule::read(text) else { return };
    let symbols: Vec<&str> = module.symbols().collect();
    assert!(symbols.is_sorted());
    assert!(module.kernels().iter().all(|kernel| symbols.contains(&&*kernel.name)));
}

const FORMATS: [HostFormat; 7] = [
    HostFormat::Object,
    HostFormat::C,
    HostFormat::Cc,
    HostFormat::Cpp,
    HostFormat::Cu,
    HostFormat::Llvm,
    HostFormat::Bitcode,
];

fn export(choices: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let release = Release::of(choices.int_in_range(2..=27)?);
    let algorithm = *choices.choose(&[Algorithm::V0_7, Algorithm::V0_8, Algorithm::Topological])?;
    let prefix = *choices.choose(&[None, Some(""), Some("mine_"), Some("1 x")])?;
    let Ok(naming) = SymbolNaming::of(release, prefix.is_some(), prefix.unwrap_or_default()) else { return Ok(()) };
    let mut modules = Vec::new();
    for _ in 0..choices.int_in_range(0..=8)? {
        let content = if bool::arbitrary(choices)? {
            ExportContent::Host(HostCode { format: *choices.choose(&FORMATS)?, code: Vec::arbitrary(choices)? })
        } else {
            ExportContent::Stored { kind: String::arbitrary(choices)?, payload: Vec::arbitrary(choices)? }
        };
        let mut imports = Vec::new();
        for _ in 0..choices.int_in_range(0..=3)? {
            imports.push(choices.int_in_range(0..=8)?);
        }
        modules.push(ExportModule { content, imports });
    }
    let Ok(plan) = pack::plan(&modules, &naming, algorithm, ObjectTarget::host()) else { return Ok(()) };
    let _ = (plan.c_source(), pack::tar(&plan.files));
    let Some(bytes) = plan.blob else { return Ok(()) };
    // An arbitrary payload or kind may make the library binary break a rule of reading. One that does read has no extra modules.
    let Ok(again) = Blob::read(&bytes, Layout::of(release)).map(|read| read.value) else { return Ok(()) };
    let stored = modules.iter().filter(|module| matches!(module.content, ExportContent::Stored { .. })).count();
    assert!(again.modules.len() <= stored + 1, "host code is one entry");
    Ok(())
}

/// BLOB-75: the new library binary replaces the old one, and the others stay the same.
fn replace(data: &[u8]) {
    let [index, size, rest @ ..] = data else { return };
    let Some((blob, file)) = rest.split_at_checked(usize::from(*size)) else { return };
    let index = usize::from(*index);
    let Ok(made) = pack::replace(file, index, blob) else { return };
    let (before, after) = (container::open(file).expect("it was read"), container::open(&made).expect("it is read back"));
    assert_eq!(before.blobs().count(), after.blobs().count());
    for (at, ((_, old), (_, new))) in before.blobs().zip(after.blobs()).enumerate() {
        if at == index {
            assert_eq!(new.bytes, blob);
        }
        assert_eq!(old.symbol, new.symbol);
    }
}
