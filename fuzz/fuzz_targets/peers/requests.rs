//! Requests of a client, most of them correct.

use super::{Choices, bytes_of};
use std::borrow::Cow;
use tvmspec::release::Release;
use tvmspec::rpc::{CopyTarget, PackedValue as V, Packet, RpcCode, Speaker, TensorBlock};
use tvmspec::tensor::{Device, Dtype};

pub const EVALUATOR: &str = "runtime.RPCTimeEvaluator";

/// The functions of every server, except the slow time evaluator.
const NAMES: [&str; 21] = [
    "rpc.test.addone",
    "rpc.test.add_to_lhs",
    "rpc.test.strcat",
    "rpc.test.runtime_str_concat",
    "rpc.test.remote_return_nd",
    "rpc.test.remote_array_func",
    "rpc.test.except",
    "testing.echo",
    "testing.test_raise_error",
    "testing.test_raise_error_callback",
    "ffi.Shape",
    "rpc.testing.GetShapeSize",
    "rpc.testing.GetShapeElem",
    "tvm.rpc.server.upload",
    "tvm.rpc.server.download",
    "tvm.rpc.server.listdir",
    "tvm.rpc.server.workpath",
    "tvm.rpc.server.load_module",
    "tvm.rpc.server.ImportModule",
    "tvm.rpc.server.ModuleGetFunction",
    "no such function",
];

/// The maker of one request.
pub struct Maker<'a> {
    pub choices: &'a mut Choices,
    pub release: Release,
    pub tokens: &'a [u64],
    pub named: &'a mut &'static str,
    pub evaluates: &'a mut bool,
}

impl Maker<'_> {
    pub fn request(&mut self) -> Vec<u8> {
        // A request for an evaluator is not damaged, because its numbers set the running time.
        let exact = *self.evaluates || self.choices.rarely(16);
        let packet = match exact {
            true => self.evaluation(),
            false => self.packet(),
        };
        // A release cannot send packets that it has no form for.
        let bytes = bytes_of(&packet, self.release, Speaker::Client).unwrap_or_default();
        match exact {
            true => bytes,
            false => self.choices.damaged(bytes).0,
        }
    }

    /// Makes three requests in turn: look up the evaluator, wrap a function with it, and measure.
    fn evaluation(&mut self) -> Packet<'static> {
        if !*self.evaluates {
            *self.evaluates = true;
            return lookup(EVALUATOR);
        }
        let last = self.tokens.last().copied().unwrap_or(0);
        if *self.named != EVALUATOR {
            *self.named = EVALUATOR;
            let name = self.choices.one(&["rpc.test.addone", "rpc.test.except", "testing.echo", "none"]);
            let text = |text: &'static str| V::Str(Cow::Borrowed(text.as_bytes()));
            let mut args = vec![V::None, text(name), V::Int(1), V::Int(0)];
            let tail = self.choices.one(&[3, 5, 6, 7, 1]);
            // Calls, repetitions, minimum time, and from 0.9 on the pause length.
            args.extend((0..tail).map(|_| V::Int(self.choices.one(&[0, 1, 2, -1]))));
            args.push(text(self.choices.one(&["", "testing.echo", "none"])));
            return Packet::CallFunc(last, args);
        }
        *self.evaluates = false;
        *self.named = "";
        Packet::CallFunc(last, vec![V::Int(3)])
    }

    fn packet(&mut self) -> Packet<'static> {
        match self.choices.below(20) {
            0 => Packet::KeepAlive,
            1 if self.choices.rarely(4) => Packet::Shutdown,
            1 => init(self.release, self.values()),
            2..6 => {
                *self.named = self.choices.one(&NAMES);
                lookup(self.named)
            }
            6..9 => {
                let last = self.tokens.last().copied().unwrap_or(0);
                Packet::CallFunc(last, self.arguments())
            }
            9..11 => Packet::CallFunc(self.handle(), self.values()),
            11 => {
                let (from, nbytes) = self.target();
                Packet::CopyFromRemote(from, nbytes)
            }
            12 => {
                let (to, nbytes) = self.target();
                let most = usize::try_from(nbytes).unwrap_or(0).min(70_000);
                Packet::CopyToRemote(to, Cow::Owned(vec![9; most]))
            }
            _ => self.system_call(),
        }
    }

    /// Makes arguments for the function last looked up, or any values.
    fn arguments(&mut self) -> Vec<V<'static>> {
        if self.choices.rarely(4) {
            return self.values();
        }
        let text = |choices: &mut Choices| V::Str(Cow::Borrowed(choices.text()));
        match *self.named {
            "rpc.test.strcat" => vec![text(self.choices), V::Int(3)],
            "rpc.test.runtime_str_concat" | "testing.test_raise_error" => vec![text(self.choices), text(self.choices)],
            "rpc.test.remote_return_nd" => {
                let names: [&[u8]; 4] = [b"get_arr", b"ref_count", b"get_elem", b"get_arr_elem"];
                vec![V::Str(Cow::Borrowed(self.choices.one(&names)))]
            }
            "tvm.rpc.server.upload" => {
                let size = self.choices.one(&[0, 1, 1000, 70_000]);
                vec![text(self.choices), V::Bytes(Cow::Owned(vec![7; size]))]
            }
            "tvm.rpc.server.listdir" => vec![],
            "tvm.rpc.server.ImportModule" => vec![V::Module(self.handle()), V::Module(self.handle())],
            "tvm.rpc.server.ModuleGetFunction" => vec![V::Module(self.handle()), text(self.choices), V::Int(1)],
            "ffi.Shape" => (0..self.choices.below(4)).map(|_| V::Int(self.choices.int())).collect(),
            "rpc.testing.GetShapeSize" => vec![self.object()],
            "rpc.testing.GetShapeElem" => vec![self.object(), V::Int(self.choices.int())],
            "rpc.test.remote_array_func" => vec![V::Tensor(self.block())],
            "testing.echo" => vec![self.value()],
            "rpc.test.addone" | "rpc.test.add_to_lhs" => vec![V::Int(self.choices.int())],
            _ => vec![text(self.choices)],
        }
    }

    fn handle(&mut self) -> u64 {
        match self.choices.below(8) {
            0 => self.choices.word(),
            1 => self.choices.one(&[0, 1, u64::MAX, 0x1000, 0x1010, 1 << 40, 1 << 47]),
            2.. if self.tokens.is_empty() => 0,
            2..4 => self.tokens.last().copied().unwrap_or(0),
            kind => {
                let further = if kind == 7 { self.choices.one(&[1, 16, 64, 4096, u64::MAX]) } else { 0 };
                self.choices.one(self.tokens).wrapping_add(further)
            }
        }
    }

    fn object(&mut self) -> V<'static> {
        let handle = self.handle();
        V::Object(handle, self.choices.one(&[if self.release.minor() < 21 { 8 } else { 115 }, 0, 65, 115]))
    }

    fn device(&mut self) -> Device {
        if !self.choices.rarely(6) {
            return Device::CPU;
        }
        let kind = self.choices.one(&[1, 2, 4, 0, -1, 127, 128, 129, i32::MAX]);
        Device::new(kind, self.choices.one(&[0, 1, -1, i32::MAX]))
    }

    fn dtype(&mut self) -> Dtype {
        match self.choices.rarely(4) {
            false => Dtype::FLOAT32,
            true => Dtype::scalar(self.choices.below(6) as u8, self.choices.one(&[1, 4, 8, 32, 64, 255, 0])),
        }
    }

    fn block(&mut self) -> TensorBlock {
        TensorBlock {
            data: self.handle(),
            device: self.device(),
            dtype: self.dtype(),
            shape: (0..self.choices.below(4)).map(|_| self.choices.int()).collect(),
            byte_offset: match self.release.minor() {
                7 => 0,
                _ => self.choices.one(&[0, 0, 0, 8, u64::MAX]),
            },
        }
    }

    fn target(&mut self) -> (CopyTarget, u64) {
        let block = self.block();
        let nbytes = self.choices.int() as u64;
        match self.release.minor() == 7 || self.choices.rarely(32) {
            true => (CopyTarget::Flat(block.data, self.choices.int() as u64, block.device, block.dtype), nbytes),
            false => (CopyTarget::Block(block), nbytes),
        }
    }

    fn value(&mut self) -> V<'static> {
        match self.choices.below(17) {
            0 => V::None,
            1 | 2 => V::Int(self.choices.int()),
            3 => V::Float(f64::from_bits(self.choices.word())),
            4 => V::Handle(self.handle()),
            5 => V::Dtype(self.dtype(), 0),
            6 => V::Device(self.device()),
            7 | 8 => V::Tensor(self.block()),
            9 => V::Bytes(Cow::Owned(vec![7; self.choices.one(&[0, 1, 7, 8, 1000, 70_000])])),
            10 => V::Module(self.handle()),
            11 => V::Function(self.handle()),
            12 => self.object(),
            13 => V::Bool(self.choices.one(&[0, 1, 2])),
            14 => V::StrObject(Cow::Borrowed(self.choices.text()), self.choices.one(&[65, 11])),
            15 => V::BytesObject(Cow::Borrowed(self.choices.text()), self.choices.one(&[66, 12])),
            _ => V::Str(Cow::Borrowed(self.choices.text())),
        }
    }

    fn values(&mut self) -> Vec<V<'static>> {
        (0..self.choices.below(4)).map(|_| self.value()).collect()
    }

    /// Makes the arguments of a system call, or other values.
    fn system_call(&mut self) -> Packet<'static> {
        let code = self.choices.one(&[
            RpcCode::FreeHandle,
            RpcCode::DevAllocData,
            RpcCode::DevAllocData,
            RpcCode::DevAllocDataWithScope,
            RpcCode::CopyAmongRemote,
            RpcCode::CopyAmongRemote,
            RpcCode::DevFreeData,
            RpcCode::DevGetAttr,
            RpcCode::DevSetDevice,
            RpcCode::DevStreamSync,
            RpcCode::DevCreateStream,
            RpcCode::DevFreeStream,
            RpcCode::DevSetStream,
            RpcCode::DevGetCurrentStream,
        ]);
        if self.choices.rarely(8) {
            return Packet::SystemCall(code, self.values());
        }
        let device = V::Device(self.device());
        let args = match code {
            RpcCode::FreeHandle if self.release.minor() < 21 => {
                vec![V::Handle(self.handle()), V::Int(self.choices.one(&[8, 9, 10, 13, 99]))]
            }
            RpcCode::FreeHandle => vec![V::Handle(self.handle())],
            RpcCode::DevGetAttr => vec![device, V::Int(self.choices.below(20) as i64 - 1)],
            RpcCode::DevAllocData => {
                let alignment = self.choices.one(&[64, 64, 1, 0, 3, -1, 4096]);
                vec![device, V::Int(self.choices.int()), V::Int(alignment), V::Dtype(self.dtype(), 0)]
            }
            RpcCode::CopyAmongRemote if self.release.minor() == 7 => {
                let (from, to) = (V::Handle(self.handle()), V::Handle(self.handle()));
                let (offset, nbytes) = (V::Int(self.choices.int()), V::Int(self.choices.int()));
                let hint = V::Dtype(self.dtype(), 0);
                vec![from, offset.clone(), to, offset, nbytes, device.clone(), device, hint, V::Handle(self.handle())]
            }
            RpcCode::CopyAmongRemote => {
                let stream = if self.choices.rarely(4) { self.handle() } else { 0 };
                let from = self.block();
                let to = TensorBlock { data: self.handle(), ..from.clone() };
                vec![V::Tensor(from), V::Tensor(if self.choices.rarely(4) { self.block() } else { to }), V::Handle(stream)]
            }
            RpcCode::DevAllocDataWithScope => {
                let scope = self.choices.one(&[V::None, V::Str(Cow::Borrowed(b"global")), V::Str(Cow::Borrowed(b"texture"))]);
                vec![V::Tensor(self.block()), scope]
            }
            RpcCode::DevFreeData | RpcCode::DevStreamSync | RpcCode::DevFreeStream | RpcCode::DevSetStream => {
                vec![device, V::Handle(self.handle())]
            }
            _ => vec![device],
        };
        Packet::SystemCall(code, args)
    }
}

pub fn init(release: Release, args: Vec<V<'static>>) -> Packet<'static> {
    let version: &[u8] = if release.minor() == 7 { b"0.7.0" } else { b"0.8.0" };
    Packet::InitServer(Cow::Borrowed(version), args)
}

fn lookup(name: &'static str) -> Packet<'static> {
    Packet::SystemCall(RpcCode::GetGlobalFunc, vec![V::Str(Cow::Borrowed(name.as_bytes()))])
}
