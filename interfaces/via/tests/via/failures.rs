//! What goes wrong.
