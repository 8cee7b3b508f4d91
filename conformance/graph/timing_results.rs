//! Results of functions that measure time, reduced to the parts that do not differ between runs.

use crate::conformance::reply::Reply;
use crate::conformance::runtime::case_numbers::number_of;
use crate::conformance::runtime::ffi::unsupported;
use crate::conformance::runtime::legacy::LegacyValue;
use crate::value::legacy::code;
use serde_json::{Value, json};
use std::time::Duration;

/// Checks the times that function `name` returned for `args` (GRF-42).
///
/// Returns which times are above 0, whether the requested runs of each fit into the call, and whether the call took the requested
/// time.
pub(super) fn shown(
    name: &Value,
    args: &[Value],
    returned: &LegacyValue,
    took: Duration,
) -> Result<Value, Reply> {
    // The bytes for all nodes begin with the number of nodes.
    let (number, least, behind) = match name.as_str() {
        Some("run_individual") => (args.first(), args.get(2), 8),
        Some("run_individual_node") => (args.get(1), args.get(3), 0),
        _ => (None, None, 0),
    };
    let number: u32 = number.map_or(Ok(1), number_of)?;
    let least: u64 = least.map_or(Ok(0), number_of)?;
    let seconds: Vec<f64> = match returned.code {
        // SAFETY: the code says that it is a float.
        code::FLOAT => vec![unsafe { returned.value.v_float64 }],
        code::STR => {
            let text = returned.text()?;
            let pieces = text.split_terminator(',').map(str::parse);
            let wrong = |wrong| unsupported(format!("a time is not a number: {wrong}"));
            pieces.collect::<Result<_, _>>().map_err(wrong)?
        }
        code::BYTES => {
            let bytes = returned.bytes().unwrap_or_default();
            let doubles = bytes.get(behind..).unwrap_or_default().as_chunks().0;
            doubles.iter().copied().map(f64::from_le_bytes).collect()
        }
        other => {
            return Err(unsupported(format!(
                "times have the type code {other}, not text or bytes"
            )));
        }
    };
    let above: Vec<bool> = seconds.iter().map(|seconds| *seconds > 0.0).collect();
    let within = seconds.iter().sum::<f64>() * f64::from(number) <= took.as_secs_f64();
    let long = took >= Duration::from_millis(least);
    Ok(json!({"above 0": above, "within": within, "long enough": long}))
}

/// Returns the `calls` of a report in JSON: the function, and whether it took time.
pub(super) fn report(text: &str) -> Result<Value, Reply> {
    let report: Value =
        serde_json::from_str(text).map_err(|wrong| unsupported(wrong.to_string()))?;
    let none = || unsupported("the report has no list of calls");
    let calls = report["calls"].as_array().ok_or_else(none)?.iter();
    let calls = calls.map(|call| {
        let micros = call["Duration (us)"]["microseconds"].as_f64();
        json!([
            call["Name"]["string"],
            micros.is_some_and(|micros| micros > 0.0)
        ])
    });
    Ok(calls.collect())
}
