//! What a kernel is called with: descriptions of tensors that stay where they are, so that a run builds nothing.

use super::executor::GRF_39;
use super::memory::Tensor;
use crate::value::{AnyView, DLTensor};
use std::ptr::NonNull;
use std::sync::Arc;

/// The arguments of one call, built once.
pub(super) struct Arguments {
    /// Made by `Box::into_raw`: the values below point at them, so that no reference may claim them alone.
    tensors: Vec<NonNull<DLTensor>>,
    entries: Vec<usize>,
    views: Vec<AnyView<'static>>,
    /// What the tensors' shapes point at.
    _shapes: Vec<Arc<[i64]>>,
}

// SAFETY: the pointers are to memory that this value owns alone.
unsafe impl Send for Arguments {}
// SAFETY: changes need `&mut self`, and nobody runs meanwhile.
unsafe impl Sync for Arguments {}

impl Arguments {
    pub(super) fn new<'a>(
        used: impl Iterator<Item = (usize, &'a Tensor)>,
        flatten: bool,
    ) -> Arguments {
        let (mut tensors, mut entries, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
        for (id, tensor) in used {
            let shape: Arc<[i64]> = if flatten && !GRF_39.is_off() {
                [tensor.shape.iter().product::<i64>()].as_slice().into()
            } else {
                tensor.shape.clone()
            };
            let view = DLTensor {
                ndim: shape.len() as i32,
                shape: shape.as_ptr().cast_mut(),
                ..tensor.view
            };
            tensors.push(NonNull::from(Box::leak(Box::new(view))));
            entries.push(id);
            shapes.push(shape);
        }
        // SAFETY: the tensors live as long as this value, and are written only while nobody reads a view.
        let views = tensors
            .iter()
            .map(|tensor| AnyView::dltensor(unsafe { tensor.as_ref() }));
        Arguments {
            views: views.collect(),
            tensors,
            entries,
            _shapes: shapes,
        }
    }

    pub(super) fn views(&self) -> &[AnyView<'static>] {
        &self.views
    }

    pub(super) fn point_at(&mut self, stands_for: impl Fn(usize) -> bool, to: &DLTensor) {
        for (id, tensor) in self.entries.iter().zip(&self.tensors) {
            if stands_for(*id) {
                // SAFETY: `&mut self`: no call that reads the tensor is under way.
                unsafe {
                    (*tensor.as_ptr()).data = to.data;
                    (*tensor.as_ptr()).byte_offset = to.byte_offset;
                }
            }
        }
    }
}

impl Drop for Arguments {
    fn drop(&mut self) {
        for tensor in &self.tensors {
            // SAFETY: made by `Box` in `new`, freed once.
            drop(unsafe { Box::from_raw(tensor.as_ptr()) });
        }
    }
}
