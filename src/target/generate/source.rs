//! C for the host and OpenCL C for devices: the two generators that are here.

use super::TGT_84;
use super::abi::{self, Abi};
use super::code::{GeneratedCode, KernelInfo};
use super::lowered::{LoweredFunction, LoweredModule};
use super::names::{is_reserved, is_word};
use super::scalar::{ScalarType, identifier};
use super::writer::{CName, CWriter, CodePlace};
use crate::payload::Payload;
use crate::rule::{Kind, Violation};
use crate::target::Target;
use serde_json::json;

/// The types of OpenCL C by the names of C.
const TYPES: &str = "\
typedef char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
";

/// `target.build.c`: a file of C that needs no header of a release. Its functions have the convention of the release that wrote the
/// module, and check their arguments as the module states it.
pub(super) fn host(module: &LoweredModule, _: &Target) -> Result<GeneratedCode, Violation> {
    let abi = Abi::of(module.release());
    let mut writer = CWriter::new(&module.graph, CodePlace::Host(abi));
    let mut entry = None;
    let mut labelled = Vec::new();
    for (symbol, function) in &module.functions {
        // TGT-84: before any text. Generators for hosts of releases go on up to the first number of a thread, and end with
        // `not implemented`.
        TGT_84.demand(Kind::Type, !function.is_kernel(&module.graph), || {
            format!("`{symbol}` is a kernel, and this is a generator of host code")
        })?;
        // The name is taken before any variable is named.
        let labels = has_label(symbol);
        let name = match labels {
            true => writer.fresh(&format!("function_{symbol}")),
            false => writer.fresh(symbol),
        };
        if labels && !is_label(symbol) || is_taken(symbol) {
            let why = format!(" with the symbol `{symbol}`");
            return writer.within(
                symbol,
                |writer| Err(writer.unsupported(function.node, &why)),
            );
        }
        let name = if labels { &name } else { symbol };
        let types = writer.function(symbol, name, function)?;
        if labels {
            labelled.push((symbol, function.node, Abi::label(symbol, name, &types)));
        }
        if function.int(&module.graph, "is_entry_func") == Some(1) {
            entry = Some(name.clone());
        }
    }
    // A function with the symbol of another that the text calls would be called in the place of that.
    if let Some((symbol, node, _)) = labelled
        .iter()
        .find(|(symbol, ..)| writer.library.contains(*symbol))
    {
        let why = format!(" with the symbol `{symbol}`, which the module calls in C's library,");
        return writer.within(*symbol, |writer| Err(writer.unsupported(*node, &why)));
    }
    // TGT-88: behind the functions, whose nodes are rejected with the path to them; this knows the node alone.
    module.graph.whole()?;
    let mut source = abi.prelude();
    if !writer.called.is_empty() {
        source.push_str(abi.caller());
    }
    for holder in writer.called.values() {
        source.push_str(&format!("static void* {holder} = NULL;\n"));
    }
    source.push_str(&writer.conversions());
    // GCC and Clang take a label on a declaration, and on no definition: so in front of the functions.
    for (.., label) in &labelled {
        source.push_str(label);
    }
    source.push_str(&writer.out);
    // TGT-90: one that has this symbol itself is found already.
    let entry = entry.filter(|_| !module.functions.contains_key(abi.entry_name()));
    if let Some(name) = &entry {
        source.push_str(&abi.entry(name));
    }
    source.push_str(abi::END);
    let mut symbols: Vec<&str> = module.symbols().collect();
    symbols.extend(entry.as_ref().map(|_| abi.entry_name()));
    let payload = Payload::from_json(&json!({
        "kind": "c", "source": source, "format": "c", "function_names": symbols, "const_vars": [],
    }))?;
    Ok(GeneratedCode::new(&symbols, payload))
}

/// `target.build.opencl`: a file of OpenCL C with the kernels of the module, and how each is launched.
pub(super) fn opencl(module: &LoweredModule, _: &Target) -> Result<GeneratedCode, Violation> {
    let mut writer = CWriter::new(&module.graph, CodePlace::Kernel);
    for (symbol, function) in &module.functions {
        // TGT-84: by `calling_conv` 2, which lowering states; a body without numbers of threads may be a kernel too.
        TGT_84.demand(Kind::Type, function.is_kernel(&module.graph), || {
            format!("`{symbol}` is not a kernel, and this is a generator of device code")
        })?;
        // TGT-81: a kernel is found by its name in the text, which has no other for it.
        if is_word(symbol)
            || TYPES.contains(&format!(" {symbol};"))
            || *symbol != identifier(symbol)
        {
            let why = format!(" with the symbol `{symbol}`");
            return writer.within(
                symbol,
                |writer| Err(writer.unsupported(function.node, &why)),
            );
        }
        writer.fresh(symbol);
        writer.function(symbol, symbol, function)?;
    }
    // A kernel with the name of a function of OpenCL C would be called in the place of that.
    let called = module
        .functions
        .iter()
        .find(|(symbol, _)| writer.library.contains(*symbol));
    if let Some((symbol, function)) = called {
        let why = format!(" with the symbol `{symbol}`, which the module calls");
        return writer.within(
            symbol,
            |writer| Err(writer.unsupported(function.node, &why)),
        );
    }
    module.graph.whole()?;
    let functions: Vec<_> = module.kernels()?.iter().map(KernelInfo::form).collect();
    let source = [TYPES, &writer.conversions(), &writer.out].concat();
    let payload = Payload::from_json(&json!({
        "kind": "opencl", "format": "cl", "functions": functions, "source": source,
    }))?;
    Ok(GeneratedCode::new(
        &module.symbols().collect::<Vec<_>>(),
        payload,
    ))
}

/// Whether a runtime launches a kernel with a parameter of this type (DEV-53): host code of any other is found to be wrong at the first launch.
fn is_launched(dtype: ScalarType) -> bool {
    matches!(
        dtype,
        ScalarType::Int(32 | 64)
            | ScalarType::UInt(32)
            | ScalarType::Float(32 | 64)
            | ScalarType::Handle
    )
}

/// Whether the text has another name for a function than its symbol. Up to 0.20 a symbol is what the user called the function, such as `exp`
/// or `double`: C has words, and its headers declare functions, by names without a `_`.
fn has_label(symbol: &str) -> bool {
    !symbol.contains('_') || is_reserved(symbol) || symbol != identifier(symbol)
}

/// Whether an assembler takes a symbol as it is.
fn is_label(symbol: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    symbol.chars().all(plain) && !symbol.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a symbol is that of something else that the library has or calls: a runtime's functions, the variables that a runtime fills, and what
/// compilers make of loops.
fn is_taken(symbol: &str) -> bool {
    let contexts = ["__tvm_module_ctx", "__tvm_ffi__library_ctx"];
    let made = ["memcpy", "memmove", "memset", "memcmp"];
    symbol.starts_with("TVM") || contexts.contains(&symbol) || made.contains(&symbol)
}

impl CWriter<'_> {
    /// One function, by its name in the text: the types of its parameters.
    fn function(
        &mut self,
        symbol: &str,
        name: &str,
        function: &LoweredFunction,
    ) -> Result<String, Violation> {
        self.within(symbol, |writer| writer.whole_function(name, function))
    }

    /// Parameters, then the body. Parameters are named before the body is written: names of the text are in one space.
    fn whole_function(
        &mut self,
        name: &str,
        function: &LoweredFunction,
    ) -> Result<String, Violation> {
        let mut parameters = Vec::new();
        let mut types = Vec::new();
        let vars = self.required_list(function.node, "params")?;
        for (index, var) in vars.iter().enumerate() {
            let step = format!("params[{index}]");
            let dtype = self.within(step.as_str(), |writer| writer.parameter_type(*var))?;
            let parameter = self.declare(*var);
            types.push(dtype.c_name());
            parameters.push(match self.place {
                CodePlace::Kernel if dtype == ScalarType::Handle => {
                    let element = self.within(step, |writer| writer.pointed(*var))?;
                    let element = element.memory_name();
                    let space = "__global ";
                    self.names.insert(
                        *var,
                        CName {
                            text: parameter.clone(),
                            space,
                        },
                    );
                    format!("{space}{element}* {parameter}")
                }
                _ => format!("{} {parameter}", dtype.c_name()),
            });
        }
        let head = match self.place {
            CodePlace::Kernel => "__kernel void",
            CodePlace::Host(_) => "int32_t",
        };
        let parameters = parameters.join(", ");
        let body = self.required(function.node, "body")?;
        self.braces(&format!("{head} {name}({parameters})"), |writer| {
            writer.within("body", |writer| writer.statement(body))?;
            if writer.place != CodePlace::Kernel {
                // TGT-88: 0 is success, where the module does not return.
                writer.line("return 0;");
            }
            Ok(())
        })?;
        Ok(types.join(", "))
    }

    /// The type of a parameter, which a caller has to be able to pass.
    fn parameter_type(&self, var: usize) -> Result<ScalarType, Violation> {
        let dtype = self.dtype(var)?;
        if dtype.is_half() {
            // A runtime packs it as a number of 64 bits, or not at all: which, no release documents.
            return Err(self.unsupported(var, " as a parameter of 16 bits"));
        }
        if self.place == CodePlace::Kernel && !is_launched(dtype) {
            let name = self.graph.text(var, "name").unwrap_or_default();
            let dtype = dtype.dtype_name();
            let why = format!(" as the parameter `{name}` of a kernel, of type {dtype},");
            return Err(self.unsupported(var, &why));
        }
        Ok(dtype)
    }

    /// What is at the address that a parameter is.
    fn pointed(&self, var: usize) -> Result<ScalarType, Violation> {
        let graph = self.graph;
        let typed = graph
            .child(var, "type_annotation")
            .or(graph.child(var, "ty"));
        let element = typed.and_then(|typed| graph.child(typed, "element_type"));
        let dtype = element.and_then(|element| graph.text(element, "dtype"));
        let dtype = dtype
            .and_then(ScalarType::of_lanes)
            .map(|(lane, _)| lane)
            .filter(|dtype| *dtype != ScalarType::Void);
        dtype.ok_or_else(|| self.unsupported(var, " as an address of nothing known"))
    }
}
