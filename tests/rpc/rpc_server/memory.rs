//! Memory and devices of a session.

use super::{Answer, Client, RELEASES, block, breaks, copy_from_packet, copy_to_packet};
use std::borrow::Cow;
use tvmspec::release::Release;
use tvmspec::rpc::{CopyTarget, PackedValue as V, Packet, RpcCode, TensorBlock};
use tvmspec::tensor::{Device, Dtype};

#[test]
fn rpc_86_memory_is_the_sessions_own() {
    for release in RELEASES {
        let mut client = Client::begin_session(release);
        let data = client.alloc(16).expect("memory");
        // The memory is zeroed.
        assert_eq!(
            client.ask(&copy_from_packet(data, &[4], 0, 16)),
            Ok(Answer::Content(vec![0; 16]))
        );
        client
            .ask(&copy_to_packet(data, &[4], 0, &[9; 16]))
            .expect("written");
        let other = client.alloc(16).expect("memory");
        let copy = vec![
            V::Tensor(block(data, &[2], 8)),
            V::Tensor(block(other, &[2], 0)),
            V::Handle(0),
        ];
        client
            .system(RpcCode::CopyAmongRemote, copy)
            .expect("copied");
        let mut half = vec![9; 8];
        half.resize(16, 0);
        assert_eq!(
            client.ask(&copy_from_packet(other, &[4], 0, 16)),
            Ok(Answer::Content(half))
        );

        // RPC-87: no access beyond the end, however it is encoded.
        breaks(client.ask(&copy_from_packet(data, &[4], 0, 17)), "RPC-87");
        breaks(client.ask(&copy_from_packet(data, &[4], 1, 16)), "RPC-87");
        breaks(
            client.ask(&copy_from_packet(data, &[4], u64::MAX, 16)),
            "RPC-87",
        );
        breaks(
            client.ask(&copy_from_packet(data, &[4], 0, u64::MAX)),
            "RPC-87",
        );
        breaks(
            client.ask(&copy_from_packet(data + 8, &[4], 0, 16)),
            "RPC-87",
        );
        breaks(
            client.ask(&copy_to_packet(data, &[4], 12, &[0; 5])),
            "RPC-87",
        );
        breaks(
            client.call("rpc_server.sum", vec![V::Tensor(block(data, &[5], 0))]),
            "RPC-87",
        );
        breaks(
            client.call(
                "rpc_server.sum",
                vec![V::Tensor(block(data, &[i64::MAX, 4], 0))],
            ),
            "RPC-87",
        );
        breaks(
            client.call("rpc_server.sum", vec![V::Tensor(block(data, &[-1], 0))]),
            "RPC-87",
        );
        // A number that the client invented.
        breaks(
            client.ask(&copy_from_packet(0x7fff_0000_0000, &[1], 0, 4)),
            "RPC-86",
        );
        breaks(client.ask(&copy_from_packet(0, &[1], 0, 4)), "RPC-86");
        let elsewhere = TensorBlock {
            device: Device::new(3, 0),
            ..block(data, &[4], 0)
        };
        breaks(
            client.ask(&Packet::CopyFromRemote(CopyTarget::Block(elsewhere), 16)),
            "RPC-86",
        );

        let free = vec![V::Device(Device::CPU), V::Handle(data)];
        client
            .system(RpcCode::DevFreeData, free.clone())
            .expect("freed");
        breaks(client.system(RpcCode::DevFreeData, free), "RPC-86");
        breaks(client.ask(&copy_from_packet(data, &[4], 0, 16)), "RPC-86");
        breaks(client.alloc(-1), "RPC-86");
        breaks(client.alloc(1 << 62), "RPC-86");
    }
}

#[test]
fn rpc_86_allocations_have_a_limit_together() {
    let mut client = Client::with(27, |options| options.memory = 100);
    let first = client.alloc(60).expect("memory");
    breaks(client.alloc(60), "RPC-86");
    let free = vec![V::Device(Device::CPU), V::Handle(first)];
    client.system(RpcCode::DevFreeData, free).expect("freed");
    client.alloc(100).expect("memory");
}

#[test]
fn devices_answer_by_every_request() {
    for release in [16, 27] {
        let mut client = Client::begin_session(release);
        let cpu = V::Device(Device::CPU);
        let exist = |client: &mut Client, kind| {
            client.system(
                RpcCode::DevGetAttr,
                vec![V::Device(Device::new(kind, 0)), V::Int(0)],
            )
        };
        assert_eq!(exist(&mut client, 1), Ok(vec![V::Int(1)]));
        // RPC-86: none of these is a device of a server; the attribute that asks whether they exist is 0.
        for kind in [99, 129, -1, 0] {
            assert_eq!(exist(&mut client, kind), Ok(vec![V::Int(0)]), "{kind}");
            let set = client.system(RpcCode::DevSetDevice, vec![V::Device(Device::new(kind, 0))]);
            set.expect_err("no such device");
        }
        client
            .system(RpcCode::DevSetDevice, vec![cpu.clone()])
            .expect("set");
        let made = client.system(RpcCode::DevCreateStream, vec![cpu.clone()]);
        assert_eq!(made, Ok(vec![V::Handle(0)]));
        let now = client.system(RpcCode::DevGetCurrentStream, vec![cpu.clone()]);
        assert_eq!(now, Ok(vec![V::Handle(0)]));
        for code in [
            RpcCode::DevSetStream,
            RpcCode::DevStreamSync,
            RpcCode::DevFreeStream,
        ] {
            let done = client.system(code, vec![cpu.clone(), V::Handle(0)]);
            assert_eq!(done, Ok(vec![V::None]), "{code:?}");
            breaks(
                client.system(code, vec![cpu.clone(), V::Handle(64)]),
                "RPC-85",
            );
        }
        let scoped = vec![V::Tensor(block(0, &[4], 0)), V::None];
        let made = client
            .system(RpcCode::DevAllocDataWithScope, scoped)
            .expect("memory");
        let [V::Handle(data)] = made[..] else {
            panic!("{made:?}")
        };
        assert_eq!(
            client.ask(&copy_from_packet(data, &[4], 0, 16)),
            Ok(Answer::Content(vec![0; 16]))
        );
    }
}

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
        let Ok(Answer::Values(values)) = made else {
            panic!("{made:?}")
        };
        let [V::Handle(token)] = values[..] else {
            panic!("{values:?}")
        };
        block.data = token;
        let whole = Packet::CopyFromRemote(CopyTarget::Block(block.clone()), nbytes);
        let zeros = vec![0; nbytes as usize];
        assert_eq!(client.ask(&whole), Ok(Answer::Content(zeros)), "{release}");
        let beyond = Packet::CopyFromRemote(CopyTarget::Block(block.clone()), nbytes + 1);
        assert!(client.ask(&beyond).is_err(), "{release}");
        // Texture memory has no such elements.
        let scoped = vec![V::Tensor(block), V::Str(Cow::Borrowed(b"global.texture"))];
        let scoped = Packet::SystemCall(RpcCode::DevAllocDataWithScope, scoped);
        assert!(client.ask(&scoped).is_err(), "{release}");
    }
}
