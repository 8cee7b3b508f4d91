//! The inputs of a model: arrays by name, read one by one when their bound is known.

use super::RunArgs;
use crate::cli::CliError;
use crate::cli::array::{self, Archive, Bound, Elements};
use crate::cli::call_tensor::path_and_type;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tvmspec::object::Tensor;
use tvmspec::value::DLDataType;

/// The inputs by name, none of them read yet.
pub(super) struct Inputs {
    /// Where each input lies, by the name that the model has for it.
    named: BTreeMap<String, InputSource>,
    /// The file of `--inputs`.
    archive: Option<Archive>,
}

/// Where an input lies.
enum InputSource {
    /// In a file of its own (--input), with the type behind its name.
    File(PathBuf, Option<DLDataType>),
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
            let (path, dtype) = path_and_type(path)?;
            // Behind the members of the archive, which it replaces.
            let before = named.insert(name.to_owned(), InputSource::File(path.into(), dtype));
            if let Some(InputSource::File(..)) = before {
                return Err(CliError::Message(format!("--input names `{name}` twice")));
            }
        }
        Ok(Inputs { named, archive })
    }

    /// The names, in alphabetical order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// Reads input `name`, no more of it than `bound` allows; `None` where there is none of this name. `dtype` is the type that the model
    /// has for it, where that is known.
    pub(super) fn read(
        &mut self,
        name: &str,
        bound: Bound<'_>,
        dtype: Option<DLDataType>,
    ) -> Result<Option<Tensor>, CliError> {
        let elements = dtype.map_or(Elements::Stored, |dtype| Elements::For(name, dtype));
        match (self.named.get(name), &mut self.archive) {
            (Some(InputSource::File(path, stated)), _) => {
                let elements = stated.map_or(elements, Elements::Stated);
                array::read(path, bound, elements).map(Some)
            }
            (Some(InputSource::Member(member)), Some(archive)) => {
                archive.read(member, bound, elements).map(Some)
            }
            _ => Ok(None),
        }
    }
}
