//! Values of the command line that are chosen by name.

use crate::measure::names::Choice;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Understands the names of a type's values, and lists them in the help.
pub(crate) fn choice<T: Choice>() -> impl TypedValueParser<Value = T> {
    let values = T::CHOICES.iter().map(|(_, name, about)| PossibleValue::new(*name).help(*about));
    PossibleValuesParser::new(values).try_map(|name| T::named(&name).ok_or("not one of the known names"))
}
