//! What a model refuses.

use cci_model::ModelError;
use cci_report::UserError;

/// A refusal of a model, for the user.
pub(crate) fn told(error: ModelError) -> UserError {
    UserError(error.to_string())
}
