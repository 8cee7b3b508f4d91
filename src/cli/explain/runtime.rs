//! `explain FILE --runtime LIB[,LIB]`: what a runtime that is here registers, and what the file needs of that and it lacks.

use super::text::{alarm, beside};
use crate::cli::CliError;
use crate::cli::color::{HEAD, StyledWrite};
use crate::cli::output::line_of;
use serde_json::{Value, json};
use std::fmt;
use std::path::Path;
use std::time::Duration;
use tvmspec::conformance::adapter::Limits;
use tvmspec::conformance::adapter::registry::registered_names;
use tvmspec::examine::Subject;
use tvmspec::examine::explain::Account;
use tvmspec::examine::runtime::{MissingName, RegisteredNames, missing};
use tvmspec::release::Releases;

/// A runtime, and what a file needs of it.
pub(super) struct HeldAgainst {
    /// The libraries, as the user names them.
    libraries: String,
    names: RegisteredNames,
    /// `None` for a broken file, whose needs are not known.
    missing: Option<Vec<MissingName>>,
}

impl HeldAgainst {
    /// Loads the libraries in a process of its own and lists what they register.
    pub(super) fn load(libraries: &str, timeout: Duration) -> Result<HeldAgainst, CliError> {
        let paths: Vec<String> = libraries.split(',').map(from_here).collect();
        let mut limits = Limits::default();
        limits.timeout = timeout;
        let names = registered_names(&paths.join(","), limits).map_err(|error| {
            let why = error.to_string();
            let more = if why.contains("libtvm_ffi.so: cannot open") {
                ". Name libtvm_ffi.so before it: --runtime libtvm_ffi.so,libtvm_runtime.so"
            } else {
                ""
            };
            CliError::line(format!("the runtime cannot be asked: {why}{more}"))
        })?;
        Ok(HeldAgainst {
            libraries: libraries.to_owned(),
            names,
            missing: None,
        })
    }

    /// Compares what the file needs with what is registered.
    pub(super) fn hold(&mut self, subject: &Subject<'_>, accounts: &[Account]) {
        self.missing = Some(missing(subject, accounts, &self.names));
    }

    /// Leaves of each account the releases that the runtime may be of.
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

    /// Whether it has all that the file needs by name.
    pub(super) fn is_good(&self) -> bool {
        self.missing.as_ref().is_some_and(Vec::is_empty)
    }

    pub(super) fn text(&self, out: &mut dyn StyledWrite) -> fmt::Result {
        let names = &self.names;
        out.write_char('\n')?;
        out.styled(HEAD, &format!("runtime {}", line_of(&self.libraries)))?;
        out.write_char('\n')?;
        let ffi = match names.tvm_ffi {
            Some([major, minor, patch]) => format!(", tvm-ffi {major}.{minor}.{patch}"),
            None => String::new(),
        };
        let release = super::text::range(names.releases());
        beside(
            out,
            "release",
            &format!("{release}{ffi}, by what it registers"),
        )?;
        beside(out, "loaders", &listed(names.loaders()))?;
        beside(out, "devices", &listed(names.devices()))?;
        let functions = format!(
            "{}, of them {} of the Relax VM",
            names.functions.len(),
            names.builtins().count()
        );
        beside(out, "functions", &functions)?;
        let Some(missing) = &self.missing else {
            return beside(out, "missing", "not known: the file is broken");
        };
        if missing.is_empty() {
            beside(out, "missing", "nothing that the file needs by name")?;
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

    /// The JSON form, with the accounts of the file.
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
            "accounts": accounts,
        })
    }
}

/// A path that the dynamic linker does not look for elsewhere: a bare name of a file in this folder is that file.
fn from_here(path: &str) -> String {
    if Path::new(path).is_file() && !path.contains('/') {
        format!("./{path}")
    } else {
        path.to_owned()
    }
}

/// Names of one line; a word where there are none.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(line_of).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}
