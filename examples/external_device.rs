//! A device of your own: under `ext_dev`, which needs no number, and held to every rule of the contract.
//!
//! Run: `cargo run --example external_device`

use tvmspec::device::{
    Attribute, AttributeValue, CopyRequest, Device, DeviceApi, Dtype, Error, ErrorKind, Manager,
    Result, Space, Stream, cpu, manager,
};

/// An accelerator that, for want of hardware, borrows the memory of the host.
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
        // SAFETY: it came from `alloc`, by the contract of `free`, and so from the CPU.
        unsafe { cpu::cpu().free(Device::CPU, space) }
    }
    unsafe fn copy(&self, copy: &CopyRequest, stream: Stream) -> Result<()> {
        // SAFETY: both sides have the bytes, by the contract of `copy`, and both are memory of the host.
        unsafe { cpu::cpu().copy(copy, stream) }
    }
    fn sync(&self, _: Device, _: Stream) -> Result<()> {
        Ok(())
    }
}

fn main() {
    // Under the type for external devices, and under a number of its own.
    // SAFETY: its memory is that of the CPU device, which keeps the rules of memory.
    unsafe { manager::register("ext_dev", &Mine) }.expect("a new name");
    // SAFETY: its memory is that of the CPU device, which keeps the rules of memory.
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
