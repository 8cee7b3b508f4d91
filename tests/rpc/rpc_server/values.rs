//! Values in a session: encodings, objects and tensors.

use super::{Answer, Client, FLOAT, RELEASES, breaks, copy_from_packet, copy_to_packet};
use tvmspec::release::Release;
use tvmspec::rpc::server::SessionEnd;
use tvmspec::rpc::{PackedValue as V, RpcCode};
use tvmspec::tensor::{Device, Dtype};

#[test]
fn rpc_84_a_client_of_any_release_is_understood_without_a_word_about_it() {
    for release in [7].into_iter().chain(RELEASES) {
        let mut client = Client::begin_session(release);
        let result = client.call("rpc.test.addone", vec![V::Int(41)]);
        let of_int = if release < 21 { 0 } else { 1 };
        assert_eq!(result, Ok(vec![V::Int(of_int), V::Int(42)]), "{release}");
        let report = client.end();
        assert!(matches!(report.end, SessionEnd::Shutdown), "{}", report.end);
        assert_eq!(report.requests, 3);
        let found = match release {
            7 => 7,
            8..21 => 20,
            _ => 27,
        };
        assert_eq!(report.release, Some(Release::of(found)));
    }
}

#[test]
fn rpc_84_what_shows_no_encoding_is_answered_so_that_both_read_it() {
    for release in [8, 27] {
        let mut client = Client::begin_session(release);
        let answer = client.system(RpcCode::DevSetDevice, vec![V::Device(Device::CPU)]);
        assert_eq!(answer, Ok(vec![V::Device(Device::CPU)]));
        client
            .call("rpc.test.addone", vec![V::Int(1)])
            .expect("a number");
        let answer = client.system(RpcCode::DevSetDevice, vec![V::Device(Device::CPU)]);
        assert_eq!(answer, Ok(vec![V::None]));
    }
}

#[test]
fn rpc_88_every_value_comes_back_with_its_type() {
    // The echoed value, and its type up to 0.20 and from 0.21 on.
    let values: [(V<'static>, i64, i64); 8] = [
        (V::None, 4, 0),
        (V::Int(-3), 0, 1),
        (V::Float(2.5), 2, 3),
        (V::Dtype(Dtype::UINT8, 0), 5, 5),
        (V::Device(Device::new(1, 0)), 6, 6),
        (V::Str("a longer text".as_bytes().into()), 11, 65),
        (
            V::Bytes((&[0_u8, 1, 2, 3, 4, 5, 6, 7, 8][..]).into()),
            12,
            66,
        ),
        // A null pointer stays a pointer.
        (V::Handle(0), 3, 4),
    ];
    for release in RELEASES {
        let mut client = Client::with(release, |options| {
            options.release = Some(Release::of(release))
        });
        for (value, old, new) in &values {
            let result = client.call("rpc_server.echo", vec![value.clone()]);
            let tag = if release < 21 { *old } else { *new };
            assert_eq!(
                result,
                Ok(vec![V::Int(tag), value.clone()]),
                "{release} {value:?}"
            );
        }
        let bools = client.call("rpc_server.make", vec![V::Int(4)]);
        let expected = match release {
            ..18 => vec![V::Int(0), V::Int(1)],
            18..21 => vec![V::Int(15), V::Bool(1)],
            _ => vec![V::Int(2), V::Bool(1)],
        };
        assert_eq!(bools, Ok(expected), "{release}");
        // RPC-44: a string ends at its first NUL.
        let text = client
            .call("rpc_server.make", vec![V::Int(3)])
            .expect("a string");
        assert_eq!(text[1], V::Str("a".as_bytes().into()));
    }
}

#[test]
fn rpc_88_objects_stay_and_a_handle_goes() {
    for release in RELEASES {
        let mut client = Client::with(release, |options| {
            options.release = Some(Release::of(release))
        });
        let function = client
            .call("rpc_server.make", vec![V::Int(1)])
            .expect("a function");
        let [V::Int(tag), V::Handle(double)] = function[..] else {
            panic!("{function:?}")
        };
        assert_eq!(tag, if release < 21 { 10 } else { 68 });
        let result = client
            .call_handle(double, vec![V::Int(21)])
            .expect("a number");
        assert_eq!(result[1], V::Int(42));
        // A function is also an argument, and is returned with another handle of the same function.
        let again = client
            .call("rpc_server.echo", vec![V::Function(double)])
            .expect("a function");
        assert_eq!(again[0], V::Int(tag));

        let array = client.call("rpc_server.make", vec![V::Int(2)]);
        match release {
            ..16 => breaks(array, "RPC-88"),
            _ => {
                let array = array.expect("an object");
                let expected = match release {
                    ..21 => 8,
                    21 => 69,
                    _ => 71,
                };
                assert_eq!(array[0], V::Int(expected), "{release}");
            }
        }
        client.free_handle(double, 10).expect("freed");
        breaks(client.call_handle(double, vec![V::Int(1)]), "RPC-85");
        breaks(client.free_handle(double, 10), "RPC-85");
        assert_eq!(client.free_handle(0, 10), Ok(vec![V::None]));
    }
}

#[test]
fn rpc_88_a_tensor_is_a_block_and_a_handle() {
    for release in RELEASES {
        let mut client = Client::with(release, |options| {
            options.release = Some(Release::of(release))
        });
        let made = client
            .call("rpc_server.make", vec![V::Int(0)])
            .expect("a tensor");
        let [V::Int(tag), V::Tensor(tensor), V::Handle(token)] = &made[..] else {
            panic!("{made:?}")
        };
        let expected = match release {
            ..21 => 13,
            21 => 72,
            _ => 70,
        };
        assert_eq!(*tag, expected);
        assert_eq!((tensor.shape.as_slice(), tensor.dtype), (&[3][..], FLOAT));
        let written = client.ask(&copy_to_packet(tensor.data, &[3], 0, &[7; 12]));
        assert_eq!(written, Ok(Answer::Values(vec![V::None])));
        assert_eq!(
            client.ask(&copy_from_packet(tensor.data, &[3], 4, 8)),
            Ok(Answer::Content(vec![7; 8]))
        );
        // The client cannot free it as memory.
        let free = vec![V::Device(Device::CPU), V::Handle(tensor.data)];
        breaks(client.system(RpcCode::DevFreeData, free), "RPC-86");
        // Clients of 0.21 to 0.23 free it by the handle of its data.
        let by = if matches!(release, 21..24) {
            tensor.data
        } else {
            *token
        };
        client.free_handle(by, 13).expect("freed");
        breaks(
            client.ask(&copy_from_packet(tensor.data, &[3], 0, 12)),
            "RPC-86",
        );
        breaks(client.free_handle(*token, 13), "RPC-85");
    }
}
