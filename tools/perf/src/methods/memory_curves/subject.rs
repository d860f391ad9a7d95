//! What a process of a curve measures, and what it is told.

use cci_report::memory_curves::Over;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a measuring process measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Subject {
    /// Connections of a transport between two endpoints.
    Connections(String),
    /// Endpoints that connect to one over a transport.
    Peers(String),
    /// TCP sockets without the library.
    Sockets,
}

impl Subject {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Connections(transport) | Self::Peers(transport) => transport.clone(),
            Self::Sockets => "bare sockets".into(),
        }
    }

    pub(super) fn over(&self) -> Over {
        if matches!(self, Self::Connections(_)) { Over::Connections } else { Over::Peers }
    }
}

/// One process of a curve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CurveTask {
    pub(super) subject: Subject,
    pub(super) stops: Vec<u32>,
    pub(super) time: Duration,
    /// Of a process of the peers; without it this one measures.
    pub(super) other: Option<OtherEnd>,
}

/// What a process of the peers connects to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OtherEnd {
    /// Which of these processes it is, from 0.
    pub(super) number: u8,
    /// Where an endpoint is used for the first time, and the one that is measured.
    pub(super) to: [String; 2],
}

impl CurveTask {
    pub(super) fn new(subject: Subject, stops: Vec<u32>, time: Duration) -> Self {
        Self { subject, stops, time, other: None }
    }

    /// The task of the other end.
    pub(super) fn of_other(&self, number: u8, to: [String; 2]) -> Self {
        Self { other: Some(OtherEnd { number, to }), ..self.clone() }
    }
}
