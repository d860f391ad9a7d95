//! The transport `sm` keeps every rule of the API.

#![forbid(unsafe_code)]

use cci_testkit::sm_device;

cci_testkit::conformance!(sm, sm_device);
