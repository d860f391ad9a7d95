//! Events and spans of `tracing` on slow paths, where the feature `tracing` is on; else nothing is
//! compiled. No fast path has any.
//!
//! A subscriber runs inside of the endpoint's lock: it must not call the library.

/// Emits an event of this level: `log_event!(info, name = value, "what")`.
#[cfg(feature = "tracing")]
#[macro_export]
#[doc(hidden)]
macro_rules! log_event {
    ($level:ident, $($rest:tt)*) => { $crate::__tracing::$level!(target: "cci", $($rest)*) };
}

/// Enters a span for the rest of the block: `log_span!(span, "open", name = value)`.
#[cfg(feature = "tracing")]
#[macro_export]
#[doc(hidden)]
macro_rules! log_span {
    ($span:ident, $($rest:tt)*) => {
        let $span = $crate::__tracing::debug_span!(target: "cci", $($rest)*).entered();
    };
}

/// Nothing: the feature `tracing` is off.
#[cfg(not(feature = "tracing"))]
#[macro_export]
#[doc(hidden)]
macro_rules! log_event {
    ($($rest:tt)*) => {};
}

/// Nothing: the feature `tracing` is off.
#[cfg(not(feature = "tracing"))]
#[macro_export]
#[doc(hidden)]
macro_rules! log_span {
    ($($rest:tt)*) => {};
}
