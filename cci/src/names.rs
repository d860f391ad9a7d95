//! Names that stand for URIs of endpoints.

use cci_mem::mutex::{read, write};
use cci_proto::ConnectError;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, RwLock};

/// What a name of a rank begins with.
const RANK: &str = "job:";

/// Gives the URIs that names stand for: [`crate::Context::set_names`]. A name is `job:RANK`, a rank
/// of the parallel job that this process belongs to; the crate `cci-job` implements this.
///
/// # Example
///
/// ```
/// use cci::{Context, Names};
/// use std::sync::Arc;
///
/// /// The URIs of all ranks, in their order.
/// struct Ranks(Vec<String>);
///
/// impl Names for Ranks {
///     fn resolve(&self, name: &str) -> Option<String> {
///         let rank: usize = name.strip_prefix("job:")?.parse().ok()?;
///         self.0.get(rank).cloned()
///     }
/// }
///
/// let context = Context::new()?;
/// context.set_names(Arc::new(Ranks(vec!["sm://1/1".into()])));
/// assert_eq!(context.device_for("job:0")?.transport, "sm");
/// assert!(context.device_for("job:1").is_err());
/// # Ok::<(), cci::OpenError>(())
/// ```
pub trait Names: Send + Sync {
    /// Returns the URI of the endpoint with this name; `None`: there is no such name. The thread
    /// that connects calls it, without a lock of any endpoint. It must not block.
    fn resolve(&self, name: &str) -> Option<String>;
}

/// The names of a [`crate::Context`], which its devices share, and the endpoints that are opened on
/// them. A device of no context has none.
///
/// # Example
///
/// ```
/// let context = cci::Context::new()?;
/// assert_eq!(format!("{:?}", context.default_device()?.names), "SharedNames(none)");
/// # Ok::<(), cci::OpenError>(())
/// ```
#[derive(Clone, Default)]
pub struct SharedNames(Arc<RwLock<Option<Arc<dyn Names>>>>);

impl SharedNames {
    pub(crate) fn set(&self, names: Arc<dyn Names>) {
        *write(&self.0) = Some(names);
    }

    fn get(&self) -> Option<Arc<dyn Names>> {
        read(&self.0).clone()
    }

    /// The URI that a text is, or that the name stands for.
    ///
    /// # Errors
    ///
    /// It is a name, and there are no names, or not this one.
    pub(crate) fn uri_of<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, ConnectError> {
        if !text.starts_with(RANK) {
            return Ok(Cow::Borrowed(text));
        }
        let names = self.get().ok_or(ConnectError::NoJob)?;
        names.resolve(text).map(Cow::Owned).ok_or(ConnectError::NoRank)
    }
}

impl fmt::Debug for SharedNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = if self.get().is_some() { "set" } else { "none" };
        write!(f, "SharedNames({names})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One;

    impl Names for One {
        fn resolve(&self, name: &str) -> Option<String> {
            (name == "job:1").then(|| "sm://1/1".into())
        }
    }

    #[test]
    fn names_of_ranks_are_resolved_and_uris_are_left_as_they_are() {
        let names = SharedNames::default();
        assert_eq!(names.uri_of("sm://1/1"), Ok("sm://1/1".into()));
        assert_eq!(names.uri_of("job:1"), Err(ConnectError::NoJob));
        let of_a_device = names.clone();
        names.set(Arc::new(One));
        assert_eq!(of_a_device.uri_of("job:1"), Ok("sm://1/1".into()));
        assert_eq!(of_a_device.uri_of("job:2"), Err(ConnectError::NoRank));
        assert_eq!(of_a_device.uri_of("job"), Ok("job".into()), "a transport refuses it");
    }
}
