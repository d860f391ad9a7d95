//! A rank of a job that measures.

use cci_report::UserError;
use cci_splitc::{Fault, World};

/// Runs this process as a rank.
pub(super) fn as_rank(play: impl FnOnce(&World) -> Result<(), UserError>) -> Result<(), Option<UserError>> {
    let mut outcome = Ok(());
    let ran = cci_splitc::run(|world| {
        outcome = play(world);
        // The other rank is told by the end of this one.
        if outcome.is_ok() { Ok(()) } else { Err(Fault::Gone { rank: world.me() }) }
    });
    outcome.map_err(Some)?;
    ran.map_err(|why| Some(UserError(why.to_string())))
}

pub(super) fn fault(fault: Fault) -> UserError {
    UserError(fault.to_string())
}
