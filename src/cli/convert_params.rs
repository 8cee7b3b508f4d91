//! `tvmspec convert` for parameters: converts a tensor cache into a parameter file, and a parameter file into a tensor cache.

use super::input::{Input, is_stdin, read_sibling, subject};
use super::output::{self, Content, file_name};
use super::output_folder::OutputFolder;
use super::verify::diagnostics;
use super::{CliError, Exit};
use std::path::Path;
use tvmspec::blob::container::FileForm;
use tvmspec::examine::document::newest_of;
use tvmspec::release::Release;
use tvmspec::tensor::rules::TEN_02;
use tvmspec::tensor::{CacheEncoding, CacheWriter, Params};
use tvmspec::wire::Writer;

/// Options for writing parameters into a tensor cache.
pub(crate) struct CacheForm {
    /// `true` to store only the upper half of each float.
    pub(crate) is_bf16: bool,
    /// The release whose type codes the parameters have.
    pub(crate) written_by: Option<Release>,
}

/// Converts the parameters in `input` to `to`. Returns `None` if the file has none.
pub(crate) fn convert(input: &Input, to: &Path, form: CacheForm) -> Result<Option<Exit>, CliError> {
    match FileForm::detect(input.bytes()) {
        // An index from stdin has no shards.
        FileForm::TensorCache if !is_stdin(input.path()) => to_params(input, to).map(Some),
        FileForm::Params => to_cache(input, to, &form).map(Some),
        _ => Ok(None),
    }
}

/// Writes the tensors of all shards into one parameter file, in the order of the index.
fn to_params(input: &Input, to: &Path) -> Result<Exit, CliError> {
    let subject = subject(input, input.path(), None)
        .map_err(|broken| CliError::broken(&input.name, &broken, &broken))?;
    if !diagnostics(&subject)?.violations.is_empty() {
        return Ok(Exit::Bad);
    }
    let Some(cache) = subject.tensor_cache() else {
        return Err(CliError::line(subject.not_examinable()));
    };
    let index = Path::new(&input.name);
    let contents = cache.shards.iter().map(|shard| {
        let content = read_sibling(index, &shard.path);
        content.ok_or_else(|| CliError::line(format!("cannot read {}", shard.path)))
    });
    let contents = contents.collect::<Result<Vec<_>, _>>()?;
    let mut tensors = Vec::new();
    for (shard, content) in cache.shards.iter().zip(&contents) {
        tensors.extend(shard.tensors(content.as_ref())?);
    }
    let mut out = Writer::new();
    Params::new(tensors).write(&mut out);
    output::write(to, &out.into_bytes(), Content::Binary)?;
    let metadata = cache.metadata.as_ref().and_then(|value| value.as_object());
    if metadata.is_some_and(|members| !members.is_empty()) {
        output::note("note: the metadata of the index has no place in a parameter file");
    }
    Ok(Exit::Good)
}

/// Writes the index of a tensor cache to `to`, and its shards into the same folder.
fn to_cache(input: &Input, to: &Path, form: &CacheForm) -> Result<Exit, CliError> {
    let index = to.file_name().and_then(|name| name.to_str());
    let index = index.filter(|name| matches!(*name, "tensor-cache.json" | "ndarray-cache.json"));
    let Some(index) = index else {
        return Err(CliError::new(format!(
            "{} holds parameters, which go into a tensor cache: give -o DIR/tensor-cache.json for TVM 0.22 and later, \
             -o DIR/ndarray-cache.json for 0.16 to 0.21, not {}",
            input.line(),
            file_name(to)
        )));
    };
    let subject = subject(input, input.path(), None)
        .map_err(|broken| CliError::broken(&input.name, &broken, &broken))?;
    let found = diagnostics(&subject)?;
    if !found.violations.is_empty() {
        return Ok(Exit::Bad);
    }
    // The index stores the name of a type. The file stores a code that has had several meanings.
    let mut findings = found.findings.iter();
    if form.written_by.is_none() && findings.any(|finding| finding.what.rule == TEN_02) {
        return Err(CliError::new(format!(
            "{} is not converted: state the release that wrote it, --written-by 0.19 for example, which says what its type codes mean [TEN-02]",
            input.line()
        )));
    }
    let params = Params::open(input.bytes())?.value;
    let encoding = if form.is_bf16 {
        CacheEncoding::Bf16
    } else {
        CacheEncoding::Raw
    };
    let newest = newest_of(index);
    // TEN-50: type names also changed among the releases that read an index of this name.
    let reader = form.written_by.filter(|_| newest < Release::LAST);
    let reader = reader.filter(|release| *release >= Release::of(16) && *release <= newest);
    let mut writer = CacheWriter::new(encoding, reader.unwrap_or(newest));
    writer.written_by = form.written_by;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut folder = OutputFolder::open(folder.unwrap_or(Path::new(".")), &[])?;
    let cache = writer.write(&params, |name, bytes| -> Result<(), CliError> {
        folder.write(name, bytes, Content::Binary)
    })?;
    // The index is written last, so that its shards exist when it appears.
    let text = writer.index(&cache)?;
    folder.write(index, text.as_bytes(), Content::Text)?;
    // An old index must not refer to new shards, even if the command is killed here.
    folder.remove(index)?;
    folder.finish()?;
    Ok(Exit::Good)
}
