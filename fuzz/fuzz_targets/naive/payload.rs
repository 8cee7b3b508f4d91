//! An independent reader for PAY-02 to PAY-53: the grammar of each kind, in a given form.

use super::{In, Odd, relay, tensor, vm};
use tvmspec::payload::{PayloadForm, kind_info};
use tvmspec::release::Layout;
use tvmspec::tensor::Sizing;

struct Reader<'a, 'o> {
    from: In<'a>,
    kind: &'static str,
    layout: Layout,
    odd: &'o mut Odd,
}

/// Reads a payload at the start of `bytes`, and returns the bytes after it.
pub fn read<'a>(bytes: &'a [u8], kind: &'static str, layout: Layout, form: &str, odd: &mut Odd) -> Option<&'a [u8]> {
    let mut reader = Reader { from: In(bytes), kind, layout, odd };
    reader.payload(form)?;
    Some(reader.from.0)
}

/// Returns the forms of a kind in a layout, newest first. They come from the library's table.
pub fn forms(kind: &str, layout: Layout) -> Vec<(&'static str, &'static str)> {
    let Some(info) = kind_info(kind) else { return Vec::new() };
    let written = layout.releases();
    let overlaps = |form: &&PayloadForm| form.releases.since <= written.until && written.since <= form.releases.until;
    info.forms.iter().filter(overlaps).map(|form| (info.kind, form.name)).collect()
}

/// Reads a payload without a stored length by PAY-09: in the newest form that reads. Returns the bytes after it.
pub fn any<'a>(bytes: &'a [u8], kind: &str, layout: Layout, odd: &mut Odd) -> Option<&'a [u8]> {
    forms(kind, layout).into_iter().find_map(|(kind, form)| {
        let mut found = Odd::new();
        let rest = read(bytes, kind, layout, form, &mut found)?;
        odd.append(&mut found);
        Some(rest)
    })
}

fn is_axis(tag: &str) -> Option<bool> {
    let prefixes = ["blockIdx.", "threadIdx.", "clusterCtaIdx.", "preferredClusterCtaIdx."];
    let axis = prefixes.iter().find_map(|prefix| tag.strip_prefix(prefix))?;
    Some(["x", "y", "z"].contains(&axis))
}

impl<'a> Reader<'a, '_> {
    fn note(&mut self, kept: bool, id: &str) {
        if !kept {
            self.odd.insert(id.into());
        }
    }

    fn text(&mut self) -> Option<&'a str> {
        self.from.text()
    }

    fn texts(&mut self) -> Option<Vec<&'a str>> {
        self.from.vector(|from| from.text())
    }

    fn many<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.from.u64()?;
        if count > self.from.0.len() as u64 {
            return None;
        }
        (0..count).map(|_| one(self)).collect()
    }

    /// Reads a format by PAY-11 and PAY-12.
    fn format(&mut self) -> Option<&'a str> {
        let format = self.text()?;
        if format.is_empty() || !format.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let known: &[&str] = match self.kind {
            "cuda" => &["ptx", "cubin", "fatbin", "cuda", "cu"],
            "opencl" | "sdaccel" | "aocl" => &["cl", "clbin", "xclbin", "awsxclbin", "aocx"],
            "metal" => &["metal", "metallib"],
            "hip" | "hsaco" => &["hsaco", "hip"],
            "hexagon" | "hex" => &["so", "ll", "o", "s", "hexagon"],
            "nki" => &["Trainium", "Trainiumlib"],
            "vulkan" => &["vulkan"],
            "opengl" => &["gl"],
            _ => return Some(format),
        };
        self.note(known.contains(&format), "PAY-12");
        Some(format)
    }

    /// Reads the name of a function or kernel by PAY-59.
    fn name(&mut self) -> Option<&'a str> {
        let name = self.text()?;
        let base = name.split('.').next()?.trim_end().to_ascii_lowercase();
        let port = base.len() == 4 && ["com", "lpt"].iter().any(|kind| base.starts_with(kind)) && base.ends_with(|last: char| last.is_ascii_digit());
        let odd = |letter: char| letter.is_control() || matches!(letter, '/' | '\\' | '<' | '>' | ':' | '"' | '|' | '?' | '*');
        let kept = name.len() <= 255
            && !name.contains(odd)
            && !name.starts_with(' ')
            && !name.ends_with([' ', '.'])
            && !port
            && !matches!(base.as_str(), "aux" | "con" | "nul" | "prn");
        self.note(kept, "PAY-59");
        Some(name)
    }

    /// Reads functions by PAY-02 to PAY-08, and returns their count. If `silent`, the form is one of PAY-09 with empty function names.
    fn functions(&mut self, silent: bool) -> Option<usize> {
        let mut seen = Vec::new();
        let count = self.many(|reader| {
            let (key, mut name) = (reader.name()?, reader.text()?);
            // PAY-54.
            let second = reader.layout >= Layout::V0_22 && name == "__tvm_function_info_v2__";
            if second {
                reader.note(false, "PAY-54");
                name = reader.text()?;
            }
            let again = seen.contains(&key);
            reader.note(!again, "PAY-04");
            seen.push(key);
            if silent && !name.is_empty() {
                return None;
            }
            reader.note(name.is_empty() || name == key, "PAY-07");
            let types = reader.many(|reader| reader.from.take(4))?;
            let arguments = types.len();
            // PAY-58: each entry has a code, bits and lanes.
            let passed = [[0, 32, 1, 0], [0, 64, 1, 0], [1, 32, 1, 0], [2, 32, 1, 0], [2, 64, 1, 0]];
            reader.note(types.iter().all(|of| of[0] == 3 || passed.iter().any(|one| of == one)), "PAY-58");
            for tag in reader.texts()? {
                let rest = tag.strip_prefix("tirx.").or(tag.strip_prefix("tir."));
                let uses = ["use_dyn_shared_memory", "use_programtic_dependent_launch", "use_cooperative_launch"];
                let known = match is_axis(tag) {
                    Some(kept) => kept.then_some(true)?,
                    None => {
                        let thread = ["vthread", "cthread"].iter().any(|thread| tag.starts_with(thread));
                        thread || rest.is_some_and(|rest| uses.contains(&rest)) || tag.starts_with("paramWriteAccess:")
                    }
                };
                reader.note(known, "PAY-06");
            }
            if reader.layout >= Layout::V0_21 {
                let tags = reader.many(|reader| reader.from.i32())?;
                let kept = tags.is_empty() || tags.len() == arguments;
                reader.note(kept && tags.iter().all(|tag| (0..=1).contains(tag)), "PAY-08");
            }
            if second {
                reader.texts()?;
                reader.many(|reader| reader.text().and(reader.from.take(8)))?;
            }
            Some(())
        })?;
        Some(count.len())
    }

    /// Reads shaders by PAY-14 and PAY-15.
    fn shaders(&mut self, framed: bool) -> Option<()> {
        self.many(|reader| {
            reader.name()?;
            if framed {
                let mut inside = In(reader.from.bytes()?);
                inside.take(4)?;
                inside.vector(|from| from.take(4))?;
                return inside.0.is_empty().then_some(());
            }
            reader.from.take(4)?;
            reader.from.vector(|from| from.take(4)).map(drop)
        })
        .map(drop)
    }

    fn kernels(&mut self) -> Option<()> {
        self.many(|reader| reader.name().and(reader.from.bytes())).map(drop)
    }

    fn tensors(&mut self, names: &[&str]) -> Option<()> {
        names.iter().try_for_each(|_| tensor::record(&mut self.from, Sizing::V0_7, self.odd).map(drop))
    }

    /// Reads constants by PAY-34 to PAY-38.
    fn constants(&mut self) -> Option<()> {
        let names = self.texts()?;
        if self.from.u64()? != names.len() as u64 || (0..names.len()).any(|at| names[..at].contains(&names[at])) {
            return None;
        }
        self.tensors(&names)?;
        let symbols = self.texts()?;
        if self.from.u64()? != symbols.len() as u64 {
            return None;
        }
        self.note(!(0..symbols.len()).any(|at| symbols[..at].contains(&symbols[at])), "PAY-37");
        for _ in &symbols {
            let listed = self.texts()?;
            if self.kind == "const_loader" && !listed.iter().all(|name| names.contains(name)) {
                return None;
            }
        }
        Some(())
    }

    /// Reads parameters by PAY-40 to PAY-43.
    fn params(&mut self) -> Option<()> {
        let count = self.from.u64()?;
        let names = self.texts()?;
        if count != names.len() as u64 {
            return None;
        }
        self.note(!(0..names.len()).any(|at| names[..at].contains(&names[at])), "PAY-43");
        self.tensors(&names)
    }

    fn payload(&mut self, form: &str) -> Option<()> {
        match (self.kind, form) {
            ("opencl", "0.13") => self.functions(true).and(self.shaders(false)),
            ("metal", "0.13") => {
                let version = self.text()?;
                if version.is_empty() || !version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
                    return None;
                }
                self.kernels()?;
                self.functions(true)?;
                self.format().map(drop)
            }
            ("metal", "0.24") => self.format().and(self.functions(false)).and(self.kernels()),
            ("metal", _) => {
                self.format().and(self.functions(true))?;
                self.from.bytes().map(drop)
            }
            ("vulkan", form) => self.format().and(self.functions(form != "0.24")).and(self.shaders(form == "0.24")),
            ("webgpu", _) => self.functions(false).and(self.kernels()),
            ("opengl", _) => self.format().and(self.functions(false)).and(self.text()).map(drop),
            ("cuda" | "opencl" | "sdaccel" | "aocl" | "hip" | "hsaco" | "hexagon" | "hex" | "nki", _) => {
                let (format, functions) = (self.format()?, self.functions(false)?);
                let code = self.from.bytes()?;
                if self.kind == "opencl" && format == "cl" {
                    self.opencl_source(code, functions);
                }
                Some(())
            }
            ("c", _) => {
                self.from.bytes()?;
                self.text()?;
                let names = self.texts()?;
                self.note(!names.is_empty(), "PAY-31");
                self.texts().map(drop)
            }
            ("static_library", _) => {
                let object = self.from.bytes()?;
                self.note(is_object(object), "PAY-33");
                self.texts().map(drop)
            }
            ("metadata" | "const_loader", _) => self.constants(),
            ("metadata_module", _) => Some(()),
            ("GraphRuntimeFactory" | "GraphExecutorFactory", _) => self.text().and(self.params()).and(self.text()).map(drop),
            ("AotExecutorFactory", _) => self.params().and(self.text()).map(drop),
            ("VMExecutable", _) => {
                let mut inside = In(self.from.bytes()?);
                relay::relay(&mut inside, self.odd)?;
                self.note(inside.0.is_empty(), "WIRE-08");
                Some(())
            }
            ("relax.Executable" | "relax.VMExecutable", _) => vm::code_of(&mut self.from, self.layout, self.odd),
            ("examplejson", _) => self.text().map(drop),
            ("coreml" | "torch", _) => self.text().and(self.from.bytes()).map(drop),
            ("VitisAIRuntime", _) => {
                self.from.bytes()?;
                self.text().and(self.text()).and(self.texts()).map(drop)
            }
            ("mrvl_sim", "0.17") => {
                let binary = self.text().and(self.text()).and(self.text())?;
                is_base64(binary).then_some(())
            }
            ("mrvl_sim", _) => self.text().and(self.text()).map(drop),
            ("mrvl_hw", _) => self.text().and(self.text()).and(self.from.bytes()).and(self.from.take(12)).map(drop),
            ("ethos-n", form) => self
                .many(|reader| {
                    reader.text()?;
                    reader.from.bytes()?;
                    for _ in ["inputs", "outputs"] {
                        let count = reader.from.vector(|from| from.take(4))?.len();
                        if count == 0 {
                            return None;
                        }
                        if form == "0.10" {
                            reader.from.take(4 * count as u64)?;
                        }
                    }
                    Some(())
                })
                .map(drop),
            ("stackvm", _) => relay::stackvm(&mut self.from, self.layout, self.odd),
            _ => self.text().and(self.text()).and(self.texts()).map(drop),
        }
    }

    /// Checks PAY-22.
    fn opencl_source(&mut self, code: &[u8], functions: usize) {
        let mark = b"// Function: ";
        let marks: Vec<usize> = (0..code.len()).filter(|at| code[*at..].starts_with(mark)).collect();
        // The rule applies from 0.8 on, and layout 0.7 also has older releases.
        if self.layout == Layout::V0_2 || self.layout == Layout::V0_7 && marks.is_empty() {
            return;
        }
        let ended = marks.last().is_none_or(|last| code[*last..].contains(&b'\n'));
        self.note(marks.len() == functions && ended, "PAY-22");
    }
}

/// Returns whether the bytes begin like an object file, by PAY-33.
fn is_object(bytes: &[u8]) -> bool {
    let mut from = In(bytes);
    let machine = from.u16();
    let coff = [0x8664, 0xaa64, 0xa641, 0x01c4, 0x014c].map(Some).contains(&machine);
    let many = machine == Some(0) && from.u16() == Some(0xffff) && from.u16() == Some(2);
    let first = bytes.first_chunk().map(|four| u32::from_be_bytes(*four));
    let apple = first.is_some_and(|first| {
        let thin = |word: u32| word & !1 == 0xfeed_face;
        first & !1 == 0xcafe_babe || thin(first) || thin(first.swap_bytes())
    });
    let other = [0x7f45_4c46, 0x0061_736d, 0x4243_c0de, 0xdec0_170b].map(Some).contains(&first);
    coff || many || apple || other || bytes.starts_with(b"!<arch>\n")
}

/// Returns whether the text is base64 by PAY-98: groups of four digits, with at most two padding digits at the end. The name of a kind
/// does not count as base64.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/');
    plain && padding < 3 && text.len() % 4 == 0 && kind_info(text).is_none()
}
