//! `tvmspec generate MODULE --target c`: a lowered module as C or OpenCL C.

use super::diagnostic::DiagnosedBytes;
use super::input::Input;
use super::output::{self, Content};
use super::{CliError, Exit};
use std::path::PathBuf;
use tvmspec::release::Release;
use tvmspec::rule::Violation;
use tvmspec::target::{GeneratedCode, Generators, LoweredModule, Targets};

/// The module is what `save_json` of TVM 0.8 to 0.27 writes of what `target.build.c` or `target.build.opencl` is called with. It is an example of
/// the contract of a generator and no compiler: what is outside of its subset is rejected with the node, and exit code 1.
#[derive(clap::Args)]
pub(crate) struct GenerateArgs {
    /// The JSON of the module, or - for stdin
    module: PathBuf,
    /// c for host code, opencl for kernels, or any text that names a target of these kinds
    #[arg(long, value_name = "c|opencl")]
    target: String,
    /// Read the target by the rules of this release; otherwise of the one that wrote the module
    #[arg(long)]
    release: Option<Release>,
    /// The file to write; otherwise stdout
    #[arg(
        short,
        value_name = "OUT",
        default_value = "-",
        hide_default_value = true
    )]
    out: PathBuf,
}

/// Writes the code of the module. What is rejected is [`Exit::Bad`], with the rule and the place on stderr.
pub(crate) fn run(args: GenerateArgs) -> Result<Exit, CliError> {
    let input = Input::open(&args.module)?;
    let code = match generated(&args, input.bytes()) {
        Ok(code) => code,
        Err(broken) => {
            let place = DiagnosedBytes {
                name: &input.name,
                bytes: input.bytes(),
                // TGT-88: the message has the path to the node, and the JSON has no fields to show.
                spans: &[],
            };
            output::note_of(|out| place.violation(out, &broken));
            return Ok(Exit::Bad);
        }
    };
    // Both generators of this crate write text; code of another form has none.
    let source = code
        .source()
        .ok_or_else(|| CliError::new("the code is not text"))?;
    output::write(&args.out, source.as_bytes(), Content::Text)?;
    Ok(Exit::Good)
}

fn generated(args: &GenerateArgs, text: &[u8]) -> Result<GeneratedCode, Violation> {
    let module = LoweredModule::read(text)?;
    let release = args.release.unwrap_or(module.release());
    let target = Targets::new(release).read(&args.target)?;
    Generators::new().generate(&module, &target)
}
