//! A device of your own: under `ext_dev`, which needs no number, and held to every rule of the contract.
//!
//! Run: `cargo run --example external_device`

use tvmspec::device::{
    Attribute, Copy, Device, DeviceApi, Dtype, Manager, Result, Space, Stream, Value, cpu, manager,
};

/// An accelerator that, for want of hardware, borrows the memory of the host.
struct Mine;

impl DeviceApi for Mine {
    fn set_device(&self, device: Device) -> Result<()> {
        match device.id {
            0 => Ok(()),
            id => Err(tvmspec::device::Error::Absent(format!(
                "there is one of me, and no {id}"
            ))),
        }
    }
    fn attribute(&self, device: Device, attribute: Attribute) -> Result<Value> {
        Ok(match attribute {
            Attribute::Exist => Value::Int((device.id == 0).into()),
            Attribute::DeviceName => Value::Text("mine".into()),
            _ => Value::None,
        })
    }
    fn alloc(&self, _: Device, nbytes: usize, alignment: usize, hint: Dtype) -> Result<Space> {
        cpu::cpu().alloc(Device::CPU, nbytes, alignment, hint)
    }
    unsafe fn free(&self, _: Device, space: Space) -> Result<()> {
        // SAFETY: it came from `alloc`, says the caller, and so from the CPU.
        unsafe { cpu::cpu().free(Device::CPU, space) }
    }
    unsafe fn copy(&self, copy: &Copy, stream: Stream) -> Result<()> {
        // SAFETY: the caller vouches for both sides; both are memory of the host.
        unsafe { cpu::cpu().copy(copy, stream) }
    }
    fn sync(&self, _: Device, _: Stream) -> Result<()> {
        Ok(())
    }
}

fn main() {
    manager::register("ext_dev", &Mine).expect("a new name");
    let api = Manager::global()
        .api(Device::ext_dev(0).kind)
        .expect("just registered");
    println!(
        "{:?}",
        api.attribute(Device::ext_dev(0), Attribute::DeviceName)
    );
    println!("{}", tvmspec::conformance::device::contract(api));
}
