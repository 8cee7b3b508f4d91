//! `explain FILE --runtime LIB[,LIB]`: compares the needs of a file with the names that a local runtime registers.

use super::text::{alarm, write_labelled};
use crate::cli::CliError;
use crate::cli::color::{HEAD, StyledWrite};
use crate::cli::full::input::{Input, subject};
use crate::cli::output::escape_line;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use tvmspec::blob::container::{DynamicNames, is_cpp_interface};
use tvmspec::conformance::adapter::Limits;
use tvmspec::conformance::adapter::registry::registered_names;
use tvmspec::examine::Subject;
use tvmspec::examine::explain::Account;
use tvmspec::examine::runtime::{MissingName, RegisteredNames, missing, perhaps_missing};
use tvmspec::release::Releases;

/// A runtime, and the needs of a file that it lacks.
pub(super) struct RuntimeComparison {
    /// The libraries, as the user names them.
    libraries: String,
    names: RegisteredNames,
    /// `None` for a broken file, whose needs are unknown.
    missing: Option<Vec<MissingName>>,
    /// Names that host code may look up; `None` if it looks up none, so that `missing` is complete.
    perhaps: Option<Vec<String>>,
}

impl RuntimeComparison {
    /// Loads the libraries in a separate process and lists the names that they register.
    pub(super) fn load(libraries: &str, timeout: Duration) -> Result<RuntimeComparison, CliError> {
        let paths: Vec<String> = libraries.split(',').map(prefix_current_folder).collect();
        for path in &paths {
            // A library with a segment beyond the end of its file ends the process that opens it.
            if let Ok(input) = Input::open(Path::new(path))
                && let Err(broken) = subject(&input, Path::new(path), None)
            {
                let name = input.line();
                return Err(CliError::line(format!(
                    "the runtime {name} is not loaded: {broken}"
                )));
            }
        }
        let limits = Limits {
            timeout,
            ..Limits::default()
        };
        let mut names = registered_names(&paths.join(","), limits).map_err(|error| {
            let why = error.to_string();
            let more = if why.contains("libtvm_ffi.so: cannot open") {
                ". Name libtvm_ffi.so before it: --runtime libtvm_ffi.so,libtvm_runtime.so"
            } else {
                ""
            };
            CliError::line(format!("the runtime cannot be asked: {why}{more}"))
        })?;
        names.cpp = cpp_of(&paths);
        Ok(RuntimeComparison {
            libraries: libraries.to_owned(),
            names,
            missing: None,
            perhaps: None,
        })
    }

    /// Compares the needs of the file with the registered names.
    pub(super) fn compare_names(&mut self, subject: &Subject<'_>, accounts: &[Account]) {
        self.missing = Some(missing(subject, accounts, &self.names));
        self.perhaps = perhaps_missing(subject, &self.names);
    }

    /// Reduces each account to the possible releases of the runtime.
    pub(super) fn narrow(&self, accounts: &mut [Account]) {
        let own = self.names.releases();
        for account in accounts {
            account.loads.retain_mut(|(releases, _)| {
                let since = releases.since.max(own.since);
                let until = releases.until.min(own.until);
                *releases = Releases { since, until };
                since <= until
            });
        }
    }

    /// Returns whether it has everything that the file is known to need by name.
    pub(super) fn is_good(&self) -> bool {
        self.missing.as_ref().is_some_and(Vec::is_empty)
            && self.perhaps.as_ref().is_none_or(Vec::is_empty)
    }

    pub(super) fn text(&self, out: &mut dyn StyledWrite) -> fmt::Result {
        let names = &self.names;
        out.write_char('\n')?;
        out.styled(HEAD, &format!("runtime {}", escape_line(&self.libraries)))?;
        out.write_char('\n')?;
        let ffi = match names.tvm_ffi {
            Some([major, minor, patch]) => format!(", tvm-ffi {major}.{minor}.{patch}"),
            None => String::new(),
        };
        let release = super::text::range(names.releases());
        let release = if names.is_ffi_alone() {
            format!("tvm-ffi alone{ffi}, without a runtime of TVM: judged for {release}")
        } else {
            format!("{release}{ffi}, by what it registers")
        };
        write_labelled(out, "release", &release)?;
        write_labelled(out, "loaders", &listed(names.loaders()))?;
        write_labelled(out, "devices", &listed(names.devices()))?;
        let functions = format!(
            "{}, of them {} of the Relax VM",
            names.functions.len(),
            names.builtins().count()
        );
        write_labelled(out, "functions", &functions)?;
        let Some(missing) = &self.missing else {
            return write_labelled(out, "missing", "not known: the file is broken");
        };
        if missing.is_empty() {
            let text = match &self.perhaps {
                None => "nothing that the file needs by name",
                Some(_) => "none of the names that a release has; host code may look up others",
            };
            write_labelled(out, "missing", text)?;
        }
        let perhaps = self.perhaps.iter().flatten();
        let perhaps: Vec<String> = perhaps.map(|name| format!("`{name}`")).collect();
        if !perhaps.is_empty() {
            let shown = perhaps.get(..8).unwrap_or(&perhaps).join(", ");
            let more = match perhaps.len().saturating_sub(8) {
                0 => String::new(),
                more => format!(" and {more} more (--json has all)"),
            };
            let text = format!(
                "host code has texts in the form of a function's name, which the runtime does not register: {shown}{more}. If it calls one of them, the call fails until something registers it."
            );
            alarm(out, "PERHAPS MISSING", &text)?;
        }
        for missing in missing {
            let text = format!(
                "{} `{}`, which {} needs: without it {}. Registered by {}.",
                missing.what.name(),
                missing.name.escape_debug(),
                missing.needed_by.escape_debug(),
                missing.what.effect(),
                missing.brought_by
            );
            alarm(out, "MISSING", &text)?;
        }
        Ok(())
    }

    /// Returns the JSON form, including the accounts of the file.
    pub(super) fn to_json(&self, accounts: Vec<Value>) -> Value {
        let listed = |missing: &Vec<MissingName>| -> Value {
            missing.iter().map(MissingName::to_json).collect()
        };
        json!({
            "runtime": {
                "libraries": self.libraries.split(',').collect::<Vec<_>>(),
                "releases": self.names.releases().short(),
                "interface": self.names.interface.name(),
                "tvm_ffi": self.names.tvm_ffi,
                "functions": self.names.functions,
                "exports": self.names.exports,
            },
            "missing": self.missing.as_ref().map(listed),
            "perhaps_missing": self.perhaps,
            "accounts": accounts,
        })
    }
}

/// Returns the names of TVM's C++ interface that the libraries export; `None` if only the dynamic linker can find one of them.
fn cpp_of(paths: &[String]) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for path in paths {
        let input = Input::open(Path::new(path)).ok()?;
        let defined = DynamicNames::read(input.bytes())?.defined;
        let cpp = defined.into_iter().filter(|name| is_cpp_interface(name));
        names.extend(cpp.map(|name| String::from_utf8_lossy(name).into_owned()));
    }
    Some(names)
}

/// Returns a path for which the dynamic linker does not search: the bare name of a file in this folder becomes a path to it.
fn prefix_current_folder(path: &str) -> String {
    if Path::new(path).is_file() && !path.contains('/') {
        format!("./{path}")
    } else {
        path.to_owned()
    }
}

/// Joins names, each on one line. Returns a word for an empty list.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(escape_line).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}
