//! A program that embeds the runtime: it loads a library that TVM 0.27 compiled, calls it, and reads why a wrong call fails.
//!
//! Run: `cargo run --example embed`, or with the path of another library whose `main` adds one to 12 numbers. In a program of
//! your own these lines are all that it takes: there is nothing to install, to link or to set.

use tvmspec::function::Error;
use tvmspec::module;
use tvmspec::object::Tensor;
use tvmspec::value::DLDataType;

const F32: DLDataType = DLDataType {
    code: 2,
    bits: 32,
    lanes: 1,
};

fn main() -> Result<(), Error> {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/module/host-0.27.so");
    let library = std::env::args().nth(1).unwrap_or_else(|| golden.to_owned());
    // SAFETY: the library is trusted code, and `main` is called as it was compiled.
    let main = unsafe { module::load(library) }?.require("main")?;

    let input = Tensor::empty(&[12], F32)?;
    let numbers = (0..12).flat_map(|number| (number as f32).to_le_bytes());
    input.fill(&numbers.collect::<Vec<u8>>())?;
    let output = Tensor::empty(&[12], F32)?;
    main.call_with([input.into(), output.clone().into()])?;
    let numbers: Vec<f32> = output
        .to_bytes()?
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .collect();
    println!("main(0 .. 11) = {numbers:?}");

    let short = Tensor::empty(&[3], F32)?;
    match main.call_with([short.into(), output.into()]) {
        Ok(_) => println!("main takes three numbers, too"),
        Err(error) => println!("main of three numbers fails: {error}"),
    }
    Ok(())
}
