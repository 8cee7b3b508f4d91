//! Your own device. It is registered as `ext_dev`, which needs no number, and is checked against every rule of the contract.
//!
//! Run: `cargo run --example external_device`

use tvmspec::device::{
    Attribute, AttributeValue, CopyRequest, Device, DeviceApi, Dtype, Manager, Space, Stream, cpu,
    manager,
};
use tvmspec::function::ErrorKind;
use tvmspec::object::Tensor;
use tvmspec::{Error, Result};

/// An accelerator that borrows host memory, because no hardware exists for it.
struct Mine;

impl DeviceApi for Mine {
    fn set_device(&self, device: Device) -> Result<()> {
        match device.id {
            0 => Ok(()),
            id => {
                let why = format!("there is one of me, and no {id}");
                Err(Error::new(ErrorKind::Runtime, why))
            }
        }
    }
    fn attribute(&self, device: Device, attribute: Attribute) -> Result<AttributeValue> {
        Ok(match attribute {
            Attribute::Exist => AttributeValue::Int((device.id == 0).into()),
            Attribute::DeviceName => AttributeValue::Text("mine".into()),
            _ => AttributeValue::None,
        })
    }
    fn alloc(&self, _: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space> {
        cpu::cpu().alloc(Device::CPU, nbytes, alignment, hint)
    }
    unsafe fn free(&self, _: Device, space: Space) -> Result<()> {
        // SAFETY: by the contract of `free` the space came from `alloc`, so it belongs to the CPU device.
        unsafe { cpu::cpu().free(Device::CPU, space) }
    }
    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> Result<()> {
        // SAFETY: by the contract of `copy` both sides have the bytes, and both are host memory.
        unsafe { cpu::cpu().copy(copy, stream) }
    }
    fn sync(&self, _: Device, _: Stream) -> Result<()> {
        Ok(())
    }
}

fn main() -> Result<()> {
    // The device is registered under the type for external devices, and under its own number.
    // SAFETY: its memory comes from the CPU device, and that keeps the rules of memory.
    unsafe { manager::register("ext_dev", &Mine) }?;
    // SAFETY: its memory comes from the CPU device, and that keeps the rules of memory.
    unsafe { manager::register_number(40, "mine", &Mine) }?;
    for device in [Device::ext_dev(0), Device::new(40, 0)] {
        let api = Manager::global().api(device.kind)?;
        let name = api.attribute(device, Attribute::DeviceName)?;
        println!("{device}: {name:?}");
        // In a test of the device, `report.assert()` fails with the same text.
        let report = tvmspec::conformance::device::contract_on(api, device);
        println!("{}", report.expect("the cases are here"));
        // Tensors live on the device like on any other.
        let tensor = Tensor::from_slice(&[1.0_f32, 2.0], &[2])?.to_device(device)?;
        println!(
            "{}: {:?}",
            tensor.device(),
            tensor.to_cpu()?.to_vec::<f32>()?
        );
    }
    Ok(())
}
