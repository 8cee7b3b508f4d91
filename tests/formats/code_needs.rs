//! The requirements that device code states for a device.

use tvmspec::payload::{self, CodeNeed};
use tvmspec::release::Layout;
use tvmspec::rule::Findings;
use tvmspec::wire::{Cursor, Writer};

/// Returns the needs of a module of `kind` with this code, as `name: value`.
fn needs(kind: &str, code: &[u8]) -> Vec<String> {
    let mut out = Writer::new();
    match kind {
        "webgpu" | "metal" | "vulkan" => {}
        _ => out.str("any"),
    }
    if kind == "metal" {
        out.str("metallib");
    }
    if kind == "vulkan" {
        out.str("vulkan");
    }
    out.count(0);
    match kind {
        "webgpu" | "metal" => {
            out.count(1);
            out.str("k");
            out.bytes(code);
        }
        "vulkan" => {
            out.count(1);
            out.str("k");
            out.count(code.len() + 12);
            out.u32(0);
            out.count(code.len() / 4);
            out.raw(code);
        }
        _ => out.bytes(code),
    }
    let bytes = out.into_bytes();
    let mut cursor = Cursor::new(&bytes);
    let payload =
        payload::read(kind, Layout::V0_22, &mut cursor, &mut Findings::default()).unwrap();
    let needs = payload.code_needs();
    let named = |need: &CodeNeed| format!("{}: {}", need.name(), need.value());
    needs.iter().map(named).collect()
}

/// Creates the header of an ELF file for `machine`.
fn elf(machine: u16, abi_version: u8, flags: u32) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[8] = abi_version;
    header[18..20].copy_from_slice(&machine.to_le_bytes());
    header[48..52].copy_from_slice(&flags.to_le_bytes());
    header
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn code_states_what_it_needs() {
    let ptx = b"//\n.version 8.7\n.target sm_90a, debug\n.address_size 64\n.target sm_10";
    assert_eq!(
        needs("cuda", ptx),
        ["PTX version: 8.7", "PTX target: sm_90a"]
    );
    // The flags of a real cubin for an H100, and flags at the place where CUDA 13 stores the architecture.
    assert_eq!(
        needs("cuda", &elf(190, 7, 0x5a_0d5a)),
        ["CUDA architecture: sm_90a"]
    );
    assert_eq!(
        needs("cuda", &elf(190, 7, 0x50_0550)),
        ["CUDA architecture: sm_80"]
    );
    assert_eq!(
        needs("cuda", &elf(190, 8, 0x0600_6402)),
        ["CUDA architecture: sm_100"]
    );
    assert_eq!(needs("hip", &elf(224, 3, 0x53f)), ["AMD processor: gfx90a"]);
    assert_eq!(
        needs("hip", &elf(224, 3, 0xfe)),
        ["AMD processor: number 0xfe"]
    );
    let shader = words(&[
        0x0723_0203,
        0x0001_0300,
        0,
        9,
        0,
        0x2_0011,
        1,
        0x2_0011,
        9,
        0x3_000e,
        0,
        1,
    ]);
    assert_eq!(
        needs("vulkan", &shader),
        ["SPIR-V version: 1.3", "SPIR-V capability: Float16"]
    );
    let cl = b"#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n__kernel void k() {}";
    assert_eq!(needs("opencl", cl), ["OpenCL extension: cl_khr_fp16"]);
    let wgsl = b"enable f16, subgroups;\nfn k() {}";
    assert_eq!(
        needs("webgpu", wgsl),
        ["WGSL feature: f16", "WGSL feature: subgroups"]
    );
    let metal = b"MTLB....TYPE\x01\x00\x02VERS\x08\x00\x02\x00\x06\x00\x03\x00\x01\x00ENDT";
    assert_eq!(needs("metal", metal), ["Metal language: 3.1"]);
}

#[test]
fn code_that_is_none_states_nothing() {
    for kind in ["cuda", "hip", "opencl", "metal", "webgpu", "vulkan"] {
        assert!(needs(kind, &[0; 16]).is_empty(), "{kind}");
        assert!(needs(kind, b"").is_empty(), "{kind}");
    }
    // A fatbin whose image has an empty header.
    let mut fatbin = words(&[0xba55_ed50, 0x0010_0001, 32, 0]);
    fatbin.extend(words(&[2, 0, 0, 0, 0, 0, 0, 90]));
    assert_eq!(needs("cuda", &fatbin), ["CUDA architecture: sm_90"]);
}
