//! Names of bits, for the lines of `CCI_LOG`.

use cci_fabric_sys::*;

/// A bit and its name.
type Name = (u64, &'static str);

macro_rules! names {
    ($($name:ident)*) => {
        &[$(($name, stringify!($name)),)*]
    };
}

/// Capabilities, and flags of operations, which share their numbers.
const CAPABILITIES: &[Name] = names! {
    FI_MSG FI_RMA FI_TAGGED FI_ATOMIC FI_MULTICAST FI_COLLECTIVE FI_READ FI_WRITE FI_RECV FI_SEND
    FI_REMOTE_READ FI_REMOTE_WRITE FI_MULTI_RECV FI_REMOTE_CQ_DATA FI_MORE FI_PEEK FI_TRIGGER FI_FENCE
    FI_COMPLETION FI_INJECT FI_INJECT_COMPLETE FI_TRANSMIT_COMPLETE FI_DELIVERY_COMPLETE FI_AFFINITY
    FI_COMMIT_COMPLETE FI_MATCH_COMPLETE FI_PEER_TRANSFER FI_AV_USER_ID FI_PEER FI_XPU
    FI_TAGGED_DIRECTED_RECV FI_TAGGED_MULTI_RECV FI_HMEM FI_EXACT_DIRECTED_RECV FI_RMA_PMEM FI_SOURCE_ERR
    FI_LOCAL_COMM FI_REMOTE_COMM FI_SHARED_AV FI_RMA_EVENT FI_SOURCE FI_NAMED_RX_CTX FI_DIRECTED_RECV
};

const ORDERS: &[Name] = names! {
    FI_ORDER_RAR FI_ORDER_RAW FI_ORDER_RAS FI_ORDER_WAR FI_ORDER_WAW FI_ORDER_WAS FI_ORDER_SAR
    FI_ORDER_SAW FI_ORDER_SAS FI_ORDER_RMA_RAR FI_ORDER_RMA_RAW FI_ORDER_RMA_WAR FI_ORDER_RMA_WAW
    FI_ORDER_ATOMIC_RAR FI_ORDER_ATOMIC_RAW FI_ORDER_ATOMIC_WAR FI_ORDER_ATOMIC_WAW FI_ORDER_DATA
};

/// The name of the lowest of these bits, or its number where it has none.
fn lowest(bits: u64, names: &[Name]) -> String {
    let bit = bits.trailing_zeros();
    let found = names.iter().find(|(of, _)| of.trailing_zeros() == bit);
    found.map_or_else(|| format!("bit {bit}"), |(_, name)| (*name).to_owned())
}

/// The lowest capability or flag among these bits.
pub(crate) fn capability(bits: u64) -> String {
    lowest(bits, CAPABILITIES)
}

/// The lowest order among these bits.
pub(crate) fn order(bits: u64) -> String {
    lowest(bits, ORDERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_bit_is_named_or_numbered() {
        assert_eq!(capability(FI_HMEM | FI_DIRECTED_RECV), "FI_HMEM");
        assert_eq!((capability(1), capability(1 << 63)), ("bit 0".into(), "bit 63".into()));
        assert_eq!((order(FI_ORDER_WAW | FI_ORDER_SAS), order(1 << 60)), ("FI_ORDER_WAW".into(), "bit 60".into()));
    }
}
