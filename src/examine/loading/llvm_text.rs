//! The verdict of each release on host code in LLVM text.

use super::Load;
use super::verdict::foreign_functions;
use crate::blob::container::llvm_text;
use crate::payload::file::FileFormat;
use crate::release::Release;

/// Reads the names in `text`. Returns a function that returns the verdict of each release on the text.
///
/// A release does not determine whether LLVM accepts a text, because each runtime is built with one of many versions of LLVM. A text
/// states neither the version that wrote it nor a target that other versions accept. For example, 0.19 with LLVM 22 opens text of LLVM
/// 14, but rejects its data layout at the first look-up.
pub(crate) fn judge<'t>(
    format: &'static FileFormat,
    text: &'t [u8],
) -> impl Fn(Release) -> Load + use<'t> {
    let part = llvm_text(text);
    move |release| {
        let Some(loader) = format.loader(release) else {
            return Load::without_loader(format.kind, format.extension);
        };
        let then = match foreign_functions(&part, release) {
            Some((trouble, _)) => format!("; where it does, {trouble}"),
            None => String::new(),
        };
        Load::unknown(format!(
            "whether `{loader}` takes the text depends on the version of LLVM that this runtime was built with{then}"
        ))
    }
}
