//! Files that change while they are read, manifests that name many files, and JSON with a repeated member.

#[cfg(all(feature = "cli", unix))]
mod commands {
    use std::fs::{self, File};
    use std::io::Read;
    use std::path::Path;
    use std::process::{Command, Output, Stdio};

    fn tvmspec() -> Command {
        Command::new(env!("CARGO_BIN_EXE_tvmspec"))
    }

    #[test]
    fn a_file_that_becomes_shorter_ends_the_command_with_a_message() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let mut client = include_bytes!("../../golden/rpc/full-0.27.client.bin").to_vec();
        // Keep-alives replace Shutdown. Their text is longer than the buffer of a pipe, so that the command blocks.
        client.truncate(client.len() - 12);
        client.resize(client.len() + 8 * 100_000, 0);
        fs::write(place("client.bin"), client).unwrap();
        let server = include_bytes!("../../golden/rpc/full-0.27.server.bin");
        fs::write(place("server.bin"), server).unwrap();
        let mut child = tvmspec()
            .arg("rpc-decode")
            .args([place("client.bin"), place("server.bin")])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut [0; 100]).unwrap();
        let file = File::options().write(true).open(place("client.bin"));
        file.unwrap().set_len(0).unwrap();
        out.read_to_end(&mut Vec::new()).unwrap();
        let ended = child.wait_with_output().unwrap();
        let message = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{message}");
        assert!(message.contains("client.bin: it became shorter while it was read"));
    }

    /// Packs the manifest `text`, next to the file `payload`.
    fn packed(folder: &Path, text: &str) -> Output {
        let manifest = folder.join("manifest.json");
        fs::write(&manifest, text).unwrap();
        let mut pack = tvmspec();
        pack.arg("pack").arg(&manifest).arg("-o");
        pack.arg(folder.join("made.bin")).output().unwrap()
    }

    #[test]
    fn a_manifest_makes_no_more_than_its_files_justify() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("payload"), vec![0; 1 << 20]).unwrap();
        let repeated = |count: usize| {
            // Other names of the same file count as repetitions.
            let module =
                |at: usize| format!(r#"{{"kind":"k","file":"{}payload"}}"#, "./".repeat(at));
            let modules: Vec<String> = (0..count).map(module).collect();
            let modules = modules.join(",");
            format!(
                r#"{{"layout":"0.22","order":"topological","modules":[{{"kind":"_lib"}},{modules}]}}"#
            )
        };
        // The limit is four times the file, plus 4 MiB.
        let allowed = packed(folder.path(), &repeated(8));
        let message = String::from_utf8(allowed.stderr).unwrap();
        assert!(!message.contains("repeats files"), "{message}");
        let rejected = packed(folder.path(), &repeated(9));
        let message = String::from_utf8(rejected.stderr).unwrap();
        assert_eq!(rejected.status.code(), Some(2), "{message}");
        assert!(message.contains("the manifest repeats files"), "{message}");

        let twice = packed(
            folder.path(),
            r#"{"layout":"0.22","layout":"0.7","modules":[]}"#,
        );
        let message = String::from_utf8(twice.stderr).unwrap();
        assert_eq!(twice.status.code(), Some(2), "{message}");
        assert!(message.contains("a table has `layout` twice"), "{message}");

        let manifest = folder.path().join("sparse.json");
        File::create(&manifest).unwrap().set_len(1 << 36).unwrap();
        let mut pack = tvmspec();
        let pack = pack.arg("pack").arg(&manifest).args(["-o", "made.bin"]);
        let sparse = pack.current_dir(folder.path()).output().unwrap();
        let message = String::from_utf8(sparse.stderr).unwrap();
        assert_eq!(sparse.status.code(), Some(2), "{message}");
        assert!(
            message.contains("a manifest has at most 1048576"),
            "{message}"
        );
    }
}

mod repeated_members {
    use tvmspec::object::json_graph::ffi;
    use tvmspec::payload::file::SideFile;
    use tvmspec::rule::{Findings, Kind};

    /// Returns rule, kind and offset of each finding.
    fn noted(findings: &Findings) -> Vec<(&'static str, Kind, u64)> {
        let findings = findings.as_slice().iter();
        findings
            .map(|finding| (finding.rule.id(), finding.kind, finding.offset))
            .collect()
    }

    #[test]
    fn of_saved_objects_are_findings_and_the_last_one_counts() {
        // The first root is not a node, the second one is.
        let text = br#"{"root_index":9,"nodes":[{"type":"int","data":1,"data":5}],"root_index":0}"#;
        let mut findings = Findings::default();
        ffi::check(text, &mut findings).unwrap();
        let wanted = [
            ("OBJ-28", Kind::Duplicate, 48),
            ("OBJ-28", Kind::Duplicate, 59),
        ];
        assert_eq!(noted(&findings), wanted);
        let last = br#"{"root_index":0,"nodes":[{"type":"int","data":1}],"root_index":9}"#;
        let fault = ffi::check(last, &mut Findings::default()).unwrap_err();
        assert_eq!(fault.index, Some(9));
    }

    #[test]
    fn of_side_files_are_findings() {
        let text = br#"{"tvm_version":"0.1.0","func_info":{},"func_info":{}}"#;
        let mut findings = Findings::default();
        SideFile::read(text, &mut findings).unwrap();
        assert_eq!(noted(&findings), [("PAY-25", Kind::Duplicate, 0)]);
    }
}
