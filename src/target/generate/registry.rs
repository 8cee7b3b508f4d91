//! Code generators by the kinds of targets, and the checks of their results.

use super::generated_code::GeneratedCode;
use super::lowered_module::LoweredModule;
use super::{TGT_80, TGT_81, TGT_85, TGT_86};
use crate::payload;
use crate::release::Layout;
use crate::rule::{Findings, Kind, Violation};
use crate::target::Target;
use crate::wire::Cursor;
use std::collections::BTreeMap;
use std::fmt;

/// A code generator. Its arguments are the module and its target.
pub type Generator =
    Box<dyn Fn(&LoweredModule, &Target) -> Result<GeneratedCode, Violation> + Send + Sync>;

/// Code generators by the kinds of targets that they compile for: `target.build.<kind>`.
///
/// ```
/// use tvmspec::payload::Payload;
/// use tvmspec::release::Release;
/// use tvmspec::target::{GeneratedCode, Generators, LoweredModule, Targets};
///
/// let mut generators = Generators::default();
/// generators.register("c", Box::new(|module, _target| {
///     let symbols: Vec<&str> = module.symbols().collect();
///     let payload = Payload::Opaque { kind: "c".into(), bytes: b"int main;"[..].into() };
///     Ok(GeneratedCode::new(&symbols, payload))
/// }));
/// let module = LoweredModule::read(&std::fs::read("golden/target/kernels/0.27/add1_gpu.host.json")?)?;
/// let target = Targets::new(Release::of(27)).read("c")?;
/// let code = generators.generate(&module, &target)?;
/// assert_eq!(code.symbols, ["__tvm_ffi_add1_gpu"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Generators {
    known: BTreeMap<String, Generator>,
}

impl Generators {
    /// Registers `generator` for targets of `kind`.
    pub fn register(&mut self, kind: &str, generator: Generator) {
        self.known.insert(kind.to_owned(), generator);
    }

    /// Compiles a module, and checks the result against the contract.
    ///
    /// # Errors
    ///
    /// Returns TGT-80 if there is no generator for the kind of the target; the errors of the generator; TGT-81, TGT-85 and TGT-86 if
    /// the result breaks the contract.
    pub fn generate(
        &self,
        module: &LoweredModule,
        target: &Target,
    ) -> Result<GeneratedCode, Violation> {
        let Some(generator) = self.known.get(&target.kind) else {
            let message = format!("target.build.{} is not enabled", target.kind);
            // TGT-80: the message of every release since 0.7. The build of a release decides which kinds have a generator.
            return Err(TGT_80.rejected(Kind::Missing, message));
        };
        // TGT-87: a generator gets only a module and a target, and no device, so the code depends only on these two. LLVM text of 0.16
        // differs from build to build, because it contains addresses of the compiler's memory. So does LLVM text of 0.27 if memory is
        // read or written.
        let code = generator(module, target)?;
        check(module, &code)?;
        Ok(code)
    }
}

impl fmt::Debug for Generators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.known.keys()).finish()
    }
}

/// Checks a result against the contract, as far as possible.
fn check(module: &LoweredModule, code: &GeneratedCode) -> Result<(), Violation> {
    for symbol in module.symbols() {
        if !code.symbols.iter().any(|found| found == symbol) {
            let message = format!("the code has no function `{symbol}`");
            return Err(TGT_81.rejected(Kind::Missing, message));
        }
    }
    let kernels = module.kernels();
    let described = code.kernels();
    for kernel in kernels {
        // TGT-85: including types and tags, which a launcher needs to pack the arguments.
        if !described.contains(kernel) {
            let message = format!("`{}` is not described as it is", kernel.name);
            return Err(TGT_85.rejected(Kind::Missing, message));
        }
    }
    // Host code is linked; only device code has to be stored.
    if kernels.is_empty() {
        return Ok(());
    }
    // TGT-86: written and read back, because the result of a generator may have a field that no file of the release can store.
    let layout = Layout::of(module.release());
    let bytes = code.payload.to_bytes(layout)?;
    let mut cursor = Cursor::new(&bytes);
    let back = payload::read(
        code.payload.kind(),
        layout,
        &mut cursor,
        &mut Findings::default(),
    );
    let same = back.is_ok_and(|back| back.to_json() == code.payload.to_json());
    if !same {
        let kind = code.payload.kind();
        let message = format!("what is stored of `{kind}` does not read back as it was");
        return Err(TGT_86.rejected(Kind::Malformed, message));
    }
    Ok(())
}
