//! Routes as lists of components, and how many of each there are.

/// One part of what a message's way costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// o: one end handles the message.
    Overhead,
    /// l_p: along one link.
    Propagation,
    /// l_f: through a node, within a dimension.
    Forwarding,
    /// l_s: through a node into another dimension, or through a switch.
    Switching,
}

/// How many components of each kind a route has, the two overheads apart; or how many routes have
/// on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Components {
    /// Links.
    pub propagations: f64,
    /// Nodes passed within a dimension.
    pub forwardings: f64,
    /// Changes of dimension, and switches.
    pub switchings: f64,
}

impl Components {
    /// Of a route that is known by its links and switchings: every vertex between two links
    /// forwards or switches.
    #[must_use]
    pub fn of(propagations: f64, switchings: f64) -> Self {
        Self { propagations, forwardings: propagations - switchings - 1.0, switchings }
    }

    /// The sum with another, weighted.
    #[must_use]
    pub fn plus(&self, weight: f64, other: &Self) -> Self {
        Self {
            propagations: self.propagations + weight * other.propagations,
            forwardings: self.forwardings + weight * other.forwardings,
            switchings: self.switchings + weight * other.switchings,
        }
    }

    /// All multiplied.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        Self::default().plus(factor, self)
    }
}

/// A place that links join: a node, or a switch. Nodes come first, from 0; switches have the
/// numbers above.
pub type Vertex = u64;

/// The way from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Every vertex passed, source first, destination last.
    pub vertices: Vec<Vertex>,
    /// What happens at the vertices in between: forwarding or switching.
    pub crossings: Vec<Component>,
}

impl Route {
    /// A route that begins at its source.
    pub(crate) fn from(source: Vertex) -> Self {
        Self { vertices: vec![source], crossings: vec![] }
    }

    /// Goes on to `vertex`; the vertex left was crossed by `crossing`, unless it is the source.
    pub(crate) fn on(&mut self, crossing: Component, vertex: Vertex) {
        if self.vertices.len() > 1 {
            self.crossings.push(crossing);
        }
        self.vertices.push(vertex);
    }

    /// The links in the order of travel, each from one vertex to another.
    pub fn links(&self) -> impl Iterator<Item = (Vertex, Vertex)> + '_ {
        self.vertices.windows(2).map(|pair| (pair[0], pair[1]))
    }

    /// Every component in the order of travel: the sender's overhead first, the receiver's last.
    #[must_use]
    pub fn components(&self) -> Vec<Component> {
        let mut list = vec![Component::Overhead];
        for link in 0..self.vertices.len() - 1 {
            if link > 0 {
                list.push(self.crossings[link - 1]);
            }
            list.push(Component::Propagation);
        }
        list.push(Component::Overhead);
        list
    }

    /// How many there are of each.
    #[must_use]
    pub fn count(&self) -> Components {
        let number = |kind| self.crossings.iter().filter(|crossing| **crossing == kind).count() as f64;
        Components {
            propagations: (self.vertices.len() - 1) as f64,
            forwardings: number(Component::Forwarding),
            switchings: number(Component::Switching),
        }
    }
}

/// Request, response, and both: what one transaction between two nodes costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// Source to destination. Half a ping-pong, where ping and pong have equal ways.
    pub request: Route,
    /// Destination back to source: the rest of the way round on unidirectional rings.
    pub response: Route,
}
