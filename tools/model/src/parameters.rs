//! What a network's parts cost: the components of latency, and the links.

use crate::error::ModelError;
use crate::topology::route::Components;

/// Overhead of one end for a message of m bytes: o(m) = o_0 + c (m - m_0).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    /// o_0: overhead of a message of m_0 bytes, ns.
    pub at_reference_ns: f64,
    /// m_0: the size at which o_0 was measured, bytes.
    pub reference_bytes: f64,
    /// c: what each further byte costs, ns.
    pub per_byte_ns: f64,
}

impl Overhead {
    /// The same for every size.
    #[must_use]
    pub const fn constant(ns: f64) -> Self {
        Self { at_reference_ns: ns, reference_bytes: 0.0, per_byte_ns: 0.0 }
    }

    /// o(m), ns.
    #[must_use]
    pub fn at(&self, bytes: f64) -> f64 {
        self.at_reference_ns + self.per_byte_ns * (bytes - self.reference_bytes)
    }
}

/// When a frame goes on to its next link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relay {
    /// When its first byte has arrived: it is transmitted once, on all links at the same time.
    CutThrough,
    /// When its last byte has arrived: every link transmits it again.
    StoreAndForward,
}

/// Where the time is counted that it takes to put a frame on its first link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstTransmission {
    /// In the overheads, as in those that were measured end to end: a measured one-hop path
    /// contains it.
    InOverhead,
    /// Apart from them, as with a network simulator whose overheads are of the processors alone.
    Apart,
}

/// The links, all alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Bytes per nanosecond (1 is 8 Gb/s). Without it nothing can be said of contention, or of
    /// store-and-forward.
    pub bytes_per_ns: Option<f64>,
    /// What a frame has besides the message, bytes.
    pub header_bytes: f64,
    /// When a frame goes on to its next link.
    pub relay: Relay,
    /// Where the first transmission is counted.
    pub first: FirstTransmission,
}

/// Everything that determines a latency besides the route.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// o(m): overhead of each end.
    pub overhead: Overhead,
    /// l_p: propagation along one link, ns.
    pub propagation_ns: f64,
    /// l_f: forwarding through a node, within a dimension, ns.
    pub forwarding_ns: f64,
    /// l_s: switching from one dimension to another, or through a switch, ns.
    pub switching_ns: f64,
    /// The links.
    pub link: Link,
    /// m: size of the message, bytes.
    pub message_bytes: f64,
}

impl Parameters {
    /// o(m) of the message, ns.
    #[must_use]
    pub fn overhead_ns(&self) -> f64 {
        self.overhead.at(self.message_bytes)
    }

    /// How long a frame occupies a link, ns.
    ///
    /// # Errors
    ///
    /// Without a link rate nobody knows.
    pub fn transmission_ns(&self) -> Result<f64, ModelError> {
        let rate = self.link.bytes_per_ns.ok_or_else(|| ModelError::Parameter {
            name: "rate",
            wrong: "is missing: contention and store-and-forward need the rate of the links, such as rate=3.2Gb/s"
                .into(),
        })?;
        Ok((self.message_bytes + self.link.header_bytes) / rate)
    }

    /// The latency of a path, or the mean latency of paths, with these components, ns.
    ///
    /// # Errors
    ///
    /// Store-and-forward, and first transmissions apart from the overheads, need a link rate.
    pub fn latency_ns(&self, path: &Components) -> Result<f64, ModelError> {
        Ok(2.0 * self.overhead_ns() + self.network_ns(path) + self.transmissions_ns(path)?)
    }

    /// What the links, nodes and switches of a path add, transmission apart, ns.
    fn network_ns(&self, path: &Components) -> f64 {
        path.propagations * self.propagation_ns
            + path.forwardings * self.forwarding_ns
            + path.switchings * self.switching_ns
    }

    /// What is transmitted besides what the overheads contain, ns.
    fn transmissions_ns(&self, path: &Components) -> Result<f64, ModelError> {
        let all = match self.link.relay {
            Relay::CutThrough => 1.0,
            Relay::StoreAndForward => path.propagations,
        };
        match (self.link.relay, self.link.first) {
            (Relay::CutThrough, FirstTransmission::InOverhead) => Ok(0.0),
            (_, FirstTransmission::InOverhead) => Ok((all - 1.0) * self.transmission_ns()?),
            (_, FirstTransmission::Apart) => Ok(all * self.transmission_ns()?),
        }
    }

    /// Whether these are parameters of a network: times above zero, sizes not below.
    ///
    /// # Errors
    ///
    /// The first that is not, with what to give instead.
    pub fn check(&self) -> Result<(), ModelError> {
        above_zero("o_0", self.overhead.at_reference_ns, "a time such as 2085ns")?;
        above_zero("l_p", self.propagation_ns, "a time such as 7ns")?;
        above_zero("l_f", self.forwarding_ns, "a time such as 60ns")?;
        above_zero("l_s", self.switching_ns, "a time such as 670ns")?;
        not_below_zero("m_0", self.overhead.reference_bytes, "a size such as 64")?;
        not_below_zero("c", self.overhead.per_byte_ns, "nanoseconds per byte such as 11.6")?;
        not_below_zero("header", self.link.header_bytes, "a size such as 16")?;
        not_below_zero("m", self.message_bytes, "a size such as 64")?;
        if let Some(rate) = self.link.bytes_per_ns {
            above_zero("rate", rate, "a rate such as 3.2Gb/s")?;
        }
        let overhead = self.overhead_ns();
        if overhead > 0.0 {
            return Ok(());
        }
        Err(ModelError::Parameter {
            name: "o(m)",
            wrong: format!(
                "is {overhead} ns for m = {} bytes, and an overhead is above zero: give a larger m, a larger o_0 or a \
                 smaller c",
                self.message_bytes
            ),
        })
    }
}

fn above_zero(name: &'static str, value: f64, instead: &str) -> Result<(), ModelError> {
    if value > 0.0 && value.is_finite() { Ok(()) } else { Err(wrong(name, value, "above zero", instead)) }
}

fn not_below_zero(name: &'static str, value: f64, instead: &str) -> Result<(), ModelError> {
    if value >= 0.0 && value.is_finite() { Ok(()) } else { Err(wrong(name, value, "zero or above", instead)) }
}

fn wrong(name: &'static str, value: f64, range: &str, instead: &str) -> ModelError {
    ModelError::Parameter { name, wrong: format!("is {value}, and must be {range}: give {instead}") }
}
