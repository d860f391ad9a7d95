//! The transport `template-link` keeps every rule of the API.

#![forbid(unsafe_code)]

use cci_conformance::device_of;

const NOT_TOLD: &str = "the link is not told that nobody listens: the connect ends by its timeout";

const EXCEPTIONS: &[(&str, &str)] = &[("connect::nobody_listens", NOT_TOLD), ("connect::failed_many_times", NOT_TOLD)];

cci_conformance::conformance!(template_link, || device_of("template-link", &[]), except: EXCEPTIONS);
