//! Uploads that are linked before they are loaded: objects, and archives of them (RPC-90).

use super::super::{RPC_90, RPC_92};
use super::directory::Directory;
use crate::blob::container::tar_files;
use crate::blob::pack::{ExportPlan, LinkOptions, export};
use crate::function::{Error, ErrorKind, Result};
use crate::rule::Kind;
use flate2::read::GzDecoder;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// What a compiler makes of the files that it is passed; the others it would take for scripts of its linker.
const COMPILED: [&str; 5] = ["o", "c", "cc", "cpp", "ll"];

/// The most that an archive inflates to, in bytes.
const LARGEST: u64 = 1 << 30;

/// The library that the upload `name` is: itself, unless it is an object or an archive, which `compiler` links.
pub(super) fn library_of(
    directory: &Directory,
    name: &str,
    compiler: Option<&str>,
) -> Result<String> {
    let form = match name.rsplit_once('.') {
        Some((_, form @ ("o" | "tar"))) => form,
        _ => return Ok(name.to_owned()),
    };
    let compiler = compiler.ok_or_else(|| {
        let message = format!(
            "`{}` must be linked before it is uploaded: this server starts no compiler",
            name.escape_debug()
        );
        RPC_90.rejected(Kind::Unsupported, message)
    })?;
    let path = directory.path_of(name)?;
    // RPC-92: as upstream names it, so that it is a file of the session as the others are.
    let linked = format!("{name}.so");
    let output = directory.path_of(&linked)?;
    // Before a compiler is started for a file that may not be there.
    directory.enter(&linked, 0)?;
    let (files, inputs) = match form {
        "o" => (Vec::new(), vec![path]),
        _ => (members(&directory.read(name)?)?, Vec::new()),
    };
    let plan = ExportPlan { files, blob: None };
    let with = LinkOptions {
        inputs,
        compiler: Some(compiler.into()),
        ..LinkOptions::default()
    };
    export(&plan, &output, &with).map_err(|error| failed(name, &output, &error))?;
    let length = std::fs::metadata(&output).map_or(0, |file| file.len());
    // RPC-92: a source of a few bytes becomes a library of any size, which no upload paid for.
    directory
        .enter(&linked, length)
        .inspect_err(|_| drop(directory.remove(&linked)))?;
    Ok(linked)
}

/// The files of an archive, with names of ours: RPC-92 holds for them too, and two folders may have the same.
fn members(archive: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    let inflated;
    // BLOB-74: upstream exports them under gzip.
    let archive = if archive.starts_with(&[0x1f, 0x8b]) {
        inflated = inflate(archive)?;
        &inflated
    } else {
        archive
    };
    let mut members = Vec::new();
    for (index, (path, content)) in tar_files(archive)?.into_iter().enumerate() {
        let form = Path::new(&path).extension().and_then(|form| form.to_str());
        let form = form.filter(|form| COMPILED.contains(form));
        let form = form.ok_or_else(|| {
            let message = format!(
                "`{}` in the archive is neither an object nor a source",
                path.escape_debug()
            );
            RPC_90.rejected(Kind::Unsupported, message)
        })?;
        members.push((format!("member{index}.{form}"), content.to_vec()));
    }
    Ok(members)
}

/// What is under gzip.
fn inflate(archive: &[u8]) -> Result<Vec<u8>> {
    let mut inflated = Vec::new();
    // A byte more than may be there shows that there is more.
    let mut from = GzDecoder::new(archive).take(LARGEST + 1);
    from.read_to_end(&mut inflated).map_err(|error| {
        Error::new(
            ErrorKind::Value,
            format!("the archive is not gzip: {error}"),
        )
    })?;
    let fits = inflated.len() as u64 <= LARGEST;
    // RPC-92: a few bytes inflate to a thousand times as many, which no upload paid for.
    RPC_92.demand(Kind::Limit, fits, || {
        format!("the archive inflates to more than {LARGEST} bytes")
    })?;
    Ok(inflated)
}

/// The client learns what the compiler printed, and not where the directory is.
fn failed(name: &str, output: &Path, error: &std::io::Error) -> Error {
    let folder = output.parent().map(PathBuf::from).unwrap_or_default();
    let printed = error.to_string().replace(&*folder.to_string_lossy(), "");
    Error::new(
        ErrorKind::Runtime,
        format!("`{}` is not linked: {printed}", name.escape_debug()),
    )
}
