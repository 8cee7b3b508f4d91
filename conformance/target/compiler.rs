//! What libraries with a compiler can be asked, over either C interface: by functions of their registry, on opaque handles.

use crate::conformance::reply::Reply;
use crate::conformance::runtime::Runtime;
use crate::release::Layout;

/// An argument of a function.
pub(in crate::conformance) enum CompilerArgument<'a, V> {
    /// A text.
    Text(&'a str),
    /// What another call returned.
    Returned(&'a V),
    /// A bool.
    Flag(bool),
    /// None.
    None,
}

/// What functions are called in an interface.
#[derive(Debug)]
pub(in crate::conformance) struct CompilerNames {
    /// Makes an object of the text of a graph.
    pub(in crate::conformance) graph: &'static str,
    /// The kind of a module.
    pub(in crate::conformance) kind: &'static str,
    /// The text of a module.
    pub(in crate::conformance) source: &'static str,
    /// Whether a module has a function.
    pub(in crate::conformance) implements: &'static str,
    /// Stores a module with what it imports in a tensor.
    pub(in crate::conformance) pack: &'static str,
    /// What the tensor holds is of this layout.
    pub(in crate::conformance) layout: Layout,
}

/// Libraries with a compiler.
pub(in crate::conformance) trait Compiler {
    /// A value of theirs.
    type Value;

    /// What functions are called there.
    const NAMES: CompilerNames;

    /// Whose libraries these are.
    fn runtime(&self) -> &'static dyn Runtime;

    /// Whether there is a global function with this name.
    fn has(&self, name: &str) -> Result<bool, Reply>;

    /// Calls the global function with this name; unsupported where there is none.
    fn call(
        &self,
        name: &str,
        args: &[CompilerArgument<'_, Self::Value>],
    ) -> Result<Self::Value, Reply>;

    /// Imports a module into another.
    fn import(&self, into: &Self::Value, module: &Self::Value) -> Result<(), Reply>;

    /// The module of a payload; `None` where there is no loader of its kind.
    fn load(&self, kind: &str, payload: &[u8]) -> Result<Option<Self::Value>, Reply>;

    /// The text of a value; unsupported where it is none.
    fn text(&self, value: &Self::Value) -> Result<String, Reply>;

    /// The integer or bool of a value.
    fn int(&self, value: &Self::Value) -> i64;

    /// The bytes of a tensor on the CPU; unsupported where the value is none.
    fn tensor(&self, value: &Self::Value) -> Result<Vec<u8>, Reply>;
}
