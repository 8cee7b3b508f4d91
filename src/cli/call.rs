//! `tvmspec call`: run one function of a compiled library.

use super::numpy_text::{array_text, float_text};
use super::{Error, Exit};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::PathBuf;
use tvmspec::function::Function;
use tvmspec::module::{self, Library, Module};
use tvmspec::object::Tensor;
use tvmspec::rule::Strictness;
use tvmspec::value::{
    Any, DLDataType, bytes_bytes, device_from_text, device_to_text, dtype_from_text, dtype_to_text,
    index, str_bytes, types,
};

/// Call a function of a compiled library, of any release
///
/// The library is code and runs with your rights: call only what you trust, and look at the rest with `inspect`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The library (.so, .dylib, .dll)
    library: PathBuf,
    /// The function; its imports are searched as well
    function: String,
    /// Arguments: 42, 1.5, true, none, str:TEXT, @FILE.npy (a tensor in), out:float32[300] (a tensor out, zeros before)
    #[arg(allow_negative_numbers = true)]
    args: Vec<String>,
    /// Where tensors are put
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Write the i-th out tensor to DIR/out_<i>.npy
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
}

/// Set in the process that really calls.
const INNER: &str = "TVMSPEC_CALL_INNER";

/// Calls in a process of its own: compiled code does not check everything, and what it does to its process stays there.
pub(crate) fn run(args: Args) -> Result<Exit, Error> {
    if std::env::var_os(INNER).is_some() {
        return call(args);
    }
    let program = std::env::current_exe()?;
    let status = std::process::Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(INNER, "1")
        .status()?;
    match status.code() {
        Some(0) => Ok(Exit::Good),
        Some(1) => Ok(Exit::Bad),
        Some(code) => std::process::exit(code),
        None => {
            eprintln!(
                "`{}` of {} crashed ({status}). Compiled code checks little of what it is given: compare number, order and types of the arguments",
                args.function,
                args.library.display()
            );
            Ok(Exit::Bad)
        }
    }
}

/// Loads, calls, prints the result and every out tensor.
fn call(args: Args) -> Result<Exit, Error> {
    let device = device_from_text(&args.device).map_err(Error::new)?;
    if device.device_type != 1 {
        let name = device_to_text(device);
        return Err(Error::Message(format!(
            "tensors on {name} cannot be passed from here yet: use --device cpu"
        )));
    }
    let loaded = module::load_library(&args.library, Strictness::Lenient).map_err(Error::new)?;
    for finding in &loaded.findings {
        eprintln!("note: {finding}");
    }
    let function = find(&loaded.module, &args.function)?;
    let passed = args
        .args
        .iter()
        .map(|text| Passed::parse(text))
        .collect::<Result<Vec<Passed>, Error>>()?;
    let views: Vec<_> = passed.iter().map(|passed| passed.value.view()).collect();
    let result = match function.call(&views) {
        Ok(result) => result,
        Err(error) => {
            // The function ran and refused: that is an answer, not a failure of ours.
            eprintln!("{error}");
            return Ok(Exit::Bad);
        }
    };
    let mut out = std::io::stdout().lock();
    let outs: Vec<&Tensor> = passed
        .iter()
        .filter_map(|passed| passed.out.as_ref())
        .collect();
    if !result.is_none() || outs.is_empty() {
        writeln!(out, "{}", text_of(&result))?;
    }
    for (index, tensor) in outs.iter().enumerate() {
        let header = if outs.len() > 1 {
            format!("out_{index}: ")
        } else {
            String::new()
        };
        writeln!(out, "{header}{}", tensor_text(tensor))?;
        if let Some(folder) = &args.save {
            save(tensor, &folder.join(format!("out_{index}.npy")))?;
        }
    }
    Ok(Exit::Good)
}

/// The function, or a message that names those that there are.
fn find(root: &Module, name: &str) -> Result<Function, Error> {
    if let Some(found) = root.function(name, true).map_err(Error::new)? {
        return Ok(found);
    }
    let mut message = format!("the library has no function `{name}`");
    let mut known: Vec<String> = root.walk().iter().flat_map(functions).collect();
    known.sort();
    known.dedup();
    if !known.is_empty() {
        message.push_str(&format!("; it has: {}", known.join(", ")));
    }
    for module in root.walk() {
        if let Some(hindrance) = module.implementation().and_then(|own| own.hindrance()) {
            message.push_str(&format!("\nnote: {hindrance}"));
        }
    }
    Err(Error::Message(message))
}

fn functions(module: &Module) -> Vec<String> {
    Library::of(module)
        .map(Library::functions)
        .unwrap_or_default()
}

/// One argument, and the tensor in it if it is an output.
struct Passed {
    value: Any,
    out: Option<Tensor>,
}

impl Passed {
    fn parse(text: &str) -> Result<Passed, Error> {
        let plain = |value: Any| Ok(Passed { value, out: None });
        if let Some(path) = text.strip_prefix('@') {
            return plain(read(path)?.into());
        }
        if let Some(text) = text.strip_prefix("str:") {
            return plain(text.into());
        }
        if let Some(form) = text.strip_prefix("out:") {
            let tensor = empty(form)?;
            return Ok(Passed {
                value: tensor.clone().into(),
                out: Some(tensor),
            });
        }
        match text {
            "true" => return plain(true.into()),
            "false" => return plain(false.into()),
            "none" => return plain(Any::none()),
            _ => {}
        }
        if let Ok(number) = text.parse::<i64>() {
            return plain(number.into());
        }
        match text.parse::<f64>() {
            Ok(number) => plain(number.into()),
            Err(_) => Err(Error::Message(format!(
                "`{text}` is no argument: write 42, 1.5, true, none, str:{text}, @{text}.npy or out:float32[300]"
            ))),
        }
    }
}

/// A tensor of zeros from `float32[2,3]`.
fn empty(form: &str) -> Result<Tensor, Error> {
    let wrong = || {
        Error::Message(format!(
            "`out:{form}` is no output: write out:float32[300] or out:int64[2,3]"
        ))
    };
    let (dtype, shape) = form
        .strip_suffix(']')
        .and_then(|form| form.split_once('['))
        .ok_or_else(wrong)?;
    let dtype = dtype_from_text(dtype).map_err(Error::new)?;
    let extents = shape
        .split(',')
        .map(str::trim)
        .filter(|extent| !extent.is_empty());
    let shape = extents
        .map(|extent| extent.parse::<i64>().map_err(|_| wrong()))
        .collect::<Result<Vec<i64>, Error>>()?;
    Tensor::empty(&shape, dtype).map_err(Error::new)
}

/// A tensor from an .npy file, in row-major order.
fn read(path: &str) -> Result<Tensor, Error> {
    let wrong =
        |error: &dyn std::fmt::Display| Error::Message(format!("cannot read {path}: {error}"));
    let file = File::open(path).map_err(|error| wrong(&error))?;
    let npy = npyz::NpyFile::new(BufReader::new(file)).map_err(|error| wrong(&error))?;
    let shape: Vec<i64> = npy
        .shape()
        .iter()
        .map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX))
        .collect();
    if npy.order() != npyz::Order::C && shape.len() > 1 {
        return Err(wrong(
            &"its elements are in column-major order: save numpy.ascontiguousarray(x) instead",
        ));
    }
    let npyz::DType::Plain(plain) = npy.dtype() else {
        return Err(wrong(&"it holds records, not numbers"));
    };
    let text = plain.to_string();
    let dtype = dtype_of(&text)
        .ok_or_else(|| wrong(&format!("its type is `{text}`, which no tensor has")))?;
    let swapped = text.starts_with('>') && dtype.bits > 8;
    let tensor = Tensor::empty(&shape, dtype).map_err(Error::new)?;
    let mut bytes = vec![0; tensor.bytes().map_err(Error::new)?.len()];
    let mut data = npy_data(path).map_err(|error| wrong(&error))?;
    std::io::Read::read_exact(&mut data, &mut bytes).map_err(|error| wrong(&error))?;
    if swapped {
        bytes
            .chunks_exact_mut(usize::from(dtype.bits) / 8)
            .for_each(<[u8]>::reverse);
    }
    tensor.fill(&bytes).map_err(Error::new)?;
    Ok(tensor)
}

/// The file behind its header.
fn npy_data(path: &str) -> std::io::Result<impl std::io::Read> {
    let mut file = BufReader::new(File::open(path)?);
    npyz::NpyHeader::from_reader(&mut file)?;
    Ok(file)
}

/// The data type of numpy's `<f4`, `|b1`, ...
fn dtype_of(text: &str) -> Option<DLDataType> {
    let (kind, bytes) = text
        .trim_start_matches(['<', '>', '|', '='])
        .split_at_checked(1)?;
    let bits = bytes.parse::<u8>().ok()?.checked_mul(8)?;
    let code = match kind {
        "i" => 0,
        "u" => 1,
        "f" => 2,
        "b" => 6,
        _ => return None,
    };
    Some(DLDataType {
        code,
        bits,
        lanes: 1,
    })
}

/// numpy's word for a data type; `None` for types that it does not have.
fn numpy_word(dtype: DLDataType) -> Option<String> {
    let bytes = dtype.bits.div_ceil(8);
    let end = if bytes == 1 { '|' } else { '<' };
    let kind = match (dtype.code, dtype.bits, dtype.lanes) {
        (0, 8 | 16 | 32 | 64, 1) => 'i',
        (1, 1, 1) | (6, 8, 1) => 'b',
        (1, 8 | 16 | 32 | 64, 1) => 'u',
        (2, 16 | 32 | 64, 1) => 'f',
        _ => return None,
    };
    Some(format!("{end}{kind}{bytes}"))
}

fn save(tensor: &Tensor, path: &std::path::Path) -> Result<(), Error> {
    let wrong = |error: &dyn std::fmt::Display| {
        Error::Message(format!("cannot write {}: {error}", path.display()))
    };
    let dtype = tensor.dl().dtype;
    let word = numpy_word(dtype).ok_or_else(|| {
        wrong(&format!(
            "numpy has no type `{}`",
            dtype_to_text(dtype).unwrap_or_default()
        ))
    })?;
    let shape: Vec<String> = tensor
        .shape()
        .iter()
        .map(|extent| format!("{extent},"))
        .collect();
    let mut header = format!(
        "{{'descr': '{word}', 'fortran_order': False, 'shape': ({}), }}",
        shape.join(" ")
    );
    // The data begins at a multiple of 64.
    let filled = (10 + header.len() + 1).next_multiple_of(64);
    header.push_str(&" ".repeat(filled - 10 - header.len() - 1));
    header.push('\n');
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| wrong(&error))?;
    }
    let mut file = BufWriter::new(File::create(path).map_err(|error| wrong(&error))?);
    let length = u16::try_from(header.len()).map_err(|error| wrong(&error))?;
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&length.to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    file.write_all(tensor.bytes().map_err(Error::new)?)?;
    file.flush().map_err(|error| wrong(&error))
}

fn tensor_text(tensor: &Tensor) -> String {
    match tensor.bytes() {
        Ok(bytes) => array_text(tensor.dl().dtype, tensor.shape(), bytes),
        Err(error) => format!("a tensor of shape {:?}: {error}", tensor.shape()),
    }
}

/// A result as Python prints it.
fn text_of(value: &Any) -> String {
    let view = value.view();
    let raw = value.as_raw();
    match value.type_index() {
        index::NONE => "None".to_owned(),
        index::INT => raw.int().to_string(),
        index::BOOL => if raw.int() != 0 { "True" } else { "False" }.to_owned(),
        index::FLOAT => float_text(raw.float()),
        index::DATA_TYPE => dtype_to_text(raw.dtype()).unwrap_or_else(|error| error.to_string()),
        index::DEVICE => device_to_text(raw.device()),
        index::OPAQUE => format!("{:p}", raw.ptr()),
        index::SMALL_STR | index::STR => {
            String::from_utf8_lossy(str_bytes(&view).unwrap_or_default()).into_owned()
        }
        index::SMALL_BYTES | index::BYTES => format!(
            "b\"{}\"",
            bytes_bytes(&view).unwrap_or_default().escape_ascii()
        ),
        index::TENSOR => match <Tensor as tvmspec::value::Argument>::try_from_view(view) {
            Some(tensor) => tensor_text(&tensor),
            None => "a tensor".to_owned(),
        },
        other => match tvmspec::object::sequence_of(view) {
            Some(items) => {
                let items: Vec<String> = items.iter().map(text_of).collect();
                format!("[{}]", items.join(", "))
            }
            None => format!("an object of type {}", types::key_of(other)),
        },
    }
}
