//! Declarations: what names mean, and what becomes of spread arrays.

use super::Translator;
use super::statements::PROGRAM;
use crate::lex::{GLOBAL, HERE, SPREAD};
use crate::types::{Field, Reach, Symbol, Ty};
use lang_c::ast::{
    ArrayDeclarator, ArraySize, Declaration, DeclarationSpecifier, Declarator, DeclaratorKind, DerivedDeclarator,
    Expression, Extension, FunctionDeclarator, InitDeclarator, Initializer, PointerQualifier, SpecifierQualifier,
    StorageClassSpecifier, StructDeclaration, StructField, StructType, TypeName, TypeOf, TypeSpecifier, UnaryOperator,
};
use lang_c::span::{Node, Span};
use std::rc::Rc;

/// What a program knows of its job, in the headers.
const WORLD: &str = "sc_world_";

/// Where a declaration stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    File,
    Block,
    Parameter,
}

/// The storage class of a declaration.
#[derive(Clone, Copy, Default)]
struct Storage {
    is_typedef: bool,
    is_extern: bool,
    is_static: bool,
}

impl Translator {
    pub(super) fn declaration(&mut self, node: &Node<Declaration>, stands: Where) {
        let (base, storage) = self.specifiers(&node.node.specifiers);
        for init in &node.node.declarators {
            let declarator = &init.node.declarator;
            let mut ty = self.declarator(base.clone(), declarator);
            let name = name_of(declarator);
            let mut before = String::new();
            if let Some(name) = &name {
                if !storage.is_extern && !storage.is_static {
                    (ty, before) = self.with_dimensions(declarator, name, ty, stands);
                }
                let symbol = if storage.is_typedef { Symbol::Type(ty.clone()) } else { Symbol::Value(ty.clone()) };
                self.scopes.declare(name, symbol);
                if let Some(locals) = self.locals.last_mut() {
                    locals.insert(name.clone(), ());
                }
            }
            match (&ty, name) {
                (Ty::Function(..), name) => {
                    if name.as_deref() == Some(PROGRAM) {
                        self.program_returns_int(&node.node.specifiers, &ty);
                    }
                    self.scopes.enter();
                    self.parameters(declarator);
                    self.scopes.leave();
                }
                (Ty::Spread(dims, _), Some(name)) => {
                    self.spread_array(node.span, init, &name, dims, storage, stands);
                    let Span { start, .. } = declarator.span;
                    self.edits.insert_after(Span::span(start, start), before);
                }
                _ => self.initializer(init, &ty),
            }
        }
    }

    /// Makes a `splitc_main` that returns nothing one that returns a status.
    pub(super) fn program_returns_int(&mut self, specifiers: &[Node<DeclarationSpecifier>], ty: &Ty) {
        let Ty::Function(returns, _) = ty else { return };
        if !matches!(**returns, Ty::Void) {
            return;
        }
        for specifier in specifiers {
            if let DeclarationSpecifier::TypeSpecifier(specifier) = &specifier.node
                && matches!(specifier.node, TypeSpecifier::Void)
            {
                self.edits.replace(specifier.span, "int".to_owned());
            }
        }
    }

    fn initializer(&mut self, init: &Node<InitDeclarator>, ty: &Ty) {
        match init.node.initializer.as_ref().map(|initializer| &initializer.node) {
            Some(Initializer::Expression(expression)) => {
                let value = self.rvalue(expression);
                self.check_conversion(expression.span, &value, ty);
            }
            Some(Initializer::List(items)) => items.iter().for_each(|item| self.item(&item.node.initializer.node)),
            None => {}
        }
    }

    fn item(&mut self, initializer: &Initializer) {
        match initializer {
            Initializer::Expression(expression) => drop(self.rvalue(expression)),
            Initializer::List(items) => items.iter().for_each(|item| self.item(&item.node.initializer.node)),
        }
    }

    /// The type that specifiers name, and where the thing is stored.
    fn specifiers(&mut self, specifiers: &[Node<DeclarationSpecifier>]) -> (Ty, Storage) {
        let (mut ty, mut storage) = (Ty::Other, Storage::default());
        for specifier in specifiers {
            match &specifier.node {
                DeclarationSpecifier::TypeSpecifier(specifier) => ty = self.specifier(ty, &specifier.node),
                DeclarationSpecifier::StorageClass(class) => match class.node {
                    StorageClassSpecifier::Typedef => storage.is_typedef = true,
                    StorageClassSpecifier::Extern => storage.is_extern = true,
                    StorageClassSpecifier::Static => storage.is_static = true,
                    _ => {}
                },
                _ => {}
            }
        }
        (ty, storage)
    }

    /// The type that specifiers name.
    pub(super) fn base_of(&mut self, specifiers: &[Node<DeclarationSpecifier>]) -> Ty {
        self.specifiers(specifiers).0
    }

    fn qualifiers(&mut self, specifiers: &[Node<SpecifierQualifier>]) -> Ty {
        specifiers.iter().fold(Ty::Other, |ty, specifier| match &specifier.node {
            SpecifierQualifier::TypeSpecifier(specifier) => self.specifier(ty, &specifier.node),
            _ => ty,
        })
    }

    fn specifier(&mut self, ty: Ty, specifier: &TypeSpecifier) -> Ty {
        match specifier {
            TypeSpecifier::Void => Ty::Void,
            TypeSpecifier::Struct(node) => self.structure(&node.node),
            TypeSpecifier::TypedefName(name) => self.scopes.named_type(&name.node.name),
            TypeSpecifier::TypeOf(of) => match &of.node {
                TypeOf::Type(name) => self.type_name(&name.node),
                TypeOf::Expression(expression) => {
                    let ty = self.unevaluated(expression).ty;
                    if matches!(ty, Ty::Spread(..)) {
                        self.error(expression.span, "`typeof` of a spread array; name the type of a block");
                    }
                    ty
                }
            },
            _ => ty,
        }
    }

    fn structure(&mut self, node: &StructType) -> Ty {
        let fields = match &node.identifier {
            Some(tag) => self.scopes.tagged(&tag.node.name),
            None => Rc::default(),
        };
        for declaration in node.declarations.iter().flatten() {
            if let StructDeclaration::Field(field) = &declaration.node {
                for (name, found) in self.fields(&field.node) {
                    fields.borrow_mut().insert(name, found);
                }
            }
        }
        Ty::Struct(fields)
    }

    fn fields(&mut self, field: &StructField) -> Vec<(String, Field)> {
        let base = self.qualifiers(&field.specifiers);
        // The members of a structure without a name are those of the outer one.
        if let (Ty::Struct(inner), true) = (&base, field.declarators.is_empty()) {
            return inner.borrow().iter().map(|(name, field)| (name.clone(), field.clone())).collect();
        }
        let mut found = Vec::new();
        for declarator in &field.declarators {
            let Some(inner) = &declarator.node.declarator else { continue };
            let ty = self.declarator(base.clone(), inner);
            if matches!(ty, Ty::Spread(..)) {
                self.error(inner.span, "a spread array within a structure; declare a spread pointer there");
            }
            let is_bits = declarator.node.bit_width.is_some();
            found.extend(name_of(inner).map(|name| (name, Field { ty, is_bits })));
        }
        found
    }

    pub(super) fn type_name(&mut self, name: &TypeName) -> Ty {
        let base = self.qualifiers(&name.specifiers);
        match &name.declarator {
            Some(declarator) => self.declarator(base, declarator),
            None => base,
        }
    }

    /// The type that a declarator makes of another one.
    pub(super) fn declarator(&mut self, base: Ty, declarator: &Node<Declarator>) -> Ty {
        let derived = &declarator.node.derived;
        for node in derived {
            if let DerivedDeclarator::Array(array) = &node.node
                && let (Some(size), false) = (size_of(&array.node), is_here(&node.node))
            {
                self.size(size);
            }
        }
        let is_pointer = |node: &&Node<DerivedDeclarator>| matches!(node.node, DerivedDeclarator::Pointer(_));
        let mut ty = base;
        for node in derived.iter().filter(is_pointer) {
            if let DerivedDeclarator::Pointer(qualifiers) = &node.node {
                ty = Ty::pointer(reach_of(qualifiers), ty);
            }
        }
        let suffixes: Vec<_> = derived.iter().filter(|node| !is_pointer(node)).collect();
        let here = suffixes.iter().position(|node| is_here(&node.node));
        let right = here.map_or(0, |at| at + 1);
        for node in suffixes[right..].iter().rev() {
            ty = match &node.node {
                DerivedDeclarator::Array(_) => Ty::Array(Rc::new(ty)),
                DerivedDeclarator::Function(function) => self.function(ty, &function.node),
                DerivedDeclarator::KRFunction(_) => Ty::Function(Rc::new(ty), None),
                _ => ty,
            };
        }
        if let Some(here) = here {
            ty = self.spread_type(declarator.span, &suffixes[..here], ty);
        }
        match &declarator.node.kind.node {
            DeclaratorKind::Declarator(inner) => self.declarator(ty, inner),
            _ => ty,
        }
    }

    /// Translates the size of an array, which may be an access of the global address space.
    fn size(&mut self, size: &Node<Expression>) {
        let at = (size.span.start, size.span.end);
        if self.depth > 0 && !self.sizes.contains(&at) {
            self.sizes.push(at);
            self.rvalue(size);
        }
    }

    fn spread_type(&mut self, span: Span, left: &[&Node<DerivedDeclarator>], block: Ty) -> Ty {
        let mut dims = Vec::new();
        for node in left {
            let DerivedDeclarator::Array(array) = &node.node else { continue };
            match size_of(&array.node) {
                Some(size) => dims.push(self.edits.text(size.span)),
                None => dims.push(String::new()),
            }
        }
        if dims.is_empty() || dims[1..].iter().any(String::is_empty) {
            self.error(span, "a spread array has a dimension left of `::`; write T A[n]::[m]");
            dims = vec![String::new()];
        }
        Ty::Spread(dims[1..].to_vec(), Rc::new(block))
    }

    fn function(&mut self, returns: Ty, function: &FunctionDeclarator) -> Ty {
        let mut types = Vec::new();
        for parameter in &function.parameters {
            let (base, _) = self.specifiers(&parameter.node.specifiers);
            let ty = match &parameter.node.declarator {
                Some(declarator) => self.declarator(base, declarator),
                None => base,
            };
            types.push(ty.decayed(false));
        }
        let is_known = !types.is_empty();
        Ty::Function(Rc::new(returns), is_known.then(|| Rc::new(types)))
    }

    /// Gives the dimensions that the indices of a spread array need a value that stays: those of
    /// run time are evaluated at the declaration, or where the function begins. Returns the type
    /// with these values, and what is to be declared before the array.
    pub(super) fn with_dimensions(
        &mut self,
        declarator: &Node<Declarator>,
        name: &str,
        ty: Ty,
        stands: Where,
    ) -> (Ty, String) {
        let Ty::Spread(mut dims, block) = ty else { return (ty, String::new()) };
        let left = declarator.node.derived.iter().take_while(|node| !is_here(&node.node));
        let sizes = left.filter_map(|node| match &node.node {
            DerivedDeclarator::Array(array) => Some(size_of(&array.node)),
            _ => None,
        });
        let mut declared = String::new();
        for (number, (dim, size)) in dims.iter_mut().zip(sizes.skip(1)).enumerate() {
            if stands == Where::File || size.is_none_or(is_constant) {
                continue;
            }
            let kept = format!("sc_d_{name}_{number}_");
            if stands == Where::Block {
                // A pointer to so many: it has the type of the declaration.
                declared += &format!("(*{kept})[{dim}], ");
                *dim = format!("(sizeof *{kept} / sizeof **{kept})");
            } else {
                self.entry += &format!(" const int64_t {kept} __attribute__((unused)) = ({dim});");
                *dim = kept;
            }
        }
        (Ty::Spread(dims, block), declared)
    }

    /// Makes a pointer of a spread array: to its first block, with memory behind it.
    fn spread_array(
        &mut self,
        whole: Span,
        init: &Node<InitDeclarator>,
        name: &str,
        inner: &[String],
        storage: Storage,
        stands: Where,
    ) {
        let declarator = &init.node.declarator;
        if init.node.initializer.is_some() || storage.is_typedef {
            let what = "a spread array with an initializer, or of a typedef; assign its elements";
            return self.error(declarator.span, what);
        }
        let Some(mut dims) = self.pointer_to_block(declarator, name) else { return };
        dims.splice(dims.len().min(1).., inner.iter().cloned());
        let count = dims.iter().map(|dim| format!("(size_t)({dim})")).collect::<Vec<_>>().join(" * ");
        let is_sized = dims.iter().all(|dim| !dim.is_empty());
        if storage.is_extern || stands == Where::Parameter {
            return;
        }
        if !is_sized {
            return self.error(declarator.span, "a spread array without a size; give all dimensions left of `::`");
        }
        if stands == Where::File {
            self.edits.insert_after(whole, format!(
                " __attribute__((constructor)) static void sc_add_{name}_(void) {{ static struct sc_static_ sc_s_; sc_add_static_(&sc_s_, &{name}, {count}, sizeof *{name}); }}"
            ));
        } else if storage.is_static {
            self.error(declarator.span, "a static spread array within a function; declare it outside");
        } else {
            let text = format!(" __attribute__((cleanup(sc_free_auto_))) = sc_spread_auto_({count}, sizeof *{name})");
            self.edits.insert_after(declarator.span, text);
        }
    }

    /// Changes the declarator of a spread array to that of a pointer to a block, and returns the
    /// dimensions left of `::`.
    pub(super) fn pointer_to_block(&mut self, declarator: &Node<Declarator>, name: &str) -> Option<Vec<String>> {
        let DeclaratorKind::Identifier(identifier) = &declarator.node.kind.node else {
            self.error(declarator.span, "a spread array in brackets; write T A[n]::[m]");
            return None;
        };
        let mut dims = Vec::new();
        for node in &declarator.node.derived {
            if is_here(&node.node) {
                self.edits.replace(node.span, String::new());
                break;
            }
            if let DerivedDeclarator::Array(array) = &node.node {
                dims.push(size_of(&array.node).map_or(String::new(), |size| self.edits.text(size.span)));
                self.edits.replace(node.span, String::new());
            }
        }
        self.edits.replace(identifier.span, format!("(*{name})"));
        Some(dims)
    }
}

/// Where a pointer with these qualifiers leads.
fn reach_of(qualifiers: &[Node<PointerQualifier>]) -> Reach {
    for qualifier in qualifiers {
        let PointerQualifier::Extension(extensions) = &qualifier.node else { continue };
        for extension in extensions {
            if let Extension::Attribute(attribute) = &extension.node {
                match attribute.name.node.as_str() {
                    GLOBAL => return Reach::Global,
                    SPREAD => return Reach::Spread,
                    _ => {}
                }
            }
        }
    }
    Reach::Local
}

fn size_of(array: &ArrayDeclarator) -> Option<&Node<Expression>> {
    match &array.size {
        ArraySize::VariableExpression(size) | ArraySize::StaticExpression(size) => Some(size),
        _ => None,
    }
}

/// Whether a size is the same at every time: of numbers, and of what is known of the job.
fn is_constant(size: &Node<Expression>) -> bool {
    match &size.node {
        Expression::Constant(_) | Expression::SizeOfTy(_) => true,
        Expression::UnaryOperator(unary) => {
            let is_step = matches!(
                unary.node.operator.node,
                UnaryOperator::PostIncrement
                    | UnaryOperator::PostDecrement
                    | UnaryOperator::PreIncrement
                    | UnaryOperator::PreDecrement
            );
            !is_step && is_constant(&unary.node.operand)
        }
        Expression::BinaryOperator(binary) => is_constant(&binary.node.lhs) && is_constant(&binary.node.rhs),
        Expression::Member(member) => {
            matches!(&member.node.expression.node, Expression::Identifier(name) if name.node.name == WORLD)
        }
        _ => false,
    }
}

/// Whether it is the dimension that stands for `::`.
fn is_here(derived: &DerivedDeclarator) -> bool {
    let DerivedDeclarator::Array(array) = derived else { return false };
    let Some(size) = size_of(&array.node) else { return false };
    matches!(&size.node, Expression::Identifier(name) if name.node.name == HERE)
}

/// The name that a declarator declares.
pub(super) fn name_of(declarator: &Node<Declarator>) -> Option<String> {
    match &declarator.node.kind.node {
        DeclaratorKind::Identifier(name) => Some(name.node.name.clone()),
        DeclaratorKind::Declarator(inner) => name_of(inner),
        DeclaratorKind::Abstract => None,
    }
}
