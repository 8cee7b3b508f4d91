//! Loads a model for the Relax VM, and calls it with zeros: `cargo run --example vm -- model.so 2,4`.

use tvmspec::Error;
use tvmspec::device::Device;
use tvmspec::object::Tensor;
use tvmspec::tensor::Dtype;
use tvmspec::vm::VirtualMachine;

fn main() -> tvmspec::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(path), Some(shape)) = (args.next(), args.next()) else {
        return Err(Error::new(
            "ValueError",
            "usage: vm MODEL.so EXTENT,EXTENT,..",
        ));
    };
    let shape: Vec<i64> = shape
        .split(',')
        .filter_map(|extent| extent.parse().ok())
        .collect();
    let input = Tensor::empty(&shape, Dtype::FLOAT32)?;

    // SAFETY: the user of a model trusts its code.
    let model = unsafe { tvmspec::module::load(path) }?;
    let machine = VirtualMachine::from_module(&model, &[Device::CPU])?;
    let output = machine.call("main", (&input,))?;

    println!("{}", tvmspec::object::repr::repr(output.view())?);
    Ok(())
}
