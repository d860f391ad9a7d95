//! The sources, pages and packages of the project keep its rules.

#![forbid(unsafe_code)]

mod c_boundary;
mod circles;
mod environment_variables;
mod errors_page;
mod figures;
mod pages;
mod public_docs;
mod quiet_threads;
mod release;
mod sizes;
mod sources;
