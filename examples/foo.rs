//! Your own target kind and code generator, from start to end: build, export, load, run.
//!
//! Run: `cargo run --example foo`. The accelerator is invented: its code is C, and a C compiler makes a library of it. The module comes
//! from a file as lowered by TVM 0.27 for `ext_dev`, and not from a frontend. `external_device.rs` shows a device.

use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tvmspec::blob::pack::{
    self, ExportContent, ExportModule, HostCode, HostFormat, LinkOptions, SymbolNaming,
};
use tvmspec::function::{Error, ErrorKind, Function, registry};
use tvmspec::import_tree::Algorithm;
use tvmspec::module::{self, Module, ModuleKind};
use tvmspec::payload::Payload;
use tvmspec::release::Release;
use tvmspec::rule::{Kind, Violation};
use tvmspec::target::rules::{TGT_84, TGT_88};
use tvmspec::target::{
    GeneratedCode, Generators, LoweredModule, OptionType, Target, TargetKind, Targets,
};
use tvmspec::value::AnyView;

/// Runs every step from the registration to the numbers.
///
/// # Errors
///
/// Returns the error of the step that fails, for example without a C compiler.
pub(crate) fn main() -> Result<(), Error> {
    // Every frontend finds the generator by this name (TGT-80). The loader reads the modules it makes (TGT-86).
    registry::register_typed("target.build.foo", build_foo)?;
    module::register_loader("foo", |entry| {
        FooModule::compile(&String::from_utf8_lossy(entry.payload))
    });

    // Build: a compiler has split the function into host code and a kernel, and lowered both. This is the kernel.
    let golden = "golden/target/kernels/0.27/add1_ext.device.json";
    let lowered = Path::new(env!("CARGO_MANIFEST_DIR")).join(golden);
    let lowered = fs::read_to_string(lowered).map_err(failed)?;
    let build = registry::require("target.build.foo")?;
    let target = r#"{"kind": "foo", "lanes": 8}"#;
    let kernels = Module::try_from(&build.call((lowered, target))?)?;
    print!("{}", kernels.source("c")?);

    // Export and load.
    let folder = tempfile::tempdir().map_err(failed)?;
    let library = export(folder.path(), &kernels)?;
    // SAFETY: the code was just made, and is called as it was compiled.
    let loaded = unsafe { module::load(library) }?;
    let imports = loaded.imports();
    println!(
        "loaded {}, which imports {}",
        loaded.kind(),
        imports[0].kind()
    );

    // Run: a call passes the kernel's parameters, and then the extents of blocks and threads (TGT-85).
    let input: Vec<f32> = (0..16_u8).map(f32::from).collect();
    let mut output = vec![0.0_f32; 16];
    let memory = [input.as_ptr(), output.as_mut_ptr().cast_const()];
    // SAFETY: both buffers have 16 elements, as many as the kernel reads and writes.
    let [x, y] = memory.map(|memory| unsafe { AnyView::handle(memory.cast_mut().cast()) });
    loaded
        .require("add1_ext_kernel")?
        .call_packed(&[x, y, 4_i64.into(), 4_i64.into()])?;
    println!("add1_ext(0 .. 15) = {output:?}");
    let expected: Vec<f32> = (1..=16_u8).map(f32::from).collect();
    assert_eq!(output, expected);
    Ok(())
}

/// Returns the target kinds of 0.27, and `foo`.
fn targets() -> Targets {
    let kind = TargetKind::new("foo", 12).keys(["foo"]);
    let mut targets = Targets::new(Release::of(27));
    targets.register(kind.option("lanes", OptionType::Int, Some(4.into())));
    targets
}

/// Implements `target.build.foo`: takes a module as JSON and a target as text.
fn build_foo(module: String, target: String) -> Result<Module, Error> {
    let mut generators = Generators::default();
    generators.register("foo", Box::new(generate));
    // The result is checked against the contract: every kernel is found, matches its description, and can be stored.
    let module = LoweredModule::read(module.as_bytes())?;
    let code = generators.generate(&module, &targets().read(&target)?)?;
    FooModule::compile(code.source().unwrap_or_default())
}

/// Generates C code for a lowered module, with a packed function for each kernel.
fn generate(module: &LoweredModule, _: &Target) -> Result<GeneratedCode, Violation> {
    let symbols: Vec<&str> = module.symbols().collect();
    let kernels = module.kernels().to_vec();
    if kernels.len() != symbols.len() {
        return Err(TGT_84.rejected(Kind::Type, "foo runs kernels alone"));
    }
    // The kernels of this module use only numbers that JSON can hold.
    let graph: Value = serde_json::from_slice(module.json())
        .map_err(|why| TGT_88.rejected(Kind::Unsupported, why.to_string()))?;
    let mut writer = CWriter {
        nodes: graph["nodes"].as_array().map_or(&[], Vec::as_slice),
        memory: HashMap::new(),
        text: PRELUDE.to_owned(),
    };
    let root = writer.index(&graph["root_index"]);
    let functions = writer.items(writer.child(root, "functions"));
    for pair in functions.chunks_exact(2) {
        writer.kernel(pair[1])?;
    }
    let payload = Payload::Opaque {
        kind: "foo".into(),
        bytes: writer.text.into_bytes().into(),
    };
    Ok(GeneratedCode::new(&symbols, payload).with_kernels(kernels))
}

/// The calling convention of 0.22 and later (MOD-06).
const PRELUDE: &str = "#include <stdint.h>
typedef struct { int32_t type; uint32_t zero; union { int64_t v_int64; double v_float64; void* v_ptr; }; } foo_any;
";

/// A writer of C code for the nodes of a graph. A variable is named after its node, so names are unique and not C keywords.
struct CWriter<'g> {
    nodes: &'g [Value],
    /// For each buffer node, the variable that holds the address of the buffer.
    memory: HashMap<usize, usize>,
    text: String,
}

impl<'g> CWriter<'g> {
    /// Returns the index of a node. In a graph that was read, every index is valid (OBJ-20).
    fn index(&self, value: &Value) -> usize {
        value
            .as_u64()
            .and_then(|at| usize::try_from(at).ok())
            .unwrap_or(0)
    }

    fn child(&self, at: usize, name: &str) -> usize {
        self.index(&self.nodes[at]["data"][name])
    }

    fn items(&self, at: usize) -> Vec<usize> {
        let items = self.nodes[at]["data"].as_array();
        items
            .into_iter()
            .flatten()
            .map(|item| self.index(item))
            .collect()
    }

    /// Returns the type key without its namespace, because that differs between releases.
    fn key(&self, at: usize) -> &'g str {
        let key = self.nodes[at]["type"].as_str().unwrap_or_default();
        key.rsplit_once('.').map_or(key, |(_, last)| last)
    }

    /// Returns the error for a node without C code. Such a node is rejected and not skipped (TGT-88).
    fn unsupported(&self, at: usize) -> Violation {
        let message = format!("foo has no code for {} (node {at})", self.key(at));
        TGT_88.rejected(Kind::Unsupported, message)
    }

    /// Returns the C type of an expression, a variable or a type.
    fn c_type(&self, at: usize) -> Result<String, Violation> {
        let of = match self.key(at) {
            "PrimType" | "PointerType" => at,
            _ => self.child(at, "ty"),
        };
        if self.key(of) == "PointerType" {
            return Ok(self.c_type(self.child(of, "element_type"))? + "*");
        }
        match self.nodes[of]["data"]["dtype"].as_str() {
            Some("int32") => Ok("int32_t".into()),
            Some("int64") => Ok("int64_t".into()),
            Some("float32") => Ok("float".into()),
            _ => Err(self.unsupported(of)),
        }
    }

    fn text_of(&self, at: usize) -> &'g str {
        self.nodes[at]["data"].as_str().unwrap_or_default()
    }

    fn kernel(&mut self, at: usize) -> Result<(), Violation> {
        // The C function is named by the kernel's symbol, and not by its name in the module (TGT-81).
        let attributes = self.items(self.child(self.child(at, "attrs"), "__dict__"));
        let mut pairs = attributes.chunks_exact(2);
        let symbol = pairs.find(|pair| self.text_of(pair[0]) == "global_symbol");
        let symbol = symbol.map_or("", |pair| self.text_of(pair[1]));
        let head = "(void* self, const foo_any* args, int32_t count, foo_any* result) {";
        let _ = writeln!(self.text, "int __tvm_ffi_{symbol}{head}");
        let parameters = self.items(self.child(at, "params"));
        for (place, var) in parameters.into_iter().enumerate() {
            let of = self.c_type(var)?;
            let member = match of.as_str() {
                pointer if pointer.ends_with('*') => "v_ptr",
                "float" => "v_float64",
                _ => "v_int64",
            };
            let _ = writeln!(self.text, "{of} v{var} = args[{place}].{member};");
        }
        self.statement(self.child(at, "body"))?;
        self.text.push_str("return 0;\n}\n");
        Ok(())
    }

    fn statement(&mut self, at: usize) -> Result<(), Violation> {
        match self.key(at) {
            "SeqStmt" => {
                let seq = self.items(self.child(at, "seq"));
                seq.into_iter().try_for_each(|each| self.statement(each))
            }
            "DeclBuffer" => {
                let (buffer, data) = (self.child(at, "buffer"), self.child(at, "data"));
                self.memory.insert(buffer, data);
                Ok(())
            }
            // This is an axis of blocks or threads. The accelerator has one thread, which does all the work in a loop.
            "AttrStmt" if self.key(self.child(at, "node")) == "IterVar" => {
                let var = self.child(self.child(at, "node"), "var");
                let extent = self.expression(self.child(at, "value"))?;
                let of = self.c_type(var)?;
                let _ = writeln!(
                    self.text,
                    "for ({of} v{var} = 0; v{var} < {extent}; ++v{var}) {{"
                );
                self.statement(self.child(at, "body"))?;
                self.text.push_str("}\n");
                Ok(())
            }
            "Bind" => {
                let var = self.child(at, "var");
                let (of, value) = (self.c_type(var)?, self.expression(self.child(at, "value"))?);
                let _ = writeln!(self.text, "{of} v{var} = {value};");
                Ok(())
            }
            "BufferStore" => {
                let element = self.element(at, "buffer")?;
                let value = self.expression(self.child(at, "value"))?;
                let _ = writeln!(self.text, "{element} = {value};");
                Ok(())
            }
            _ => Err(self.unsupported(at)),
        }
    }

    fn expression(&self, at: usize) -> Result<String, Violation> {
        let operator = match self.key(at) {
            "Add" => "+",
            "Sub" => "-",
            "Mul" => "*",
            "Var" => return Ok(format!("v{at}")),
            "IntImm" => return Ok(self.nodes[self.child(at, "value")]["data"].to_string()),
            "FloatImm" => return Ok(format!("{}f", self.nodes[at]["data"]["value"])),
            "TensorLoad" => return self.element(at, "source"),
            _ => return Err(self.unsupported(at)),
        };
        let (a, b) = (self.child(at, "a"), self.child(at, "b"));
        Ok(format!(
            "({} {operator} {})",
            self.expression(a)?,
            self.expression(b)?
        ))
    }

    /// Returns the buffer element of a load or a store with one index.
    fn element(&self, at: usize, buffer: &str) -> Result<String, Violation> {
        let indices = self.items(self.child(at, "indices"));
        match (self.memory.get(&self.child(at, buffer)), &indices[..]) {
            (Some(data), [index]) => Ok(format!("v{data}[{}]", self.expression(*index)?)),
            _ => Err(self.unsupported(at)),
        }
    }
}

/// A module of kind `foo`: its C text, and the library that a C compiler made of it.
struct FooModule {
    text: String,
    library: Module,
}

impl FooModule {
    fn compile(text: &str) -> Result<Module, Error> {
        let folder = tempfile::tempdir().map_err(failed)?;
        let [source, library] = ["kernels.c", "kernels.so"].map(|name| folder.path().join(name));
        fs::write(&source, text).map_err(failed)?;
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]);
        let compiled = compiler.args([&library, &source]).output();
        let compiled = compiled.map_err(failed)?;
        if !compiled.status.success() {
            return Err(Error::new(ErrorKind::Runtime, &compiled.stderr));
        }
        Ok(Module::new(FooModule {
            text: text.to_owned(),
            // SAFETY: the code was just made of kernels, and is called as they are described.
            library: unsafe { module::load(&library) }?,
        }))
    }
}

impl ModuleKind for FooModule {
    fn kind(&self) -> &str {
        "foo"
    }

    fn property_mask(&self) -> u32 {
        module::property::SERIALIZABLE | module::property::RUNNABLE
    }

    fn function(&self, _: &Module, name: &str) -> Result<Option<Function>, Error> {
        self.library.function(name, false)
    }

    fn source(&self, _: &str) -> Result<String, Error> {
        Ok(self.text.clone())
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        Ok(self.text.clone().into_bytes())
    }
}

/// Links a library of host code. Its library binary stores the kernels as an imported module.
fn export(folder: &Path, kernels: &Module) -> Result<PathBuf, Error> {
    let stored = kernels
        .implementation()
        .ok_or_else(|| failed("a module of another runtime"))?;
    let host = HostCode {
        format: HostFormat::C,
        code: b"void* __tvm_ffi__library_ctx;\n".to_vec(),
    };
    let modules = [
        ExportModule {
            content: ExportContent::Host(host),
            imports: vec![1],
        },
        ExportModule {
            content: ExportContent::Stored {
                kind: "foo".to_owned(),
                payload: stored.save_to_bytes()?,
            },
            imports: Vec::new(),
        },
    ];
    let naming = SymbolNaming::library(Release::of(27));
    let plan = pack::plan(&modules, &naming, Algorithm::default(), None)?;
    let library = folder.join("add1.so");
    pack::export(&plan, &library, &LinkOptions::default()).map_err(failed)?;
    Ok(library)
}

fn failed(why: impl ToString) -> Error {
    Error::new(ErrorKind::Runtime, why.to_string())
}
