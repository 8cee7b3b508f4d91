//! Calls with tensors alone.

use super::Tensor;
use crate::function::{Function, Result};
use crate::value::AnyView;

impl Function {
    /// Calls the function with tensors alone, which compiled functions usually take: inputs, then outputs. Like
    /// [`call_packed`](Function::call_packed), this counts no references.
    ///
    /// Code of TVM 0.8 reads memory through an argument without checking that it is a tensor. With [`Function::call`], a number or
    /// `None` instead of a tensor ends the process there. This function accepts only tensors.
    ///
    /// ```
    /// use tvmspec::module;
    /// use tvmspec::object::Tensor;
    ///
    /// # #[cfg(all(target_arch = "x86_64", target_os = "linux"))] {
    /// // SAFETY: the library is trusted code, and `add1` is called as it was compiled.
    /// let add1 = unsafe { module::load("golden/module/host-0.8.so") }?.require("add1")?;
    /// let input = Tensor::from_slice(&[1.0_f32; 12], &[12])?;
    /// let output = Tensor::from_slice(&[0.0_f32; 12], &[12])?;
    /// add1.call_tensors(&[&input, &output])?;
    /// assert_eq!(output.to_vec::<f32>()?, [2.0; 12]);
    /// # }
    /// # Ok::<(), tvmspec::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Function::call`].
    pub fn call_tensors(&self, tensors: &[&Tensor]) -> Result {
        let views: Vec<AnyView<'_>> = tensors.iter().copied().map(AnyView::from).collect();
        self.call_packed(&views)
    }
}
