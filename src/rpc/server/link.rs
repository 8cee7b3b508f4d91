//! Linking of uploaded objects, and of archives with objects, before they are loaded (RPC-90).

use super::super::{RPC_90, RPC_92};
use super::directory::Directory;
use crate::blob::container::tar_files;
use crate::blob::pack::{ExportPlan, LinkOptions, export};
use crate::function::{Error, ErrorKind, Result};
use crate::rule::Kind;
use flate2::read::GzDecoder;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Suffixes of files that a compiler compiles or links. It would treat other files as linker scripts.
const COMPILED: [&str; 5] = ["o", "c", "cc", "cpp", "ll"];

/// Maximum size of an inflated archive, in bytes.
const LARGEST: u64 = 1 << 30;

/// Returns the library for the upload `name`: the upload itself, or for an object or an archive the library that `compiler` links.
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
    // RPC-92: named as upstream does, so that it is a file of the session like any other.
    let linked = format!("{name}.so");
    let output = directory.path_of(&linked)?;
    // Counted before a compiler is started for a file that may not be allowed.
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
    // RPC-92: a source of a few bytes can become a library of any size, which no upload was counted for.
    directory
        .enter(&linked, length)
        .inspect_err(|_| drop(directory.remove(&linked)))?;
    Ok(linked)
}

/// Returns the files of an archive with new names: RPC-92 also applies to them, and two folders may contain the same name.
fn members(archive: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    let inflated;
    // BLOB-74: upstream exports archives with gzip.
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

/// Decompresses a gzip archive.
fn inflate(archive: &[u8]) -> Result<Vec<u8>> {
    let mut inflated = Vec::new();
    // One byte more than the limit is read, to detect a larger archive.
    let mut from = GzDecoder::new(archive).take(LARGEST + 1);
    from.read_to_end(&mut inflated).map_err(|error| {
        Error::new(
            ErrorKind::Value,
            format!("the archive is not gzip: {error}"),
        )
    })?;
    let fits = inflated.len() as u64 <= LARGEST;
    // RPC-92: a few bytes inflate to a thousand times as many, which no upload was counted for.
    RPC_92.demand(Kind::Limit, fits, || {
        format!("the archive inflates to more than {LARGEST} bytes")
    })?;
    Ok(inflated)
}

/// Creates the error of a failed link. The client learns the compiler's output, but not the path of the directory.
fn failed(name: &str, output: &Path, error: &std::io::Error) -> Error {
    let folder = output.parent().map(PathBuf::from).unwrap_or_default();
    let printed = error.to_string().replace(&*folder.to_string_lossy(), "");
    Error::new(
        ErrorKind::Runtime,
        format!("`{}` is not linked: {printed}", name.escape_debug()),
    )
}
