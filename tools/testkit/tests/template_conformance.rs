//! The transport `template` keeps every rule of the API.

#![forbid(unsafe_code)]

use cci_testkit::device_of;

cci_testkit::conformance!(template, || device_of("template", &[]));
