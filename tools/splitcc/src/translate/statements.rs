//! Functions and statements.

use super::declarations::{Where, name_of};
use super::{OpenGet, Translator};
use crate::types::{Symbol, Ty};
use lang_c::ast::{
    BlockItem, Declarator, DeclaratorKind, DerivedDeclarator, ExternalDeclaration, ForInitializer, ForStatement,
    FunctionDefinition, Label, Statement, TranslationUnit,
};
use lang_c::span::{Node, Span};
use std::collections::BTreeMap;

/// What each rank runs. As `main` it returns 0 where it states nothing else.
pub(super) const PROGRAM: &str = "splitc_main";

impl Translator {
    pub(super) fn unit(&mut self, unit: &TranslationUnit) {
        for external in &unit.0 {
            match &external.node {
                ExternalDeclaration::Declaration(declaration) => self.declaration(declaration, Where::File),
                ExternalDeclaration::FunctionDefinition(function) => self.definition(&function.node),
                ExternalDeclaration::StaticAssert(_) => {}
            }
        }
    }

    fn definition(&mut self, function: &FunctionDefinition) {
        let base = self.base_of(&function.specifiers);
        let ty = self.declarator(base, &function.declarator);
        let name = name_of(&function.declarator);
        if let Some(name) = &name {
            self.scopes.declare(name, Symbol::Value(ty.clone()));
        }
        self.is_program = name.as_deref() == Some(PROGRAM);
        if self.is_program {
            self.program_returns_int(&function.specifiers, &ty);
            let Span { end, .. } = function.statement.span;
            self.edits.insert_after(Span::span(end - 1, end - 1), " return 0; ".to_owned());
        }
        self.entry.clear();
        self.scopes.enter();
        self.locals.push(BTreeMap::new());
        self.returns = if let Ty::Function(returns, _) = &ty { (**returns).clone() } else { Ty::Other };
        self.parameters(&function.declarator);
        for declaration in &function.declarations {
            self.declaration(declaration, Where::Parameter);
        }
        let Span { start, .. } = function.statement.span;
        self.edits.insert_after(Span::span(start + 1, start + 1), std::mem::take(&mut self.entry));
        self.statement(&function.statement);
        self.locals.pop();
        self.scopes.leave();
        self.gets.clear();
    }

    pub(super) fn parameters(&mut self, declarator: &Node<Declarator>) {
        for node in &declarator.node.derived {
            let DerivedDeclarator::Function(function) = &node.node else { continue };
            for parameter in &function.node.parameters {
                let base = self.base_of(&parameter.node.specifiers);
                let Some(declarator) = &parameter.node.declarator else { continue };
                let ty = self.declarator(base, declarator);
                let Some(name) = name_of(declarator) else { continue };
                let (ty, _) = self.with_dimensions(declarator, &name, ty, Where::Parameter);
                if matches!(ty, Ty::Spread(..)) {
                    self.pointer_to_block(declarator, &name);
                }
                self.scopes.declare(&name, Symbol::Value(ty));
            }
        }
        if let DeclaratorKind::Declarator(inner) = &declarator.node.kind.node {
            self.parameters(inner);
        }
    }

    pub(super) fn statement(&mut self, node: &Node<Statement>) {
        match &node.node {
            Statement::Labeled(labeled) => {
                if let Label::Case(value) = &labeled.node.label.node {
                    self.rvalue(value);
                }
                self.statement(&labeled.node.statement);
            }
            Statement::Compound(items) => {
                self.block(items);
            }
            Statement::Expression(Some(expression)) => drop(self.rvalue(expression)),
            Statement::If(node) => {
                self.rvalue(&node.node.condition);
                self.statement(&node.node.then_statement);
                if let Some(other) = &node.node.else_statement {
                    self.statement(other);
                }
            }
            Statement::Switch(node) => {
                self.rvalue(&node.node.expression);
                self.statement(&node.node.statement);
            }
            Statement::While(node) => {
                self.rvalue(&node.node.expression);
                self.statement(&node.node.statement);
            }
            Statement::DoWhile(node) => {
                self.statement(&node.node.statement);
                self.rvalue(&node.node.expression);
            }
            Statement::For(node) => self.for_statement(&node.node),
            Statement::Return(None) if self.is_program => self.edits.replace(node.span, "return 0;".to_owned()),
            Statement::Return(Some(expression)) => {
                let value = self.rvalue(expression);
                let returns = self.returns.clone();
                self.check_conversion(expression.span, &value, &returns);
            }
            _ => {}
        }
    }

    fn for_statement(&mut self, node: &ForStatement) {
        self.scopes.enter();
        match &node.initializer.node {
            ForInitializer::Expression(expression) => drop(self.rvalue(expression)),
            ForInitializer::Declaration(declaration) => self.declaration(declaration, Where::Block),
            _ => {}
        }
        for expression in [&node.condition, &node.step].into_iter().flatten() {
            self.rvalue(expression);
        }
        self.statement(&node.statement);
        self.scopes.leave();
    }

    /// The items of a block, and the type of its last expression.
    pub(super) fn block(&mut self, items: &[Node<BlockItem>]) -> Ty {
        self.scopes.enter();
        self.locals.push(BTreeMap::new());
        self.depth += 1;
        let mut last = Ty::Other;
        for item in items {
            last = Ty::Other;
            match &item.node {
                BlockItem::Declaration(declaration) => self.declaration(declaration, Where::Block),
                BlockItem::Statement(statement) => match &statement.node {
                    Statement::Expression(Some(expression)) => last = self.rvalue(expression).ty,
                    _ => self.statement(statement),
                },
                BlockItem::StaticAssert(_) => {}
            }
        }
        self.depth -= 1;
        let own = self.locals.pop().unwrap_or_default();
        self.scopes.leave();
        self.end_of_scope(&own);
        last
    }

    /// Warns of gets into variables that end here.
    fn end_of_scope(&mut self, own: &BTreeMap<String, ()>) {
        let depth = self.depth;
        let (ended, open): (Vec<_>, Vec<_>) = std::mem::take(&mut self.gets)
            .into_iter()
            .partition(|get| get.depth > depth && own.contains_key(&get.name));
        self.gets = open;
        for get in ended {
            self.warn(&get.place, &format!("`{}` ends before a sync() completes this get", get.name));
        }
    }

    /// Notes a get into a variable of an open block.
    pub(super) fn note_get(&mut self, name: &str, place: String) {
        if self.locals.iter().any(|names| names.contains_key(name)) {
            self.gets.push(OpenGet { name: name.to_owned(), place, depth: self.depth });
        }
    }
}
