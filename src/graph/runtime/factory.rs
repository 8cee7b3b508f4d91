//! The model of a library, which creates executors (module `GraphExecutorFactory`).

use super::arguments::{check_argument_count, executor_devices};
use super::executor::{Executor, ExecutorDevice, Kernels, record_to_object, with_record};
use super::executor_module::GraphExecutor;
use super::linked_params;
use crate::function::{self, Error, ErrorKind, Function};
use crate::graph::{GRF_44, Graph};
use crate::module::{LoaderEntry, Module, ModuleKind, Symbols};
use crate::object::{Map, Tensor};
use crate::payload::Field;
use crate::release::Layout;
use crate::rule::{Findings, Kind};
use crate::tensor::{Sizing, TensorRecord};
use crate::value::AnyView;
use crate::wire::{Cursor, Writer};
use std::sync::Arc;

/// A model: graph, parameters, and an imported library.
pub struct GraphExecutorFactory {
    /// The graph as it was stored or passed. It is parsed again for each executor.
    pub(super) graph_json: String,
    /// The name of the function that creates executors (GRF-49).
    pub(super) name: String,
    pub(super) params: ModelParams,
}

debug_fields!(GraphExecutorFactory: name);

/// The parameters of a model. They are read in place, so that loading a model of several gigabytes does not copy them.
pub(super) enum ModelParams {
    None,
    /// The parameters are in the mapped library.
    Mapped {
        /// The whole payload, including graph and name (PAY-40); it lives as long as `_library`.
        payload: &'static [u8],
        _library: Arc<dyn Symbols>,
        kind: String,
        layout: Layout,
    },
    /// The parameters were passed as tensors.
    Tensors(Vec<(String, Tensor)>),
}

impl ModelParams {
    /// Calls `visit` with every parameter.
    fn for_each_param(
        &self,
        mut visit: impl FnMut(&str, ModelParam<'_>) -> function::Result<()>,
    ) -> function::Result<()> {
        match self {
            ModelParams::None => Ok(()),
            ModelParams::Tensors(list) => list
                .iter()
                .try_for_each(|(name, tensor)| visit(name, ModelParam::Tensor(tensor))),
            ModelParams::Mapped {
                payload,
                kind,
                layout,
                ..
            } => {
                let mut cursor = Cursor::new(payload);
                let read =
                    // The records are read again for each executor and then freed; the elements stay in the library.
                    crate::payload::read(kind, *layout, &mut cursor, &mut Findings::default())?;
                let Some(Field::Tensors(list)) = read.field("params") else {
                    return Ok(());
                };
                list.iter()
                    .try_for_each(|(name, record)| visit(name, ModelParam::Stored(record)))
            }
        }
    }
}

/// One parameter of a model.
enum ModelParam<'p> {
    /// A parameter as the library stores it.
    Stored(&'p TensorRecord<'p>),
    /// A parameter as the caller created it.
    Tensor(&'p Tensor),
}

impl ModelParam<'_> {
    /// Sets input `index` of `executor` to this parameter.
    fn set(&self, executor: &mut Executor, index: usize) -> function::Result<()> {
        match self {
            ModelParam::Stored(record) => {
                // SAFETY: the description covers the record's elements, which stay for the call.
                with_record(record, |tensor| unsafe {
                    executor.set_input_from(index, tensor)
                })
            }
            ModelParam::Tensor(tensor) => executor.set_input(index, tensor),
        }
    }

    /// Returns a tensor on the host with a copy of the elements, which the caller may change.
    fn to_object(&self) -> function::Result<Tensor> {
        match self {
            ModelParam::Stored(record) => record_to_object(record),
            ModelParam::Tensor(tensor) => {
                // The caller may write to the result, and later executors start with this tensor.
                let copy = Tensor::empty(tensor.shape(), tensor.dl().dtype)?;
                copy.fill(&tensor.to_bytes()?)?;
                Ok(copy)
            }
        }
    }
}

/// Reads a factory from a library.
pub(super) fn load_factory(entry: &LoaderEntry<'_>) -> function::Result<Module> {
    let mut cursor = Cursor::new(entry.payload);
    let read = crate::payload::read(
        entry.kind,
        entry.layout,
        &mut cursor,
        &mut Findings::default(),
    )?;
    let text = |name: &str| match read.field(name) {
        Some(Field::Text(text)) => text.clone().into_owned(),
        // PAY-40: both kinds have both fields.
        _ => String::new(),
    };
    // SAFETY: the payload is a slice that `Symbols::data` returned for the library. `_library` is stored in the same value and keeps
    // the slice borrowed, because a shared `Arc` returns no `&mut`.
    let payload = unsafe { std::mem::transmute::<&[u8], &'static [u8]>(entry.payload) };
    let params = ModelParams::Mapped {
        payload,
        _library: Arc::clone(entry.library),
        kind: entry.kind.to_owned(),
        layout: entry.layout,
    };
    Ok(Module::new(GraphExecutorFactory {
        graph_json: text("graph_json"),
        name: text("module_name"),
        params,
    }))
}

impl GraphExecutorFactory {
    /// Creates an executor of this model and sets its parameters. The kernels are in the modules that `module` imports.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Graph::read`] and [`Executor::new`], and of the lookup in the imports. Returns GRF-33 for a parameter
    /// whose type or shape differs from its input.
    pub fn create(
        &self,
        module: &Module,
        devices: Vec<ExecutorDevice>,
    ) -> function::Result<Executor> {
        let graph = Graph::read(&self.graph_json, &mut Findings::default())?;
        let imports = module.imports();
        let kernels: &Kernels<'_> = &|name| {
            for import in &imports {
                // GRF-31: a kernel may be in an import of an import.
                if let Some(found) = import.function(name, true)? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        };
        let mut executor = Executor::new(Arc::new(graph), kernels, devices)?;
        // GRF-43: linked parameters come first, because their memory replaces that of the pool.
        linked_params::link(&mut executor, module, None)?;
        self.params
            .for_each_param(|name, tensor| match executor.input_index(name) {
                // GRF-37: a parameter that is not an input of the graph is skipped.
                Some(index) => tensor.set(&mut executor, index),
                None => Ok(()),
            })?;
        Ok(executor)
    }

    /// Returns the graph JSON.
    pub fn graph_json(&self) -> &str {
        &self.graph_json
    }

    /// Returns the name of the model's constructor, usually `default`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the factory of `module`, if it is one.
    pub fn from_module(module: &Module) -> Option<&GraphExecutorFactory> {
        let kind: &dyn std::any::Any = module.implementation()?;
        kind.downcast_ref()
    }
}

impl ModuleKind for GraphExecutorFactory {
    fn kind(&self) -> &str {
        "GraphExecutorFactory"
    }

    fn function(&self, module: &Module, name: &str) -> function::Result<Option<Function>> {
        // A function may outlive the handle that it was looked up with.
        let alive = module.clone();
        let with =
            move |body: fn(&GraphExecutorFactory, &Module, &[AnyView<'_>]) -> function::Result| {
                Function::from_packed(move |args| {
                    let factory = GraphExecutorFactory::from_module(&alive);
                    let none = || Error::new(ErrorKind::Runtime, "the module is not a factory");
                    body(factory.ok_or_else(none)?, &alive, args)
                })
            };
        Ok(Some(match name {
            _ if name == self.name() => {
                with(|factory, module, devices| factory.make(module, devices, false))
            }
            "debug_create" => with(|factory, module, args| {
                check_argument_count("debug_create", 2, args)?;
                if String::try_from(args[0])? != factory.name {
                    // GRF-49: a factory has one model, so the name is only compared with its own.
                    let text = "Currently we only support single model for now.";
                    return Err(GRF_44.rejected(Kind::Missing, text).into());
                }
                factory.make(module, &args[1..], true)
            }),
            "get_graph_json" => with(|factory, _, _| Ok(factory.graph_json().into())),
            "get_graph_params" => with(|factory, _, _| {
                let mut map = Map::new();
                factory
                    .params
                    // OBJ-39: the names may come from a file whose writer chose them to collide in the map.
                    .for_each_param(|name, tensor| map.set_untrusted(name, tensor.to_object()?))?;
                Ok(map.into())
            }),
            "remove_params" => with(|factory, module, _| {
                let (graph_json, name) = (factory.graph_json.clone(), factory.name.clone());
                // GRF-49: the result is another factory; this one keeps its parameters.
                let bare = Module::new(GraphExecutorFactory {
                    graph_json,
                    name,
                    params: ModelParams::None,
                });
                module
                    .imports()
                    .into_iter()
                    .try_for_each(|import| bare.import(import))?;
                Ok(bare.into())
            }),
            _ => return Ok(None),
        }))
    }

    fn save_to_bytes(&self) -> function::Result<Vec<u8>> {
        if let ModelParams::Mapped { payload, .. } = &self.params {
            // A factory from a library cannot change, so its bytes are those that it was read from.
            return Ok(payload.to_vec());
        }
        let mut tensors = Vec::new();
        self.params.for_each_param(|name, tensor| {
            let copy = tensor.to_object()?;
            let dtype = copy.dl().dtype;
            tensors.push((
                name.to_owned(),
                // PAY-40: factories exist since 0.7, so the bytes of a record are counted by the rule of 0.7.
                TensorRecord::new(dtype, copy.shape(), copy.to_bytes()?, Sizing::V0_7)?,
            ));
            Ok(())
        })?;
        let mut out = Writer::new();
        // PAY-40: graph, count and names of the parameters, the tensors, the name. The count occurs twice, because the names are a
        // vector.
        out.str(&self.graph_json);
        out.count(tensors.len());
        out.vector(&tensors, |out, (name, _)| out.str(name));
        tensors
            .iter()
            .for_each(|(_, tensor)| tensor.write(&mut out));
        out.str(&self.name);
        Ok(out.into_bytes())
    }
}

impl GraphExecutorFactory {
    /// Creates an executor of this model as a module, on these devices (GRF-49).
    fn make(&self, module: &Module, devices: &[AnyView<'_>], debug: bool) -> function::Result {
        let executor = self.create(module, executor_devices(devices)?)?;
        Ok(Module::new(GraphExecutor::new(executor, debug)).into())
    }
}
