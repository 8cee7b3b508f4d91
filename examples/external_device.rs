//! Your own device. It is registered as `ext_dev`, which needs no number, and is checked against every rule of the contract.
//!
//! Run: `cargo run --example external_device`

use tvmspec::device::{
    Attribute, AttributeValue, CopyRequest, Device, DeviceApi, Dtype, Error, ErrorKind, Manager,
    Result, Space, Stream, cpu, manager,
};

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

fn main() {
    // The device is registered under the type for external devices, and under its own number.
    // SAFETY: its memory comes from the CPU device, and that keeps the rules of memory.
    unsafe { manager::register("ext_dev", &Mine) }.expect("a new name");
    // SAFETY: its memory comes from the CPU device, and that keeps the rules of memory.
    unsafe { manager::register_number(40, "mine", &Mine) }.expect("a new number");
    for device in [Device::ext_dev(0), Device::new(40, 0)] {
        let api = Manager::global().api(device.kind).expect("just registered");
        println!(
            "{:?}: {:?}",
            device,
            api.attribute(device, Attribute::DeviceName)
        );
        let report = tvmspec::conformance::device::contract_on(api, device);
        println!("{}", report.expect("the cases are here"));
    }
}
