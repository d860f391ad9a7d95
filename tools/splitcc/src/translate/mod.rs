//! From the tree of an encoded program to C with calls of the run time.
//!
//! A global pointer is a C pointer whose 64 bits are rank and address: its type tells the C
//! compiler sizes and members, its arithmetic is C's, and nothing but an access or a conversion
//! changes. The arithmetic of a spread pointer is a call.

mod declarations;
mod expressions;
mod operators;
mod statements;

use crate::edits::Edits;
use crate::lex::{GLOBAL, HERE, SPREAD, attribute};
use crate::types::{Reach, Scopes, Ty};
use lang_c::ast::TranslationUnit;
use lang_c::span::{Node, Span};
use std::collections::BTreeMap;

/// Where the value of an expression lies.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere.
    None,
    /// In a variable of this rank.
    Local,
    /// In the global address space: the text is good for its address and its type only.
    Global,
    /// As `Global`, in bits that have no address.
    Bits,
    /// Indices of a spread array so far, of which more are to come.
    Partial { base: String, index: String, dims: Vec<String> },
}

/// What is known of an expression.
#[derive(Clone, Debug)]
struct Value {
    ty: Ty,
    place: Place,
    /// The constant 0, which any pointer may be.
    is_null: bool,
}

impl Value {
    fn new(ty: Ty) -> Self {
        Self { ty, place: Place::None, is_null: false }
    }

    fn at(ty: Ty, place: Place) -> Self {
        Self { ty, place, is_null: false }
    }
}

/// A get into a variable of an open block, which no `sync` has completed yet.
#[derive(Debug)]
struct OpenGet {
    name: String,
    place: String,
    depth: usize,
}

pub(crate) struct Translator {
    edits: Edits,
    scopes: Scopes,
    errors: Vec<String>,
    warnings: Vec<String>,
    /// What the function returns, whose body this is.
    returns: Ty,
    /// Whether that is `splitc_main`.
    is_program: bool,
    /// Blocks that are open.
    depth: usize,
    /// Declarations at the begin of the function's body.
    entry: String,
    /// Expressions within types that have been translated: some types are looked at twice.
    sizes: Vec<(usize, usize)>,
    gets: Vec<OpenGet>,
    /// At which depth each variable of the function was declared.
    locals: Vec<BTreeMap<String, ()>>,
}

/// A program in C, and what was noticed on the way.
pub(crate) struct Translated {
    pub(crate) text: String,
    pub(crate) warnings: Vec<String>,
}

/// Translates an encoded program.
///
/// # Errors
///
/// What is wrong in it, in its own lines.
pub(crate) fn translate(source: String, unit: &TranslationUnit) -> Result<Translated, Vec<String>> {
    let mut this = Translator {
        edits: Edits::new(source),
        scopes: Scopes::new(),
        errors: Vec::new(),
        warnings: Vec::new(),
        returns: Ty::Other,
        is_program: false,
        depth: 0,
        entry: String::new(),
        sizes: Vec::new(),
        gets: Vec::new(),
        locals: Vec::new(),
    };
    this.unit(unit);
    let mut text = this.edits.text(this.edits.whole());
    for name in [GLOBAL, SPREAD] {
        text = text.replace(&attribute(name), "");
    }
    if this.errors.is_empty()
        && let Some(at) = text.find(&format!("[{HERE}]"))
    {
        let place = crate::edits::place(&text, at);
        this.errors.push(format!(
            "{place}: error: `::` stands where no spread array can be declared; declare a variable or a parameter"
        ));
    }
    if this.errors.is_empty() { Ok(Translated { text, warnings: this.warnings }) } else { Err(this.errors) }
}

impl Translator {
    fn error(&mut self, span: Span, what: &str) {
        let message = format!("{}: error: {what}", self.edits.place(span));
        if !self.errors.contains(&message) {
            self.errors.push(message);
        }
    }

    fn warn(&mut self, place: &str, what: &str) {
        self.warnings.push(format!("{place}: warning: {what}"));
    }

    /// Whether a value may become one of a type by itself: pointers keep where they lead.
    fn check_conversion(&mut self, span: Span, from: &Value, to: &Ty) {
        let Some(wanted) = to.reach() else { return };
        if from.is_null {
            return;
        }
        let found = match &from.ty {
            Ty::Pointer(reach, _) => *reach,
            _ => return,
        };
        if found == wanted {
            return;
        }
        let remedy = match (found, wanted) {
            (Reach::Local, _) => "write toglobal(MYPROC, p), or cast it",
            (_, Reach::Local) => "write tolocal(p), or cast it",
            _ => "cast it",
        };
        let (found, wanted) = (found.name(), wanted.name());
        self.error(span, &format!("{found} where {wanted} is wanted; {remedy}"));
    }
}

/// The span of a node, for those that are boxed.
fn span<T>(node: &Node<T>) -> Span {
    node.span
}
