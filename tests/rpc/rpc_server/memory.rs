//! Memory of a session, beyond what cases allocate.

use super::Client;
use std::borrow::Cow;
use tvmspec::release::Release;
use tvmspec::rpc::{CopyTarget, PackedValue as V, Packet, RpcCode, TensorBlock};
use tvmspec::tensor::{Device, Dtype};

/// RPC-87, DEV-15: up to 0.20 an element of one bit takes a byte, and the memory of such a client has that size.
#[test]
fn rpc_87_memory_of_bits_has_the_size_that_its_client_takes_it_to_have() {
    for (release, nbytes) in [(8, 4096), (20, 4096), (27, 512)] {
        let mut client = Client::with(release, |options| {
            options.release = Some(Release::of(release));
        });
        let mut block = TensorBlock {
            data: 0,
            device: Device::CPU,
            dtype: Dtype::scalar(0, 1),
            shape: vec![4096],
            byte_offset: 0,
        };
        let ask = vec![V::Tensor(block.clone()), V::None];
        let made = client.ask(&Packet::SystemCall(RpcCode::DevAllocDataWithScope, ask));
        let [V::Handle(token)] = made.expect("memory")[..] else {
            panic!("no memory")
        };
        block.data = token;
        let whole = Packet::CopyFromRemote(CopyTarget::Block(block.clone()), nbytes);
        let zeros = vec![V::Bytes(vec![0; nbytes as usize].into())];
        assert_eq!(client.ask(&whole), Ok(zeros), "{release}");
        let beyond = Packet::CopyFromRemote(CopyTarget::Block(block.clone()), nbytes + 1);
        assert!(client.ask(&beyond).is_err(), "{release}");
        // Texture memory has no such elements.
        let scoped = vec![V::Tensor(block), V::Str(Cow::Borrowed(b"global.texture"))];
        let scoped = Packet::SystemCall(RpcCode::DevAllocDataWithScope, scoped);
        assert!(client.ask(&scoped).is_err(), "{release}");
    }
}
