//! Runs a model of a graph-era release (0.7 to 0.19): `cargo run --example graph -- model.so`
//!
//! Fills every input without a value with zeros, and prints the outputs.

use tvmspec::graph::Model;
use tvmspec::object::Tensor;

fn main() -> tvmspec::Result<()> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "golden/graph/models/v0.8/mlp.so".to_owned());
    // SAFETY: the user of a model trusts its code.
    let mut model = unsafe { Model::load(path) }?;

    let executor = model.executor();
    let mut inputs: Vec<(String, Tensor)> = Vec::new();
    for name in executor.unset_inputs() {
        let input = executor.input(executor.require_input(name)?)?;
        println!("{name}: {} {:?}", input.dtype(), input.shape());
        let zeros = Tensor::empty(input.shape(), input.as_dltensor().dtype)?;
        inputs.push((name.to_owned(), zeros));
    }

    let inputs: Vec<(&str, &Tensor)> = inputs
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor))
        .collect();
    for (index, output) in model.run(&inputs)?.iter().enumerate() {
        println!(
            "out_{index}: {:?}, {} bytes",
            output.shape(),
            output.to_bytes()?.len()
        );
    }
    Ok(())
}
