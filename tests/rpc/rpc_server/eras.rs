//! Detection of the release whose rules a client follows, from its first packet (RPC-84).

use std::io::Write as _;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use tvmspec::release::Release;
use tvmspec::rpc::server::{ServerOptions, serve};
use tvmspec::rpc::{
    CopyTarget, Hello, PackedValue as V, Packet, Protocol, RpcCode, Speaker, TensorBlock,
};
use tvmspec::tensor::{Device, Dtype};
use tvmspec::wire::Writer;

/// One release for each way to encode a packet.
const FFI: Release = Release::of(27);
const LEGACY: Release = Release::of(20);
const FIRST: Release = Release::of(7);

/// Returns the release that a server detects from a hello and these bytes.
fn found_in(bytes: &[u8]) -> Option<Release> {
    let mut out = Writer::new();
    let hello = Hello {
        key: "client:".into(),
    };
    hello.write(&mut out).expect("a hello");
    let (mut own, other) = UnixStream::pair().expect("a pair");
    own.write_all(&out.into_bytes()).expect("written");
    own.write_all(bytes).expect("written");
    own.shutdown(Shutdown::Write).expect("connected");
    serve(other, &ServerOptions::new("/nowhere")).release
}

/// Returns the release that is detected from one packet of a client of `release`.
fn found(packet: &Packet<'_>, release: Release) -> Option<Release> {
    let mut out = Writer::new();
    let spoken = Protocol::new(release, Speaker::Client);
    packet.write(&spoken, &mut out).expect("a packet");
    found_in(&out.into_bytes())
}

/// Returns devices as clients have them: all types, with several numbers.
fn devices() -> impl Iterator<Item = Device> {
    let kinds = (1..=17).chain(32..=36);
    kinds.flat_map(|kind| (0..20).map(move |id| Device { kind, id }))
}

#[test]
fn rpc_84_a_request_is_never_taken_for_one_of_the_other_encoding() {
    let attributes = (0..20).map(V::Int);
    let handles = [V::Handle(0), V::Handle(1), V::Handle(1 << 40)];
    for release in [FFI, LEGACY] {
        for device in devices() {
            let args = attributes.clone().map(|kind| (RpcCode::DevGetAttr, kind));
            let with = |code| handles.iter().map(move |handle| (code, handle.clone()));
            let all = args
                .chain(with(RpcCode::DevStreamSync))
                .chain(with(RpcCode::DevFreeData));
            for (code, second) in all {
                let args = vec![V::Device(device), second];
                let found = found(&Packet::SystemCall(code, args.clone()), release);
                // Two kinds of requests are valid in both encodings, and do not show the era. In FFI they name a device of two rare types
                // with a number above 0. In the older encoding they name the fifth device of any type. Both are read as FFI.
                let open = match release {
                    FFI => device.id > 0 && matches!(device.kind, 3 | 15),
                    _ => device.id == 4 && code != RpcCode::DevGetAttr,
                };
                let right = found == Some(release) || (open && found.is_none());
                assert!(right, "{code:?} {args:?} of {release}: {found:?}");
            }
        }
    }
}

#[test]
fn rpc_84_what_shows_the_encoding() {
    let block = TensorBlock {
        data: 0,
        device: Device::CPU,
        dtype: Dtype::UINT8,
        shape: vec![2, 3],
        byte_offset: 0,
    };
    let text = |text: &'static str| V::Str(text.as_bytes().into());
    let cpu = V::Device(Device::CPU);
    let init = |args| Packet::InitServer(b"0.8.0".into(), args);
    for release in [FFI, LEGACY] {
        let name = |length: usize| V::Str(vec![b'a'; length].into());
        let names =
            (0..40).map(|length| Packet::SystemCall(RpcCode::GetGlobalFunc, vec![name(length)]));
        let dtype = V::Dtype(Dtype::UINT8, 0);
        let alloc = vec![cpu.clone(), V::Int(64), V::Int(64), dtype.clone()];
        let scoped = |scope| {
            let args = vec![V::Tensor(block.clone()), scope];
            Packet::SystemCall(RpcCode::DevAllocDataWithScope, args)
        };
        let shows = [
            Packet::SystemCall(RpcCode::DevAllocData, alloc),
            scoped(V::None),
            scoped(text("global")),
            init(vec![text("rpc.LocalSession")]),
            init(vec![V::Int(1)]),
            init(vec![text("rpc.Connect"), text("a"), V::Int(9090), text("")]),
            Packet::CallFunc(1, vec![V::Int(-1)]),
            Packet::CallFunc(1, vec![V::None]),
        ];
        for packet in names.chain(shows) {
            assert_eq!(found(&packet, release), Some(release), "{packet:?}");
        }
        let is_the_same = [
            Packet::KeepAlive,
            Packet::Shutdown,
            init(Vec::new()),
            Packet::CallFunc(1, Vec::new()),
            Packet::CallFunc(1, vec![dtype]),
            Packet::SystemCall(RpcCode::DevSetDevice, vec![cpu.clone()]),
            Packet::SystemCall(RpcCode::DevCreateStream, vec![cpu.clone()]),
            Packet::SystemCall(RpcCode::DevGetCurrentStream, vec![cpu.clone()]),
            Packet::CopyToRemote(CopyTarget::Block(block.clone()), b"ab".into()),
            Packet::CopyFromRemote(CopyTarget::Block(block.clone()), 2),
        ];
        for packet in is_the_same {
            assert_eq!(found(&packet, release), None, "{packet:?}");
        }
    }
    // A request with a wrong number of arguments, which only one encoding can read.
    let mut bytes = vec![12, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0];
    bytes.extend([1, 0, 0, 0, 4, 0, 0, 0]);
    assert_eq!(found_in(&bytes), Some(LEGACY));
    let first = Packet::InitServer(b"0.7.0".into(), Vec::new());
    assert_eq!(found(&first, FIRST), Some(FIRST));
}
