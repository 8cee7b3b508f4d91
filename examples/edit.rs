//! Changes the content of a compiled library: `cargo run --no-default-features --example edit -- library.so [changed.bin]`
//!
//! Every device module with a source gets a comment, and every device function one more argument of type `int32`. The parameters of every
//! graph are set to zero. The library binary is written and read again, without JSON or base64 as a step between. A second path names an
//! output file. `tvmspec convert changed.bin -o changed.so` makes a library of it.

use std::error::Error;
use tvmspec::blob::{self, Blob, LibraryModule};
use tvmspec::payload::{Field, Payload};
use tvmspec::rule::Violation;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args
        .next()
        .unwrap_or_else(|| "golden/graph/models/v0.8/mlp.so".to_owned());
    let file = std::fs::read(&path)?;
    let libraries = blob::open(&file)?;
    let Some(mut blob) = libraries.into_iter().find_map(|library| library.blob) else {
        return Err(format!("{path} holds no library binary").into());
    };
    let layout = blob.layout;
    for module in blob
        .modules
        .iter_mut()
        .filter_map(LibraryModule::stored_mut)
    {
        let changes = module.edit(change)?.value;
        println!("{}: {changes} changes", module.kind);
    }
    let bytes = blob.write()?;

    let again = Blob::read(&bytes, layout)?.value;
    for (changed, read) in blob.modules.iter().zip(&again.modules) {
        assert_eq!(
            (changed.kind(), changed.payload()),
            (read.kind(), read.payload())
        );
    }
    assert_eq!(again.write()?, bytes);
    println!(
        "{} modules, {} bytes, read again alike",
        again.modules.len(),
        bytes.len()
    );
    if let Some(output) = args.next() {
        std::fs::write(output, bytes)?;
    }
    Ok(())
}

/// Changes a payload in place and counts the changes.
fn change(payload: &mut Payload<'_>) -> Result<usize, Violation> {
    let mut changes = 0;
    if payload.source().is_some()
        && let Some(source) = payload.data_mut()
    {
        source.to_mut().splice(0..0, *b"// changed\n");
        changes += 1;
    }
    for function in payload.functions_mut().into_iter().flatten() {
        let last = function.info.arg_types.len();
        function.info.arg_types.insert(last, "int32".parse()?);
        // From 0.21 on each argument has a tag.
        if !function.info.arg_extra_tags.is_empty() {
            function.info.arg_extra_tags.push(0);
        }
        changes += 1;
    }
    if let Some(Field::Tensors(params)) = payload.field_mut("params") {
        for (name, tensor) in params {
            let zeros = vec![0; tensor.data().len()];
            *tensor = tensor.clone().with_data(zeros)?;
            println!("  {name}: {} {:?}", tensor.dtype(), tensor.shape());
            changes += 1;
        }
    }
    Ok(changes)
}
