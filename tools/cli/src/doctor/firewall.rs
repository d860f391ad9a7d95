//! Whether a firewall filters what arrives.

use super::finding::{Finding, Verdict};
use super::host::Host;

const SUBJECT: &str = "firewall";

pub(super) fn findings(host: &Host) -> Vec<Finding> {
    vec![firewall(host)]
}

fn firewall(host: &Host) -> Finding {
    let filters = match (host.output("nft", &["list", "ruleset"]), host.output("iptables-save", &[])) {
        (None, None) => return unknown(host),
        (nft, iptables) => {
            nft.is_some_and(|rules| nft_filters(&rules)) || iptables.is_some_and(|rules| iptables_filters(&rules))
        }
    };
    if !filters {
        return Finding::ok(SUBJECT, "nothing that arrives is dropped");
    }
    Finding::with_remedy(
        SUBJECT,
        Verdict::Hint,
        "rules drop some of what arrives",
        "open the server's port for UDP and TCP, such as `nft insert rule inet filter input meta l4proto { tcp, udp } th dport 5000 accept`",
    )
}

/// Whether a chain that packets for this host pass drops or rejects any.
fn nft_filters(rules: &str) -> bool {
    let mut is_input = false;
    for line in rules.lines().map(str::trim) {
        if line.starts_with("chain ") || line == "}" {
            is_input = false;
        }
        is_input |= line.contains("hook input");
        let words = line.split([' ', ';']);
        if is_input && words.into_iter().any(|word| word == "drop" || word == "reject") {
            return true;
        }
    }
    false
}

/// The same of the older tables, as `iptables-save` prints them.
fn iptables_filters(rules: &str) -> bool {
    rules.lines().any(|line| {
        line.starts_with(":INPUT DROP")
            || line.starts_with("-A INPUT ") && (line.contains("-j DROP") || line.contains("-j REJECT"))
    })
}

/// Nobody printed rules: no such program, or no right to see them.
fn unknown(host: &Host) -> Finding {
    let has_tables = host.path("proc/net/ip_tables_names").exists() || host.path("proc/net/nf_tables").exists();
    let found = if has_tables { "rules may be in force, which only root sees" } else { "no program that lists rules" };
    Finding::with_remedy(SUBJECT, Verdict::Unknown, found, "run `cci doctor` as root, with nft or iptables installed")
}

#[cfg(test)]
mod tests {
    use super::super::host::tests::FakeHost;
    use super::*;

    const OPEN: &str = "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy accept;\n\t}\n\
                        \tchain forward {\n\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}";

    #[test]
    fn rules_that_drop_what_arrives_are_found() {
        let of = |rules: &str| firewall(&FakeHost::new(&[]).with_program("nft", "list ruleset", rules).host()).verdict;
        assert_eq!([of(""), of(OPEN)], [Verdict::Ok; 2], "what is forwarded does not count");
        assert_eq!(of(&OPEN.replace("policy accept", "policy drop")), Verdict::Hint);
        let with_rule = OPEN.replacen("policy accept;", "policy accept;\n\t\tudp dport 5000 drop", 1);
        assert_eq!(of(&with_rule), Verdict::Hint);
    }

    #[test]
    fn the_older_tables_count_too() {
        let of = |rules: &str| firewall(&FakeHost::new(&[]).with_program("iptables-save", "", rules).host()).verdict;
        assert_eq!(of("*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\nCOMMIT"), Verdict::Ok);
        assert_eq!(of("*filter\n:INPUT DROP [0:0]\nCOMMIT"), Verdict::Hint);
        assert_eq!(of("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p udp -j REJECT\nCOMMIT"), Verdict::Hint);
    }

    #[test]
    fn without_a_program_that_lists_rules_nothing_is_known() {
        assert_eq!(firewall(&FakeHost::new(&[]).host()).verdict, Verdict::Unknown);
        let found = firewall(&FakeHost::new(&[("proc/net/ip_tables_names", "")]).host()).found;
        assert!(found.contains("only root"), "{found}");
    }
}
