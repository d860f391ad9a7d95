//! Secrets, their files, and where they are found.
