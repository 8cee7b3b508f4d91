//! Generators by the kinds of targets, and what each result is held to.

use super::lowered::LoweredModule;
use super::{TGT_80, TGT_81, TGT_85, TGT_86, source};
use crate::payload::{self, Payload};
use crate::release::Layout;
use crate::rule::{Findings, Kind, Violation};
use crate::target::Target;
use crate::wire::Cursor;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// A code generator: the module, and what it is for.
pub type Generator =
    Box<dyn Fn(&LoweredModule, &Target) -> Result<GeneratedCode, Violation> + Send + Sync>;

/// What a generator made: what a module of its kind stores, the symbols that are found in it, and how its kernels are launched.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedCode {
    /// The functions that a lookup by symbol finds.
    pub symbols: Vec<String>,
    /// The module, as it is stored.
    pub payload: Payload<'static>,
    kernels: Vec<KernelInfo>,
}

impl GeneratedCode {
    /// Code in which these functions are found. Its kernels are those that the payload describes.
    pub fn new(symbols: &[&str], payload: Payload<'static>) -> GeneratedCode {
        let symbols = symbols.iter().map(|symbol| (*symbol).to_owned());
        let kernels = payload.functions().map(|(name, info)| KernelInfo {
            name: name.to_owned(),
            arg_types: info.arg_types.iter().map(ToString::to_string).collect(),
            launch_param_tags: info
                .launch_param_tags
                .iter()
                .map(|tag| tag.clone().into_owned())
                .collect(),
        });
        GeneratedCode {
            symbols: symbols.collect(),
            kernels: kernels.collect(),
            payload,
        }
        .sorted()
    }

    /// The same with these kernels, for a payload without a grammar, which describes none.
    #[must_use]
    pub fn with_kernels(mut self, kernels: Vec<KernelInfo>) -> GeneratedCode {
        self.kernels = kernels;
        self.sorted()
    }

    fn sorted(mut self) -> GeneratedCode {
        self.kernels.sort_by(|a, b| a.name.cmp(&b.name));
        self
    }

    /// The source text; `None` for code of another form.
    pub fn source(&self) -> Option<&str> {
        match &self.payload {
            Payload::Opaque { bytes, .. } => std::str::from_utf8(bytes).ok(),
            known => std::str::from_utf8(known.data()?).ok(),
        }
    }

    /// How its kernels are launched, by their names, ascending; none of host code.
    pub fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }
}

/// How a kernel is launched (TGT-85).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// Its symbol.
    pub name: String,
    /// The dtypes of its parameters; an address is `handle`.
    pub arg_types: Vec<String>,
    /// What each argument behind those is: `blockIdx.x`, `threadIdx.x`, ...
    pub launch_param_tags: Vec<String>,
}

impl KernelInfo {
    /// As in the JSON form of a payload.
    pub(super) fn form(&self) -> Value {
        json!({"name": self.name, "arg_types": self.arg_types, "launch_param_tags": self.launch_param_tags})
    }
}

/// Code generators by the kinds of targets that they are for: `target.build.<kind>`.
///
/// ```
/// use tvmspec::release::Release;
/// use tvmspec::target::{Generators, LoweredModule, Targets};
///
/// let module = LoweredModule::read(&std::fs::read("golden/target/lowered/0.27/matmul.json")?)?;
/// let target = Targets::new(Release::of(27)).read("c")?;
/// let code = Generators::new().generate(&module, &target)?;
/// assert!(code.source().expect("it is C").contains("int32_t __tvm_ffi_matmul("));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Generators {
    known: BTreeMap<String, Generator>,
}

impl Generators {
    /// Those of this crate: `c` and `opencl`.
    pub fn new() -> Generators {
        let mut generators = Generators {
            known: BTreeMap::new(),
        };
        generators.register("c", Box::new(source::host));
        generators.register("opencl", Box::new(source::opencl));
        generators
    }

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
            return Err(TGT_80.rejected(Kind::Missing, message));
        };
        let code = generator(module, target)?;
        check(module, &code)?;
        Ok(code)
    }
}

impl Default for Generators {
    fn default() -> Generators {
        Generators::new()
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
    let kernels = module.kernels()?;
    let described = code.kernels();
    for kernel in &kernels {
        if !described.contains(kernel) {
            let message = format!("`{}` is not described as it is", kernel.name);
            return Err(TGT_85.rejected(Kind::Missing, message));
        }
    }
    // Host code is linked; only what a device runs has to be stored.
    if kernels.is_empty() {
        return Ok(());
    }
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
