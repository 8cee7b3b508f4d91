//! The inputs of a model: arrays by name, read one by one when their bound is known.

use super::RunArgs;
use crate::cli::CliError;
use crate::cli::array::{self, Archive, Bound};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tvmspec::object::Tensor;

/// The inputs by name, none of them read yet.
pub(super) struct Inputs {
    /// Where each input lies, by the name that the model has for it.
    named: BTreeMap<String, InputSource>,
    /// The file of `--inputs`.
    archive: Option<Archive>,
}

/// Where an input lies.
enum InputSource {
    /// In a file of its own (--input).
    File(PathBuf),
    /// In the archive (--inputs), under this name.
    Member(String),
}

impl Inputs {
    /// Those of the command line. One that --input names is not taken from --inputs.
    pub(super) fn of(args: &RunArgs) -> Result<Inputs, CliError> {
        let mut named = BTreeMap::new();
        let archive = args.inputs.as_deref().map(Archive::open).transpose()?;
        let members = archive.as_ref().map(Archive::names);
        for member in members.unwrap_or_default() {
            // The samples keep outputs beside inputs.
            let name = match member.strip_prefix("in_") {
                Some(name) => name,
                None if member.starts_with("out_") => continue,
                None => &member,
            };
            let (name, source) = (name.to_owned(), InputSource::Member(member.clone()));
            if named.insert(name.clone(), source).is_some() {
                return Err(CliError::Message(format!(
                    "--inputs has two arrays for input `{name}`: `{name}` and `in_{name}`"
                )));
            }
        }
        for text in &args.input {
            let (name, path) = text.split_once('=').ok_or_else(|| {
                CliError::Message(format!("`{text}`: write --input NAME=FILE.npy"))
            })?;
            // Behind the members of the archive, which it replaces.
            let before = named.insert(name.to_owned(), InputSource::File(path.into()));
            if let Some(InputSource::File(_)) = before {
                return Err(CliError::Message(format!("--input names `{name}` twice")));
            }
        }
        Ok(Inputs { named, archive })
    }

    /// The names, in alphabetical order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// Reads input `name`, no more of it than `bound` allows; `None` where there is none of this name.
    pub(super) fn read(
        &mut self,
        name: &str,
        bound: Bound<'_>,
    ) -> Result<Option<Tensor>, CliError> {
        match (self.named.get(name), &mut self.archive) {
            (Some(InputSource::File(path)), _) => array::read(path, bound).map(Some),
            (Some(InputSource::Member(member)), Some(archive)) => {
                archive.read(member, bound).map(Some)
            }
            _ => Ok(None),
        }
    }
}
