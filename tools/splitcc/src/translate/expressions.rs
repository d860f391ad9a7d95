//! Expressions: what they are, and where accesses of the global address space become calls.

use super::operators::once;
use super::{Place, Translator, Value, span};
use crate::types::{Reach, Ty};
use lang_c::ast::{
    CallExpression, CastExpression, ConditionalExpression, Constant, Expression, Initializer, InitializerListItem,
    MemberExpression, MemberOperator, Statement, UnaryOperator, UnaryOperatorExpression,
};
use lang_c::span::{Node, Span};

/// What the headers make of `tolocal`, `toglobal` and `toproc`.
const TO_LOCAL: &str = "sc_tolocal_";
const TO_GLOBAL: &str = "sc_toglobal_";
const TO_RANK: &str = "sc_toproc_";

impl Translator {
    /// Translates an expression whose value is wanted.
    pub(super) fn rvalue(&mut self, node: &Node<Expression>) -> Value {
        let value = self.expression(node);
        self.load(node.span, value)
    }

    /// Makes a value of what an expression names.
    pub(super) fn load(&mut self, span: Span, value: Value) -> Value {
        let is_null = value.is_null;
        let is_global = matches!(value.place, Place::Global | Place::Bits);
        match &value.place {
            Place::Partial { .. } => {
                self.error(span, "a spread array with fewer indices than it has dimensions left of `::`; index all");
                return Value::new(Ty::Other);
            }
            Place::Bits => {
                self.error(span, "a bit field in the global address space; make it a member of its own");
            }
            // An array is its address.
            Place::Global if !matches!(value.ty, Ty::Array(_)) => {
                let lvalue = self.edits.text(span);
                if matches!(value.ty, Ty::Void) {
                    self.error(span, "what a pointer to void leads to has no type; cast the pointer");
                }
                self.edits.replace(span, format!(
                    "({{ __auto_type sc_p_ = &({lvalue}); __typeof__(*sc_p_) sc_v_; sc_read((void *)&sc_v_, (sc_global)sc_p_, sizeof sc_v_); sc_v_; }})"
                ));
            }
            _ => {}
        }
        Value { is_null, ..Value::new(value.ty.decayed(is_global)) }
    }

    /// An operand of `typeof` or `sizeof`, which names something. It is translated once, within
    /// functions: C has no statements in expressions elsewhere.
    pub(super) fn unevaluated(&mut self, node: &Node<Expression>) -> Value {
        let at = (node.span.start, node.span.end);
        if self.depth > 0 && !self.sizes.contains(&at) {
            self.sizes.push(at);
            return self.expression(node);
        }
        let (saved, errors, sizes) = (self.edits.saved(), self.errors.len(), self.sizes.clone());
        let value = self.expression(node);
        self.edits.restore(saved);
        self.errors.truncate(errors);
        self.sizes = sizes;
        value
    }

    /// `sizeof` of an expression.
    fn size_of_value(&mut self, operand: &Node<Expression>) -> Value {
        let value = self.unevaluated(operand);
        match value.place {
            Place::Partial { .. } => return self.load(operand.span, value),
            _ if matches!(value.ty, Ty::Spread(..)) => {
                self.error(operand.span, "`sizeof` of a spread array; multiply that of a block by their number");
            }
            _ => {}
        }
        Value::new(Ty::Other)
    }

    pub(super) fn expression(&mut self, node: &Node<Expression>) -> Value {
        match &node.node {
            Expression::Identifier(name) => {
                let ty = self.scopes.value(&name.node.name);
                Value::at(ty, Place::Local)
            }
            Expression::Constant(constant) => {
                let is_zero =
                    matches!(&constant.node, Constant::Integer(integer) if integer.number.chars().all(|c| c == '0'));
                Value { is_null: is_zero, ..Value::new(Ty::Other) }
            }
            Expression::StringLiteral(_) => Value::new(Ty::pointer(Reach::Local, Ty::Other)),
            Expression::Member(member) => self.member(&member.node),
            Expression::Call(call) => self.call(node.span, &call.node),
            Expression::UnaryOperator(unary) => self.unary(node.span, &unary.node),
            Expression::Cast(cast) => self.cast(node.span, &cast.node),
            Expression::BinaryOperator(binary) => self.binary(node.span, &binary.node),
            Expression::Conditional(conditional) => self.conditional(node.span, &conditional.node),
            Expression::Comma(parts) => parts.iter().fold(Value::new(Ty::Other), |_, part| self.rvalue(part)),
            Expression::CompoundLiteral(literal) => {
                let ty = self.type_name(&literal.node.type_name.node);
                literal.node.initializer_list.iter().for_each(|item| self.listed(item));
                Value::at(ty, Place::Local)
            }
            Expression::Statement(statement) => match &statement.node {
                Statement::Compound(items) => Value::new(self.block(items)),
                _ => Value::new(Ty::Other),
            },
            Expression::SizeOfVal(size) => self.size_of_value(&size.node.0),
            Expression::SizeOfTy(size) => {
                self.type_name(&size.node.0.node);
                Value::new(Ty::Other)
            }
            Expression::VaArg(argument) => Value::new(self.type_name(&argument.node.type_name.node)),
            // Not evaluated.
            _ => Value::new(Ty::Other),
        }
    }

    fn listed(&mut self, item: &Node<InitializerListItem>) {
        match &item.node.initializer.node {
            Initializer::Expression(expression) => drop(self.rvalue(expression)),
            Initializer::List(items) => items.iter().for_each(|item| self.listed(item)),
        }
    }

    fn member(&mut self, member: &MemberExpression) -> Value {
        let name = &member.identifier.node.name;
        let (ty, place) = if member.operator.node == MemberOperator::Indirect {
            match self.rvalue(&member.expression).ty {
                Ty::Pointer(Reach::Local, to) => ((*to).clone(), Place::Local),
                Ty::Pointer(_, to) => ((*to).clone(), Place::Global),
                _ => (Ty::Other, Place::Local),
            }
        } else {
            let value = self.expression(&member.expression);
            if let Place::Partial { .. } = value.place {
                return self.load(member.expression.span, value);
            }
            (value.ty, value.place)
        };
        let Ty::Struct(fields) = &ty else { return Value::at(Ty::Other, place) };
        let field = fields.borrow().get(name).cloned();
        match field {
            Some(field) if field.is_bits && place == Place::Global => Value::at(field.ty, Place::Bits),
            Some(field) => Value::at(field.ty, place),
            None => Value::at(Ty::Other, place),
        }
    }

    fn call(&mut self, whole: Span, call: &CallExpression) -> Value {
        if let Expression::Identifier(name) = &call.callee.node {
            let name = name.node.name.as_str();
            if matches!(name, TO_LOCAL | TO_GLOBAL | TO_RANK) {
                return self.conversion(whole, name, call);
            }
            // A program's own function may call sync().
            if name == "sc_sync" || name == "sc_all_store_sync" || !name.starts_with("sc_") {
                self.gets.clear();
            }
        } else {
            self.gets.clear();
        }
        let callee = self.expression(&call.callee);
        let (returns, parameters) = match &callee.ty {
            Ty::Function(returns, parameters) => ((**returns).clone(), parameters.clone()),
            Ty::Pointer(Reach::Local, to) => match &**to {
                Ty::Function(returns, parameters) => ((**returns).clone(), parameters.clone()),
                _ => (Ty::Other, None),
            },
            _ => (Ty::Other, None),
        };
        for (at, argument) in call.arguments.iter().enumerate() {
            let value = self.rvalue(argument);
            if let Some(wanted) = parameters.as_ref().and_then(|parameters| parameters.get(at)) {
                self.check_conversion(argument.span, &value, wanted);
            }
        }
        Value::new(returns)
    }

    /// `tolocal`, `toglobal` and `toproc`.
    fn conversion(&mut self, whole: Span, name: &str, call: &CallExpression) -> Value {
        let mut is_read = false;
        let mut values = Vec::new();
        for argument in &call.arguments {
            let value = self.expression(argument);
            is_read = value.place == Place::Global;
            values.push(self.load(argument.span, value).ty);
        }
        let texts: Vec<_> = call.arguments.iter().map(|argument| self.edits.text(argument.span)).collect();
        let (text, ty) = match (name, values.as_slice(), texts.as_slice()) {
            (TO_LOCAL, [Ty::Pointer(reach, to)], [text]) if *reach != Reach::Local => {
                let ty = Ty::Pointer(Reach::Local, to.clone());
                (once(text, |from| format!("(__typeof__({from} + 0))sc_address((sc_global){from})")), ty)
            }
            // What C of that time converted: a number that is read there may be an address.
            (TO_LOCAL, [Ty::Other], [text]) if is_read => {
                let place = self.edits.place(whole);
                self.warn(&place, "tolocal() of a number as an address; write tolocal(&x) for where it lies");
                (format!("((void *)(intptr_t)({text}))"), Ty::pointer(Reach::Local, Ty::Void))
            }
            (TO_RANK, [ty], [text]) if ty.is_far() => (format!("sc_rank((sc_global)({text}))"), Ty::Other),
            (TO_GLOBAL, [_, Ty::Pointer(Reach::Local, to)], [rank, text]) => {
                let ty = Ty::Pointer(Reach::Global, to.clone());
                (once(text, |from| format!("(__typeof__({from} + 0))sc_pack({rank}, (void *){from})")), ty)
            }
            (TO_GLOBAL, [_, Ty::Other], [rank, text]) => {
                let ty = Ty::pointer(Reach::Global, Ty::Other);
                (once(text, |from| format!("(__typeof__({from}))sc_pack({rank}, (void *){from})")), ty)
            }
            _ => {
                let what = match name {
                    TO_LOCAL => "tolocal() of something that is no global or spread pointer",
                    TO_RANK => "toproc() of something that is no global or spread pointer",
                    _ => "toglobal() takes a rank and a local pointer",
                };
                self.error(whole, &format!("{what}; see what it is given"));
                return Value::new(Ty::Other);
            }
        };
        self.edits.replace(whole, text);
        Value::new(ty)
    }

    fn unary(&mut self, whole: Span, unary: &UnaryOperatorExpression) -> Value {
        use UnaryOperator::{Address, Indirection, PostDecrement, PostIncrement, PreDecrement, PreIncrement};
        match unary.operator.node {
            Indirection => {
                let ty = self.rvalue(&unary.operand).ty;
                match ty {
                    Ty::Pointer(Reach::Local, to) => Value::at((*to).clone(), Place::Local),
                    Ty::Pointer(_, to) => Value::at((*to).clone(), Place::Global),
                    _ => Value::at(Ty::Other, Place::Local),
                }
            }
            Address => self.address(whole, &unary.operand),
            PostIncrement => self.step(whole, &unary.operand, 1, true),
            PostDecrement => self.step(whole, &unary.operand, -1, true),
            PreIncrement => self.step(whole, &unary.operand, 1, false),
            PreDecrement => self.step(whole, &unary.operand, -1, false),
            UnaryOperator::Negate => {
                self.rvalue(&unary.operand);
                Value::new(Ty::Other)
            }
            _ => {
                let value = self.rvalue(&unary.operand);
                self.refuse_pointer(unary.operand.span, &value);
                Value::new(value.ty)
            }
        }
    }

    fn refuse_pointer(&mut self, span: Span, value: &Value) {
        if value.ty.is_far() {
            let what = value.ty.reach().map_or("", Reach::name);
            self.error(span, &format!("{what} where a number is wanted; access what it leads to"));
        }
    }

    fn address(&mut self, whole: Span, operand: &Node<Expression>) -> Value {
        let value = self.expression(operand);
        match value.place {
            Place::Partial { .. } | Place::Bits => {
                if value.place == Place::Bits {
                    self.error(whole, "the address of a bit field; make it a member of its own");
                    return Value::new(Ty::Other);
                }
                self.load(operand.span, value)
            }
            Place::Global => Value::new(Ty::pointer(Reach::Global, value.ty)),
            _ if matches!(value.ty, Ty::Spread(..)) => {
                self.error(whole, "the address of a spread array; the array itself is a spread pointer");
                Value::new(Ty::Other)
            }
            _ => Value::new(Ty::pointer(Reach::Local, value.ty)),
        }
    }

    fn cast(&mut self, whole: Span, cast: &CastExpression) -> Value {
        let to = self.type_name(&cast.type_name.node);
        let value = self.rvalue(&cast.expression);
        let text = self.edits.text(span(&cast.expression));
        let name = self.edits.text(cast.type_name.span);
        match (value.ty.reach(), to.reach()) {
            (Some(Reach::Local), Some(Reach::Global | Reach::Spread)) if !value.is_null => {
                self.edits.replace(whole, format!("(({name})sc_pack(sc_world_.me, (void *)({text})))"));
            }
            (Some(Reach::Global | Reach::Spread), Some(Reach::Local)) => {
                self.edits.replace(whole, format!("(({name})sc_address((sc_global)({text})))"));
            }
            _ => {}
        }
        // `(void *)0` stays the null pointer of any kind.
        Value { is_null: value.is_null, ..Value::new(to) }
    }

    fn conditional(&mut self, whole: Span, conditional: &ConditionalExpression) -> Value {
        self.rvalue(&conditional.condition);
        let then = self.rvalue(&conditional.then_expression);
        let other = self.rvalue(&conditional.else_expression);
        let (a, b) = (then.ty.reach(), other.ty.reach());
        let is_clear = then.is_null || other.is_null || a.is_none() || b.is_none() || a == b;
        if !is_clear {
            self.error(whole, "a conditional of pointers of different kinds; cast one of them");
        }
        if then.is_null { other } else { then }
    }
}
