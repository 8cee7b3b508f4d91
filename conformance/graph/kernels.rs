//! What the graphs of the cases call: small kernels.

use crate::function::Error;
use crate::value::DLTensor;

pub(super) type Kernel = fn(&[*mut DLTensor]) -> Result<(), Error>;

/// The names of all kernels: `two` has two outputs, `touch` writes nothing, `fail` fails.
pub(super) const NAMES: [&str; 5] = ["add1", "add", "two", "touch", "fail"];

pub(super) fn kernel(name: &str) -> Option<(&'static str, Kernel)> {
    Some(match name {
        "add1" => ("add1", |args| {
            each(args, 1, |values| vec![values.iter().sum::<f32>() + 1.0])
        }),
        "add" => ("add", |args| {
            each(args, 2, |values| vec![values.iter().sum()])
        }),
        "two" => ("two", |args| {
            each(args, 1, |values| vec![values[0] + 1.0, values[0] * 2.0])
        }),
        "touch" => ("touch", |_| Ok(())),
        "fail" => ("fail", |_| {
            Err(Error::new("ValueError", "the kernel failed"))
        }),
        _ => return None,
    })
}

/// Element by element: the first `inputs` arguments give the values, the others take the results. `float32` only.
fn each(args: &[*mut DLTensor], inputs: usize, body: fn(&[f32]) -> Vec<f32>) -> Result<(), Error> {
    let mut pointers = Vec::new();
    let mut count = usize::MAX;
    for tensor in args {
        // SAFETY: the executor keeps its arguments, and they are on the host.
        let tensor = unsafe { &**tensor };
        if (tensor.dtype.code, tensor.dtype.bits) != (2, 32) || tensor.device.device_type != 1 {
            return Err(Error::new("TypeError", "float32 on the CPU, please"));
        }
        // SAFETY: an argument has as many extents as it says.
        count = count.min(unsafe { tensor.elements() } as usize);
        pointers.push(
            tensor
                .data
                .cast::<u8>()
                .wrapping_add(tensor.byte_offset as usize)
                .cast::<f32>(),
        );
    }
    for at in 0..count {
        let (from, to) = pointers.split_at(inputs);
        // SAFETY: no argument has fewer elements than `count`.
        let read = |from: &*mut f32| unsafe { *from.wrapping_add(at) };
        let values: Vec<f32> = from.iter().map(read).collect();
        for (to, value) in to.iter().zip(body(&values)) {
            // SAFETY: no argument has fewer elements than `count`.
            unsafe { *to.wrapping_add(at) = value };
        }
    }
    Ok(())
}
