//! Bools of executables up to 0.22, in which they are one-bit unsigned integers (VM-40, TEN-04).

use crate::object::{Array, Tensor, sequence_of};
use crate::tensor::Dtype;
use crate::value::{Any, AnyView, DLTensor, cast, index};

const UINT1: Dtype = Dtype::scalar(Dtype::UINT, 1);
const BOOL: Dtype = Dtype::scalar(Dtype::BOOL, 8);

/// Returns whether `constants` contain the type `uint1` and not `bool`. The compiler writes the type of each parameter as a
/// constant.
pub(super) fn has_uint1(constants: &[Any]) -> bool {
    let has = |wanted: Dtype| {
        let mut types = constants
            .iter()
            .filter(|value| value.type_index() == index::DATA_TYPE);
        types.any(|value| value.as_raw().dtype() == wanted)
    };
    has(UINT1) && !has(BOOL)
}

/// Returns `value` with each bool tensor in it as a `uint1` of the same memory, or `None` if it contains no bool.
pub(super) fn as_uint1(value: AnyView<'_>) -> Option<Any> {
    if let Ok(tensor) = cast::<Tensor>(value) {
        let dl = *tensor.dl();
        if dl.dtype != BOOL {
            return None;
        }
        let dtype = UINT1;
        // SAFETY: a description of the memory of `tensor`, with elements of a byte as before.
        let view = unsafe { Tensor::view_of(tensor.into_object(), &DLTensor { dtype, ..dl }) };
        return Some(view.into());
    }
    let items = sequence_of(value)?;
    let changed: Vec<Option<Any>> = items.iter().map(|item| as_uint1(item.view())).collect();
    if changed.iter().all(Option::is_none) {
        return None;
    }
    let all = items.iter().zip(changed);
    Some(Array::new(all.map(|(item, changed)| changed.unwrap_or_else(|| item.clone()))).into())
}
