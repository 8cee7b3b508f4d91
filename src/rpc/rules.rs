//! The rules of chapter `rpc`, whose texts are in `spec/rpc.md`.

crate::rule::rules! {
    RPC_01 RPC_02 RPC_03 RPC_04 RPC_05 RPC_10 RPC_11 RPC_12 RPC_13 RPC_14 RPC_15 RPC_16 RPC_20 RPC_21
    RPC_22 RPC_23 RPC_24 RPC_25 RPC_26 RPC_27 RPC_28 RPC_30 RPC_31 RPC_40 RPC_41 RPC_42 RPC_43 RPC_44
    RPC_45 RPC_46 RPC_47 RPC_48 RPC_49
}
