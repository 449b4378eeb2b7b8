"""The tables behind `twins`: layers, expressions and rules, as text.

In each text an empty line separates a group from the next, and a line of dashes the members that have several lines.
"""

from __future__ import annotations

# A function {f} of an array of three floats becomes another, {g}. What is made on the way has names that begin with _.
LAYERS = r"""
[jit]
{g} = jax.jit(lambda x: {f}(x))

[jit, named]
def {g}(x):
    return {f}(x)
{g} = jax.jit({g})

[jit in jit]
{g} = jax.jit(lambda x: jax.jit(lambda y: {f}(y))(x) + jnp.sin(x))

[jit, two results]
_two = jax.jit(lambda x: ({f}(x), jnp.cos(x)))
def {g}(x):
    u, v = _two(x)
    return 3 * u + 5 * v

[jit, forwarding]
_two = jax.jit(lambda x: (x, {f}(x)))
def {g}(x):
    u, v = _two(x)
    return 3 * u + v

[jit, twice]
_both = jax.jit(lambda x: {f}(x))
{g} = lambda x: _both(x) + _both(jnp.cos(x))

[jit, static]
_static = jax.jit(lambda x, n: {f}(x) * n, static_argnums=1)
{g} = lambda x: _static(x, 2)

[jit, closure]
{g} = lambda x: jax.jit(lambda y: {f}(y) * x)(x)

[jit, partial]
{g} = jax.jit(partial(lambda k, x: {f}(x) * k, 1.5))

[scan]
{g} = lambda x: lax.scan(lambda c, _: ({f}(c) * 0.5, None), x, None, length=2)[0]

[scan, rows]
{g} = lambda x: lax.scan(lambda c, a: (c + a, {f}(c) * a), x, jnp.stack([x, x * 0.5]))[1][1]

[cond]
{g} = lambda x: lax.cond(x[0] > -9, lambda x: {f}(x), lambda x: x * 2, x)

[switch]
{g} = lambda x: lax.switch(x[0].astype(int) * 0 + 1, [lambda x: x * 3, lambda x: {f}(x), jnp.sin], x)

[fori_loop]
{g} = lambda x: lax.fori_loop(0, 2, lambda i, c: {f}(c) * 0.5 + i, x)

[while_loop]
def {g}(x):
    n = lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, {f}(c[1])), (0, lax.stop_gradient(x)))[1]
    return n * x

[map]
{g} = lambda x: lax.map(lambda y: {f}(y), jnp.stack([x, x * 0.5])).sum(0)

[vmap]
{g} = lambda x: jax.vmap(lambda y: {f}(y))(jnp.stack([x, x * 0.5]))[1]

[checkpoint]
{g} = jax.checkpoint(lambda x: {f}(jnp.sin(x)))

[checkpoint, policy]
{g} = jax.checkpoint(lambda x: jnp.sin({f}(x) * 0.3), policy=jax.checkpoint_policies.everything_saveable)

[custom_jvp, body]
{g} = jax.custom_jvp(lambda x: {f}(x))
{g}.defjvp(lambda p, t: (pause(), ({g}(*p), t[0] * 3))[1])

[custom_jvp, rule]
{g} = jax.custom_jvp(lambda x: jnp.sin(x))
{g}.defjvp(lambda p, t: (pause(), ({g}(*p), t[0] * {f}(*p)))[1])

[custom_jvp, own rule]
{g} = jax.custom_jvp(lambda x: {f}(x))
{g}.defjvp(lambda p, t: ({g}(*p), t[0] * {g}(jnp.sin(*p))))

[custom_vjp, body]
{g} = jax.custom_vjp(lambda x: {f}(x))
{g}.defvjp(lambda x: ({g}(x), x), lambda r, g: (g * r,))

[custom_vjp, forward]
{g} = jax.custom_vjp(lambda x: jnp.sin(x))
{g}.defvjp(lambda x: (pause(), (jnp.sin(x), {f}(x)))[1], lambda r, g: (g * r,))

[custom_vjp, backward]
{g} = jax.custom_vjp(lambda x: jnp.sin(x))
{g}.defvjp(lambda x: (jnp.sin(x), x), lambda r, g: (pause(), (g * {f}(r),))[1])

[custom_vjp, nondiff]
_rule = jax.custom_vjp(lambda n, x: x * n, nondiff_argnums=0)
_rule.defvjp(lambda n, x: (x * n, x), lambda n, r, g: (g * n * {f}(r),))
{g} = lambda x: _rule(2, x)

[custom_vmap]
{g} = jax.custom_batching.custom_vmap(lambda x: {f}(x))
{g}.def_vmap(lambda size, batched, x: (jnp.stack([{f}(y) for y in x]), batched[0]))

[custom_root]
{g} = lambda x: lax.custom_root(lambda y: y - {f}(x), x, lambda h, y: y - h(y), lambda h, y: y)

[grad]
{g} = lambda x: jax.grad(lambda x: {f}(x).sum())(x)

[jvp]
{g} = lambda x: jax.jvp(lambda x: {f}(x), (x,), (jnp.cos(x),))[1]

[linearize]
{g} = lambda x: jax.linearize(lambda x: {f}(x), x)[1](jnp.sin(x))

[plain]
{g} = lambda x: {f}(jnp.sin(x)) + x

[shard_map]
{g} = jax.shard_map(lambda x: {f}(x), mesh=jax.make_mesh((1,), ('i',)), in_specs=P(), out_specs=P())

[op]
{g} = lambda x: arr(op.multiply(ten({f}(arr(op.sin(ten(x))))), 2.0))

[operators]
{g} = lambda x: arr(2.0 * ten({f}(x)) - ten(x) * 0.25)

[function]
{g} = op.function(lambda x: {f}(arr(x)))
{g} = lambda x, h={g}: arr(h(x))

[tf.cond]
{g} = lambda x: arr(op.cond(x[0] > -9, lambda x: {f}(arr(x)), lambda x: x * 2, x))

[tf.while_loop]
{g} = lambda x: arr(op.repeat(2, lambda y: {f}(arr(y)) * 0.5, x))

[tf.map_fn]
{g} = lambda x: arr(op.rows(lambda y: {f}(arr(y)), jnp.stack([x, x * 0.5])))[1]

[vectorized_map]
{g} = lambda x: arr(op.mapped(lambda y: {f}(arr(y)), jnp.stack([x, x * 0.5])))[1]

[custom_gradient]
{g} = op.custom_gradient(lambda x: ({f}(arr(x)), lambda g: arr(g) * 3))
{g} = lambda x, h={g}: arr(h(x))

[custom_gradient, rule]
{g} = op.custom_gradient(lambda x: (jnp.sin(arr(x)), lambda g: arr(g) * {f}(arr(x))))
{g} = lambda x, h={g}: arr(h(x))

[recompute_grad]
{g} = op.recompute_grad(lambda x: {f}(arr(x)))
{g} = lambda x, h={g}: arr(h(x))

[tape]
{g} = lambda x: arr(op.gradient(lambda x: {f}(x), x))
"""

# Expressions that differ in a parameter of a primitive, the order of branches, a length, what is an operand of what.
FAMILIES = r"""
jnp.sum(outer(x), 0)
jnp.sum(outer(x), 1)

jnp.max(outer(x), 0)
jnp.max(outer(x), 1)

jnp.cumsum(x)
lax.cumsum(x, reverse=True)
lax.cumprod(x)
lax.cumlogsumexp(x)

jnp.roll(x, 1)
jnp.roll(x, 2)
x[::-1]
jnp.flip(x) * 2

x[np.array([0, 2, 2])]
x[np.array([0, 2, 1])]
x[np.array([0, 2, -1])] * 2

jnp.pad(x[:2], (1, 0))
jnp.pad(x[:2], (0, 1))
jnp.pad(x[1:], (0, 1))
jnp.pad(x[:2], (0, 1), mode='edge')

lax.dynamic_slice(jnp.tile(x, 2), (0,), (3,))
lax.dynamic_slice(jnp.tile(x, 2), (1,), (3,))
lax.dynamic_slice(jnp.tile(x, 2), (2,), (3,))

x @ outer(x)
outer(x) @ x
jnp.einsum('ij,ij->i', outer(x), outer(x))
jnp.einsum('ij,ij->j', outer(x), outer(x))

x**2
x**3
lax.integer_pow(x, 4)
x * x * 2

x + lax.reduce_precision(x * x, 5, 3)
x + lax.reduce_precision(x * x, 8, 1)

x * (x + 0.11).astype('float16').astype('float32') * 9
x * (x + 0.11).astype('int32').astype('float32') * 9

jnp.sort(x)
-jnp.sort(-x)
jnp.sort(jnp.abs(x))

jnp.pad(lax.top_k(x, 2)[0], (0, 1))
jnp.pad(lax.top_k(x, 1)[0], (0, 2))

jnp.take(x, np.array([0, 4, 1]), mode='clip')
jnp.take(x, np.array([0, 4, 1]), mode='wrap')
jnp.take(x, np.array([0, 4, 1]), mode='fill', fill_value=0)

x.at[0].add(x[1])
x.at[0].set(x[1])
x.at[0].mul(x[1])
x.at[0].min(x[1])
x.at[0].max(x[1])
x.at[2].add(x[1])

x.at[np.array([0, 0])].add(x[:2])
x.at[np.array([0, 1])].add(x[:2])

lax.associative_scan(jnp.add, x)
lax.associative_scan(jnp.add, x, reverse=True)
lax.associative_scan(jnp.multiply, x)

jax.nn.leaky_relu(x, 0.1)
jax.nn.leaky_relu(x, 0.2)
jax.nn.relu(x)
jax.nn.elu(x)
jax.nn.elu(x, 0.5)
jax.nn.celu(x, 2.0)

jax.nn.gelu(x, approximate=True) * 100
jax.nn.gelu(x, approximate=False) * 100
jax.nn.silu(x) * 100

jax.nn.softmax(x)
jax.nn.log_softmax(x)
jax.nn.standardize(x)

jnp.clip(x, 0.0, 1.0)
jnp.clip(x, 0.0, 0.5)
jnp.clip(x, -1.0, 1.0)

x * jnp.linalg.norm(x, 1)
x * jnp.linalg.norm(x, 2)
x * jnp.linalg.norm(x, 3)
x * jnp.linalg.norm(x, jnp.inf)

x * jax.random.normal(jax.random.key(1), (3,))
x * jax.random.normal(jax.random.key(2), (3,))
x * jax.random.uniform(jax.random.key(1), (3,))

jnp.tril(outer(x)) @ x
jnp.triu(outer(x)) @ x
jnp.tril(outer(x), 1) @ x
jnp.tril(outer(x), -1) @ x

jax.scipy.linalg.solve_triangular(outer(x) + 4 * np.eye(3, dtype=np.float32), x, lower=True, trans=0)
jax.scipy.linalg.solve_triangular(outer(x) + 4 * np.eye(3, dtype=np.float32), x, lower=True, trans=1)
jax.scipy.linalg.solve_triangular(outer(x) + 4 * np.eye(3, dtype=np.float32), x, lower=False, trans=0)
jax.scipy.linalg.solve_triangular(outer(x) + 4 * np.eye(3, dtype=np.float32), x, lower=False, trans=1)

lax.reduce(x, np.float32(0), lax.add, (0,)) * x
lax.reduce(x, np.float32(1), lax.mul, (0,)) * x
lax.reduce(x, np.float32(-9), lax.max, (0,)) * x
lax.reduce(x, np.float32(9), lax.min, (0,)) * x

lax.reduce_window(x, np.float32(0), lax.add, (1,), (1,), 'SAME')
lax.reduce_window(x, np.float32(0), lax.add, (2,), (1,), 'SAME')
lax.reduce_window(x, np.float32(0), lax.add, (3,), (1,), 'SAME')

jnp.convolve(x, x, 'same')
jnp.convolve(x, x)[:3]
jnp.correlate(x, x, 'same')

lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)
lax.cond(x[0] > 0, jnp.cos, jnp.sin, x)

lax.cond(x[0] > 0, lambda a, b: a * 2 + b * b, lambda a, b: a - b, x, jnp.sin(x))
lax.cond(x[0] > 0, lambda a, b: a * 2 + b * b, lambda a, b: a - b, jnp.sin(x), x)

lax.switch(0, [jnp.sin, jnp.cos, jnp.tanh], x)
lax.switch(1, [jnp.sin, jnp.cos, jnp.tanh], x)
lax.switch(2, [jnp.sin, jnp.cos, jnp.tanh], x)

lax.switch((x[0] > 0).astype('int32'), [jnp.sin, jnp.cos, jnp.tanh], x)
lax.switch((x[0] > 0).astype('int32'), [jnp.cos, jnp.sin, jnp.tanh], x)
lax.switch((x[0] > 0).astype('int32'), [jnp.tanh, jnp.cos], x)

lax.scan(lambda c, _: (jnp.sin(c) * 1.5, None), x, None, length=1)[0]
lax.scan(lambda c, _: (jnp.sin(c) * 1.5, None), x, None, length=2)[0]
lax.scan(lambda c, _: (jnp.sin(c) * 1.5, None), x, None, length=3)[0]

lax.fori_loop(0, 1, lambda i, c: c * 0.5 + i, x)
lax.fori_loop(0, 2, lambda i, c: c * 0.5 + i, x)
lax.fori_loop(0, 3, lambda i, c: c * 0.5 + i, x)
lax.fori_loop(1, 3, lambda i, c: c * 0.5 + i, x)

lax.scan(lambda c, a: (c * a, c + a), x[0], x, reverse=True, unroll=1)[1]
lax.scan(lambda c, a: (c * a, c + a), x[0], x, reverse=True, unroll=2)[1]
lax.scan(lambda c, a: (c * a, c + a), x[0], x, reverse=False, unroll=1)[1]
lax.scan(lambda c, a: (c * a, c + a), x[0], x, reverse=False, unroll=2)[1]

lax.scan(lambda c, a: (c * a, c + a), x[0], x)[1]
lax.scan(lambda c, a: (c + a, c * a), x[0], x)[1]

x * lax.while_loop(lambda c: c < 3, lambda c: c + 1, lax.stop_gradient(x[0]))
x * lax.while_loop(lambda c: c < 4, lambda c: c + 1, lax.stop_gradient(x[0]))
x * lax.while_loop(lambda c: c < 3, lambda c: c + 2, lax.stop_gradient(x[0]))

jax.jit(lambda a, b: a * a + b)(x, jnp.sin(x))
jax.jit(lambda a, b: a * a + b)(jnp.sin(x), x)
jax.jit(lambda a, b: a * a + b)(x, x)

jax.jit(lambda a: (jnp.sin(a), jnp.cos(a)))(x)[0]
jax.jit(lambda a: (jnp.sin(a), jnp.cos(a)))(x)[1]

sum(jax.jit(lambda a: (a, 2 * a))(x))
sum(jax.jit(lambda a: (a, a))(x))
sum(jax.jit(lambda a: (a, lax.stop_gradient(a)))(x))

jax.vmap(lambda a, b: a * b[1], (0, None))(x, jnp.sin(x))
jax.vmap(lambda a, b: a * b[2], (0, None))(x, jnp.sin(x))

jax.vmap(lambda a: a * 2 + a[::-1], in_axes=0, out_axes=0)(outer(x))[0]
jax.vmap(lambda a: a * 2 + a[::-1], in_axes=0, out_axes=1)(outer(x))[0]
jax.vmap(lambda a: a * 2 + a[::-1], in_axes=1, out_axes=0)(outer(x))[0]
jax.vmap(lambda a: a * 2 + a[::-1], in_axes=1, out_axes=1)(outer(x))[0]

lax.select_n(x > 0, x * x, jnp.sin(x))
lax.select_n(x > 0, jnp.sin(x), x * x)

jnp.real(jnp.fft.fft(x))
jnp.real(jnp.fft.fft(x, norm='ortho'))
jnp.real(jnp.fft.ifft(x))
jnp.imag(jnp.fft.fft(x))

x * lax.iota('float32', 3)
x * lax.rev(lax.iota('float32', 3), (0,))

x * lax.broadcasted_iota('float32', (3, 3), 0)[1]
x * lax.broadcasted_iota('float32', (3, 3), 1)[1]

x + jnp.round(x, 0)
x + jnp.round(x, 1)

scaled_p.bind(x, k=0.0)
scaled_p.bind(x, k=-0.0)
scaled_p.bind(x, k=1)
scaled_p.bind(x, k=1.0)
scaled_p.bind(x, k=True)
scaled_p.bind(x, k=nan)
scaled_p.bind(x, k=2.0)
scaled_p.bind(x, k=2)

op.apply(x, 0.0)
op.apply(x, -0.0)
op.apply(x, 1)
op.apply(x, 1.0)
op.apply(x, True)
op.apply(x, 2.0)
op.apply(x, 2)

jnp.sin(scaled_p.bind(x, k=np.float32(0.1)))
jnp.sin(scaled_p.bind(x, k=np.float32(0.1000001) * 100))
jnp.sin(scaled_p.bind(x, k=np.array(0.3)))
jnp.sin(scaled_p.bind(x, k=np.array(0.4)))

x
lax.stop_gradient(x) * 1
x * 1
x + 0 * lax.stop_gradient(x)

jnp.where(jnp.asarray([True, False, True]), x * 2, x)
jnp.where(jnp.asarray([True, False, True]), x, x * 2)
jnp.where(jnp.asarray([True, False, True]), x * 2, 0.0)

jax.checkpoint(lambda y: tagged(jnp.sin(y), 'a') * 2, policy=saving('a'))(x)
jax.checkpoint(lambda y: tagged(jnp.sin(y), 'a') * 2, policy=saving('b'))(x)
jax.checkpoint(lambda y: tagged(jnp.sin(y), 'a') * 3, policy=saving('a'))(x)
jax.checkpoint(lambda y: tagged(jnp.sin(y), 'a') * 3, policy=saving('b'))(x)

jax.lax.psum(x, ()) * 2
jax.lax.psum(x, ()) * 3

jax.lax.map(lambda a: a * 2, x, batch_size=1)
jax.lax.map(lambda a: a * 2, x, batch_size=2)
jax.lax.map(lambda a: a * 3, x, batch_size=1)
jax.lax.map(lambda a: a * 3, x, batch_size=2)

lax.conv_general_dilated(x.reshape(1, 1, 3), x.reshape(1, 1, 3), (1,), 'SAME', lhs_dilation=(1,))[0, 0, :3]
lax.conv_general_dilated(x.reshape(1, 1, 3), x.reshape(1, 1, 3), (1,), 'SAME', lhs_dilation=(2,))[0, 0, :3]
lax.conv_general_dilated(x.reshape(1, 1, 3), x.reshape(1, 1, 3), (1,), [(2, 2)], lhs_dilation=(1,))[0, 0, :3]
lax.conv_general_dilated(x.reshape(1, 1, 3), x.reshape(1, 1, 3), (1,), [(2, 2)], lhs_dilation=(2,))[0, 0, :3]

jnp.linalg.cholesky(4 * np.eye(3, dtype=np.float32) + 0.1 * jnp.outer(x, x)) @ x
jnp.linalg.cholesky(4 * np.eye(3, dtype=np.float32) + 0.1 * jnp.outer(x, x), upper=True) @ x

jnp.prod(x) * x
jnp.mean(x) * x
jnp.var(x) * x
jnp.var(x, ddof=1) * x
jnp.std(x) * x

x * jnp.argmax(x)
x * jnp.argmin(x)
x * jnp.argmax(x[::-1])

jax.nn.one_hot(1, 3) * x
jax.nn.one_hot(2, 3) * x
jax.nn.one_hot(2, 3, dtype='int32') * x

lax.linalg.triangular_solve(outer(x) + 4 * np.eye(3, dtype=np.float32), x[:, None], left_side=True)[:, 0]
lax.linalg.triangular_solve(outer(x) + 4 * np.eye(3, dtype=np.float32), x[:, None], left_side=True, unit_diagonal=True)[:, 0]
"""

# The same function with different rules.
RULES = r"""
f0 = jax.custom_jvp(lambda x: jnp.sin(x))
f0.defjvp(lambda p, t: (pause(), (f0(*p), 2 * t[0]))[1])
---
f0 = jax.custom_jvp(lambda x: jnp.sin(x))
f0.defjvp(lambda p, t: (pause(), (f0(*p), 3 * t[0]))[1])
---
f0 = jax.custom_jvp(lambda x: jnp.sin(x))
f0.defjvp(lambda p, t: (pause(), (f0(*p), t[0] * p[0]))[1])
---
f0 = jax.custom_jvp(lambda x: jnp.sin(x))
f0.defjvp(lambda p, t: (pause(), (f0(*p), t[0] * jnp.cos(p[0])))[1])

f0 = jax.custom_jvp(lambda x: jnp.sin(x))
f0.defjvps(lambda t, out, x: 2 * t)
---
f0 = jax.custom_jvp(lambda x: jnp.sin(x))
f0.defjvps(lambda t, out, x: 3 * t)
---
f0 = jax.custom_jvp(lambda x: jnp.sin(x))
f0.defjvps(lambda t, out, x: t * out)
---
f0 = jax.custom_jvp(lambda x: jnp.sin(x))
f0.defjvps(lambda t, out, x: t * x)

f0 = jax.custom_vjp(lambda x: jnp.sin(x))
f0.defvjp(lambda x: (jnp.sin(x), x), lambda r, g: (pause(), (g * r,))[1])
---
f0 = jax.custom_vjp(lambda x: jnp.sin(x))
f0.defvjp(lambda x: (jnp.sin(x), 2 * x), lambda r, g: (pause(), (g * r,))[1])
---
f0 = jax.custom_vjp(lambda x: jnp.sin(x))
f0.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda r, g: (pause(), (g * r,))[1])

f0 = jax.custom_vjp(lambda x: jnp.sin(x))
f0.defvjp(lambda x: (jnp.sin(x), x), lambda r, g: (pause(), (g,))[1])
---
f0 = jax.custom_vjp(lambda x: jnp.sin(x))
f0.defvjp(lambda x: (jnp.sin(x), x), lambda r, g: (pause(), (2 * g,))[1])
---
f0 = jax.custom_vjp(lambda x: jnp.sin(x))
f0.defvjp(lambda x: (jnp.sin(x), x), lambda r, g: (pause(), (g * r,))[1])
---
f0 = jax.custom_vjp(lambda x: jnp.sin(x))
f0.defvjp(lambda x: (jnp.sin(x), x), lambda r, g: (pause(), (r,))[1])

f0 = jax.custom_vjp(lambda x: jnp.sin(x))
f0.defvjp(lambda x: (jnp.sin(x), x), lambda r, g: (g * r,))
---
f0 = jax.custom_vjp(lambda x: jnp.cos(x))
f0.defvjp(lambda x: (jnp.cos(x), x), lambda r, g: (g * r,))

h = jax.custom_vjp(lambda a, b: a * b)
h.defvjp(lambda a, b: (a * b, (a, b)), lambda r, g: (g * r[0], g * r[1]))
f0 = lambda x: h(x, jnp.sin(x))
---
h = jax.custom_vjp(lambda a, b: a * b)
h.defvjp(lambda a, b: (a * b, (a, b)), lambda r, g: (g * r[1], g * r[0]))
f0 = lambda x: h(x, jnp.sin(x))
---
h = jax.custom_vjp(lambda a, b: a * b)
h.defvjp(lambda a, b: (a * b, (a, b)), lambda r, g: (g, None))
f0 = lambda x: h(x, jnp.sin(x))
---
h = jax.custom_vjp(lambda a, b: a * b)
h.defvjp(lambda a, b: (a * b, (a, b)), lambda r, g: (None, g))
f0 = lambda x: h(x, jnp.sin(x))

h = jax.custom_jvp(lambda a, b: a * b)
h.defjvps(lambda t, out, a, b: t * b, None)
f0 = lambda x: h(x, jnp.sin(x))
---
h = jax.custom_jvp(lambda a, b: a * b)
h.defjvps(None, lambda t, out, a, b: t * b)
f0 = lambda x: h(x, jnp.sin(x))
---
h = jax.custom_jvp(lambda a, b: a * b)
h.defjvps(lambda t, out, a, b: t, lambda t, out, a, b: t)
f0 = lambda x: h(x, jnp.sin(x))

h = jax.custom_jvp(lambda n, x: x * n, nondiff_argnums=(0,))
h.defjvp(lambda n, p, t: (h(n, *p), t[0] * n * n))
f0 = lambda x: h(2, x)
---
h = jax.custom_jvp(lambda n, x: x * n, nondiff_argnums=(0,))
h.defjvp(lambda n, p, t: (h(n, *p), t[0] * n * n))
f0 = lambda x: h(3, x)
---
h = jax.custom_jvp(lambda n, x: x * n, nondiff_argnums=(0,))
h.defjvp(lambda n, p, t: (h(n, *p), t[0] * n * n))
f0 = lambda x: h(2.5, x)

h = jax.custom_vjp(lambda k, x: k(x), nondiff_argnums=(0,))
h.defvjp(lambda k, x: (k(x), x), lambda k, r, g: (g * k(r),))
f0 = lambda x: h(lambda y: 2 * y, x)
---
h = jax.custom_vjp(lambda k, x: k(x), nondiff_argnums=(0,))
h.defvjp(lambda k, x: (k(x), x), lambda k, r, g: (g * k(r),))
f0 = lambda x: h(lambda y: 3 * y, x)

S = np.array([1, 2, 2], np.float32)
f0 = jax.custom_jvp(lambda x: jnp.sin(x))
f0.defjvp(lambda p, t: (f0(*p), t[0] * S))
---
S = np.array([1, 3, 2], np.float32)
f0 = jax.custom_jvp(lambda x: jnp.sin(x))
f0.defjvp(lambda p, t: (f0(*p), t[0] * S))

S = jnp.array([1, 2, 2], 'float32')
f0 = jax.custom_jvp(lambda x: jnp.sin(x))
f0.defjvp(lambda p, t: (f0(*p), t[0] * S))
---
S = jnp.array([1, 3, 2], 'float32')
f0 = jax.custom_jvp(lambda x: jnp.sin(x))
f0.defjvp(lambda p, t: (f0(*p), t[0] * S))

S = np.array([1, 2, 2], np.float32)
f0 = jax.custom_vjp(lambda x: jnp.sin(x))
f0.defvjp(lambda x: (f0(x), x), lambda r, g: (g * S,))
---
S = np.array([1, 3, 2], np.float32)
f0 = jax.custom_vjp(lambda x: jnp.sin(x))
f0.defvjp(lambda x: (f0(x), x), lambda r, g: (g * S,))

S = jnp.array([1, 2, 2], 'float32')
f0 = jax.custom_vjp(lambda x: jnp.sin(x))
f0.defvjp(lambda x: (f0(x), S), lambda r, g: (g * r,))
---
S = jnp.array([1, 3, 2], 'float32')
f0 = jax.custom_vjp(lambda x: jnp.sin(x))
f0.defvjp(lambda x: (f0(x), S), lambda r, g: (g * r,))

f0 = jax.custom_jvp(lambda x: jnp.sin(x))
def rule(p, t):
    return f0(*p), t[0] * 2.0
f0.defjvp(rule, symbolic_zeros=True)
---
f0 = jax.custom_jvp(lambda x: jnp.sin(x))
def rule(p, t):
    return f0(*p), t[0] * 3.0
f0.defjvp(rule, symbolic_zeros=True)

f0 = jax.custom_vjp(lambda x: jnp.sin(x))
back = lambda r, g: (g if type(g) is jax.custom_derivatives.SymbolicZero else g * 2,)
f0.defvjp(lambda x: (jnp.sin(x.value), None), back, symbolic_zeros=True)
---
f0 = jax.custom_vjp(lambda x: jnp.sin(x))
back = lambda r, g: (g if type(g) is jax.custom_derivatives.SymbolicZero else g * 3,)
f0.defvjp(lambda x: (jnp.sin(x.value), None), back, symbolic_zeros=True)
---
f0 = jax.custom_vjp(lambda x: jnp.cos(x))
back = lambda r, g: (g if type(g) is jax.custom_derivatives.SymbolicZero else g * 3,)
f0.defvjp(lambda x: (jnp.cos(x.value), None), back, symbolic_zeros=True)

h = jax.custom_jvp(lambda n: n * 2)
def rule(p, t):
    raise RuntimeError("by design")
h.defjvp(rule)
f0 = lambda x: x * h(jnp.ones(3, x.dtype))
---
h = jax.custom_jvp(lambda n: n * 3)
def rule(p, t):
    raise RuntimeError("by design")
h.defjvp(rule)
f0 = lambda x: x * h(jnp.ones(3, x.dtype))
---
h = jax.custom_jvp(lambda n: n * 2)
h.defjvp(lambda p, t: (h(*p), t[0]))
f0 = lambda x: x * h(jnp.ones(3, x.dtype))

f0 = jax.custom_jvp(lambda x: jnp.sin(x))
f0.defjvp(lambda p, t: (f0(*p), 2 * t[0]))
---
f0 = jax.custom_vjp(lambda x: jnp.sin(x))
f0.defvjp(lambda x: (f0(x), None), lambda r, g: (3 * g,))
---
f0 = lambda x: jnp.sin(x)

f0 = jax.custom_jvp(lambda x: jnp.sin(x))
h = jax.custom_jvp(lambda x: jnp.cos(x))
h.defjvp(lambda p, t: (h(*p), 5 * t[0]))
f0.defjvp(lambda p, t: (f0(*p), h(p[0]) * t[0]))
---
f0 = jax.custom_jvp(lambda x: jnp.sin(x))
h = jax.custom_jvp(lambda x: jnp.cos(x))
h.defjvp(lambda p, t: (h(*p), 7 * t[0]))
f0.defjvp(lambda p, t: (f0(*p), h(p[0]) * t[0]))

h = op.custom_gradient(lambda x: (jnp.sin(arr(x)), lambda g: arr(g) * 2))
f0 = lambda x: arr(h(x))
---
h = op.custom_gradient(lambda x: (jnp.sin(arr(x)), lambda g: arr(g) * 3))
f0 = lambda x: arr(h(x))

f0 = lambda x: lax.custom_linear_solve(lambda y: y * 2, x, lambda m, b: b / 2, lambda m, b: b / 2)
---
f0 = lambda x: lax.custom_linear_solve(lambda y: y * 3, x, lambda m, b: b / 3, lambda m, b: b / 3)

solve = lambda x: lambda h, y: jnp.sqrt(jnp.abs(x) * 2)
f0 = lambda x: lax.custom_root(lambda y: y**2 - jnp.abs(x) * 2, jnp.abs(x) + 1, solve(x), lambda h, y: y / h(jnp.ones_like(y)))
---
solve = lambda x: lambda h, y: jnp.sqrt(jnp.abs(x) * 3)
f0 = lambda x: lax.custom_root(lambda y: y**2 - jnp.abs(x) * 3, jnp.abs(x) + 1, solve(x), lambda h, y: y / h(jnp.ones_like(y)))

f0 = lambda x: jax.jit(lambda x: jax.nn.relu(x * 2))(x)
---
f0 = lambda x: jax.jit(lambda x: jax.nn.relu(x * 3))(x)

h = jax.custom_jvp(lambda x: jax.jit(lambda x: x * 2)(x))
h.defjvp(lambda p, t: (h(*p), jax.jit(lambda t: t * 2)(t[0])))
f0 = lambda x: h(x)
---
h = jax.custom_jvp(lambda x: jax.jit(lambda x: x * 2)(x))
h.defjvp(lambda p, t: (h(*p), jax.jit(lambda t: t * 3)(t[0])))
f0 = lambda x: h(x)
"""
