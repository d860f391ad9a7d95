//! Values of the command line that are chosen by name.

use cci_report::names::Choice;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Understands the names of a type's values, and lists them in the help.
pub(crate) fn choice<T: Choice>() -> impl TypedValueParser<Value = T> {
    let values = T::CHOICES.iter().map(|(_, name, about)| PossibleValue::new(*name).help(*about));
    // Only names that are listed come this far.
    PossibleValuesParser::new(values).try_map(|name| T::named(&name).ok_or(std::fmt::Error))
}
