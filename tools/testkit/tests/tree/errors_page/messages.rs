//! The messages in the sources: literals that a reader may get to see.

use crate::sources::parsed;
use proc_macro2::TokenTree;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// Macros whose texts are for developers.
const FOR_DEVELOPERS: [&str; 9] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "panic",
    "unreachable",
    "cfg",
];

/// Which literals of a file are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// Every sentence, three words or more, and what makers of errors are given.
    Sentences,
    /// What these makers of errors are given: functions, methods, constructors.
    GivenTo(&'static [&'static str]),
}

/// Collects the literals of one file.
struct Literals {
    take: Take,
    /// Makers of errors around this place, if they count.
    inside: usize,
    /// Names of variables that a maker of errors was given.
    wanted: Vec<String>,
    found: Vec<String>,
}

/// What a literal reads as in a page: each value that a program puts in is an ellipsis.
pub(crate) fn template(literal: &str) -> String {
    let (mut text, mut characters) = (String::new(), literal.chars().peekable());
    while let Some(character) = characters.next() {
        match character {
            '{' | '}' if characters.peek() == Some(&character) => {
                characters.next();
                text.push(character);
            }
            '{' => {
                characters.by_ref().find(|character| *character == '}');
                text.push('…');
            }
            '\n' => text.push(' '),
            character => text.push(character),
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count()
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let tokens = match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string(),
            _ => String::new(),
        };
        attribute.path().is_ident("test") || attribute.path().is_ident("cfg") && tokens == "test"
    })
}

impl Literals {
    fn literal(&mut self, text: &str) {
        let is_taken = match self.take {
            Take::Sentences if self.inside == 0 => words(text) >= 3,
            // Values alone, or a word, are parts of a message that has more.
            _ => self.inside > 0 && words(text) >= 2 && words(&template(text)) >= 1,
        };
        if is_taken {
            self.found.push(template(text));
        }
    }

    fn tokens(&mut self, tokens: proc_macro2::TokenStream) {
        let mut before_is_hash = false;
        for token in tokens {
            let is_attribute = std::mem::replace(
                &mut before_is_hash,
                matches!(&token, TokenTree::Punct(mark) if mark.as_char() == '#'),
            );
            match token {
                // A doc comment of what a macro declares.
                TokenTree::Group(_) if is_attribute => (),
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => match syn::Lit::new(literal) {
                    syn::Lit::Str(text) => self.literal(&text.value()),
                    syn::Lit::CStr(text) => self.literal(&text.value().to_string_lossy()),
                    _ => (),
                },
                _ => (),
            }
        }
    }

    fn makers(&self) -> &'static [&'static str] {
        match self.take {
            Take::Sentences => &["Argument", "write_str", "OpenError::new", "OpenError::system"],
            Take::GivenTo(makers) => makers,
        }
    }

    /// Whether this path names a maker of errors: by its last name, or its last two.
    fn makes_errors(&self, path: &syn::Path) -> bool {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let ends = (names.last().cloned(), names.get(names.len().wrapping_sub(2)..).map(|names| names.join("::")));
        self.makers().iter().any(|maker| ends.0.as_deref() == Some(*maker) || ends.1.as_deref() == Some(*maker))
    }
}

impl<'ast> Visit<'ast> for Literals {
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // What a debugging print shows is no message.
        let name = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if name.is_none_or(|name| name.ident != "Debug") {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.literal(&literal.value());
    }

    fn visit_lit_cstr(&mut self, literal: &'ast syn::LitCStr) {
        self.literal(&literal.value().to_string_lossy());
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let name = call.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        if !FOR_DEVELOPERS.contains(&name.as_str()) {
            // The sentences of enumerations of errors.
            let declares = usize::from(name == "refusals");
            self.inside += declares;
            self.tokens(call.tokens.clone());
            self.inside -= declares;
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.visit_expr(&call.receiver);
        if call.method != "expect" {
            let makes = usize::from(self.makers().contains(&call.method.to_string().as_str()));
            self.inside += makes;
            call.args.iter().for_each(|argument| self.visit_expr(argument));
            self.inside -= makes;
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let makes = matches!(&*call.func, syn::Expr::Path(path) if self.makes_errors(&path.path));
        self.inside += usize::from(makes);
        if makes {
            for argument in &call.args {
                let argument = match argument {
                    syn::Expr::Reference(reference) => &reference.expr,
                    other => other,
                };
                if let syn::Expr::Path(path) = argument {
                    self.wanted.extend(path.path.get_ident().map(ToString::to_string));
                }
            }
        }
        visit::visit_expr_call(self, call);
        self.inside -= usize::from(makes);
    }
}

/// Takes what variables hold that a maker of errors was given, in the same function.
struct Variables<'a>(&'a mut Literals);

impl<'ast> Visit<'ast> for Variables<'_> {
    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let (syn::Pat::Ident(name), Some(init)) = (&local.pat, &local.init)
            && self.0.wanted.contains(&name.ident.to_string())
        {
            self.0.inside += 1;
            self.0.visit_local_init(init);
            self.0.inside -= 1;
        }
        visit::visit_local(self, local);
    }
}

/// The messages below a directory of sources, each with its file.
pub(crate) fn messages(directory: &Path, take: Take) -> Vec<(String, PathBuf)> {
    let mut messages = Vec::new();
    for (path, file) in parsed(directory) {
        let mut literals = Literals { take, inside: 0, wanted: Vec::new(), found: Vec::new() };
        literals.visit_file(&file);
        if take != Take::Sentences {
            Variables(&mut literals).visit_file(&file);
        }
        messages.extend(literals.found.into_iter().map(|message| (message, path.clone())));
    }
    messages
}
