//! A module as a generator is called with it: functions by their symbols, each lowered.

use super::code::KernelInfo;
use super::ir::IrGraph;
use super::writer::{CWriter, CodePlace};
use super::{TGT_82, TGT_83};
use crate::release::Release;
use crate::rule::{Kind, Violation};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a function is called: the attribute `calling_conv`.
pub(super) const KERNEL: i64 = 2;

/// The module that a code generator is called with: what `save_json` wrote of it.
///
/// ```
/// use tvmspec::target::LoweredModule;
///
/// let text = std::fs::read("golden/target/lowered/0.27/matmul.json")?;
/// let module = LoweredModule::read(&text)?;
/// assert_eq!(module.symbols().collect::<Vec<_>>(), ["__tvm_ffi_matmul"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LoweredModule {
    /// What it was read of.
    json: Arc<[u8]>,
    pub(super) graph: IrGraph,
    /// By their global symbols, so that the code has one order.
    pub(super) functions: BTreeMap<String, LoweredFunction>,
}

/// A function of a module.
#[derive(Clone, Debug)]
pub(super) struct LoweredFunction {
    /// The node.
    pub(super) node: usize,
    /// Its attributes, nodes by names; without the prefix that became another in 0.24.
    pub(super) attrs: BTreeMap<String, usize>,
}

impl LoweredModule {
    /// Reads a module, of either form of the JSON graph.
    ///
    /// # Errors
    ///
    /// The rules of the form (OBJ-18 to OBJ-32); TGT-88 of kind malformed for a graph of something else; TGT-82 for what is no lowered
    /// function, TGT-83 for one without a symbol, or with that of another.
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
            let function = LoweredFunction::read(&graph, node)?;
            let symbol = function.attrs.get("global_symbol");
            let symbol = symbol
                .and_then(|symbol| graph.plain(*symbol))
                .filter(|symbol| !symbol.is_empty());
            // TGT-82: passes of the compiler state the calling convention last of all; before them the body is not lowered.
            TGT_82.demand(
                Kind::Type,
                function.attrs.contains_key("calling_conv") || symbol.is_none(),
                || format!("`{name}` has no calling convention: it is not lowered"),
            )?;
            // TGT-83: `opencl` of 0.27 accepts such a function under its name in the module, and `c` an empty symbol.
            // A caller who looks the function up has the symbol and nothing else.
            let Some(symbol) = symbol.map(str::to_owned) else {
                let message = format!("`{name}` has no global symbol");
                return Err(TGT_83.rejected(Kind::Missing, message));
            };
            let fresh = !functions.contains_key(&symbol);
            TGT_83.demand(Kind::Duplicate, fresh, || {
                format!("two functions have the symbol `{symbol}`")
            })?;
            functions.insert(symbol, function);
        }
        Ok(LoweredModule {
            json: text.into(),
            graph,
            functions,
        })
    }

    /// The JSON graph that it was read of, for a generator in another language.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// The release that wrote it.
    pub fn release(&self) -> Release {
        self.graph.release
    }

    /// How each kernel is launched (TGT-85), by symbols, ascending; none in a module for the host.
    ///
    /// # Errors
    ///
    /// TGT-88 for a parameter of a type that is not read here.
    pub fn kernels(&self) -> Result<Vec<KernelInfo>, Violation> {
        let graph = &self.graph;
        // For its messages, which have the path to a parameter: nothing is written.
        let mut writer = CWriter::new(graph, CodePlace::Kernel);
        let kernels = self
            .functions
            .iter()
            .filter(|(_, function)| function.is_kernel(graph));
        let described = kernels.map(|(name, function)| {
            let parameters = graph.list(function.node, "params").iter().enumerate();
            let arg_types = parameters.map(|(index, var)| {
                let dtype = writer.within(name, |writer| {
                    writer.within(format!("params[{index}]"), |writer| writer.dtype(*var))
                });
                Ok(dtype?.dtype_name())
            });
            Ok(KernelInfo {
                name: name.clone(),
                arg_types: arg_types.collect::<Result<_, Violation>>()?,
                launch_param_tags: function.launch_params(graph)?,
            })
        });
        described.collect()
    }

    /// The global symbols of its functions, ascending.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }
}

impl LoweredFunction {
    /// A function with its attributes by their names, without the part that moved between releases.
    fn read(graph: &IrGraph, node: usize) -> Result<LoweredFunction, Violation> {
        let dictionary = graph.required(node, "attrs")?;
        let dictionary = graph.child(dictionary, "__dict__");
        let entries = dictionary.map(|map| graph.entries(map)).unwrap_or_default();
        let plain = |name: String| match name.rsplit_once('.') {
            // `tir.` up to 0.23, `tirx.` from 0.24 on.
            Some(("tir" | "tirx", last)) => last.to_owned(),
            _ => name,
        };
        // TGT-88: first, since an attribute without its value would count as absent below.
        for (name, value) in &entries {
            if let Some(member) = graph.lacking(*value) {
                let what = format!("has no `{member}`, as the attribute `{name}`");
                return Err(graph.malformed(*value, &what));
            }
        }
        let entries = entries.into_iter();
        Ok(LoweredFunction {
            node,
            attrs: entries.map(|(name, value)| (plain(name), value)).collect(),
        })
    }

    /// What each argument behind the parameters of a kernel is (TGT-85).
    fn launch_params(&self, graph: &IrGraph) -> Result<Vec<String>, Violation> {
        // TGT-85: texts from 0.12 on, before that the axes themselves.
        let names = self.attrs.get("kernel_launch_params");
        let listed = names.or_else(|| self.attrs.get("device_thread_axis"));
        let items = listed.map_or(&[][..], |list| graph.items(*list)).iter();
        let tags = items.map(|item| {
            let tag = match names {
                Some(_) => graph.plain(*item),
                None => graph.text(*item, "thread_tag"),
            };
            let tag = tag.ok_or_else(|| graph.malformed(*item, "is not a name of an axis"));
            tag.map(str::to_owned)
        });
        tags.collect()
    }

    /// An attribute that is an integer, or a truth value.
    pub(super) fn int(&self, graph: &IrGraph, name: &str) -> Option<i64> {
        graph.int(*self.attrs.get(name)?, "value")
    }

    /// Whether it runs on a device.
    pub(super) fn is_kernel(&self, graph: &IrGraph) -> bool {
        self.int(graph, "calling_conv") == Some(KERNEL)
    }
}
