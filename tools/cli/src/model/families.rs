//! Families of networks on the command line.

use cci_model::{Family, ModelError};

/// Families to compare, `all` among their names.
#[derive(Clone, Debug)]
pub(crate) enum FamilyName {
    All,
    One(Family),
}

impl std::str::FromStr for FamilyName {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        if text == "all" { Ok(Self::All) } else { text.parse().map(Self::One) }
    }
}

/// The families that these names stand for.
pub(crate) fn families(names: &[FamilyName]) -> Vec<Family> {
    let mut families = vec![];
    for name in names {
        let more = match name {
            FamilyName::All => Family::all(),
            FamilyName::One(family) => vec![*family],
        };
        families.extend(more);
    }
    let mut seen = vec![];
    families.retain(|family| {
        !seen.contains(family) && {
            seen.push(*family);
            true
        }
    });
    families
}
