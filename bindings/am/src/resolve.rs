//! From the names that programs pass to URIs.

use crate::names::{Name, Sealed};
use crate::registry;
use crate::spmd::{rank, uri_of};

impl Name {
    /// The name that a program has passed. Its URI is empty where nobody has it.
    pub(crate) fn find(sealed: Sealed) -> Self {
        let uri = sealed.uri.clone().or_else(|| resolve(&sealed)).unwrap_or_default();
        Self::found(sealed, uri)
    }
}

/// The URI of the endpoint of this process, or of another one of the job, that has this name.
fn resolve(sealed: &Sealed) -> Option<Box<str>> {
    let Sealed { process, number, .. } = *sealed;
    if !sealed.is_genuine() {
        return None;
    }
    let rank = rank();
    // Endpoints made before the job was joined have the other name.
    if Some(process) == rank || process == std::process::id() {
        return registry::uri_of(number);
    }
    rank.and_then(|_| uri_of(process, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invented_name_leads_nowhere() {
        let name = Name::give((std::process::id(), 8), "sm://1/2").expect("a name");
        let invented = Sealed { check: name.sealed().check ^ 1, ..name.sealed().clone() };
        assert_eq!(Name::find(invented).uri(), "");
    }
}
