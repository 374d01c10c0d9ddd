// One instance of every op kind with the rule that it must have, written by hand.
//
//   rule    factors named i, j, k, … in order of appearance; `_` blocked, `1` of size one
//   linear  single(operands: ⊕ …) or joint(operands: ⊕ …); `*` is every ⊕
//   shardy  a difference from Shardy's rule and the reason for it (docs/rules.md)
//
// The op under test is the one that makes the first result of the function.

// rule: i j -> i j
func.func @abs(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.abs %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @cbrt(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.cbrt %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @ceil(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.ceil %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @cosine(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.cosine %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @exponential(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.exponential %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @exponential_minus_one(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.exponential_minus_one %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @floor(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.floor %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @log(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.log %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @log_plus_one(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.log_plus_one %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @logistic(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.logistic %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// linear: single(0: add)
func.func @negate(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.negate %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @round_nearest_afz(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.round_nearest_afz %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @round_nearest_even(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.round_nearest_even %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @rsqrt(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.rsqrt %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @sign(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.sign %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @sine(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.sine %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @sqrt(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.sqrt %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @tan(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.tan %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @tanh(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.tanh %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
// linear: joint(0 1: add)
func.func @add(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.add %x, %y : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
func.func @atan2(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.atan2 %x, %y : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
// linear: single(0: add)
func.func @divide(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.divide %x, %y : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
// linear: joint(0 1: max) single(0 1: max)
func.func @maximum(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.maximum %x, %y : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
// linear: joint(0 1: min) single(0 1: min)
func.func @minimum(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.minimum %x, %y : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
// linear: single(0 1: add) joint(0 1: mul)
func.func @multiply(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.multiply %x, %y : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
func.func @power(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.power %x, %y : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
func.func @remainder(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.remainder %x, %y : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
// linear: joint(0 1: add)
func.func @subtract(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.subtract %x, %y : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
// linear: joint(0 1: and) single(0 1: and)
func.func @and(%x: tensor<4x6xi32>, %y: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %r = stablehlo.and %x, %y : tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j, i j -> i j
// linear: joint(0 1: or) single(0 1: or)
func.func @or(%x: tensor<4x6xi32>, %y: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %r = stablehlo.or %x, %y : tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j, i j -> i j
func.func @xor(%x: tensor<4x6xi32>, %y: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %r = stablehlo.xor %x, %y : tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j, i j -> i j
func.func @shift_left(%x: tensor<4x6xi32>, %y: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %r = stablehlo.shift_left %x, %y : tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j, i j -> i j
func.func @shift_right_arithmetic(%x: tensor<4x6xi32>, %y: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %r = stablehlo.shift_right_arithmetic %x, %y : tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j, i j -> i j
func.func @shift_right_logical(%x: tensor<4x6xi32>, %y: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %r = stablehlo.shift_right_logical %x, %y : tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j -> i j
func.func @not(%x: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %r = stablehlo.not %x : tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j -> i j
func.func @popcnt(%x: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %r = stablehlo.popcnt %x : tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j -> i j
func.func @count_leading_zeros(%x: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %r = stablehlo.count_leading_zeros %x : tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_acos(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.acos %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_acosh(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.acosh %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_asin(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.asin %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_asinh(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.asinh %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_atan(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.atan %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_atanh(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.atanh %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_bessel_i1e(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.bessel_i1e %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_cosh(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.cosh %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_digamma(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.digamma %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_erf(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.erf %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_erf_inv(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.erf_inv %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_erfc(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.erfc %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_lgamma(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.lgamma %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_sinh(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.sinh %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_square(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.square %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_tan(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.tan %x : tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
// shardy: no rule
func.func @chlo_next_after(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.next_after %x, %y : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
// shardy: no rule
func.func @chlo_polygamma(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.polygamma %x, %y : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
// shardy: no rule
func.func @chlo_zeta(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = chlo.zeta %x, %y : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_is_inf(%x: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %r = chlo.is_inf %x : tensor<4x6xf32> -> tensor<4x6xi1>
  return %r : tensor<4x6xi1>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_is_neg_inf(%x: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %r = chlo.is_neg_inf %x : tensor<4x6xf32> -> tensor<4x6xi1>
  return %r : tensor<4x6xi1>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_is_pos_inf(%x: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %r = chlo.is_pos_inf %x : tensor<4x6xf32> -> tensor<4x6xi1>
  return %r : tensor<4x6xi1>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_add(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_add %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_atan2(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_atan2 %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_divide(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_divide %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_maximum(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_maximum %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_minimum(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_minimum %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_multiply(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_multiply %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_next_after(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_next_after %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_polygamma(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_polygamma %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_power(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_power %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_remainder(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_remainder %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_subtract(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_subtract %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_zeta(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_zeta %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_and(%x: tensor<4x6xi32>, %y: tensor<6xi32>) -> tensor<4x6xi32> {
  %r = chlo.broadcast_and %x, %y : (tensor<4x6xi32>, tensor<6xi32>) -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_or(%x: tensor<4x6xi32>, %y: tensor<6xi32>) -> tensor<4x6xi32> {
  %r = chlo.broadcast_or %x, %y : (tensor<4x6xi32>, tensor<6xi32>) -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_xor(%x: tensor<4x6xi32>, %y: tensor<6xi32>) -> tensor<4x6xi32> {
  %r = chlo.broadcast_xor %x, %y : (tensor<4x6xi32>, tensor<6xi32>) -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_shift_left(%x: tensor<4x6xi32>, %y: tensor<6xi32>) -> tensor<4x6xi32> {
  %r = chlo.broadcast_shift_left %x, %y : (tensor<4x6xi32>, tensor<6xi32>) -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_shift_right_arithmetic(%x: tensor<4x6xi32>, %y: tensor<6xi32>) -> tensor<4x6xi32> {
  %r = chlo.broadcast_shift_right_arithmetic %x, %y : (tensor<4x6xi32>, tensor<6xi32>) -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_shift_right_logical(%x: tensor<4x6xi32>, %y: tensor<6xi32>) -> tensor<4x6xi32> {
  %r = chlo.broadcast_shift_right_logical %x, %y : (tensor<4x6xi32>, tensor<6xi32>) -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}
// --- elementwise with conditions --------------------------------------------------------------

// rule: i j, i j -> i j
func.func @divide_integers(%x: tensor<4x6xi32>, %y: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %r = stablehlo.divide %x, %y : tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j -> i j
// linear: single(0: add max min)
func.func @convert_widening(%x: tensor<4x6xbf16>) -> tensor<4x6xf32> {
  %r = stablehlo.convert %x : (tensor<4x6xbf16>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// linear: single(0: max min)
func.func @convert_narrowing(%x: tensor<4x6xf32>) -> tensor<4x6xbf16> {
  %r = stablehlo.convert %x : (tensor<4x6xf32>) -> tensor<4x6xbf16>
  return %r : tensor<4x6xbf16>
}

// rule: i j -> i j
// linear: single(0: max min)
func.func @convert_across(%x: tensor<4x6xbf16>) -> tensor<4x6xf16> {
  %r = stablehlo.convert %x : (tensor<4x6xbf16>) -> tensor<4x6xf16>
  return %r : tensor<4x6xf16>
}

// rule: i j -> i j
// linear: single(0: max min)
func.func @convert_from_integer(%x: tensor<4x6xi32>) -> tensor<4x6xf32> {
  %r = stablehlo.convert %x : (tensor<4x6xi32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @convert_to_integer(%x: tensor<4x6xf32>) -> tensor<4x6xi32> {
  %r = stablehlo.convert %x : (tensor<4x6xf32>) -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j -> i j
func.func @convert_from_boolean(%x: tensor<4x6xi1>) -> tensor<4x6xf32> {
  %r = stablehlo.convert %x : (tensor<4x6xi1>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// linear: single(0: *)
func.func @convert_to_itself(%x: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %r = stablehlo.convert %x : tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j, i j -> i j
func.func @compare(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %r = stablehlo.compare GT, %x, %y : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
  return %r : tensor<4x6xi1>
}

// rule: i j, i j, i j -> i j
// linear: joint(1 2: *)
func.func @select(%p: tensor<4x6xi1>, %x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.select %p, %x, %y : tensor<4x6xi1>, tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: (), i j, i j -> i j
// linear: joint(1 2: *)
func.func @select_scalar(%p: tensor<i1>, %x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.select %p, %x, %y : (tensor<i1>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j, i j -> i j
func.func @clamp(%a: tensor<4x6xf32>, %x: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.clamp %a, %x, %b : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: (), i j, () -> i j
func.func @clamp_scalars(%a: tensor<f32>, %x: tensor<4x6xf32>, %b: tensor<f32>) -> tensor<4x6xf32> {
  %r = stablehlo.clamp %a, %x, %b : (tensor<f32>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @is_finite(%x: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %r = stablehlo.is_finite %x : (tensor<4x6xf32>) -> tensor<4x6xi1>
  return %r : tensor<4x6xi1>
}

// rule: i j, i j -> i j
// linear: joint(0 1: add)
func.func @complex(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xcomplex<f32>> {
  %r = stablehlo.complex %x, %y : tensor<4x6xcomplex<f32>>
  return %r : tensor<4x6xcomplex<f32>>
}

// rule: i j -> i j
// linear: single(0: add)
func.func @real(%x: tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32> {
  %r = stablehlo.real %x : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// linear: single(0: add)
func.func @imag(%x: tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32> {
  %r = stablehlo.imag %x : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
// shardy: no rule
func.func @chlo_conj(%x: tensor<4x6xcomplex<f32>>) -> tensor<4x6xcomplex<f32>> {
  %r = chlo.conj %x : tensor<4x6xcomplex<f32>> -> tensor<4x6xcomplex<f32>>
  return %r : tensor<4x6xcomplex<f32>>
}

// rule: i j -> i j
func.func @reduce_precision(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.reduce_precision %x, format = e5m10 : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, i j -> i j
// shardy: no rule
func.func @map(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = "stablehlo.map"(%x, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.multiply %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {dimensions = array<i64: 0, 1>} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @bitcast_convert(%x: tensor<4x6xf32>) -> tensor<4x6xi32> {
  %r = stablehlo.bitcast_convert %x : (tensor<4x6xf32>) -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j -> i j _
func.func @bitcast_convert_narrow(%x: tensor<4x6xf32>) -> tensor<4x6x2xi16> {
  %r = stablehlo.bitcast_convert %x : (tensor<4x6xf32>) -> tensor<4x6x2xi16>
  return %r : tensor<4x6x2xi16>
}

// rule: i j _ -> i j
func.func @bitcast_convert_wide(%x: tensor<4x6x2xi16>) -> tensor<4x6xi32> {
  %r = stablehlo.bitcast_convert %x : (tensor<4x6x2xi16>) -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j, k -> i j, k
// linear: joint(0 1: *)
// shardy: no rule
func.func @optimization_barrier(%x: tensor<4x6xf32>, %y: tensor<4xf32>) -> (tensor<4x6xf32>, tensor<4xf32>) {
  %r:2 = stablehlo.optimization_barrier %x, %y : tensor<4x6xf32>, tensor<4xf32>
  return %r#0, %r#1 : tensor<4x6xf32>, tensor<4xf32>
}

// rule: (), i j, i j -> i j
// shardy: no rule
func.func @chlo_broadcast_select(%p: tensor<i1>, %x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = "chlo.broadcast_select"(%p, %x, %y) : (tensor<i1>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_compare(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xi1> {
  %r = "chlo.broadcast_compare"(%x, %y) {comparison_direction = #chlo<comparison_direction LT>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
  return %r : tensor<4x6xi1>
}

// rule: i j, j -> i j
// shardy: no rule
func.func @chlo_broadcast_complex(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xcomplex<f32>> {
  %r = chlo.broadcast_complex %x, %y : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xcomplex<f32>>
  return %r : tensor<4x6xcomplex<f32>>
}

// rule: i j, i -> i j
// shardy: no rule
func.func @chlo_broadcast_add_dims(%x: tensor<4x6xf32>, %y: tensor<4xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_add %x, %y {broadcast_dimensions = array<i64: 0>} : (tensor<4x6xf32>, tensor<4xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i 1, j -> i j
// shardy: no rule
func.func @chlo_broadcast_add_ones(%x: tensor<4x1xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_add %x, %y : (tensor<4x1xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// --- shape --------------------------------------------------------------------------------------

// rule: -> i j
// shardy: no rule
func.func @constant_splat() -> tensor<4x6xf32> {
  %r = stablehlo.constant dense<2.0> : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: -> _
// shardy: no rule
func.func @constant_table() -> tensor<4xf32> {
  %r = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return %r : tensor<4xf32>
}

// rule: -> i j where j = special (iota)
// shardy: no rule
func.func @iota() -> tensor<4x6xi32> {
  %r = stablehlo.iota dim = 1 : tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// rule: i j -> k i l j
// linear: single(0: *)
func.func @broadcast_in_dim(%x: tensor<4x6xf32>) -> tensor<2x4x8x6xf32> {
  %r = stablehlo.broadcast_in_dim %x, dims = [1, 3] : (tensor<4x6xf32>) -> tensor<2x4x8x6xf32>
  return %r : tensor<2x4x8x6xf32>
}

// rule: i 1 -> i j
// linear: single(0: *)
func.func @broadcast_in_dim_expand(%x: tensor<4x1xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i -> j k i
// linear: single(0: *)
// shardy: no rule
func.func @broadcast(%x: tensor<6xf32>) -> tensor<2x4x6xf32> {
  %r = stablehlo.broadcast %x, sizes = [2, 4] : (tensor<6xf32>) -> tensor<2x4x6xf32>
  return %r : tensor<2x4x6xf32>
}

// rule: i j k -> k i j
// linear: single(0: *)
func.func @transpose(%x: tensor<2x4x6xf32>) -> tensor<6x2x4xf32> {
  %r = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x4x6xf32>) -> tensor<6x2x4xf32>
  return %r : tensor<6x2x4xf32>
}

// rule: i j -> i j where j = special (reverse)
// linear: single(0: *)
func.func @reverse(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.reverse %x, dims = [1] : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: (i j) -> i j
// linear: single(0: *)
func.func @reshape_split(%x: tensor<24xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.reshape %x : (tensor<24xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> (i j)
// linear: single(0: *)
func.func @reshape_merge(%x: tensor<4x6xf32>) -> tensor<24xf32> {
  %r = stablehlo.reshape %x : (tensor<4x6xf32>) -> tensor<24xf32>
  return %r : tensor<24xf32>
}

// rule: (i j) k -> i (j k)
// linear: single(0: *)
func.func @reshape_move(%x: tensor<8x3xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.reshape %x : (tensor<8x3xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: (i j) _ -> (i k) _ where j = blocked, k = blocked
// linear: single(0: *)
// shardy: coprime
func.func @reshape_coprime(%x: tensor<6x4xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.reshape %x : (tensor<6x4xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: _ _ i -> _ _ i
// linear: single(0: *)
// shardy: coprime
func.func @reshape_realigned(%x: tensor<3x4x5xf32>) -> tensor<2x6x5xf32> {
  %r = stablehlo.reshape %x : (tensor<3x4x5xf32>) -> tensor<2x6x5xf32>
  return %r : tensor<2x6x5xf32>
}

// rule: i 1 j -> i j 1 1
// linear: single(0: *)
func.func @reshape_ones(%x: tensor<4x1x6xf32>) -> tensor<4x6x1x1xf32> {
  %r = stablehlo.reshape %x : (tensor<4x1x6xf32>) -> tensor<4x6x1x1xf32>
  return %r : tensor<4x6x1x1xf32>
}

// rule: 1 1 -> ()
// linear: single(0: *)
func.func @reshape_scalar(%x: tensor<1x1xf32>) -> tensor<f32> {
  %r = stablehlo.reshape %x : (tensor<1x1xf32>) -> tensor<f32>
  return %r : tensor<f32>
}

// rule: (i j k) l -> i j (k l)
// linear: single(0: *)
func.func @reshape_three(%x: tensor<24x5xf32>) -> tensor<2x4x15xf32> {
  %r = stablehlo.reshape %x : (tensor<24x5xf32>) -> tensor<2x4x15xf32>
  return %r : tensor<2x4x15xf32>
}

// rule: i j -> i j where j = special (slice)
// linear: single(0: *)
func.func @slice(%x: tensor<4x12xf32>) -> tensor<4x8xf32> {
  %r = stablehlo.slice %x [0:4, 2:10] : (tensor<4x12xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// rule: i j -> i j where j = special (slice)
// linear: single(0: *)
func.func @slice_strided(%x: tensor<4x12xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.slice %x [0:4, 0:12:2] : (tensor<4x12xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i 1 where j = special (slice, add)
// linear: single(0: *)
// shardy: one
func.func @slice_one(%x: tensor<4x12xf32>) -> tensor<4x1xf32> {
  %r = stablehlo.slice %x [0:4, 3:4] : (tensor<4x12xf32>) -> tensor<4x1xf32>
  return %r : tensor<4x1xf32>
}

// rule: i _ -> i _
// linear: single(0: *)
// shardy: odd
func.func @slice_odd(%x: tensor<4x12xf32>) -> tensor<4x7xf32> {
  %r = stablehlo.slice %x [0:4, 2:9] : (tensor<4x12xf32>) -> tensor<4x7xf32>
  return %r : tensor<4x7xf32>
}

// rule: i j, () -> i j where j = special (pad)
// linear: single(0: add and max min or)
func.func @pad_zero(%x: tensor<4x6xf32>) -> tensor<4x8xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.pad %x, %z, low = [0, 1], high = [0, 1], interior = [0, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// rule: i j, () -> i j where j = special (pad)
// linear: single(0: and max min mul or)
func.func @pad_one(%x: tensor<4x6xf32>) -> tensor<4x8xf32> {
  %z = stablehlo.constant dense<1.0> : tensor<f32>
  %r = stablehlo.pad %x, %z, low = [0, 0], high = [0, 2], interior = [0, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// rule: i j, () -> i j where j = special (pad)
// linear: single(0: and max min or)
func.func @pad_unknown(%x: tensor<4x6xf32>, %z: tensor<f32>) -> tensor<4x12xf32> {
  %r = stablehlo.pad %x, %z, low = [0, 1], high = [0, 0], interior = [0, 1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x12xf32>
  return %r : tensor<4x12xf32>
}

// rule: i _, () -> i 1
// linear: single(0: and max min or)
// shardy: to one
func.func @pad_negative_to_one(%x: tensor<4x6xf32>, %z: tensor<f32>) -> tensor<4x1xf32> {
  %r = stablehlo.pad %x, %z, low = [0, -2], high = [0, -3], interior = [0, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x1xf32>
  return %r : tensor<4x1xf32>
}

// rule: 1 i, () -> j i where j = special (pad)
// linear: single(0: and max min or)
// shardy: from one
func.func @pad_from_one(%x: tensor<1x6xf32>, %z: tensor<f32>) -> tensor<3x6xf32> {
  %r = stablehlo.pad %x, %z, low = [2, 0], high = [0, 0], interior = [0, 0] : (tensor<1x6xf32>, tensor<f32>) -> tensor<3x6xf32>
  return %r : tensor<3x6xf32>
}

// rule: i j, i j, i j -> i j where j = special (concatenate)
// linear: joint(0 1 2: *)
// shardy: exchange
func.func @concatenate(%x: tensor<4x6xf32>, %y: tensor<4x2xf32>, %z: tensor<4x4xf32>) -> tensor<4x12xf32> {
  %r = stablehlo.concatenate %x, %y, %z, dim = 1 : (tensor<4x6xf32>, tensor<4x2xf32>, tensor<4x4xf32>) -> tensor<4x12xf32>
  return %r : tensor<4x12xf32>
}

// rule: i 1, i 1 -> i j where j = special (concatenate)
// linear: joint(0 1: *)
// shardy: exchange
func.func @concatenate_ones(%x: tensor<4x1xf32>, %y: tensor<4x1xf32>) -> tensor<4x2xf32> {
  %r = stablehlo.concatenate %x, %y, dim = 1 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// rule: i j -> i j
// linear: joint(0: *)
// shardy: identity
func.func @concatenate_single(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.concatenate %x, dim = 1 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// --- contraction --------------------------------------------------------------------------------

// rule: i j, j k -> i k where j = add
// linear: single(0 1: add)
func.func @dot_general(%x: tensor<4x6xf32>, %y: tensor<6x8xf32>) -> tensor<4x8xf32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// rule: i j k l, j l i m -> i j k m where l = add
// linear: single(0 1: add)
func.func @dot_general_batched(%x: tensor<2x3x4x6xf32>, %y: tensor<3x6x2x8xf32>) -> tensor<2x3x4x8xf32> {
  %r = stablehlo.dot_general %x, %y, batching_dims = [0, 1] x [2, 0], contracting_dims = [3] x [1] : (tensor<2x3x4x6xf32>, tensor<3x6x2x8xf32>) -> tensor<2x3x4x8xf32>
  return %r : tensor<2x3x4x8xf32>
}

// rule: i j k, k j l -> i l where j = add, k = add
// linear: single(0 1: add)
func.func @dot_general_two_sums(%x: tensor<4x2x3xf32>, %y: tensor<3x2x8xf32>) -> tensor<4x8xf32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1, 2] x [1, 0] : (tensor<4x2x3xf32>, tensor<3x2x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// rule: i, j -> i j
// linear: single(0 1: add)
func.func @dot_general_outer(%x: tensor<4xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [] x [] : (tensor<4xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, j k -> i k where j = add
func.func @dot_general_widening(%x: tensor<4x6xi8>, %y: tensor<6x8xi8>) -> tensor<4x8xi32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x6xi8>, tensor<6x8xi8>) -> tensor<4x8xi32>
  return %r : tensor<4x8xi32>
}

// rule: i j, j k -> i k where j = add
// linear: single(0 1: add)
func.func @dot_general_mixed(%x: tensor<4x6xbf16>, %y: tensor<6x8xbf16>) -> tensor<4x8xf32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x6xbf16>, tensor<6x8xbf16>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// rule: i j, j k -> i k where j = add
// linear: single(0 1: add)
func.func @dot(%x: tensor<4x6xf32>, %y: tensor<6x8xf32>) -> tensor<4x8xf32> {
  %r = "stablehlo.dot"(%x, %y) : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// rule: i, i -> () where i = add
// linear: single(0 1: add)
func.func @dot_vectors(%x: tensor<6xf32>, %y: tensor<6xf32>) -> tensor<f32> {
  %r = "stablehlo.dot"(%x, %y) : (tensor<6xf32>, tensor<6xf32>) -> tensor<f32>
  return %r : tensor<f32>
}

// rule: i j k, i k l -> i j l where k = add
// linear: single(0 1: add)
// shardy: no rule
func.func @einsum(%x: tensor<2x4x6xf32>, %y: tensor<2x6x8xf32>) -> tensor<2x4x8xf32> {
  %r = "stablehlo.einsum"(%x, %y) {einsum_config = "bij,bjk->bik"} : (tensor<2x4x6xf32>, tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
  return %r : tensor<2x4x8xf32>
}

// rule: i j -> i where j = add
// shardy: no rule
func.func @unary_einsum(%x: tensor<4x6xf32>) -> tensor<4xf32> {
  %r = "stablehlo.unary_einsum"(%x) {einsum_config = "ab->a"} : (tensor<4x6xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// rule: _ i, _ i j, _ -> _ j where i = add
// shardy: no rule
func.func @chlo_ragged_dot(%x: tensor<8x6xf32>, %y: tensor<3x6x4xf32>, %g: tensor<3xi64>) -> tensor<8x4xf32> {
  %r = "chlo.ragged_dot"(%x, %y, %g) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>, precision_config = []} : (tensor<8x6xf32>, tensor<3x6x4xf32>, tensor<3xi64>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// --- reduction ----------------------------------------------------------------------------------

// rule: i j k, () -> i k where j = add
// linear: joint(0: add)
func.func @reduce_add(%x: tensor<2x4x6xf32>) -> tensor<2x6xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// rule: i j k, () -> i k where j = add (init_once)
func.func @reduce_add_one(%x: tensor<2x4x6xf32>) -> tensor<2x6xf32> {
  %z = stablehlo.constant dense<1.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// rule: i j k, () -> i k where j = add (init_once)
func.func @reduce_add_unknown(%x: tensor<2x4x6xf32>, %z: tensor<f32>) -> tensor<2x6xf32> {
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x4x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// rule: i j, () -> () where i = max, j = max
// linear: joint(0: max)
func.func @reduce_max_unknown(%x: tensor<4x6xf32>, %z: tensor<f32>) -> tensor<f32> {
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}

// rule: i j, () -> i where j = min
// linear: joint(0: min)
func.func @reduce_min(%x: tensor<4x6xi32>) -> tensor<4xi32> {
  %z = stablehlo.constant dense<2147483647> : tensor<i32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.minimum across dimensions = [1] : (tensor<4x6xi32>, tensor<i32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// rule: i j, () -> i where j = mul
// linear: joint(0: mul)
func.func @reduce_mul(%x: tensor<4x6xf32>) -> tensor<4xf32> {
  %z = stablehlo.constant dense<1.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.multiply across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// rule: i j, () -> i where j = and
// linear: joint(0: and)
func.func @reduce_and(%x: tensor<4x6xi32>) -> tensor<4xi32> {
  %z = stablehlo.constant dense<-1> : tensor<i32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.and across dimensions = [1] : (tensor<4x6xi32>, tensor<i32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// rule: i j, () -> i where j = or
// linear: joint(0: or)
func.func @reduce_or(%x: tensor<4x6xi1>, %z: tensor<i1>) -> tensor<4xi1> {
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.or across dimensions = [1] : (tensor<4x6xi1>, tensor<i1>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// rule: i j, () -> i where j = or
// linear: joint(0: or)
func.func @reduce_add_boolean(%x: tensor<4x6xi1>, %z: tensor<i1>) -> tensor<4xi1> {
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x6xi1>, tensor<i1>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}

// rule: i _, () -> i
// shardy: body
func.func @reduce_xor(%x: tensor<4x6xi32>, %z: tensor<i32>) -> tensor<4xi32> {
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.xor across dimensions = [1] : (tensor<4x6xi32>, tensor<i32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// rule: i _, i _, (), () -> i, i
// shardy: body
func.func @reduce_argmax(%x: tensor<4x6xf32>, %n: tensor<4x6xi32>, %z: tensor<f32>, %k: tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %r:2 = "stablehlo.reduce"(%x, %n, %z, %k) ({
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %v = stablehlo.select %p, %a, %b : tensor<i1>, tensor<f32>
    %w = stablehlo.select %p, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<f32>, tensor<i32>
  }) {dimensions = array<i64: 1>} : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi32>
}

// rule: i j, i j, (), () -> i, i where j = add
// linear: joint(0 1: add)
func.func @reduce_pair(%x: tensor<4x6xf32>, %y: tensor<4x6xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %k = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = "stablehlo.reduce"(%x, %y, %z, %k) ({
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    %v = stablehlo.add %a, %b : tensor<f32>
    %w = stablehlo.add %j, %i : tensor<i32>
    stablehlo.return %v, %w : tensor<f32>, tensor<i32>
  }) {dimensions = array<i64: 1>} : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi32>
}

// rule: i _, i _, (), () -> i, i
// shardy: body
func.func @reduce_mixed_pair(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>, %z: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = "stablehlo.reduce"(%x, %y, %z, %z) ({
  ^bb0(%a: tensor<f32>, %i: tensor<f32>, %b: tensor<f32>, %j: tensor<f32>):
    %v = stablehlo.maximum %a, %b : tensor<f32>
    %w = stablehlo.add %j, %i : tensor<f32>
    stablehlo.return %v, %w : tensor<f32>, tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// rule: i _, () -> i
// shardy: body
func.func @reduce_crossed_body(%x: tensor<4x6xf32>, %z: tensor<f32>) -> tensor<4xf32> {
  %r = "stablehlo.reduce"(%x, %z) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %v = stablehlo.add %b, %b : tensor<f32>
    stablehlo.return %v : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// rule: i j, j, j, j, j -> i j
func.func @batch_norm_inference(%x: tensor<4x6xf32>, %a: tensor<6xf32>, %b: tensor<6xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = "stablehlo.batch_norm_inference"(%x, %a, %b, %m, %v) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: _ i, i, i -> _ i, i, i
// shardy: no rule
func.func @batch_norm_training(%x: tensor<4x6xf32>, %a: tensor<6xf32>, %b: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %r:3 = "stablehlo.batch_norm_training"(%x, %a, %b) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>)
  return %r#0, %r#1, %r#2 : tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>
}

// rule: _ i, i, i, i, _ i -> _ i, i, i
// shardy: no rule
func.func @batch_norm_grad(%x: tensor<4x6xf32>, %a: tensor<6xf32>, %m: tensor<6xf32>, %v: tensor<6xf32>, %g: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %r:3 = "stablehlo.batch_norm_grad"(%x, %a, %m, %v, %g) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>)
  return %r#0, %r#1, %r#2 : tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>
}
// --- indexing -----------------------------------------------------------------------------------

// rule: i j, (), () -> _ j where i = special (dynamic_slice, add)
// linear: single(0: *)
// shardy: mask
func.func @dynamic_slice(%x: tensor<8x6xf32>, %a: tensor<i32>, %b: tensor<i32>) -> tensor<2x6xf32> {
  %r = stablehlo.dynamic_slice %x, %a, %b, sizes = [2, 6] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// rule: i j, (), () -> 1 j where i = special (dynamic_slice, or)
// linear: single(0: *)
// shardy: mask
func.func @dynamic_slice_boolean(%x: tensor<8x6xi1>, %a: tensor<i32>, %b: tensor<i32>) -> tensor<1x6xi1> {
  %r = stablehlo.dynamic_slice %x, %a, %b, sizes = [1, 6] : (tensor<8x6xi1>, tensor<i32>, tensor<i32>) -> tensor<1x6xi1>
  return %r : tensor<1x6xi1>
}

// rule: i j, _ j, (), () -> i j where i = special (dynamic_update_slice)
// linear: joint(0 1: *)
// shardy: mask
func.func @dynamic_update_slice(%x: tensor<8x6xf32>, %u: tensor<2x6xf32>, %a: tensor<i32>, %b: tensor<i32>) -> tensor<8x6xf32> {
  %r = stablehlo.dynamic_update_slice %x, %u, %a, %b : (tensor<8x6xf32>, tensor<2x6xf32>, tensor<i32>, tensor<i32>) -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// rule: i j, k 1 -> k j where i = special (gather_index, add)
// linear: single(0: *)
func.func @gather_rows(%x: tensor<8x6xf32>, %i: tensor<4x1xi32>) -> tensor<4x6xf32> {
  %r = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>, indices_are_sorted = false} : (tensor<8x6xf32>, tensor<4x1xi32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j, k -> j k where i = special (gather_index, add)
// linear: single(0: *)
func.func @gather_columns_last(%x: tensor<8x6xf32>, %i: tensor<4xi32>) -> tensor<6x4xf32> {
  %r = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>, indices_are_sorted = false} : (tensor<8x6xf32>, tensor<4xi32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// rule: i j k, i l 1 -> i l k where j = special (gather_index, add)
// linear: single(0: *)
func.func @gather_batched(%x: tensor<2x8x6xf32>, %i: tensor<2x4x1xi32>) -> tensor<2x4x6xf32> {
  %r = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 6>, indices_are_sorted = false} : (tensor<2x8x6xf32>, tensor<2x4x1xi32>) -> tensor<2x4x6xf32>
  return %r : tensor<2x4x6xf32>
}

// rule: i j, k _ -> k where i = special (gather_index, add), j = special (gather_index, add)
// linear: single(0: *)
func.func @gather_points(%x: tensor<8x6xf32>, %i: tensor<4x2xi32>) -> tensor<4xf32> {
  %r = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>, indices_are_sorted = false} : (tensor<8x6xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// rule: _ i, j 1 -> j _ i
// linear: single(0: *)
func.func @gather_windows(%x: tensor<8x6xf32>, %i: tensor<4x1xi32>) -> tensor<4x3x6xf32> {
  %r = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 3, 6>, indices_are_sorted = false} : (tensor<8x6xf32>, tensor<4x1xi32>) -> tensor<4x3x6xf32>
  return %r : tensor<4x3x6xf32>
}

// rule: i j, k 1 -> k 1 j where i = special (gather_index, add)
// linear: single(0: *)
func.func @gather_unit_windows(%x: tensor<8x6xf32>, %i: tensor<4x1xi32>) -> tensor<4x1x6xf32> {
  %r = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>, indices_are_sorted = false} : (tensor<8x6xf32>, tensor<4x1xi32>) -> tensor<4x1x6xf32>
  return %r : tensor<4x1x6xf32>
}

// rule: i j, k 1 -> k i j
// linear: single(0: *)
func.func @gather_whole_indexed(%x: tensor<8x6xf32>, %i: tensor<4x1xi32>) -> tensor<4x8x6xf32> {
  %r = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 8, 6>, indices_are_sorted = false} : (tensor<8x6xf32>, tensor<4x1xi32>) -> tensor<4x8x6xf32>
  return %r : tensor<4x8x6xf32>
}

// rule: i _ j, i k -> i k j
// shardy: no rule
func.func @torch_index_select(%x: tensor<2x8x6xf32>, %i: tensor<2x4xi32>) -> tensor<2x4x6xf32> {
  %r = "stablehlo.torch_index_select"(%x, %i) {dim = 1 : i64, batch_dims = 1 : i64} : (tensor<2x8x6xf32>, tensor<2x4xi32>) -> tensor<2x4x6xf32>
  return %r : tensor<2x4x6xf32>
}

// rule: i j, k 1, k j -> i j where i = special (scatter_index), k = add (init_once)
// linear: joint(0 2: add)
// shardy: mask
func.func @scatter_add(%x: tensor<8x6xf32>, %i: tensor<4x1xi32>, %u: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8x6xf32>, tensor<4x1xi32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// rule: i j, k 1, k j -> i j where i = special (scatter_index), k = add
// linear: joint(0 2: add) joint(2: add)
// shardy: mask
func.func @scatter_add_to_zero(%i: tensor<4x1xi32>, %u: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %x = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<8x6xf32>
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8x6xf32>, tensor<4x1xi32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// rule: i j, k 1, k j -> i j where i = special (scatter_index), k = max
// linear: joint(0 2: max) joint(2: max)
// shardy: mask
func.func @scatter_max(%x: tensor<8x6xf32>, %i: tensor<4x1xi32>, %u: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8x6xf32>, tensor<4x1xi32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// rule: i j, _ 1, _ j -> i j where i = special (scatter_index)
// shardy: mask
func.func @scatter_set(%x: tensor<8x6xf32>, %i: tensor<4x1xi32>, %u: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x6xf32>, tensor<4x1xi32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// rule: i j k, i l 1, i l k -> i j k where j = special (scatter_index), l = mul (init_once)
// linear: joint(0 2: mul)
// shardy: mask
func.func @scatter_batched(%x: tensor<2x8x6xf32>, %i: tensor<2x4x1xi32>, %u: tensor<2x4x6xf32>) -> tensor<2x8x6xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.multiply %b, %a : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2x8x6xf32>, tensor<2x4x1xi32>, tensor<2x4x6xf32>) -> tensor<2x8x6xf32>
  return %r : tensor<2x8x6xf32>
}

// rule: _ i, j 1, j _ i -> _ i where j = add (init_once)
// linear: joint(0 2: add)
func.func @scatter_windows(%x: tensor<8x6xf32>, %i: tensor<4x1xi32>, %u: tensor<4x3x6xf32>) -> tensor<8x6xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8x6xf32>, tensor<4x1xi32>, tensor<4x3x6xf32>) -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// rule: _ i, j 1, j _ i -> _ i where j = add (init_once)
// linear: joint(0 2: add)
// shardy: start
func.func @scatter_whole_indexed(%x: tensor<8x6xf32>, %i: tensor<4x1xi32>, %u: tensor<4x8x6xf32>) -> tensor<8x6xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8x6xf32>, tensor<4x1xi32>, tensor<4x8x6xf32>) -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// rule: i j, i j, k 1, k j, k j -> i j, i j where i = special (scatter_index), k = add (init_once)
// linear: joint(0 1 3 4: add)
// shardy: mask
func.func @scatter_pair(%x: tensor<8x6xf32>, %y: tensor<8x6xi32>, %i: tensor<4x1xi32>, %u: tensor<4x6xf32>, %v: tensor<4x6xi32>) -> (tensor<8x6xf32>, tensor<8x6xi32>) {
  %r:2 = "stablehlo.scatter"(%x, %y, %i, %u, %v) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %c: tensor<i32>, %b: tensor<f32>, %d: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    %t = stablehlo.add %c, %d : tensor<i32>
    stablehlo.return %s, %t : tensor<f32>, tensor<i32>
  }) : (tensor<8x6xf32>, tensor<8x6xi32>, tensor<4x1xi32>, tensor<4x6xf32>, tensor<4x6xi32>) -> (tensor<8x6xf32>, tensor<8x6xi32>)
  return %r#0, %r#1 : tensor<8x6xf32>, tensor<8x6xi32>
}

// --- windows ------------------------------------------------------------------------------------

// rule: i j k l, _ _ l m -> i j k m where j = special (convolution), k = special (convolution), l = add
// linear: single(0 1: add)
func.func @convolution(%x: tensor<2x8x8x4xf32>, %k: tensor<3x3x4x6xf32>) -> tensor<2x8x8x6xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x8x8x6xf32>
  return %r : tensor<2x8x8x6xf32>
}

// rule: i j k l, 1 1 l m -> i j k m where l = add
// linear: single(0 1: add)
// shardy: apart
func.func @convolution_pointwise(%x: tensor<2x8x8x4xf32>, %k: tensor<1x1x4x6xf32>) -> tensor<2x8x8x6xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x4xf32>, tensor<1x1x4x6xf32>) -> tensor<2x8x8x6xf32>
  return %r : tensor<2x8x8x6xf32>
}

// rule: i (j k) (l m) n, 1 1 n o -> i j l o where k = blocked, m = blocked, n = add
// linear: single(0 1: add)
// shardy: apart
func.func @convolution_pointwise_strided(%x: tensor<2x8x8x4xf32>, %k: tensor<1x1x4x6xf32>) -> tensor<2x4x4x6xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x4xf32>, tensor<1x1x4x6xf32>) -> tensor<2x4x4x6xf32>
  return %r : tensor<2x4x4x6xf32>
}

// rule: i (j k) (l m) n, k m n o -> i j l o where k = add, m = add, n = add
// linear: single(0 1: add)
// shardy: apart
func.func @convolution_patches(%x: tensor<2x8x8x4xf32>, %k: tensor<2x2x4x6xf32>) -> tensor<2x4x4x6xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x4xf32>, tensor<2x2x4x6xf32>) -> tensor<2x4x4x6xf32>
  return %r : tensor<2x4x4x6xf32>
}

// rule: i (j k) l, _ l m -> i j m where k = blocked, l = add
// linear: single(0 1: add)
// shardy: apart
func.func @convolution_patches_reversed(%x: tensor<2x8x4xf32>, %k: tensor<2x4x6xf32>) -> tensor<2x4x6xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x4xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  return %r : tensor<2x4x6xf32>
}

// rule: i j k, j k l -> i 1 l where j = add, k = add
// linear: single(0 1: add)
func.func @convolution_total(%x: tensor<2x8x4xf32>, %k: tensor<8x4x6xf32>) -> tensor<2x1x6xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x4xf32>, tensor<8x4x6xf32>) -> tensor<2x1x6xf32>
  return %r : tensor<2x1x6xf32>
}

// rule: i j (k l), _ l (k m) -> i j (k m) where j = special (convolution), k = parallel (convolution_groups), l = add
// linear: single(0 1: add)
func.func @convolution_feature_groups(%x: tensor<2x8x4xf32>, %k: tensor<3x2x6xf32>) -> tensor<2x8x6xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x8x4xf32>, tensor<3x2x6xf32>) -> tensor<2x8x6xf32>
  return %r : tensor<2x8x6xf32>
}

// rule: (i j) k l, _ l (i m) -> j k (i m) where i = parallel (convolution_groups), k = special (convolution), l = add
// linear: single(0 1: add)
func.func @convolution_batch_groups(%x: tensor<4x8x4xf32>, %k: tensor<3x4x6xf32>) -> tensor<2x8x6xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<4x8x4xf32>, tensor<3x4x6xf32>) -> tensor<2x8x6xf32>
  return %r : tensor<2x8x6xf32>
}

// rule: i j k, _ k l -> i j l where j = special (convolution), k = add
// linear: single(0 1: add)
// shardy: halo
func.func @convolution_strided_padded(%x: tensor<2x8x4xf32>, %k: tensor<3x4x6xf32>) -> tensor<2x4x6xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x4xf32>, tensor<3x4x6xf32>) -> tensor<2x4x6xf32>
  return %r : tensor<2x4x6xf32>
}

// rule: i j k, _ k l -> i j l where j = special (convolution), k = add
// linear: single(0 1: add)
func.func @convolution_transposed(%x: tensor<2x4x4xf32>, %k: tensor<2x4x6xf32>) -> tensor<2x8x6xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x4xf32>, tensor<2x4x6xf32>) -> tensor<2x8x6xf32>
  return %r : tensor<2x8x6xf32>
}

// rule: i j k l, () -> i j k l where j = special (reduce_window)
// linear: joint(0: max)
func.func @reduce_window(%x: tensor<2x8x4x6xf32>, %z: tensor<f32>) -> tensor<2x8x4x6xf32> {
  %r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 3, 1, 1>, padding = dense<[[0, 0], [1, 1], [0, 0], [0, 0]]> : tensor<4x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2x8x4x6xf32>, tensor<f32>) -> tensor<2x8x4x6xf32>
  return %r : tensor<2x8x4x6xf32>
}

// rule: i (j k) l, () -> i j l where k = blocked
// linear: joint(0: add)
// shardy: apart
func.func @reduce_window_pooling(%x: tensor<2x8x6xf32>) -> tensor<2x4x6xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2, 1>, window_strides = array<i64: 1, 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2x8x6xf32>, tensor<f32>) -> tensor<2x4x6xf32>
  return %r : tensor<2x4x6xf32>
}

// rule: i _, () -> i _
// linear: joint(0: add)
// shardy: cumulative
func.func @reduce_window_cumulative(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 8>, padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}

// rule: i (j k), i j, () -> i (j k) where k = blocked
// linear: joint(1: add)
// shardy: apart
func.func @select_and_scatter(%x: tensor<2x8xf32>, %s: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %t = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<2x8xf32>, tensor<2x4xf32>, tensor<f32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}

// rule: i j, i j, () -> i j where j = special (select_and_scatter)
// shardy: exchange
func.func @select_and_scatter_overlapping(%x: tensor<2x8xf32>, %s: tensor<2x4xf32>, %z: tensor<f32>) -> tensor<2x8xf32> {
  %r = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %t = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<2x8xf32>, tensor<2x4xf32>, tensor<f32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}

// --- sorts, transforms, factorisations ----------------------------------------------------------

// rule: i _ j, i _ j -> i _ j, i _ j
func.func @sort(%x: tensor<2x8x6xf32>, %y: tensor<2x8x6xi32>) -> (tensor<2x8x6xf32>, tensor<2x8x6xi32>) {
  %r:2 = "stablehlo.sort"(%x, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<2x8x6xf32>, tensor<2x8x6xi32>) -> (tensor<2x8x6xf32>, tensor<2x8x6xi32>)
  return %r#0, %r#1 : tensor<2x8x6xf32>, tensor<2x8x6xi32>
}

// rule: i _ -> i _, i _
// shardy: no rule
func.func @chlo_top_k(%x: tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
  %r:2 = "chlo.top_k"(%x) {k = 2 : i64} : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  return %r#0, %r#1 : tensor<4x2xf32>, tensor<4x2xi32>
}

// rule: i _ -> i _
func.func @fft(%x: tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>> {
  %r = stablehlo.fft %x, type = FFT, length = [8] : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
  return %r : tensor<4x8xcomplex<f32>>
}

// rule: i _ _ -> i _ _
func.func @fft_real(%x: tensor<4x6x8xf32>) -> tensor<4x6x5xcomplex<f32>> {
  %r = stablehlo.fft %x, type = RFFT, length = [6, 8] : (tensor<4x6x8xf32>) -> tensor<4x6x5xcomplex<f32>>
  return %r : tensor<4x6x5xcomplex<f32>>
}

// rule: i _ _ -> i _ _
func.func @cholesky(%x: tensor<4x3x3xf32>) -> tensor<4x3x3xf32> {
  %r = stablehlo.cholesky %x, lower = true : tensor<4x3x3xf32>
  return %r : tensor<4x3x3xf32>
}

// rule: i _ _, i _ j -> i _ j
// shardy: columns
func.func @triangular_solve(%a: tensor<4x3x3xf32>, %b: tensor<4x3x6xf32>) -> tensor<4x3x6xf32> {
  %r = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<4x3x3xf32>, tensor<4x3x6xf32>) -> tensor<4x3x6xf32>
  return %r : tensor<4x3x6xf32>
}

// rule: i _ _, i j _ -> i j _
// shardy: columns
func.func @triangular_solve_right(%a: tensor<4x3x3xf32>, %b: tensor<4x6x3xf32>) -> tensor<4x6x3xf32> {
  %r = "stablehlo.triangular_solve"(%a, %b) {left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<4x3x3xf32>, tensor<4x6x3xf32>) -> tensor<4x6x3xf32>
  return %r : tensor<4x6x3xf32>
}

// --- opaque -------------------------------------------------------------------------------------

// rule: _ -> _, _ _
// shardy: bits
func.func @rng_bit_generator(%s: tensor<2xui64>) -> (tensor<2xui64>, tensor<4x6xui32>) {
  %r:2 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x6xui32>)
  return %r#0, %r#1 : tensor<2xui64>, tensor<4x6xui32>
}

// rule: (), (), _ -> _ _
// shardy: no rule
func.func @rng(%a: tensor<f32>, %b: tensor<f32>) -> tensor<4x6xf32> {
  %s = stablehlo.constant dense<[4, 6]> : tensor<2xi64>
  %r = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: _ _ -> _ _
// shardy: no rule
func.func @custom_call_unknown(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.custom_call @nobody.knows(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i j -> i j
func.func @custom_call_erf(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.custom_call @mhlo.erf(%x) {mhlo.attributes = {}, mhlo.version = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: i _ -> i _, i _
func.func @custom_call_topk(%x: tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
  %r:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = true}, mhlo.version = 1 : i64} : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  return %r#0, %r#1 : tensor<4x2xf32>, tensor<4x2xi32>
}

// rule: i _ _ -> i _ _, i _
// shardy: no rule
func.func @custom_call_qr(%x: tensor<4x3x3xf32>) -> (tensor<4x3x3xf32>, tensor<4x3xf32>) {
  %r:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%x) : (tensor<4x3x3xf32>) -> (tensor<4x3x3xf32>, tensor<4x3xf32>)
  return %r#0, %r#1 : tensor<4x3x3xf32>, tensor<4x3xf32>
}

// rule: _ _, () -> _ _, ()
// shardy: no rule
func.func @while(%x: tensor<4x6xf32>, %i: tensor<i32>) -> (tensor<4x6xf32>, tensor<i32>) {
  %r:2 = stablehlo.while(%c = %x, %k = %i) : tensor<4x6xf32>, tensor<i32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %d = stablehlo.add %c, %c : tensor<4x6xf32>
    %m = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %d, %m : tensor<4x6xf32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<4x6xf32>, tensor<i32>
}

// rule: () -> _ _
// shardy: no rule
func.func @case(%i: tensor<i32>, %x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = "stablehlo.case"(%i) ({
    %s = stablehlo.add %x, %x : tensor<4x6xf32>
    stablehlo.return %s : tensor<4x6xf32>
  }, {
    stablehlo.return %x : tensor<4x6xf32>
  }) : (tensor<i32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// rule: () -> _ _
// shardy: no rule
func.func @if(%p: tensor<i1>, %x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = "stablehlo.if"(%p) ({
    %s = stablehlo.add %x, %x : tensor<4x6xf32>
    stablehlo.return %s : tensor<4x6xf32>
  }, {
    stablehlo.return %x : tensor<4x6xf32>
  }) : (tensor<i1>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
