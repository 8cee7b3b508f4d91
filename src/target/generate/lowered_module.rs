//! The argument of a code generator: a module with lowered functions, by their symbols.

use super::generated_code::KernelInfo;
use super::ir::IrGraph;
use super::{TGT_82, TGT_83, TGT_88};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The value of the attribute `calling_conv` of a kernel (TGT-84).
const KERNEL: i64 = 2;

/// The module that a code generator is called with, as `save_json` wrote it.
///
/// Only the parts that the contract names are read here. A generator reads the code from [`LoweredModule::json`].
///
/// ```
/// use tvmspec::target::LoweredModule;
///
/// let text = std::fs::read("golden/target/kernels/0.27/add1_gpu.device.json")?;
/// let module = LoweredModule::read(&text)?;
/// assert_eq!(module.symbols().collect::<Vec<_>>(), ["add1_gpu_kernel"]);
/// assert_eq!(module.kernels()[0].launch_param_tags, ["blockIdx.x", "threadIdx.x"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LoweredModule {
    json: Arc<[u8]>,
    release: Release,
    /// The symbols, in ascending order.
    symbols: Vec<String>,
    /// The kernels, sorted by symbol.
    kernels: Vec<KernelInfo>,
}

impl LoweredModule {
    /// Reads a module in either form of the JSON graph.
    ///
    /// # Errors
    ///
    /// The rules of the form (OBJ-18 to OBJ-32). Returns TGT-88, malformed, for a graph that is not a module. Returns TGT-88,
    /// unsupported, for a kernel with a parameter that is neither a number nor an address. Returns TGT-82 for a function that is not
    /// lowered. Returns TGT-83 for one without a symbol, or with the symbol of another.
    pub fn read(text: &[u8]) -> Result<LoweredModule, Violation> {
        let graph = IrGraph::read(text)?;
        if graph.key(graph.root) != "IRModule" {
            return Err(graph.malformed(graph.root, "is not a module"));
        }
        let mut functions = BTreeMap::new();
        for (name, node) in graph.entries(graph.required(graph.root, "functions")?) {
            let key = graph.type_key(node);
            TGT_82.demand(Kind::Type, graph.key(node) == "PrimFunc", || {
                format!("`{name}` is a {key}, and no lowered function")
            })?;
            let attrs = attributes(&graph, node)?;
            let symbol = attrs.get("global_symbol");
            let symbol = symbol
                .and_then(|symbol| graph.node_text(*symbol))
                .filter(|symbol| !symbol.is_empty());
            // TGT-82: the last passes of the compiler state the calling convention. Without it the body is not lowered.
            TGT_82.demand(
                Kind::Type,
                attrs.contains_key("calling_conv") || symbol.is_none(),
                || format!("`{name}` has no calling convention: it is not lowered"),
            )?;
            // TGT-83: `opencl` of 0.27 accepts such a function under its name in the module, and `c` accepts an empty symbol. A
            // caller who looks up the function knows only the symbol.
            let Some(symbol) = symbol.map(str::to_owned) else {
                let message = format!("`{name}` has no global symbol");
                return Err(TGT_83.rejected(Kind::Missing, message));
            };
            let convention = attrs
                .get("calling_conv")
                .and_then(|value| graph.int(*value));
            let kernel = match convention {
                Some(KERNEL) => Some(kernel(&graph, &symbol, node, &attrs)?),
                _ => None,
            };
            let fresh = !functions.contains_key(&symbol);
            TGT_83.demand(Kind::Duplicate, fresh, || {
                format!("two functions have the symbol `{symbol}`")
            })?;
            functions.insert(symbol, kernel);
        }
        Ok(LoweredModule {
            json: text.into(),
            release: graph.release,
            symbols: functions.keys().cloned().collect(),
            kernels: functions.into_values().flatten().collect(),
        })
    }

    /// Returns the JSON graph, which a generator reads.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Returns the release that wrote it.
    pub fn release(&self) -> Release {
        self.release
    }

    /// Returns the launch parameters of each kernel (TGT-85), sorted by symbol; empty for a module for the host.
    pub fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    /// Returns the global symbols of its functions, in ascending order.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.symbols.iter().map(String::as_str)
    }
}

/// Returns the attributes of a function: nodes by names.
fn attributes(graph: &IrGraph, node: usize) -> Result<BTreeMap<String, usize>, Violation> {
    let dictionary = graph.child(graph.required(node, "attrs")?, "__dict__");
    let entries = dictionary.map(|map| graph.entries(map)).unwrap_or_default();
    let plain = |name: String| match name.rsplit_once('.') {
        // The prefix is `tir.` up to 0.23, and `tirx.` from 0.24 on.
        Some(("tir" | "tirx", last)) => last.to_owned(),
        _ => name,
    };
    let entries = entries.into_iter();
    Ok(entries.map(|(name, value)| (plain(name), value)).collect())
}

/// Reads the launch parameters of a kernel (TGT-85).
fn kernel(
    graph: &IrGraph,
    symbol: &str,
    node: usize,
    attrs: &BTreeMap<String, usize>,
) -> Result<KernelInfo, Violation> {
    let parameters = graph.list(node, "params").iter().enumerate();
    let arg_types = parameters.map(|(index, var)| {
        let dtype = parameter_type(graph, *var);
        dtype.ok_or_else(|| {
            let message = format!(
                "{symbol}.params[{index}]: {} (node {var}) is no parameter of a kernel",
                graph.type_key(*var)
            );
            TGT_88.rejected(Kind::Unsupported, message)
        })
    });
    let arg_types = arg_types.collect::<Result<_, Violation>>()?;
    // TGT-85: texts from 0.12 on; before that, the axes themselves.
    let names = attrs.get("kernel_launch_params");
    let listed = names.or_else(|| attrs.get("device_thread_axis"));
    let items = listed.map_or(&[][..], |list| graph.items(*list)).iter();
    let tags = items.map(|item| {
        let tag = match names {
            Some(_) => graph.node_text(*item),
            None => graph.text(*item, "thread_tag"),
        };
        let tag = tag.ok_or_else(|| graph.malformed(*item, "is not a name of an axis"));
        tag.map(str::to_owned)
    });
    Ok(KernelInfo {
        name: symbol.to_owned(),
        arg_types,
        launch_param_tags: tags.collect::<Result<_, Violation>>()?,
    })
}

/// Returns the dtype of a parameter, as payloads describe it (PAY-02), or `None` for a parameter without one.
fn parameter_type(graph: &IrGraph, var: usize) -> Option<String> {
    // Up to 0.26 a variable states its dtype, from 0.27 on its type.
    let stated = graph.text(var, "dtype");
    let dtype = match graph.child(var, "ty") {
        Some(ty) if graph.key(ty) == "PointerType" => Some("handle"),
        Some(ty) => graph.text(ty, "dtype").or(stated),
        None => stated,
    };
    match dtype? {
        "uint1" => Some("bool".to_owned()),
        dtype => Some(dtype.to_owned()),
    }
}
