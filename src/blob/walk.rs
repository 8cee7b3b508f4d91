//! The modules of a library in the order of their imports, for every layout.

use super::{Blob, LibraryModule};

/// A module, with its place below the root of its library. [`Blob::walk`] returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModulePlace<'b, 'a> {
    /// The number of imports between the root and the module; 0 for the root.
    pub depth: usize,
    /// The position in [`Blob::modules`]. `None` for a host library that the layout does not store (BLOB-14, BLOB-03).
    pub index: Option<usize>,
    /// The module.
    pub module: &'b LibraryModule<'a>,
    /// True if the walk has visited the module before, below another parent. Its imports are not walked again.
    pub is_repeated: bool,
}

impl<'a> Blob<'a> {
    /// Returns the positions of the modules that no other module of the blob imports.
    ///
    /// With an import tree this is module 0, which is the root. Without a tree these are all modules: the library that contains the
    /// blob is the root, and imports each of them (BLOB-14). A loader drops a module that the root does not reach (TREE-11).
    pub fn roots(&self) -> Vec<usize> {
        let roots = match self.tree {
            Some(_) => self.modules.len().min(1),
            None => self.modules.len(),
        };
        (0..roots).collect()
    }

    /// Returns every module that the root reaches, each before its imports, as a loader connects them.
    ///
    /// Without an import tree (layout 0.2, and a host library without imports) the root is the library that contains the blob. It comes
    /// first, without an index.
    ///
    /// ```
    /// let file = std::fs::read("golden/blob/containers/tree3-0.8.so")?;
    /// for library in tvmspec::blob::open(&file)? {
    ///     let blob = library.blob.as_ref().expect("it has device code");
    ///     let tree: Vec<String> =
    ///         blob.walk().map(|at| format!("{}{}", "  ".repeat(at.depth), at.module.kind())).collect();
    ///     assert_eq!(tree, ["_lib", "  metal", "  opencl"]);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn walk(&self) -> impl Iterator<Item = ModulePlace<'_, 'a>> {
        let mut seen = vec![false; self.modules.len()];
        // Without a tree, the root is in no list of modules.
        let mut root = self.tree.is_none().then_some(ModulePlace {
            depth: 0,
            index: None,
            module: &LibraryModule::Host,
            is_repeated: false,
        });
        let depth = usize::from(root.is_some());
        // An explicit stack, because a chain of imports can be as long as the file.
        let mut stack: Vec<(usize, usize)> =
            self.roots().into_iter().map(|at| (depth, at)).collect();
        stack.reverse();
        std::iter::from_fn(move || {
            if let Some(root) = root.take() {
                return Some(root);
            }
            loop {
                let (depth, index) = stack.pop()?;
                // A blob that was read in part has rows for modules that it lacks.
                let (Some(module), Some(seen)) = (self.modules.get(index), seen.get_mut(index))
                else {
                    continue;
                };
                let is_repeated = std::mem::replace(seen, true);
                if !is_repeated {
                    let below = depth.saturating_add(1);
                    let imports = self.imports(index).into_iter().rev();
                    stack.extend(imports.map(|import| (below, import)));
                }
                return Some(ModulePlace {
                    depth,
                    index: Some(index),
                    module,
                    is_repeated,
                });
            }
        })
    }
}
