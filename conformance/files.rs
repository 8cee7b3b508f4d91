//! The files of the suite: cases and goldens. A development build reads them from the tree, so that an edit of one compiles nothing. A
//! build with the feature `embed` contains them, compressed.

#[cfg(not(feature = "embed"))]
#[path = "tree.rs"]
mod tree;

use crate::release::ParseError;
use std::sync::OnceLock;
#[cfg(not(feature = "embed"))]
use std::{env, fs, path::PathBuf};

/// A file and its content, which is read on first use.
struct SuiteFile {
    /// The path from the root of the project, with forward slashes.
    name: String,
    /// `None` for a file that cannot be read.
    content: OnceLock<Option<Vec<u8>>>,
}

impl SuiteFile {
    fn content(&self) -> Option<&[u8]> {
        self.content.get_or_init(|| read(&self.name)).as_deref()
    }
}

/// Returns the content of the file with this path from the root of the project.
pub(super) fn content(name: &str) -> Option<&'static [u8]> {
    let files = files();
    let index = files.binary_search_by(|file| file.name.as_str().cmp(name));
    files.get(index.ok()?)?.content()
}

/// Returns all goldens, sorted: the path below `golden/`, and the content.
pub(super) fn goldens() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    files()
        .iter()
        .filter_map(|file| Some((file.name.strip_prefix("golden/")?, file.content()?)))
}

/// Returns the case files whose names, such as `wire/cases/numbers.json`, begin with `prefix`, each with its text.
///
/// # Errors
///
/// When there are no case files, and when one of them cannot be read as text.
pub(super) fn case_files(prefix: &str) -> Result<Vec<(&'static str, &'static str)>, ParseError> {
    let wanted = files().iter().filter_map(|file| {
        let name = file.name.strip_prefix("conformance/")?;
        name.starts_with(prefix).then_some((name, file))
    });
    let cases: Vec<(&str, &str)> = wanted
        .map(|(name, file)| {
            let text = file.content().and_then(|bytes| str::from_utf8(bytes).ok());
            let text = text.ok_or_else(|| ParseError::new(format!("cannot read {}", file.name)))?;
            Ok((name, text))
        })
        .collect::<Result<_, ParseError>>()?;
    if cases.is_empty() {
        Err(ParseError::new(missing()))
    } else {
        Ok(cases)
    }
}

/// Returns all files, sorted by name.
fn files() -> &'static [SuiteFile] {
    static FILES: OnceLock<Vec<SuiteFile>> = OnceLock::new();
    FILES.get_or_init(|| {
        let files = names().into_iter().map(|name| SuiteFile {
            name,
            content: OnceLock::new(),
        });
        files.collect()
    })
}

/// Returns the root of the project: `TVMSPEC_ROOT`, otherwise the folder that this library was built in.
#[cfg(not(feature = "embed"))]
fn root() -> PathBuf {
    env::var_os("TVMSPEC_ROOT").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

#[cfg(not(feature = "embed"))]
fn names() -> Vec<String> {
    tree::suite_files(&root())
}

#[cfg(not(feature = "embed"))]
fn read(name: &str) -> Option<Vec<u8>> {
    fs::read(root().join(name)).ok()
}

#[cfg(not(feature = "embed"))]
fn missing() -> String {
    let root = root().display().to_string();
    format!(
        "there are no cases below {root}: set TVMSPEC_ROOT to a clone of the project, or build with `--features embed`"
    )
}

#[cfg(feature = "embed")]
fn names() -> Vec<String> {
    crate::spec::SUITE
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect()
}

#[cfg(feature = "embed")]
fn read(name: &str) -> Option<Vec<u8>> {
    use std::io::Read as _;
    let suite = crate::spec::SUITE;
    let index = suite.binary_search_by_key(&name, |(file, _)| file).ok()?;
    let (_, deflated) = suite.get(index)?;
    let mut content = Vec::new();
    flate2::read::DeflateDecoder::new(*deflated)
        .read_to_end(&mut content)
        .ok()?;
    Some(content)
}

#[cfg(feature = "embed")]
fn missing() -> String {
    "no cases are built in".to_owned()
}
