//! Generators by the kinds of targets, and what each result is held to.

use super::code::GeneratedCode;
use super::lowered::LoweredModule;
use super::{TGT_80, TGT_81, TGT_85, TGT_86};
use crate::payload;
use crate::release::Layout;
use crate::rule::{Findings, Kind, Violation};
use crate::target::Target;
use crate::wire::Cursor;
use std::collections::BTreeMap;
use std::fmt;

/// A code generator: the module, and what it is for.
pub type Generator =
    Box<dyn Fn(&LoweredModule, &Target) -> Result<GeneratedCode, Violation> + Send + Sync>;

/// Code generators by the kinds of targets that they are for: `target.build.<kind>`.
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
    /// From now on targets of `kind` are compiled by `generator`.
    pub fn register(&mut self, kind: &str, generator: Generator) {
        self.known.insert(kind.to_owned(), generator);
    }

    /// Compiles a module, and holds the result to the contract.
    ///
    /// # Errors
    ///
    /// TGT-80 where the kind of the target has no generator; what the generator rejects; TGT-81, TGT-85 and TGT-86 where the result does
    /// not keep to the contract.
    pub fn generate(
        &self,
        module: &LoweredModule,
        target: &Target,
    ) -> Result<GeneratedCode, Violation> {
        let Some(generator) = self.known.get(&target.kind) else {
            let message = format!("target.build.{} is not enabled", target.kind);
            // TGT-80: in the words of every release since 0.7: whether a kind has a generator is decided when the release is built.
            return Err(TGT_80.rejected(Kind::Missing, message));
        };
        // TGT-87: a generator is called with a module and a target, and with no device: the code depends on these two. The LLVM text
        // of 0.16, and of 0.27 where memory is read or written, has addresses of the compiler's memory, and differs from build to build.
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

/// The contract, as far as it shows in a result.
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
        // TGT-85: with types and tags, by which a launcher packs its arguments.
        if !described.contains(kernel) {
            let message = format!("`{}` is not described as it is", kernel.name);
            return Err(TGT_85.rejected(Kind::Missing, message));
        }
    }
    // Host code is linked; only what a device runs has to be stored.
    if kernels.is_empty() {
        return Ok(());
    }
    // TGT-86: written and read once more, since what a generator returns may hold a field that no file of the release has room for.
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
