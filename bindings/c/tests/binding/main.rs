//! The C library as it is installed: its headers, its symbols, and C programs that use it.

mod behaviour;
mod cmake;
mod descriptors;
mod examples;
mod headers;
mod jobs;
mod layers;
mod prefix;
mod sanitized;
mod symbols;
