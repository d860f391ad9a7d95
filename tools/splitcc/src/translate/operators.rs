//! Operators of two operands, and steps.

use super::{Place, Translator, Value};
use crate::lex::{GET, STORE};
use crate::types::{Reach, Ty};
use lang_c::ast::{BinaryOperator, BinaryOperatorExpression, Expression};
use lang_c::span::{Node, Span};

/// The operator of an assignment, and whether it adds or subtracts.
fn assignment(operator: &BinaryOperator) -> Option<&'static str> {
    Some(match operator {
        BinaryOperator::AssignMultiply => "*",
        BinaryOperator::AssignDivide => "/",
        BinaryOperator::AssignModulo => "%",
        BinaryOperator::AssignPlus => "+",
        BinaryOperator::AssignMinus => "-",
        BinaryOperator::AssignShiftLeft => "<<",
        BinaryOperator::AssignShiftRight => ">>",
        BinaryOperator::AssignBitwiseAnd => "&",
        BinaryOperator::AssignBitwiseXor => "^",
        BinaryOperator::AssignBitwiseOr => "|",
        _ => return None,
    })
}

/// The sum of a spread pointer and a number of elements.
fn sum(pointer: &str, elements: &str) -> String {
    once(pointer, |pointer| {
        format!("(__typeof__({pointer} + 0))sc_spread_add((sc_global){pointer}, ({elements}), sizeof *{pointer})")
    })
}

/// The number of elements between two spread pointers.
fn difference(a: &str, b: &str) -> String {
    once(a, |a| format!("sc_spread_sub((sc_global){a}, (sc_global)({b}), sizeof *{a})"))
}

/// An expression in which an operand stands several times, and is evaluated once. Where a type has
/// a size of run time, C evaluates the operands of `typeof` and `sizeof` too.
pub(super) fn once(operand: &str, of: impl FnOnce(&str) -> String) -> String {
    if operand.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return format!("({})", of(operand));
    }
    let result = of("sc_a_");
    format!("({{ __auto_type sc_a_ = ({operand}); {result}; }})")
}

impl Translator {
    pub(super) fn binary(&mut self, whole: Span, binary: &BinaryOperatorExpression) -> Value {
        match &binary.operator.node {
            BinaryOperator::Index => self.index(whole, &binary.lhs, &binary.rhs),
            BinaryOperator::Assign => self.assign(whole, binary),
            BinaryOperator::Plus => self.plus(whole, binary),
            BinaryOperator::Minus => self.minus(whole, binary),
            operator => {
                if let Some(sign) = assignment(operator) {
                    return self.change(whole, &binary.lhs, sign, &binary.rhs);
                }
                self.compare(whole, binary)
            }
        }
    }

    fn index(&mut self, whole: Span, base: &Node<Expression>, index: &Node<Expression>) -> Value {
        let value = self.expression(base);
        match self.rvalue(index).ty {
            Ty::Pointer(Reach::Local, to) => {
                self.load(base.span, value);
                return Value::at((*to).clone(), Place::Local);
            }
            Ty::Pointer(..) => {
                self.error(whole, "an index before its pointer; write p[i]");
                return Value::new(Ty::Other);
            }
            _ => {}
        }
        let text = self.edits.text(index.span);
        if let Place::Partial { base, index: so_far, mut dims } = value.place {
            let dim = dims.remove(0);
            let index = format!("({so_far}) * (int64_t)({dim}) + ({text})");
            return self.spread_element(whole, base, index, dims, value.ty);
        }
        if let Ty::Spread(dims, block) = &value.ty {
            let name = self.edits.text(base.span);
            return self.spread_element(whole, name, format!("(int64_t)({text})"), dims.clone(), (**block).clone());
        }
        let place = value.place.clone();
        if let (Ty::Array(of), Place::Global) = (&value.ty, &place) {
            return Value::at((**of).clone(), Place::Global);
        }
        match self.load(base.span, value).ty {
            Ty::Pointer(Reach::Local, to) => Value::at((*to).clone(), Place::Local),
            Ty::Pointer(Reach::Global, to) => Value::at((*to).clone(), Place::Global),
            Ty::Pointer(Reach::Spread, to) => {
                let pointer = self.edits.text(base.span);
                self.edits.replace(whole, format!("(*{})", sum(&pointer, &text)));
                Value::at((*to).clone(), Place::Global)
            }
            _ => Value::at(Ty::Other, Place::Local),
        }
    }

    /// An element of a spread array, once all its indices are there.
    fn spread_element(&mut self, whole: Span, base: String, index: String, dims: Vec<String>, ty: Ty) -> Value {
        if dims.is_empty() {
            self.edits.replace(whole, format!("(*{})", sum(&base, &index)));
            return Value::at(ty, Place::Global);
        }
        Value::at(ty, Place::Partial { base, index, dims })
    }

    fn assign(&mut self, whole: Span, binary: &BinaryOperatorExpression) -> Value {
        if let Expression::BinaryOperator(inner) = &binary.rhs.node
            && inner.node.operator.node == BinaryOperator::Assign
            && let Expression::Identifier(name) = &inner.node.lhs.node
        {
            match name.node.name.as_str() {
                GET => return self.get_or_put(whole, &binary.lhs, &inner.node.rhs),
                STORE => return self.store(whole, &binary.lhs, &inner.node.rhs),
                _ => {}
            }
        }
        let target = self.target(&binary.lhs);
        let value = self.rvalue(&binary.rhs);
        self.check_conversion(binary.rhs.span, &value, &target.ty);
        if target.place == Place::Global {
            self.call_with_value(whole, "sc_write", &binary.lhs, &binary.rhs, true);
        }
        Value::new(target.ty)
    }

    /// What stands on the left of an assignment.
    fn target(&mut self, node: &Node<Expression>) -> Value {
        let value = self.expression(node);
        match &value.place {
            Place::Partial { .. } | Place::Bits => self.load(node.span, value),
            _ if matches!(value.ty, Ty::Spread(..)) => {
                self.error(node.span, "an assignment to a spread array; assign its elements");
                Value::new(Ty::Other)
            }
            Place::Global if matches!(value.ty, Ty::Void) => {
                self.error(node.span, "what a pointer to void leads to has no type; cast the pointer");
                Value::new(Ty::Other)
            }
            _ => value,
        }
    }

    /// Writes a value to a place in the global address space by a call.
    fn call_with_value(
        &mut self,
        whole: Span,
        call: &str,
        to: &Node<Expression>,
        from: &Node<Expression>,
        has_value: bool,
    ) {
        let (lvalue, value) = (self.edits.text(to.span), self.edits.text(from.span));
        let result = if has_value { "sc_w_;" } else { "(void)0;" };
        self.edits.replace(whole, format!(
            "({{ __auto_type sc_p_ = &({lvalue}); __typeof__(*sc_p_) sc_w_ = ({value}); {call}((sc_global)sc_p_, &sc_w_, sizeof sc_w_); {result} }})"
        ));
    }

    /// `a := b`.
    fn get_or_put(&mut self, whole: Span, to: &Node<Expression>, from: &Node<Expression>) -> Value {
        let target = self.target(to);
        let source = self.expression(from);
        match (&target.place, &source.place) {
            (Place::Global, Place::Global) => {
                self.error(whole, "`:=` between two places in the global address space; get into a variable first");
            }
            (Place::Global, _) => {
                let value = self.load(from.span, source);
                self.check_conversion(from.span, &value, &target.ty);
                self.call_with_value(whole, "sc_put", to, from, false);
            }
            (Place::Local, Place::Global) => {
                let value = Value::new(source.ty.clone());
                self.check_conversion(from.span, &value, &target.ty);
                let (variable, lvalue) = (self.edits.text(to.span), self.edits.text(from.span));
                let place = self.edits.place(whole);
                self.edits.replace(whole, format!(
                    "({{ __auto_type sc_p_ = &({lvalue}); __typeof__(*sc_p_) *sc_t_ = &({variable}); sc_get((void *)sc_t_, (sc_global)sc_p_, sizeof *sc_t_); (void)0; }})"
                ));
                if let Expression::Identifier(name) = &to.node {
                    self.note_get(&name.node.name, place);
                }
            }
            _ => self.error(whole, "`:=` with no side in the global address space; write `=`"),
        }
        Value::new(Ty::Void)
    }

    /// `a :- b`.
    fn store(&mut self, whole: Span, to: &Node<Expression>, from: &Node<Expression>) -> Value {
        let target = self.target(to);
        let value = self.rvalue(from);
        self.check_conversion(from.span, &value, &target.ty);
        if target.place == Place::Global {
            self.call_with_value(whole, "sc_store", to, from, false);
        } else {
            self.error(
                whole,
                "`:-` to a place that is not in the global address space; store through a global pointer",
            );
        }
        Value::new(Ty::Void)
    }

    /// `a op= b`.
    fn change(&mut self, whole: Span, to: &Node<Expression>, sign: &str, by: &Node<Expression>) -> Value {
        let target = self.target(to);
        self.rvalue(by);
        let by = self.edits.text(by.span);
        self.modify(whole, to, &target, sign, &by, false);
        Value::new(target.ty)
    }

    /// `a++` and the like.
    pub(super) fn step(&mut self, whole: Span, operand: &Node<Expression>, by: i8, is_post: bool) -> Value {
        let target = self.target(operand);
        let sign = if by > 0 { "+" } else { "-" };
        self.modify(whole, operand, &target, sign, "1", is_post);
        Value::new(target.ty)
    }

    /// Changes what lies at a place, where C cannot.
    fn modify(&mut self, whole: Span, to: &Node<Expression>, target: &Value, sign: &str, by: &str, is_post: bool) {
        let is_spread = target.ty.reach() == Some(Reach::Spread);
        let is_global = target.place == Place::Global;
        if !is_spread && !is_global {
            return;
        }
        let lvalue = self.edits.text(to.span);
        let changed = |old: &str| match sign {
            "+" if is_spread => sum(old, by),
            "-" if is_spread => sum(old, &format!("-(int64_t)({by})")),
            _ => format!("{old} {sign} ({by})"),
        };
        // A variable by itself, which may be in a register.
        if let (Expression::Identifier(name), false) = (&to.node, is_global) {
            let name = &name.node.name;
            let new = changed(name);
            let text = if is_post {
                format!("({{ __typeof__({name} + 0) sc_o_ = {name}; {name} = {new}; sc_o_; }})")
            } else {
                format!("({name} = {new})")
            };
            return self.edits.replace(whole, text);
        }
        let new = changed("sc_w_");
        let (load, save) = if is_global {
            ("sc_read(&sc_w_, (sc_global)sc_p_, sizeof sc_w_);", "sc_write((sc_global)sc_p_, &sc_w_, sizeof sc_w_);")
        } else {
            ("sc_w_ = *sc_p_;", "*sc_p_ = sc_w_;")
        };
        let (old, result) = if is_post { ("__typeof__(sc_w_) sc_o_ = sc_w_;", "sc_o_") } else { ("", "sc_w_") };
        self.edits.replace(
            whole,
            format!(
                "({{ __auto_type sc_p_ = &({lvalue}); __typeof__(*sc_p_) sc_w_; {load} {old} sc_w_ = {new}; {save} {result}; }})"
            ),
        );
    }

    fn plus(&mut self, whole: Span, binary: &BinaryOperatorExpression) -> Value {
        let (left, right) = (self.rvalue(&binary.lhs), self.rvalue(&binary.rhs));
        let (pointer, other, elements) = match (&left.ty, &right.ty) {
            (Ty::Pointer(..), _) => (&binary.lhs, left, &binary.rhs),
            (_, Ty::Pointer(..)) => (&binary.rhs, right, &binary.lhs),
            _ => return Value::new(Ty::Other),
        };
        if other.ty.reach() == Some(Reach::Spread) {
            let text = sum(&self.edits.text(pointer.span), &self.edits.text(elements.span));
            self.edits.replace(whole, text);
        }
        Value::new(other.ty)
    }

    fn minus(&mut self, whole: Span, binary: &BinaryOperatorExpression) -> Value {
        let (left, right) = (self.rvalue(&binary.lhs), self.rvalue(&binary.rhs));
        let [a, b] = [&binary.lhs, &binary.rhs].map(|operand| self.edits.text(operand.span));
        match (left.ty.reach(), right.ty.reach()) {
            (Some(Reach::Spread), Some(Reach::Spread)) => {
                self.edits.replace(whole, difference(&a, &b));
                Value::new(Ty::Other)
            }
            (Some(found), Some(other)) if found != other => {
                self.error(whole, "a difference of pointers of different kinds; cast one of them");
                Value::new(Ty::Other)
            }
            (Some(_), Some(_)) => Value::new(Ty::Other),
            (Some(Reach::Spread), None) => {
                self.edits.replace(whole, sum(&a, &format!("-(int64_t)({b})")));
                Value::new(left.ty)
            }
            _ => Value::new(left.ty),
        }
    }

    /// Comparisons, and what is left.
    fn compare(&mut self, whole: Span, binary: &BinaryOperatorExpression) -> Value {
        use BinaryOperator::{Equals, Greater, GreaterOrEqual, Less, LessOrEqual, LogicalAnd, LogicalOr, NotEquals};
        let (left, right) = (self.rvalue(&binary.lhs), self.rvalue(&binary.rhs));
        let operator = &binary.operator.node;
        if matches!(operator, LogicalAnd | LogicalOr) || left.is_null || right.is_null {
            return Value::new(Ty::Other);
        }
        let sign = match operator {
            Equals | NotEquals => "",
            Less => "<",
            LessOrEqual => "<=",
            Greater => ">",
            GreaterOrEqual => ">=",
            _ => {
                if left.ty.is_far() || right.ty.is_far() {
                    self.error(whole, "arithmetic that pointers do not have; add or subtract numbers");
                }
                return Value::new(Ty::Other);
            }
        };
        match (left.ty.reach(), right.ty.reach()) {
            (Some(found), Some(other)) if found != other => {
                self.error(whole, "a comparison of pointers of different kinds; cast one of them");
            }
            (Some(Reach::Spread), Some(_)) if !sign.is_empty() => {
                let [a, b] = [&binary.lhs, &binary.rhs].map(|operand| self.edits.text(operand.span));
                self.edits.replace(whole, format!("({} {sign} 0)", difference(&a, &b)));
            }
            _ => {}
        }
        Value::new(Ty::Other)
    }
}
