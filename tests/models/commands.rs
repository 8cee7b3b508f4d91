//! Commands and their input files.
#![cfg(feature = "cli")]

use std::process::{Command, Output};

pub(crate) fn tvmspec(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tvmspec"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args(args).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Creates an `.npy` file whose element type is numpy's `word`.
pub(crate) fn npy(word: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{word}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}
