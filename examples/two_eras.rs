//! One process with two eras: it calls a library compiled by TVM 0.8 and one compiled by TVM 0.27, side by side.
//!
//! Run: `cargo run --example two_eras`

use tvmspec::module;
use tvmspec::object::Tensor;

fn main() -> tvmspec::Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        println!("the two libraries are for x86-64 Linux");
        return Ok(());
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/module");
    let numbers: Vec<f32> = (0..12_u8).map(f32::from).collect();
    for (library, name) in [("host-0.8.so", "add1"), ("host-0.27.so", "main")] {
        // SAFETY: the libraries are trusted code, and are called as they were compiled.
        let module = unsafe { module::load(format!("{folder}/{library}")) }?;
        let input = Tensor::from_slice(&numbers, &[12])?;
        let output = Tensor::from_slice(&[0.0_f32; 12], &[12])?;
        module.require(name)?.call_tensors(&[&input, &output])?;
        println!("{library}: {name}(0 .. 11) = {:?}", output.to_vec::<f32>()?);
    }
    Ok(())
}
