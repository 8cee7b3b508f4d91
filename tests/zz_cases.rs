use base64::prelude::*;
use serde_json::{Value, json};
use tvmspec::conformance::{op::*, *};
#[test]
fn cases() {
    let mut bad = 0;
    let mut n = 0;
    for (chapter, ops) in [("import_tree", import_tree::ops::OPS)] {
        let cases: Vec<Value> = serde_json::from_str(
            &std::fs::read_to_string(format!("conformance/{chapter}/cases.json")).unwrap(),
        )
        .unwrap();
        for c in &cases {
            n += 1;
            let mut args = c.get("args").cloned().unwrap_or(json!({}));
            let input = &c["input"];
            let m = args.as_object_mut().unwrap();
            if let Some(h) = input["hex"].as_str() {
                let b: Vec<u8> = (0..h.len() / 2)
                    .map(|i| u8::from_str_radix(&h[2 * i..2 * i + 2], 16).unwrap())
                    .collect();
                m.insert("data".into(), json!(BASE64_STANDARD.encode(b)));
            }
            if let Some(f) = input["file"].as_str() {
                m.insert(
                    "data".into(),
                    json!(BASE64_STANDARD.encode(std::fs::read(format!("golden/{f}")).unwrap())),
                );
            }
            if let Some(v) = input.get("value") {
                m.insert("value".into(), v.clone());
            }
            let find = |n: &str| {
                ops.iter()
                    .find(|o| o.name == n)
                    .unwrap_or_else(|| panic!("{n}"))
                    .run
            };
            let got = find(c["op"].as_str().unwrap())(&args);
            let e = &c["expect"];
            let want = e.get("accept").cloned().or_else(|| {
                e.get("accept_file").map(|f| {
                    serde_json::from_str(
                        &std::fs::read_to_string(format!("golden/{}", f.as_str().unwrap()))
                            .unwrap(),
                    )
                    .unwrap()
                })
            });
            let ok = match &got {
                Ok(a) => {
                    let f: Vec<&str> = a.findings.iter().map(|f| f.rule.id()).collect();
                    let wf: Vec<&str> = c
                        .get("findings")
                        .map(|f| {
                            f.as_array()
                                .unwrap()
                                .iter()
                                .map(|x| x.as_str().unwrap())
                                .collect()
                        })
                        .unwrap_or_default();
                    let mut ok = want.as_ref() == Some(&a.value) && f == wf;
                    if ok
                        && c["op"].as_str().unwrap().ends_with(".decode")
                        && c.get("encode") != Some(&json!(false))
                    {
                        let mut a2 = args.clone();
                        let m = a2.as_object_mut().unwrap();
                        let d = m.remove("data").unwrap();
                        m.insert("value".into(), a.value.clone());
                        match find(&format!("{chapter}.encode"))(&a2) {
                            Ok(b) => ok = b.value == d,
                            Err(e) => {
                                println!("ENC {e:?}");
                                ok = false
                            }
                        }
                    }
                    ok
                }
                Err(Refusal::Rejected(v)) => {
                    e.get("reject").and_then(|k| k.as_str()) == Some(v.kind().name())
                        && c["rules"]
                            .as_array()
                            .unwrap()
                            .contains(&json!(v.rule().id()))
                }
                Err(_) => false,
            };
            if !ok {
                bad += 1;
                println!("BAD {} want {} got {:?}", c["id"], e, got);
            } else if let Err(Refusal::Rejected(v)) = got {
                println!("ok {} {v}", c["id"]);
            }
        }
    }
    println!("{n} cases, {bad} bad");
    assert!(bad == 0);
}
