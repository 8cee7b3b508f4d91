//! The operations of the chapter `device`.

use super::forms::{self, integers, rejected_or, release, value};
use super::{BEHAVIOUR, PROGRAM, drive, registered};
use crate::conformance::behaviour::{Failure, Outcome};
use crate::conformance::op::{Answer, Handler, Op, OpError};
use crate::conformance::runtime::case_numbers::number_of;
use crate::device::simulated::Simulated;
use crate::device::{
    Attribute, Device, DeviceApi, Dtype, byte_size, cpu, device_type, is_contiguous, manager, timer,
};
use serde_json::{Value, json};

/// The operations of the built-in implementation.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: BEHAVIOUR,
        help: "`value`: the id of a program that is code, such as `device/random-walk`. {\"holds\":true}, or false and why",
        run: Handler::Here(|args| run_program(BEHAVIOUR, args)),
    },
    Op {
        name: PROGRAM,
        help: "`value`: the steps of a program; `defect`: the device is a simulated one that has it. {\"holds\":true}, or false and why",
        run: Handler::Here(|args| run_program(PROGRAM, args)),
    },
    Op {
        name: "device.pool",
        help: "`value`: a script of [\"alloc\",name,bytes] and [\"free\",name]; the calls that reach the device, and which block each alloc got",
        run: Handler::Here(super::pool::run),
    },
    Op {
        name: "device.simulate",
        help: "`value`: {seed, defect, on, steps}, a script for a simulated device, which may have a defect and be called as a `table` of C; the result of every step, the mistakes of callers, the live objects at the end, and the calls",
        run: Handler::Here(super::simulate::run),
    },
    Op {
        name: "device.name",
        help: "`value`: a device type; `release`: the text of that release's name of it",
        run: Handler::Here(name),
    },
    Op {
        name: "device.text",
        help: "`value`: [type, id]; `release`: the device as that release prints it",
        run: Handler::Here(text),
    },
    Op {
        name: "device.session",
        help: "`value`: [type, session]; the type as the caller of that RPC session knows it",
        run: Handler::Here(session),
    },
    Op {
        name: "device.attribute",
        help: "`value`: the name of an attribute; `release`: its number there, or null",
        run: Handler::Here(attribute),
    },
    Op {
        name: "device.size",
        help: "`value`: {shape, dtype: [code, bits, lanes]}; `release`: bytes of the tensor",
        run: Handler::Here(size),
    },
    Op {
        name: "device.contiguous",
        help: "`value`: {shape, strides}; `release`: whether the tensor lies in one piece",
        run: Handler::Here(contiguous),
    },
    Op {
        name: "device.launch",
        help: "`value`: {tags, args}; the launch that these arguments ask for: {grid, block, cluster, shared, cooperative, programmatic, dimensions, arguments}",
        run: Handler::Here(super::pack::launch),
    },
    Op {
        name: "device.pack",
        help: "`value`: {form, types, args}, form one of void, slots4, slots8, tight, aligned; the packed arguments in hex",
        run: Handler::Here(super::pack::pack),
    },
    Op {
        name: "device.timer-name",
        help: "`value`: a device type; `release`: the registry name of its timer",
        run: Handler::Here(timer_name),
    },
    Op {
        name: "device.needs-set-device",
        help: "`value`: a device type; `release`: whether compiled host code sets the device before a launch",
        run: Handler::Here(needs_set_device),
    },
];

/// Runs a program on every built-in device.
///
/// It holds if every device passes. A device that the program is not meant for is skipped; if all are skipped, the program is
/// unsupported. With a defect, the program must fail: the case then expects "does not hold".
fn run_program(op: &str, args: &Value) -> Result<Answer, OpError> {
    let value = args.get("value").unwrap_or(&Value::Null);
    // These programs create their own devices.
    if let Some(run) = value.as_str().and_then(super::coded) {
        return answer(run());
    }
    if op == PROGRAM
        && let wrong @ Err(_) = super::program::check(value)
    {
        return answer(wrong);
    }
    let simulated = match args.get("defect").and_then(Value::as_str) {
        None => Simulated::new(3),
        Some(defect) => {
            // A program that fails even without the defect proves nothing, because one of its steps may be wrong.
            let sound = drive(op, Some(value), &Simulated::new(3), Device::ext_dev(0));
            if sound.is_err() {
                return answer(sound);
            }
            let device = Simulated::with_bug(3, super::defect(defect)?);
            return match drive(op, Some(value), &device, Device::ext_dev(0)) {
                // The program must fail; the message is not compared.
                Err(Failure::Broken(_)) => Ok(forms::value(json!({"holds": false}))),
                outcome => answer(outcome),
            };
        }
    };
    if super::program::brings_its_device(value) {
        return answer(super::program::run(value, &simulated, Device::ext_dev(0)));
    }
    let devices: [(&str, &dyn DeviceApi, Device); 3] = [
        ("cpu", cpu::cpu(), Device::CPU),
        ("simulated", &simulated, Device::ext_dev(0)),
        ("table", registered::behind_a_table(), Device::ext_dev(0)),
    ];
    let mut skipped = None;
    let mut held = false;
    for (name, api, device) in devices {
        match drive(op, Some(value), api, device) {
            Ok(()) => held = true,
            Err(Failure::Broken(how)) => {
                return answer(Failure::broken(format!("{name}: {how}")));
            }
            Err(Failure::Skipped(why)) => skipped = Some(format!("{name}: {why}")),
        }
    }
    match skipped {
        Some(why) if !held => Err(OpError::Unsupported(why)),
        _ => answer(Ok(())),
    }
}

/// Converts the outcome of a program to an answer.
pub(crate) fn answer(outcome: Outcome) -> Result<Answer, OpError> {
    let value = match outcome {
        Ok(()) => json!({"holds": true}),
        Err(Failure::Broken(how)) => json!({"holds": false, "because": how}),
        Err(Failure::Skipped(why)) => return Err(OpError::Unsupported(why)),
    };
    Ok(Answer {
        value,
        findings: Vec::new(),
    })
}

/// Runs `device.name` (DEV-01, DEV-06).
fn name(args: &Value) -> Result<Answer, OpError> {
    let number = number_of(args.get("value"))?;
    rejected_or(device_type::name_in(number, release(args)?))
}

/// Runs `device.text` (DEV-58): a device as an error or a printed tensor names it, including one of a session.
fn text(args: &Value) -> Result<Answer, OpError> {
    rejected_or(pair(args)?.text_in(release(args)?))
}

/// Runs `device.session` (DEV-57). It returns only the type, because the number does not change.
fn session(args: &Value) -> Result<Answer, OpError> {
    let Device { kind, id } = pair(args)?;
    rejected_or(
        Device::new(kind, 0)
            .in_session(id)
            .map(|device| device.kind),
    )
}

/// Runs `device.attribute` (DEV-09): null if the release has no number for it.
fn attribute(args: &Value) -> Result<Answer, OpError> {
    let wanted = args
        .get("value")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let found = Attribute::ALL
        .into_iter()
        .find(|attribute| attribute.name() == wanted);
    let attribute =
        found.ok_or_else(|| OpError::Unsupported(format!("there is no attribute `{wanted}`")))?;
    Ok(value(json!(attribute.number_in(release(args)?))))
}

/// Runs `device.size` (DEV-15): in bytes; null for a shape that has no size.
fn size(args: &Value) -> Result<Answer, OpError> {
    let of = args.get("value").unwrap_or(&Value::Null);
    let dtype = of.get("dtype").and_then(Value::as_array);
    let Some([code, bits, lanes]) = dtype.map(Vec::as_slice) else {
        return Err(OpError::Unsupported(
            "`dtype` is [code, bits, lanes]".into(),
        ));
    };
    let dtype = Dtype {
        code: number_of(code)?,
        bits: number_of(bits)?,
        lanes: number_of(lanes)?,
    };
    Ok(value(json!(byte_size(
        &integers(of.get("shape"))?,
        dtype,
        release(args)?
    ))))
}

/// Runs `device.contiguous` (DEV-17). Strides count elements, and null is compact.
fn contiguous(args: &Value) -> Result<Answer, OpError> {
    let of = args.get("value").unwrap_or(&Value::Null);
    let shape = integers(of.get("shape"))?;
    let strides = match of.get("strides") {
        None | Some(Value::Null) => None,
        strides => Some(integers(strides)?),
    };
    Ok(value(json!(is_contiguous(
        &shape,
        strides.as_deref(),
        release(args)?
    ))))
}

/// Runs `device.timer-name` (DEV-44).
fn timer_name(args: &Value) -> Result<Answer, OpError> {
    let number = number_of(args.get("value"))?;
    rejected_or(timer::timer_name(number, release(args)?))
}

/// Runs `device.needs-set-device` (DEV-43).
fn needs_set_device(args: &Value) -> Result<Answer, OpError> {
    let number = number_of(args.get("value"))?;
    Ok(value(json!(manager::needs_set_device(
        number,
        release(args)?
    ))))
}

/// Reads the type and number of the device under `value`.
fn pair(args: &Value) -> Result<Device, OpError> {
    let value = args.get("value").and_then(Value::as_array);
    match value.map(Vec::as_slice) {
        Some([kind, id]) => Ok(Device::new(number_of(kind)?, number_of(id)?)),
        _ => Err(OpError::Unsupported("`value` is a pair of integers".into())),
    }
}
