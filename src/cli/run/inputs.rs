//! The inputs of a model: arrays by name. Each is read when its size limit is known.

use super::RunArgs;
use crate::cli::CliError;
use crate::cli::full::array::{self, Archive, Bound, Elements};
use crate::cli::full::call_tensor::path_and_type;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tvmspec::object::Tensor;
use tvmspec::tensor::Dtype;

/// The inputs by name, none of them read yet.
pub(super) struct Inputs {
    /// The source of each input, by the name that the model uses for it.
    named: BTreeMap<String, InputSource>,
    /// The file of `--inputs`.
    archive: Option<Archive>,
}

/// The source of an input.
enum InputSource {
    /// A separate file (--input), and the type after its name.
    File(PathBuf, Option<Dtype>),
    /// A member of the archive (--inputs), with this name.
    Member(String),
}

impl Inputs {
    /// Collects the inputs of the command line. An input of --input replaces the one of --inputs.
    pub(super) fn from_args(args: &RunArgs) -> Result<Inputs, CliError> {
        let mut named = BTreeMap::new();
        let archive = args.inputs.as_deref().map(Archive::open).transpose()?;
        let members = archive.as_ref().map(Archive::names);
        for member in members.unwrap_or_default() {
            // The samples contain outputs as well as inputs.
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
            if path.ends_with(".npz") {
                return Err(CliError::line(format!(
                    "--input takes one array: write --inputs {path}, whose arrays are inputs by their names"
                )));
            }
            // Inserted after the members of the archive, to replace them.
            let before = named.insert(name.to_owned(), InputSource::File(path.into(), dtype));
            if let Some(InputSource::File(..)) = before {
                return Err(CliError::Message(format!("--input names `{name}` twice")));
            }
        }
        Ok(Inputs { named, archive })
    }

    /// Returns the names, in alphabetical order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// Reads input `name`, up to the limit `bound`. Returns `None` if there is no input of this name. `dtype` is its type in the model,
    /// if known.
    pub(super) fn read(
        &mut self,
        name: &str,
        bound: Bound<'_>,
        dtype: Option<Dtype>,
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
