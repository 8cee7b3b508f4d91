//! What `pack` and `convert` share: a library binary goes into the file that its name asks for.

use super::output::{self, Content};
use super::{Error, Exit};
use std::path::{Path, PathBuf};
use tvmspec::blob::pack::{self, Naming, Shared, Target};
use tvmspec::blob::{Blob, LIBRARY};
use tvmspec::release::{Layout, Release};

/// Where the library binary goes, and how it is named there.
#[derive(clap::Args)]
pub(crate) struct Packaging {
    /// The file to write: .bin (the library binary alone), .c, .o or .so by its extension; - for stdout
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Write as this release does, where releases of one layout differ (the look of C text) [default: the layout's last]
    #[arg(long, value_name = "R")]
    release: Option<Release>,
    /// Make it register itself as a system library, under PREFIX if one is given
    #[arg(long, value_name = "PREFIX", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    system_lib: Option<String>,
    /// The machine of an object file, as an LLVM triple [default: this one]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Object files, archives and sources of the host code to link into a .so
    #[arg(long, value_name = "FILE", num_args = 1..)]
    with: Vec<PathBuf>,
}

enum Form {
    Bin,
    C,
    Object,
    Shared,
}

impl Packaging {
    /// Writes `blob` in its layout. A layout that cannot hold it is a message, not a violation of a file.
    pub(crate) fn write(&self, blob: &Blob<'_>) -> Result<Exit, Error> {
        let form = self.form()?;
        let bytes = blob
            .write()
            .map_err(|refused| Error::new(format!("cannot be written: {refused}")))?;
        let naming = self.naming(blob.layout)?;
        match form {
            Form::Bin => output::write(&self.output, &bytes, Content::Binary)?,
            Form::C => {
                let text = pack::c_text(&bytes, &naming);
                output::write(&self.output, text.as_bytes(), Content::Text)?;
            }
            Form::Object => {
                let object = pack::object(&bytes, &naming, self.machine()?).map_err(Error::new)?;
                output::write(&self.output, &object, Content::Binary)?;
            }
            Form::Shared => {
                if self.with.is_empty() && blob.modules.iter().any(|module| module.kind == LIBRARY)
                {
                    eprintln!(
                        "warning: {} has no host code: give the object files of `{LIBRARY}` by --with",
                        self.output.display()
                    );
                }
                let with = Shared {
                    inputs: self.with.clone(),
                    ..Shared::default()
                };
                pack::shared(&bytes, &naming, &with, &self.output).map_err(|error| {
                    Error::new(format!("cannot link {}: {error}", self.output.display()))
                })?;
            }
        }
        Ok(Exit::Good)
    }

    fn form(&self) -> Result<Form, Error> {
        let form = match extension(&self.output) {
            _ if self.output.as_os_str() == "-" => Form::Bin,
            "bin" | "library_bin" | "mblob" => Form::Bin,
            "c" | "cc" | "cpp" => Form::C,
            "o" | "obj" => Form::Object,
            "so" | "dylib" | "dll" => Form::Shared,
            other => {
                return Err(Error::new(format!(
                    "`{other}` says nothing about the form to write; the output ends in .bin, .c, .o or .so"
                )));
            }
        };
        if !self.with.is_empty() && !matches!(form, Form::Shared) {
            return Err(Error::new("--with is for a .so: nothing else is linked"));
        }
        if self.target.is_some() && !matches!(form, Form::Object) {
            return Err(Error::new(
                "--target is for a .o; link it with that machine's own compiler",
            ));
        }
        Ok(form)
    }

    fn naming(&self, layout: Layout) -> Result<Naming, Error> {
        let release = self.release.unwrap_or(layout.releases().until);
        if Layout::of(release) != layout {
            return Err(Error::new(format!(
                "release {release} writes layout {}, not {layout}",
                Layout::of(release)
            )));
        }
        let prefix = self.system_lib.as_deref().unwrap_or_default();
        Naming::of(release, self.system_lib.is_some(), prefix).map_err(Error::new)
    }

    fn machine(&self) -> Result<Target, Error> {
        match &self.target {
            Some(triple) => Target::from_triple(triple).map_err(Error::new),
            None => Target::host().ok_or_else(|| {
                Error::new("object files for this machine cannot be written; write C text")
            }),
        }
    }
}

fn extension(path: &Path) -> &str {
    path.extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or("no extension")
}
