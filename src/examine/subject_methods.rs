//! The questions that a subject answers, one method each.

use super::dump::{self, Dump};
use super::explain::{self, Account};
use super::inspect::{self, InspectOptions, Inspection};
use super::unpack::{self, UnpackedLibrary};
use super::verify::{self, CheckedRun, Verification};
use super::{NotExaminable, Subject};
use crate::blob::BLOB_75;
use crate::release::Release;
use crate::rule::{Kind, Violation};

impl<'a> Subject<'a> {
    /// Reports the content of the file, before and after a broken rule.
    ///
    /// # Errors
    ///
    /// Returns [`NotExaminable`] if nothing in the file has a form that TVM writes.
    pub fn inspect(&self) -> Result<Inspection, NotExaminable> {
        self.inspect_with(InspectOptions::default())
    }

    /// Like [`Subject::inspect`], with options. The layout is the one with which the subject was opened.
    ///
    /// # Errors
    ///
    /// Fails like [`Subject::inspect`].
    pub fn inspect_with(&self, options: InspectOptions) -> Result<Inspection, NotExaminable> {
        match &self.broken {
            Some(broken) => Ok(inspect::of_broken(self.name, self.bytes, broken.clone())),
            None => inspect::of_subject(self, options),
        }
    }

    /// Checks the file against every rule about its bytes.
    ///
    /// # Errors
    ///
    /// Fails if nothing in the file has rules: TVM did not write it, or it is a runtime without compiled code.
    pub fn verify(&self) -> Result<Verification, NotExaminable> {
        self.verify_each(|_| {})
    }

    /// Like [`Subject::verify`], and calls `each` for every run of bytes in turn. The run is dropped after the call.
    ///
    /// # Errors
    ///
    /// Fails like [`Subject::verify`].
    pub fn verify_each(
        &self,
        each: impl FnMut(&CheckedRun<'_>),
    ) -> Result<Verification, NotExaminable> {
        match &self.broken {
            Some(broken) => Ok(verify::broken(self.name, self.bytes, broken.clone(), each)),
            None => verify::verify(self, each),
        }
    }

    /// Explains how the loader of every release treats the file. The result states whether the file loads, the needs of its modules,
    /// and the cases of silent failure. Returns one account for each library binary or other content of the file, and at least one. A
    /// release loads the file if every account says so, and if none has a reason in [`Account::raw`].
    ///
    /// A broken file is judged by the checks of each loader. For an image, only the machine, the needed libraries, the symbols and the
    /// library binary are read. Other headers and tables, instructions and data are not. No library of this machine is searched: the
    /// caller fills [`Account::here`].
    ///
    /// # Errors
    ///
    /// Fails if nothing in the file has a form that TVM loads.
    pub fn explain(&self) -> Result<Vec<Account>, NotExaminable> {
        self.explain_for(None)
    }

    /// Like [`Subject::explain`], for one release; `None` for all of them.
    ///
    /// # Errors
    ///
    /// Fails like [`Subject::explain`].
    pub fn explain_for(&self, only: Option<Release>) -> Result<Vec<Account>, NotExaminable> {
        explain::explain(self, only)
    }

    /// Lists every byte with its field and its rule. The fields are read while the result is serialized.
    ///
    /// # Errors
    ///
    /// Fails if nothing in the file has fields. Compiled code without a library binary is an empty list.
    pub fn dump(&self) -> Result<Dump<'_>, NotExaminable> {
        self.dump_from(0)
    }

    /// Like [`Subject::dump`], for the fields that end after offset `from`.
    ///
    /// # Errors
    ///
    /// Fails like [`Subject::dump`].
    pub fn dump_from(&self, from: u64) -> Result<Dump<'_>, NotExaminable> {
        if let Some(broken) = &self.broken {
            return Ok(dump::of_broken(self.name, self.bytes, broken));
        }
        let units = self.units();
        if units.is_empty() && !self.is_compiled() {
            return Err(self.not_examinable());
        }
        Ok(dump::of_units(units, from))
    }

    /// Takes library binary number `index` of the file apart, into a manifest and payloads.
    ///
    /// ```
    /// use tvmspec::examine::Subject;
    ///
    /// let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
    /// let parts = Subject::open("tree3-0.8.so", &file, None)?.unpack(0)?;
    /// let names: Vec<&str> = parts.files().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["1.metal", "2.opencl"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the rule that the container or the library binary breaks. Returns BLOB-75, kind missing, if there is no library binary
    /// with this number. Other errors are those of [`unpack::unpack`].
    pub fn unpack(&self, index: usize) -> Result<UnpackedLibrary<'static>, Violation> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let units = self.units();
        let mut libraries = units.iter().filter_map(|unit| unit.library());
        let Some(library) = libraries.nth(index) else {
            let message = format!("there is no library binary {index} in {}", self.name);
            return Err(BLOB_75.rejected(Kind::Missing, message));
        };
        match library.broken {
            Some(broken) => Err(broken),
            None => unpack::unpack(library.blob.into_owned()),
        }
    }
}
