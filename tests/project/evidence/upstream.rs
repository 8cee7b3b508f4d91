//! Bare clones of upstream, each read by one `git cat-file`.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A bare clone, with the files that were read.
pub(crate) struct BareClone {
    path: PathBuf,
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    files: HashMap<String, Option<Vec<u8>>>,
}

impl BareClone {
    pub(crate) fn open(path: &Path) -> BareClone {
        let mut process = git(path)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("git runs");
        let requests = process.stdin.take().expect("piped");
        let answers = BufReader::new(process.stdout.take().expect("piped"));
        BareClone {
            path: path.to_owned(),
            process,
            requests,
            answers,
            files: HashMap::new(),
        }
    }

    /// Returns whether `path` at `tag` has `text`, or exists if `text` is empty. A path that ends with `/` stands for every file below
    /// it.
    pub(crate) fn has(&mut self, tag: &str, path: &str, text: &str) -> bool {
        let folder = path.trim_end_matches('/');
        match self.read(tag, folder) {
            Some(_) if text.is_empty() => true,
            Some(_) if folder != path => self.has_below(tag, path, text),
            Some(bytes) => contains(bytes, text),
            None => false,
        }
    }

    /// Returns whether `path` at `tag` lacks `text`. A missing file proves nothing, because it may have moved. Therefore the folder
    /// that would contain it is searched.
    pub(crate) fn lacks(&mut self, tag: &str, path: &str, text: &str) -> bool {
        let mut folder = path.trim_end_matches('/');
        if text.is_empty() || self.read(tag, folder).is_some() {
            return !self.has(tag, path, text);
        }
        while let Some((above, _)) = folder.rsplit_once('/') {
            folder = above;
            if self.read(tag, folder).is_some() {
                return !self.has_below(tag, &format!("{folder}/"), text);
            }
        }
        true
    }

    fn has_below(&mut self, tag: &str, path: &str, text: &str) -> bool {
        // `git grep` reads a tree faster than one file after another, but treats each line of a text as a separate pattern.
        if !text.contains('\n') {
            let tree = commit(tag);
            let found = git(&self.path)
                .args(["grep", "--quiet", "--text", "--fixed-strings", "-e", text])
                .args([tree.as_str(), "--", path])
                .status();
            return found.expect("git runs").success();
        }
        let listing = git(&self.path)
            .args(["ls-tree", "-r", "--name-only", &commit(tag), path])
            .output()
            .expect("git runs");
        let names = String::from_utf8_lossy(&listing.stdout).into_owned();
        names.lines().any(|name| {
            let bytes = self.read(tag, name);
            bytes.is_some_and(|bytes| contains(bytes, text))
        })
    }

    /// Returns the bytes of a file, or of a folder's listing.
    fn read(&mut self, tag: &str, path: &str) -> Option<&[u8]> {
        let name = format!("{}:{path}", commit(tag));
        if !self.files.contains_key(&name) {
            let bytes = self.request(&name);
            self.files.insert(name.clone(), bytes);
        }
        self.files[&name].as_deref()
    }

    fn request(&mut self, name: &str) -> Option<Vec<u8>> {
        writeln!(self.requests, "{name}").expect("git listens");
        let mut head = String::new();
        self.answers.read_line(&mut head).expect("git answers");
        let size = head
            .trim_end()
            .rsplit(' ')
            .next()
            .and_then(|size| size.parse().ok());
        let size: usize = size.filter(|_| !head.ends_with("missing\n"))?;
        // The content, followed by a line feed.
        let mut bytes = vec![0; size + 1];
        self.answers.read_exact(&mut bytes).expect("git answers");
        bytes.pop();
        Some(bytes)
    }
}

impl Drop for BareClone {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn git(path: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("--git-dir").arg(path);
    git
}

/// Returns the name of a commit. A tag is given in full, because branches may have the same name. Anything else is a commit.
fn commit(tag: &str) -> String {
    match tag.strip_prefix('v') {
        Some(_) => format!("refs/tags/{tag}"),
        None => tag.to_owned(),
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    let text = text.as_bytes();
    let first = text.first().copied();
    bytes
        .iter()
        .enumerate()
        .any(|(at, &byte)| Some(byte) == first && bytes[at..].starts_with(text))
}
