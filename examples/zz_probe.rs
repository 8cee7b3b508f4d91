//! Probe.
use tvmspec::module;
use tvmspec::object::Tensor;
use tvmspec::value::Any;
fn main() -> tvmspec::Result<()> {
    let mut a = std::env::args().skip(1);
    let (path, name, case) = (a.next().unwrap(), a.next().unwrap(), a.next().unwrap());
    // SAFETY: probe.
    let m = unsafe { module::load(&path) }?;
    println!("{:?}", m.functions());
    let f = m.require(&name)?;
    let x = Tensor::from_slice(&[1.0_f32; 12], &[12])?;
    let y = Tensor::from_slice(&[0.0_f32; 12], &[12])?;
    let d = Tensor::from_slice(&[1.0_f64; 12], &[12])?;
    let s = Tensor::from_slice(&[1.0_f32; 3], &[3])?;
    let s2 = Tensor::from_slice(&[1.0_f32; 12], &[3, 4])?;
    let r = match &*case {
        "good" => f.call_tensors(&[&x, &y]),
        "few" => f.call_tensors(&[&x]),
        "many" => f.call_tensors(&[&x, &y, &y]),
        "dtype" => f.call_tensors(&[&d, &y]),
        "shape" => f.call_tensors(&[&s, &y]),
        "ndim" => f.call_tensors(&[&s2, &y]),
        "int" => f.call((1, &y)),
        "float" => f.call((1.5, &y)),
        "none" => f.call((Any::none(), &y)),
        "text" => f.call(("abcdefghijkl", &y)),
        "bool" => f.call((true, &y)),
        _ => panic!(),
    };
    println!("{case}: {r:?}");
    Ok(())
}
