//! C for the host and OpenCL C for devices: the two generators that are here.

use super::TGT_84;
use super::abi::Abi;
use super::lowered::{LoweredFunction, LoweredModule};
use super::registry::GeneratedCode;
use super::scalar::ScalarType;
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
///
/// # Errors
///
/// TGT-84 for a kernel; TGT-88 and TGT-89 for what is not written.
pub(super) fn host(module: &LoweredModule, _: &Target) -> Result<GeneratedCode, Violation> {
    let abi = Abi::of(module.release());
    let mut writer = CWriter::new(&module.graph, CodePlace::Host(abi));
    let mut entry = None;
    for (symbol, function) in &module.functions {
        TGT_84.demand(Kind::Type, !function.is_kernel(&module.graph), || {
            format!("`{symbol}` is a kernel, and this is a generator of host code")
        })?;
        // The name is taken before any variable is named.
        writer.fresh(symbol);
        writer.function(symbol, function)?;
        if function.int(&module.graph, "is_entry_func") == Some(1) {
            entry = Some(symbol);
        }
    }
    module.graph.whole()?;
    let mut source = abi.prelude();
    if !writer.called.is_empty() {
        source.push_str(abi.caller());
    }
    for holder in writer.called.values() {
        source.push_str(&format!("static void* {holder} = NULL;\n"));
    }
    source.push_str(&writer.conversions());
    source.push_str(&writer.out);
    if let Some(symbol) = entry {
        source.push_str(&abi.entry(symbol));
    }
    let mut symbols: Vec<&str> = module.symbols().collect();
    symbols.extend(entry.map(|_| abi.entry_name()));
    let payload = Payload::from_json(&json!({
        "kind": "c", "source": source, "format": "c", "function_names": symbols, "const_vars": [],
    }))?;
    Ok(GeneratedCode::new(&symbols, payload))
}

/// `target.build.opencl`: a file of OpenCL C with the kernels of the module, and how each is launched.
///
/// # Errors
///
/// TGT-84 for what is no kernel; TGT-88 and TGT-89 for what is not written.
pub(super) fn opencl(module: &LoweredModule, _: &Target) -> Result<GeneratedCode, Violation> {
    let mut writer = CWriter::new(&module.graph, CodePlace::Kernel);
    for (symbol, function) in &module.functions {
        TGT_84.demand(Kind::Type, function.is_kernel(&module.graph), || {
            format!("`{symbol}` is no kernel, and this is a generator of device code")
        })?;
        writer.fresh(symbol);
        writer.function(symbol, function)?;
    }
    module.graph.whole()?;
    let functions: Vec<_> = module
        .kernels()?
        .iter()
        .map(super::registry::KernelInfo::form)
        .collect();
    let source = [TYPES, &writer.conversions(), &writer.out].concat();
    let payload = Payload::from_json(&json!({
        "kind": "opencl", "format": "cl", "functions": functions, "source": source,
    }))?;
    Ok(GeneratedCode::new(
        &module.symbols().collect::<Vec<_>>(),
        payload,
    ))
}

impl CWriter<'_> {
    /// One function.
    ///
    /// # Errors
    ///
    /// TGT-88, TGT-89.
    fn function(&mut self, symbol: &str, function: &LoweredFunction) -> Result<(), Violation> {
        let mut parameters = Vec::new();
        for var in self.required_list(function.node, "params")? {
            let dtype = self.dtype(*var)?;
            if dtype.is_half() {
                // A runtime packs it as a number of 64 bits, or not at all: which, no release documents.
                return Err(self.unsupported(*var, " as a parameter of 16 bits"));
            }
            let name = self.declare(*var);
            parameters.push(match self.place {
                CodePlace::Kernel if dtype == ScalarType::Handle => {
                    let element = self.pointed(*var)?.memory_name();
                    let space = "__global ";
                    self.names.insert(
                        *var,
                        CName {
                            text: name.clone(),
                            space,
                        },
                    );
                    format!("{space}{element}* {name}")
                }
                _ => format!("{} {name}", dtype.c_name()),
            });
        }
        let head = match self.place {
            CodePlace::Kernel => "__kernel void",
            CodePlace::Host(_) => "int32_t",
        };
        let parameters = parameters.join(", ");
        let body = self.required(function.node, "body")?;
        self.braces(&format!("{head} {symbol}({parameters})"), |writer| {
            writer.within(symbol, |writer| {
                writer.within("body", |writer| writer.statement(body))
            })?;
            if writer.place != CodePlace::Kernel {
                // TGT-88: 0 is success, where the module does not return.
                writer.line("return 0;");
            }
            Ok(())
        })
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
