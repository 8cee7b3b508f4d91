//! The operation `object.script`: a sequence of calls.
//!
//! Every frontend reaches containers, texts and objects through registered functions, methods, attributes and fields. So one operation is
//! enough for all of them.

use super::no_result::NoResult;
use super::{c_functions, layout, probe, records, state_inspection, weak};
use crate::conformance::runtime::RawHandle;
use crate::conformance::runtime::case_numbers::number_of;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::forms::{make, show};
use crate::conformance::runtime::ffi::owned::{OwnedValue, Raised, bool_arg, int_arg};
use crate::conformance::runtime::ffi::{Reply, accepted, c_text, tensors, unsupported, value_of};
use crate::lock::lock;
use crate::value::{RawAny, index};
use probe::Alive;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::sync::{Arc, Mutex};

/// Runs the steps of a script. Each step is `[what, argument, ...]`, and `{"of": n}` is the result of step n. After the last step, all
/// results are dropped.
pub(super) fn script(api: &'static FfiApi, args: &Value) -> Result<Reply, Reply> {
    let steps = value_of(args).as_array();
    let steps = steps.ok_or_else(|| unsupported("`value` is not a list of steps"))?;
    let alive = Alive::default();
    let notes = Notes::default();
    let mut play = Play {
        api,
        arguments: &[],
        results: Vec::new(),
        weak: Vec::new(),
        fresh: Vec::new(),
        alive: alive.clone(),
        notes: notes.clone(),
    };
    let mut answers = Vec::new();
    for step in steps {
        let step = play.renamed(step, Direction::In);
        let (what, arguments) = parts_of(&step)?;
        // A leading `-` marks a result that is too large to show.
        let quiet = what.as_str().and_then(|what| what.strip_prefix('-'));
        // The index of a new type is not shown either, because it depends on the types before it.
        let shown = quiet.is_none() && what != "type";
        let what = quiet.map_or_else(|| what.clone(), Value::from);
        let answer = match play.step(&what, arguments) {
            Ok(result) => {
                let answer = if shown {
                    play.renamed(&show(api, &result)?, Direction::Out)
                } else {
                    Value::Null
                };
                play.results.push(Some(result));
                answer
            }
            Err(NoResult::Raised(raised)) => {
                play.results.push(None);
                json!({"raises": raised.kind})
            }
            Err(NoResult::Shown(answer)) => {
                play.results.push(None);
                play.renamed(&answer, Direction::Out)
            }
            Err(NoResult::Reply(reply)) => return Err(reply),
        };
        let noted = std::mem::take(&mut *lock(&notes));
        let noted: Vec<Value> = noted
            .iter()
            .map(|note| play.renamed(note, Direction::Out))
            .collect();
        answers.push(if noted.is_empty() {
            answer
        } else {
            json!({"notes": noted, "result": answer})
        });
    }
    drop(play);
    if alive.count() > 0 {
        answers.push(json!({"alive": alive.count()}));
    }
    accepted(Value::Array(answers))
}

/// The notes that the functions of a case have made.
type Notes = Arc<Mutex<Vec<Value>>>;

/// Splits a step into its function (a name or a value) and the forms of its arguments.
fn parts_of(step: &Value) -> Result<(&Value, &[Value]), Reply> {
    let parts = step.as_array().and_then(|parts| parts.split_first());
    parts.ok_or_else(|| unsupported(format!("{step} names no function")))
}

/// The state of a running script.
struct Play<'a> {
    api: &'static FfiApi,
    /// Arguments of the function whose body these steps are.
    arguments: &'a [OwnedValue],
    results: Vec<Option<OwnedValue>>,
    /// Weak references, each with the step that took it.
    weak: Vec<(usize, weak::WeakReference)>,
    /// Types with a fresh key: the key that the case states, and the actual key.
    fresh: Vec<(String, String)>,
    alive: Alive,
    notes: Notes,
}

/// The direction of a text: to the runtime or from it.
#[derive(Clone, Copy)]
enum Direction {
    In,
    Out,
}

// Results are shared with the runtime by reference counts. An argument holds one more reference until the call ends.
impl Play<'_> {
    /// Replaces the keys that the case states by the fresh keys in all texts of a form, or the other way round.
    ///
    /// A process keeps a type forever, and another case may have defined a type with that key. Texts, errors and hashes contain the key.
    fn renamed(&self, form: &Value, direction: Direction) -> Value {
        if self.fresh.is_empty() {
            return form.clone();
        }
        let text = |text: &str| {
            self.fresh
                .iter()
                .fold(text.to_owned(), |text, (stated, key)| match direction {
                    Direction::In => text.replace(stated, key),
                    Direction::Out => text.replace(key, stated),
                })
        };
        match form {
            Value::String(own) => text(own).into(),
            Value::Array(parts) => parts
                .iter()
                .map(|part| self.renamed(part, direction))
                .collect(),
            Value::Object(members) => members
                .iter()
                .map(|(name, part)| (text(name), self.renamed(part, direction)))
                .collect(),
            other => other.clone(),
        }
    }

    /// Runs one step: a word of the driver, or anything that [`Play::look_up`] finds in the runtime. If `what` is not a text, it is a
    /// function that an earlier step returned.
    ///
    /// The words do things that no registered function does. They handle references (`drop`, `weak`, `strong`; VAL-05), the memory of a
    /// container (`layout`; OBJ-03 to OBJ-08), types and their attributes (`type`, `attribute`; OBJ-15), and values that count how many of
    /// them are alive.
    fn step(&mut self, what: &Value, arguments: &[Value]) -> Result<OwnedValue, NoResult> {
        let api = self.api;
        let Some(word) = what.as_str() else {
            let function = self.argument(what)?;
            return self.call(&function, arguments);
        };
        let plain = |at: usize| arguments.get(at).unwrap_or(&Value::Null);
        let text = |at: usize| plain(at).as_str().unwrap_or_default();
        let number_at = |at: usize, absent: i32| -> Result<i32, Reply> {
            Ok(arguments.get(at).map_or(Ok(absent), number_of)?)
        };
        match word {
            "value" => Ok(self.argument(plain(0))?),
            "note" => {
                let noted = show(api, &self.argument(plain(0))?)?;
                lock(&self.notes).push(noted);
                Ok(api.share(RawAny::NONE))
            }
            "raise" => Err(NoResult::Raised(Raised {
                kind: text(0).to_owned(),
                message: text(1).to_owned(),
                broken: None,
            })),
            "drop" => {
                let at = plain(0).as_u64().and_then(|at| usize::try_from(at).ok());
                // The reference is released now and not after the last step, so that the notes of this step show the effects of a
                // destructor.
                let slot = at.and_then(|at| self.results.get_mut(at));
                let slot =
                    slot.ok_or_else(|| unsupported("there is no result of that step to drop"))?;
                drop(slot.take());
                Ok(api.share(RawAny::NONE))
            }
            "weak" => {
                let value = self.argument(plain(0))?;
                let weak = weak::WeakReference::from_value(&value);
                let weak = weak.ok_or_else(|| unsupported("only objects are counted"))?;
                self.weak.push((self.results.len(), weak));
                Ok(api.share(RawAny::NONE))
            }
            "weakly" | "unweak" => {
                let at = plain(0).as_u64().and_then(|at| usize::try_from(at).ok());
                let found = self.weak.iter().position(|(step, _)| Some(*step) == at);
                let found = found.ok_or_else(|| unsupported("that step took no reference"))?;
                if word == "unweak" {
                    drop(self.weak.remove(found));
                    return Ok(api.share(RawAny::NONE));
                }
                Ok(api.share(int_arg(i64::from(self.weak[found].1.strong()))))
            }
            // VAL-14: the runtime must reject an index other than the one for Python objects.
            "opaque" => {
                let type_index = number_at(0, index::OPAQUE_PY)?;
                Ok(weak::opaque(api, type_index, &self.alive)?)
            }
            "tag" | "first_index" | "backtraces" | "interpreter" => {
                state_inspection::look(api, word, &self.argument(plain(0))?)
            }
            "stream" => {
                let device = [number_at(0, 1)?, number_at(1, 0)?];
                let stream = arguments.get(2).map(number_of).transpose();
                let stream = stream.map_err(Reply::from)?;
                Ok(api.share(int_arg(weak::stream(api, device, stream)?)))
            }
            "probe" => Ok(probe::make(api, &self.alive)),
            "alive" => Ok(api.share(int_arg(i64::from(self.alive.count())))),
            "strong" => {
                let value = self.argument(plain(0))?;
                // The step itself holds one reference.
                let count = records::strong(&value).map(|count| i64::from(count) - 1);
                let count = count.ok_or_else(|| unsupported("only objects are counted"))?;
                Ok(api.share(int_arg(count)))
            }
            "layout" => Err(NoResult::Shown(layout::shape_of(
                &self.argument(plain(0))?,
            )?)),
            "same" => {
                let (left, right) = (self.argument(plain(0))?, self.argument(plain(1))?);
                // The types must also be equal, because the payload of a number may equal the address of an object.
                let same = left.raw.type_index == right.raw.type_index
                    && left.pointer() == right.pointer();
                Ok(api.share(bool_arg(same)))
            }
            "type" => {
                let parent = match plain(0).get("parent") {
                    Some(parent) => Some(self.type_index(parent)?),
                    None => None,
                };
                let default = |field: &Value| {
                    field
                        .get("default")
                        .map(|form| self.argument(form))
                        .transpose()
                };
                let type_index = records::define(api, plain(0), parent, default)?;
                // The index of a new type depends on earlier cases, so the case knows only the key.
                if plain(0)["fresh"] == true {
                    let stated = plain(0)["key"].as_str().unwrap_or("Own");
                    let key = records::key(api, type_index)?;
                    self.fresh.push((format!("case.{stated}"), key));
                    // One key may be a prefix of another one, so longer keys are replaced first.
                    self.fresh.sort_by_key(|(stated, _)| Reverse(stated.len()));
                }
                Ok(api.share(int_arg(type_index.into())))
            }
            "attribute" => {
                let type_index = self.type_index(plain(0))?;
                api.set_attr(type_index, text(1), &self.argument(plain(2))?.raw)?;
                Ok(api.share(RawAny::NONE))
            }
            "reflect" => {
                let type_index = self.type_index(plain(0))?;
                Err(NoResult::Shown(records::reflect(api, type_index)?))
            }
            _ => self.look_up(word, arguments),
        }
    }

    /// Performs a step that names a C function, a field, a method, an attribute or a global function.
    ///
    /// `TVM..` is a C function. `.name` reads a field and `.name=` writes it. `@name` calls an attribute, and `Type::name` calls a method.
    /// A step that this runtime does not have is unsupported. Attributes are an exception, because some cases ask whether a type has one.
    fn look_up(&self, word: &str, arguments: &[Value]) -> Result<OwnedValue, NoResult> {
        let api = self.api;
        if word.starts_with("TVM") {
            let value_of = |form: &Value| self.argument(form);
            return c_functions::call(api, word, arguments, &value_of, &self.alive);
        }
        if let Some(name) = word.strip_prefix('.') {
            let (object, rest) = object_and_rest(arguments)?;
            let object = self.argument(object)?;
            let (name, is_set) = name
                .strip_suffix('=')
                .map_or((name, false), |name| (name, true));
            let Some(field) = records::field(api, object.raw.type_index, name) else {
                return Err(NoResult::Reply(unsupported(format!(
                    "there is no field `{name}`"
                ))));
            };
            if is_set {
                let value = self.argument(rest.first().unwrap_or(&Value::Null))?;
                records::write(api, field, &object, &value)?;
                return Ok(api.share(RawAny::NONE));
            }
            return Ok(records::read(api, field, &object)?);
        }
        if let Some(name) = word.strip_prefix('@') {
            let (of, rest) = object_and_rest(arguments)?;
            let type_index = self.type_index(of)?;
            let Some(attribute) = records::attribute(api, type_index, name) else {
                return Err(NoResult::Shown(
                    json!({"raises": "nothing: there is no such attribute"}),
                ));
            };
            return self.call(&attribute, rest);
        }
        if let Some((key, name)) = word.split_once("::") {
            let type_index = api.type_index(key);
            let method = type_index.and_then(|index| records::method(api, index, name));
            let missing = || unsupported(format!("this runtime has no method `{word}`"));
            return self.call(&method.ok_or_else(missing)?, arguments);
        }
        let function = api.global(word);
        let missing = || unsupported(format!("this runtime has no function `{word}`"));
        self.call(&function.ok_or_else(missing)?, arguments)
    }

    /// Calls a function of the runtime with the values of the forms, and holds these values until the call returns.
    fn call(&self, function: &OwnedValue, arguments: &[Value]) -> Result<OwnedValue, NoResult> {
        let parts = arguments.iter().map(|form| self.argument(form));
        let parts: Vec<OwnedValue> = parts.collect::<Result<_, _>>()?;
        let args: Vec<RawAny> = parts.iter().map(|part| part.raw).collect();
        Ok(self.api.call(function, &args)?)
    }

    /// Returns the index of a type that is named by its key, by its index, or by an object of it.
    ///
    /// A number is the index itself, as `type` returns it. A case can thus use an index that no type has.
    fn type_index(&self, form: &Value) -> Result<i32, Reply> {
        if let Some(key) = form.as_str() {
            let missing = || unsupported(format!("this runtime has no type `{key}`"));
            return self.api.type_index(key).ok_or_else(missing);
        }
        let value = self.argument(form)?;
        match value.raw.type_index {
            index::INT => i32::try_from(value.raw.int())
                .map_err(|_| unsupported("an index of a type has 32 bits")),
            own => Ok(own),
        }
    }

    /// Makes the value of a form.
    ///
    /// `{"of": n}` is the result of step n, and `{"arg": n}` is an argument of the function whose body these steps are. `{"function":
    /// [...]}` is a function made of steps, and `{"tensor": {...}}` is a tensor. Any other form is a value of the chapters.
    fn argument(&self, form: &Value) -> Result<OwnedValue, Reply> {
        let missing = || unsupported(format!("{form} is not an earlier result"));
        let at = |name: &str| form.get(name).and_then(Value::as_u64).map(|at| at as usize);
        if let Some(at) = at("of") {
            let result = self.results.get(at).and_then(Option::as_ref);
            return Ok(self.api.share(result.ok_or_else(missing)?.raw));
        }
        if let Some(at) = at("arg") {
            return Ok(self
                .api
                .share(self.arguments.get(at).ok_or_else(missing)?.raw));
        }
        if let Some(steps) = form.get("function").and_then(Value::as_array) {
            let (alive, notes) = (self.alive.clone(), self.notes.clone());
            // A function of the suite lives as long as the process.
            let body = Box::leak(Box::new(Body {
                api: self.api,
                steps: steps.clone(),
                alive,
                notes,
            }));
            let this = std::ptr::from_mut(body).cast();
            return Ok(self.api.function(this, play)?);
        }
        if let Some(tensor) = form.get("tensor") {
            return tensors::make_tensor(self.api, tensor);
        }
        make(self.api, form)
    }
}

/// Returns the form of the object whose field or attribute is used, and the remaining forms.
fn object_and_rest(arguments: &[Value]) -> Result<(&Value, &[Value]), Reply> {
    arguments
        .split_first()
        .ok_or_else(|| unsupported("a field and an attribute are those of something"))
}

/// The body of a function of a case: steps that refer to its arguments by `{"arg": n}`. It returns the result of the last step.
struct Body {
    api: &'static FfiApi,
    steps: Vec<Value>,
    alive: Alive,
    notes: Notes,
}

impl Body {
    /// Runs the steps again for each call, with separate results. The count of living probes and the notes are shared by all calls of a
    /// script.
    fn run(&self, arguments: &[OwnedValue]) -> Result<OwnedValue, NoResult> {
        let mut play = Play {
            api: self.api,
            arguments,
            results: Vec::new(),
            weak: Vec::new(),
            fresh: Vec::new(),
            alive: self.alive.clone(),
            notes: self.notes.clone(),
        };
        for step in &self.steps {
            let (what, arguments) = parts_of(step)?;
            let result = play.step(what, arguments)?;
            play.results.push(Some(result));
        }
        let last = play.results.pop().flatten();
        Ok(last.unwrap_or_else(|| self.api.share(RawAny::NONE)))
    }
}

/// Runs a body when the runtime calls its function. A step that raises becomes the error of the thread, as for any callee (FUN-06).
unsafe extern "C" fn play(
    this: RawHandle,
    args: *const RawAny,
    count: i32,
    out: *mut RawAny,
) -> i32 {
    // SAFETY: `argument` made the function with a pointer to its body.
    let body = unsafe { &*this.cast::<Body>() };
    let args = match usize::try_from(count) {
        Ok(count) if count > 0 => {
            // SAFETY: `args` points to `count` arguments of the call.
            unsafe { std::slice::from_raw_parts(args, count) }
        }
        _ => &[],
    };
    let arguments: Result<Vec<OwnedValue>, Raised> =
        args.iter().map(|arg| body.api.own(arg)).collect();
    match arguments
        .map_err(NoResult::from)
        .and_then(|arguments| body.run(&arguments))
    {
        Ok(result) => {
            let result = std::mem::ManuallyDrop::new(result);
            // SAFETY: `out` is a place for the result, which takes the reference.
            unsafe { out.write(result.raw) };
            0
        }
        Err(NoResult::Raised(raised)) => {
            body.api
                .raise(&c_text(&raised.kind), &c_text(&raised.message));
            -1
        }
        Err(NoResult::Shown(_) | NoResult::Reply(_)) => {
            body.api
                .raise(c"SuiteError", c"a step of a function has no result");
            -1
        }
    }
}
