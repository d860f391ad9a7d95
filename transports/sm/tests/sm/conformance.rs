//! The transport `sm` keeps every rule of the API.

use cci_conformance::sm_device;

cci_conformance::conformance!(sm, sm_device);
