//! The arguments of a kernel: tensor descriptions at fixed addresses, so that a run creates none.

use super::PoolTensor;
use crate::value::{AnyView, DLTensor};
use std::ptr::NonNull;
use std::sync::Arc;

/// The arguments of one call, built once.
pub(super) struct OpArgs {
    /// The descriptions, from `Box::into_raw`. The views point at them, so no reference may claim exclusive access.
    tensors: Vec<NonNull<DLTensor>>,
    entries: Vec<usize>,
    views: Vec<AnyView<'static>>,
    /// The shapes that the tensors point at.
    _shapes: Vec<Arc<[i64]>>,
}

// SAFETY: `tensors` come from `Box::leak` in `new` and are freed in `drop`: this value owns everything that the views point at.
unsafe impl Send for OpArgs {}
// SAFETY: only `point_at` writes, and it has `&mut self`: no view is read during that time.
unsafe impl Sync for OpArgs {}

impl OpArgs {
    /// Creates descriptions of the tensors `used`, in order, with their entries. With `flatten` each has one dimension (GRF-39).
    pub(super) fn new<'a>(
        used: impl Iterator<Item = (usize, &'a PoolTensor)>,
        flatten: bool,
    ) -> OpArgs {
        let (mut tensors, mut entries, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
        for (id, tensor) in used {
            // GRF-47: a copy of the extents, so that `get_output` still returns those of the graph, as up to 0.13.
            let shape: Arc<[i64]> = if flatten {
                // The product cannot overflow unless an extent is 0, because there is memory for the entry (GRF-23).
                let all = tensor.shape.iter();
                [all.fold(1_i64, |all, extent| all.wrapping_mul(*extent))]
                    .as_slice()
                    .into()
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
        let views = tensors.iter().map(|tensor| {
            // SAFETY: leaked above, only freed in `drop`; `point_at` writes only while no view is read.
            let tensor = unsafe { tensor.as_ref() };
            // SAFETY: each describes memory of its executor, with a shape that is kept here.
            unsafe { AnyView::dltensor(tensor) }
        });
        OpArgs {
            views: views.collect(),
            tensors,
            entries,
            _shapes: shapes,
        }
    }

    /// Returns the entries of the arguments.
    pub(super) fn entries(&self) -> &[usize] {
        &self.entries
    }

    /// Returns the arguments of the call, all as borrowed tensors (`DLTensor*`).
    pub(super) fn views(&self) -> &[AnyView<'static>] {
        &self.views
    }

    /// Redirects the arguments of these entries to the memory of `to`.
    ///
    /// # Safety
    ///
    /// Until the next call for the same entries, the memory of `to` stays valid, and holds a tensor of their type and shape.
    pub(super) unsafe fn point_at(&mut self, stands_for: impl Fn(usize) -> bool, to: &DLTensor) {
        for (id, tensor) in self.entries.iter().zip(&self.tensors) {
            if stands_for(*id) {
                // SAFETY: leaked in `new`, and not freed before `drop`.
                let mut view = unsafe { tensor.read() };
                // GRF-34: both are set. 0.6 to 0.8 lose the offset, so that kernels use the wrong bytes.
                (view.data, view.byte_offset) = (to.data, to.byte_offset);
                // SAFETY: with `&mut self` no call that reads the tensor is under way.
                unsafe { tensor.write(view) };
            }
        }
    }
}

impl Drop for OpArgs {
    fn drop(&mut self) {
        for tensor in &self.tensors {
            // SAFETY: leaked from a box in `new`, and only freed here.
            let _ = unsafe { Box::from_raw(tensor.as_ptr()) };
        }
    }
}
