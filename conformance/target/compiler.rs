//! The interface to libraries with a compiler, in either C interface: functions of their registry, on opaque handles.

use crate::conformance::reply::Reply;
use crate::conformance::runtime::Runtime;
use crate::release::Layout;

/// An argument of a function.
pub(in crate::conformance) enum CompilerArgument<'a, V> {
    /// A text.
    Text(&'a str),
    /// The result of another call.
    Returned(&'a V),
    /// A bool.
    Flag(bool),
    /// None.
    None,
}

/// The names of functions in an interface.
#[derive(Debug)]
pub(in crate::conformance) struct CompilerNames {
    /// Creates an object from the text of a graph.
    pub(in crate::conformance) graph: &'static str,
    /// Returns the kind of a module.
    pub(in crate::conformance) kind: &'static str,
    /// Returns the text of a module.
    pub(in crate::conformance) source: &'static str,
    /// Returns whether a module has a function.
    pub(in crate::conformance) implements: &'static str,
    /// Stores a module with its imports in a tensor.
    pub(in crate::conformance) pack: &'static str,
    /// The layout of the tensor's content.
    pub(in crate::conformance) layout: Layout,
}

/// Libraries with a compiler.
pub(in crate::conformance) trait Compiler {
    /// The type of their values.
    type Value;

    /// The names of their functions.
    const NAMES: CompilerNames;

    /// Returns the runtime that these libraries belong to.
    fn runtime(&self) -> &'static dyn Runtime;

    /// Returns whether there is a global function with this name.
    fn has(&self, name: &str) -> Result<bool, Reply>;

    /// Calls the global function with this name; unsupported if there is none.
    fn call(
        &self,
        name: &str,
        args: &[CompilerArgument<'_, Self::Value>],
    ) -> Result<Self::Value, Reply>;

    /// Imports a module into another.
    fn import(&self, into: &Self::Value, module: &Self::Value) -> Result<(), Reply>;

    /// Loads the module of a payload; `None` if there is no loader of its kind.
    fn load(&self, kind: &str, payload: &[u8]) -> Result<Option<Self::Value>, Reply>;

    /// Returns the text of a value; unsupported if it is not a text.
    fn text(&self, value: &Self::Value) -> Result<String, Reply>;

    /// Returns the integer or bool of a value.
    fn int(&self, value: &Self::Value) -> i64;

    /// Returns the bytes of a tensor on the CPU; unsupported if the value is not one.
    fn tensor(&self, value: &Self::Value) -> Result<Vec<u8>, Reply>;
}
