//! One process with two eras: it calls a library compiled by TVM 0.8 and one compiled by TVM 0.27, side by side.
//!
//! Run: `cargo run --example two_eras`

use tvmspec::function::Error;
use tvmspec::module;
use tvmspec::object::Tensor;
use tvmspec::tensor::Dtype;

const F32: Dtype = Dtype {
    code: 2,
    bits: 32,
    lanes: 1,
};

fn main() -> Result<(), Error> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        println!("the two libraries are for x86-64 Linux");
        return Ok(());
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/module");
    for (library, name) in [("host-0.8.so", "add1"), ("host-0.27.so", "main")] {
        // SAFETY: the libraries are trusted code, and are called as they were compiled.
        let module = unsafe { module::load(format!("{folder}/{library}")) }?;
        let function = module.require(name)?;
        let input = Tensor::empty(&[12], F32)?;
        let values: Vec<u8> = (0..12)
            .flat_map(|value| (value as f32).to_le_bytes())
            .collect();
        input.fill(&values)?;
        let output = Tensor::empty(&[12], F32)?;
        function.call((input, output.clone()))?;
        let results: Vec<f32> = output
            .to_bytes()?
            .chunks_exact(4)
            .map(|chunk| f32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]))
            .collect();
        println!("{library}: {name}(0 .. 11) = {results:?}");
    }
    Ok(())
}
