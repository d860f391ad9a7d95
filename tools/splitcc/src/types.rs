//! The types that the translation needs: which pointers lead where. Sizes are the C compiler's.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Where a pointer leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Local,
    Global,
    Spread,
}

impl Reach {
    /// The words for a message.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Local => "a local pointer",
            Self::Global => "a global pointer",
            Self::Spread => "a spread pointer",
        }
    }
}

/// A member of a structure.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) ty: Ty,
    pub(crate) is_bits: bool,
}

/// The members of a structure or union, which may be declared later.
pub(crate) type Fields = Rc<RefCell<HashMap<String, Field>>>;

/// A type, as far as it matters.
#[derive(Clone, Debug)]
pub(crate) enum Ty {
    /// A number, or what nobody knows.
    Other,
    Void,
    Pointer(Reach, Rc<Ty>),
    Array(Rc<Ty>),
    /// The dimensions left of `::` but the first, as they are written, and the block of an element.
    Spread(Vec<String>, Rc<Ty>),
    Struct(Fields),
    /// What it returns, and its parameters if they are known.
    Function(Rc<Ty>, Option<Rc<Vec<Ty>>>),
}

impl Ty {
    pub(crate) fn pointer(reach: Reach, to: Ty) -> Self {
        Self::Pointer(reach, Rc::new(to))
    }

    /// What a value of this type is in an expression: arrays are pointers. `is_global`: it lies in
    /// the global address space.
    pub(crate) fn decayed(self, is_global: bool) -> Self {
        let reach = if is_global { Reach::Global } else { Reach::Local };
        match self {
            Self::Array(of) => Self::Pointer(reach, of),
            Self::Spread(_, of) => Self::Pointer(Reach::Spread, of),
            Self::Function(..) => Self::pointer(Reach::Local, self),
            other => other,
        }
    }

    /// Where it leads, if it is a pointer.
    pub(crate) fn reach(&self) -> Option<Reach> {
        if let Self::Pointer(reach, _) = self { Some(*reach) } else { None }
    }

    /// Whether it is a pointer that leads to other ranks.
    pub(crate) fn is_far(&self) -> bool {
        self.reach().is_some_and(|reach| reach != Reach::Local)
    }
}

/// What a name means.
#[derive(Clone, Debug)]
pub(crate) enum Symbol {
    Type(Ty),
    Value(Ty),
}

/// The names of all open blocks.
#[derive(Debug)]
pub(crate) struct Scopes {
    names: Vec<HashMap<String, Symbol>>,
    tags: HashMap<String, Fields>,
}

impl Scopes {
    pub(crate) fn new() -> Self {
        Self { names: vec![HashMap::new()], tags: HashMap::new() }
    }

    pub(crate) fn enter(&mut self) {
        self.names.push(HashMap::new());
    }

    pub(crate) fn leave(&mut self) {
        self.names.pop();
    }

    pub(crate) fn declare(&mut self, name: &str, symbol: Symbol) {
        if let Some(names) = self.names.last_mut() {
            names.insert(name.to_owned(), symbol);
        }
    }

    fn find(&self, name: &str) -> Option<&Symbol> {
        self.names.iter().rev().find_map(|names| names.get(name))
    }

    /// The type of a variable or a function; `Other` where it is not known.
    pub(crate) fn value(&self, name: &str) -> Ty {
        if let Some(Symbol::Value(ty)) = self.find(name) { ty.clone() } else { Ty::Other }
    }

    pub(crate) fn named_type(&self, name: &str) -> Ty {
        if let Some(Symbol::Type(ty)) = self.find(name) { ty.clone() } else { Ty::Other }
    }

    /// The members of a structure by its tag; the same value before and after its declaration.
    pub(crate) fn tagged(&mut self, tag: &str) -> Fields {
        self.tags.entry(tag.to_owned()).or_default().clone()
    }
}
