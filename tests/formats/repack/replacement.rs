//! Whole libraries with one part replaced.

use super::{folder, root, succeed, tvmspec};
use crate::support::skip::skipped;
use std::process::Command;
use tvmspec::blob::{container, pack};

/// Changes a payload of a whole library by hand and keeps everything else, as `unpack --whole` and `pack` are meant to be used.
#[test]
fn a_payload_of_a_whole_library_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let library = root().join("golden/blob/containers/tree3-0.8.so");
    let parts = folder.path().join("parts");
    succeed(
        &tvmspec(
            &["unpack", "--whole", "PATH", "-o", "PATH"],
            &[&library, &parts],
        ),
        "unpack",
    );
    let payload = parts.join("2.opencl");
    let mut code = std::fs::read(&payload).unwrap();
    // The code is the last string of the payload. Its length is the word before it.
    let text = b"// Function: ";
    let start = code.windows(text.len()).position(|at| at == text).unwrap();
    let more = b"// tuned by hand\n".repeat(400);
    code.extend_from_slice(&more);
    let length = (code.len() - start) as u64;
    code[start - 8..start].copy_from_slice(&length.to_le_bytes());
    std::fs::write(&payload, &code).unwrap();
    let made = folder.path().join("tuned.so");
    let manifest = parts.join("manifest.json");
    succeed(
        &tvmspec(&["pack", "PATH", "-o", "PATH"], &[&manifest, &made]),
        "pack",
    );
    let (old, new) = (
        std::fs::read(&library).unwrap(),
        std::fs::read(&made).unwrap(),
    );
    let tuned = &tvmspec::blob::open(&new).unwrap()[0];
    assert_eq!(tuned.modules()[2].payload(), Some(&*code));
    assert_eq!(
        tuned.functions,
        tvmspec::blob::open(&old).unwrap()[0].functions
    );
    // The host code, between the headers and the symbol tables, has the same bytes.
    assert_eq!(old[0x1000..0x2600], new[0x1000..0x2600]);

    // A layout with another symbol has no place in it.
    let output = tvmspec(
        &[
            "convert", "--whole", "PATH", "--layout", "0.22", "-o", "PATH",
        ],
        &[&library, &made],
    );
    let reply = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && reply.contains("link it anew"),
        "{reply}"
    );
}

/// `strip` moves parts without an address and keeps the targets of symbols. A library that was changed twice must survive it.
#[test]
fn a_replaced_library_survives_strip() {
    if Command::new("strip").arg("--version").output().is_err() {
        skipped("there is no strip");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let blob = |letter: u8, count: usize| {
        let mut blob = (count as u64).to_le_bytes().to_vec();
        blob.resize(count + 8, letter);
        blob
    };
    let mut libraries = 0;
    for path in folder::files(&root().join("golden")) {
        let old = std::fs::read(&path).unwrap();
        // Only libraries for this machine, because the tools of others may be missing. 64-bit ELF for x86-64 has type 3 and machine 62.
        let is_library =
            old.starts_with(b"\x7fELF\x02\x01") && old.get(16..20) == Some(b"\x03\0\x3e\0");
        let blobs = container::open(&old).map_or(0, |file| file.blobs().count());
        if !is_library || blobs != 1 || !cfg!(target_arch = "x86_64") {
            continue;
        }
        let what = path.display().to_string();
        let once = pack::replace(&old, 0, &blob(1, 100_000)).expect(&what);
        let twice = pack::replace(&once, 0, &blob(2, 7)).expect(&what);
        let made = folder.path().join("made.so");
        std::fs::write(&made, &twice).unwrap();
        let stripped = Command::new("strip").arg(&made).output().unwrap();
        succeed(&stripped, &what);
        let left = std::fs::read(&made).unwrap();
        let file = container::open(&left).expect(&what);
        let found: Vec<&[u8]> = file.blobs().map(|(_, found)| &*found.bytes).collect();
        assert_eq!(found, [blob(2, 7)], "{what}");
        let functions = |bytes: &[u8]| -> Vec<String> {
            let file = container::open(bytes).unwrap();
            let names = file
                .parts
                .iter()
                .flat_map(container::ContainerPart::functions);
            names.map(str::to_owned).collect()
        };
        assert_eq!(functions(&left), functions(&old), "{what}");
        libraries += 1;
    }
    assert!(
        libraries > 5 || !cfg!(target_arch = "x86_64"),
        "{libraries}"
    );
}

/// In C text only the numbers and their count change, in the style of the release. All other lines stay.
#[test]
fn c_text_keeps_its_host_code_and_its_look() {
    let elements = |line: &&str| line.starts_with("  0x");
    let mut texts = 0;
    for name in [
        "c_opencl-0.6.devc.c",
        "c_opencl_metal-0.6.devc.c",
        "dev_opencl-0.8.devc.c",
        "dev_opencl_syslib-0.8.devc.c",
        "host_opencl-0.21.devc.c",
        "cuda-0.27.devc.c",
        "syslib_prefix-0.27.devc.c",
    ] {
        let path = root().join("golden/blob/containers").join(name);
        let old = std::fs::read_to_string(&path).unwrap();
        let file = container::open(old.as_bytes()).unwrap();
        let (_, found) = file.blobs().next().expect(name);
        // 33 bytes: a row of twenty, and an incomplete row.
        let blob: Vec<u8> = (0..33).collect();
        let new = pack::replace(old.as_bytes(), 0, &blob).expect(name);
        let again = container::open(&new).unwrap();
        assert_eq!(again.blobs().next().expect(name).1.bytes, blob, "{name}");
        let new = String::from_utf8(new).unwrap();
        let length = format!("[{}]", found.bytes.len());
        let rest = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !elements(line));
            lines.map(|line| line.replace(&length, "[33]")).collect()
        };
        assert_eq!(rest(&old), rest(&new), "{name}");
        let rows: Vec<&str> = new.lines().filter(elements).collect();
        let own = old.lines().find(elements).unwrap();
        // BLOB-59: the two styles, as the release itself wrote: 0x0 or 0x00.
        let padded = own
            .split(',')
            .all(|number| number.trim().is_empty() || number.trim().len() == 4);
        let first = if padded { "  0x00,0x01," } else { "  0x0,0x1," };
        let last = if padded { "0x1f,0x20," } else { "0x1f,0x20" };
        assert!(
            rows[0].starts_with(first) && rows[1].ends_with(last),
            "{name}: {rows:?}"
        );
        // With the original library binary, the text equals that of the release again, byte for byte.
        let back = pack::replace(new.as_bytes(), 0, &found.bytes).expect(name);
        assert!(back == old.as_bytes(), "{name}");
        texts += 1;
    }
    assert_eq!(texts, 7);
}

/// Options without effect on a whole library must be rejected, and so must a file name of another form.
#[test]
fn a_whole_library_takes_no_option_of_linking() {
    let folder = tempfile::tempdir().unwrap();
    let library = root().join("golden/blob/containers/tree3-0.8.so");
    let parts = folder.path().join("parts");
    let unpack = ["unpack", "--whole", "PATH", "-o", "PATH"];
    succeed(&tvmspec(&unpack, &[&library, &parts]), "unpack");
    let manifest = parts.join("manifest.json");
    for (name, option, why) in [
        ("new.c", "", "stays what it is"),
        ("new.bin", "", "stays what it is"),
        ("new.xyz", "", "stays what it is"),
        (
            "new.so",
            "--target=x86_64-linux-gnu",
            "--target has no effect",
        ),
        ("new.so", "--with=host.o", "--with has no effect"),
        ("new.so", "--system-lib=foo", "--system-lib has no effect"),
        ("new.so", "--cc=foo", "--cc has no effect"),
        ("new.so", "--option=-g", "--option has no effect"),
        ("new.so", "--workspace=foo", "--workspace has no effect"),
        ("new.so", "--release=0.8", "--release has no effect"),
        ("new.so", "--layout=0.21", "link it anew"),
    ] {
        let made = folder.path().join(name);
        let mut args = vec!["pack", "PATH", "-o", "PATH"];
        args.extend(Some(option).filter(|option| !option.is_empty()));
        let output = tvmspec(&args, &[&manifest, &made]);
        let reply = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name} {option}: {reply}");
        assert!(reply.contains(why), "{name} {option}: {reply}");
        assert!(!made.exists(), "{name} {option}");
    }
    let made = folder.path().join("new.so");
    succeed(
        &tvmspec(&["pack", "PATH", "-o", "PATH"], &[&manifest, &made]),
        "pack",
    );
    assert!(std::fs::read(&library).unwrap() == std::fs::read(&made).unwrap());
}
