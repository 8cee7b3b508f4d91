//! The message for a file in which nothing can be read.

use super::foreign_format::other_format;
use super::named_file::NamedFile;
use super::{NotExaminable, Subject};
use crate::blob::container::FileForm;
use crate::payload::file;

impl Subject<'_> {
    /// Creates the message for a file in which nothing can be read. It names the format of the file and the next step.
    pub fn not_examinable(&self) -> NotExaminable {
        let form = self.file.form;
        let named = self.hint_of_name();
        let other = match (form, named) {
            (FileForm::Unknown, None) => other_format(self.bytes),
            _ => None,
        };
        if let Some(other) = other {
            return NotExaminable(format!("nothing to read in {}: it is {other}", self.name));
        }
        // The user expected something else of this file, so each hint says what to do next.
        let hint = match form {
            // Checked first: for an empty file, the list of forms would not help.
            _ if self.bytes.is_empty() => "it is empty",
            _ if named.is_some() => named.unwrap_or_default(),
            FileForm::Unknown if self.is_shard() => {
                "it is a shard of a tensor cache, raw data without a header: give the index in the same folder, tensor-cache.json or ndarray-cache.json"
            }
            FileForm::Unknown => {
                "it is of no form that TVM writes: expected an object file, archive, library binary, parameter file, executable or graph. If it is a library binary with a broken header, state its layout (--layout); if it is the payload of a module, state its kind (--kind)"
            }
            FileForm::GraphJson
            | FileForm::ObjectJson
            | FileForm::FfiJson
            | FileForm::TensorCache => {
                "it is JSON, which has no binary fields; `tvmspec inspect` shows its content, `tvmspec verify` checks its rules"
            }
            form if form.is_object() && self.is_compiled() => {
                "it is compiled code that imports no module: it has no library binary"
            }
            form if form.is_object()
                && self.file.parts.iter().any(|part| part.releases().is_some()) =>
            {
                "it holds no library binary and none of the symbols of compiled code; it calls the TVM runtime, or is one"
            }
            form if form.is_object() || form.is_archive() => {
                "no symbol in it is a library binary: a library without imported modules may have none; `tvmspec explain` says more"
            }
            _ => "there is no library binary in it",
        };
        let form = match form {
            // The hint already says so.
            FileForm::Unknown => String::new(),
            form => format!(" ({})", form.title()),
        };
        NotExaminable(format!("nothing to read in {}{form}: {hint}", self.name))
    }

    /// Returns whether the name is that of a shard of a tensor cache.
    fn is_shard(&self) -> bool {
        let name = super::base_name(self.name);
        name.starts_with("params_shard_") && name.ends_with(".bin")
    }

    /// Returns a hint from the name of a file without fields. Returns `None` if the bytes already show the format, or if the name shows
    /// nothing.
    fn hint_of_name(&self) -> Option<&'static str> {
        let is_other = !matches!(self.file.form, FileForm::Unknown | FileForm::CText);
        if is_other {
            return None;
        }
        match NamedFile::recognize(self.name, self.bytes) {
            Some(NamedFile::Side) => {
                return Some(
                    "it is the side file of a device module: `tvmspec inspect`, `verify` and `explain` read it",
                );
            }
            Some(NamedFile::Payload(..)) | None => {}
            Some(NamedFile::Host(_)) => {
                return Some(
                    "it is host code of LLVM, which has no fields: `tvmspec explain` says what loads it, and `tvmspec pack` links it as `code`",
                );
            }
        }
        match file::extension(self.name)? {
            // PAY-28: SPIR-V is saved only as one of the shaders in a `.vulkan` file.
            "spv" => Some("SPIR-V alone is not a module file: the shaders of a `vulkan` module are in one `.vulkan` file, with its side file"),
            "cu" => Some(
                "it is the source of a module of CUDA, which no release loads: `tvmspec inspect`, `verify` and `explain` read it with its side file",
            ),
            last => file::file_format(last).map(|_| {
                "it is the code of a device module, as its driver takes it, and in no library binary: `tvmspec inspect`, `verify` and `explain` read it with its side file, and `tvmspec call` loads it"
            }),
        }
    }
}
