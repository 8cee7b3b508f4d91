//! A program that embeds the runtime. It loads a library compiled by TVM 0.27, calls it, and prints why a wrong call fails.
//!
//! Run: `cargo run --example embed`, or add the path of another library whose `main` adds one to 12 numbers. Your own program needs only
//! these lines: there is nothing to install, to link or to set.

use tvmspec::module;
use tvmspec::object::Tensor;

fn main() -> tvmspec::Result<()> {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/module/host-0.27.so");
    let library = std::env::args().nth(1).unwrap_or_else(|| golden.to_owned());
    // SAFETY: the library is trusted code, and `main` is called as it was compiled.
    let main = unsafe { module::load(library) }?.require("main")?;

    let numbers: Vec<f32> = (0..12_u8).map(f32::from).collect();
    let input = Tensor::from_slice(&numbers, &[12])?;
    let output = Tensor::from_slice(&[0.0_f32; 12], &[12])?;
    main.call((&input, &output))?;
    let numbers: Vec<f32> = output.to_vec()?;
    println!("main(0 .. 11) = {numbers:?}");

    let short = Tensor::from_slice(&[0.0_f32; 3], &[3])?;
    match main.call((&short, &output)) {
        Ok(_) => println!("main takes three numbers, too"),
        Err(error) => println!("main of three numbers fails: {error}"),
    }
    Ok(())
}
