"""The few of TensorFlow's names that the guides' plain programs use, over `tapejax.minimal` and `jnp`.

`minimal` has no Variable: this one is a registered pytree of one array, which it asks the active tapes to watch when it is read.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp

from tapejax import minimal

_active: list[GradientTape] = []


class GradientTape(minimal.GradientTape):
    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True):
        super().__init__(persistent)
        self.watch_accessed_variables = watch_accessed_variables

    def __enter__(self):
        _active.append(self)
        return super().__enter__()

    def __exit__(self, *error):
        _active.remove(self)
        return super().__exit__(*error)


class Variable:
    def __init__(self, value: Any, trainable: bool = True, name: str = "Variable", dtype: Any = None):
        self.array, self.trainable, self.name = jnp.array(value, dtype), trainable, f"{name}:0"

    def read(self) -> jax.Array:
        for tape in _active:
            if self.trainable and tape.recording and tape.watch_accessed_variables:
                tape.watch(self.array)
        return self.array

    def assign(self, value: Any) -> Variable:
        self.array = jax.lax.stop_gradient(jnp.array(value, self.array.dtype))
        return self

    def assign_add(self, value: Any) -> Variable:
        return self.assign(self.array + value)

    def assign_sub(self, value: Any) -> Variable:
        return self.assign(self.array - value)

    def __getattr__(self, name: str) -> Any:  # shape, dtype, ...
        return getattr(self.array, name)


def _operator(name):
    return lambda self, *others: getattr(self.read(), name)(*map(_array, others))


def _array(x: Any) -> Any:
    return x.read() if isinstance(x, Variable) else jnp.asarray(x) if isinstance(x, list) else x


for _name in "add radd sub rsub mul rmul truediv rtruediv pow matmul rmatmul neg getitem float lt gt".split():
    setattr(Variable, f"__{_name}__", _operator(f"__{_name}__"))
jax.tree_util.register_pytree_node(Variable, lambda variable: ([variable.read()], None), lambda _, arrays: arrays[0])

_MATH = "abs add atan2=arctan2 ceil cos exp floor log maximum minimum multiply round sign sin sinh sqrt square tan tanh"
_REDUCTIONS = "reduce_max=max reduce_mean=mean reduce_prod=prod reduce_sum=sum"
_ARRAYS = (
    "concat=concatenate constant=array convert_to_tensor=asarray einsum expand_dims eye fill=full float32 identity=copy int32 "
    "linspace matmul ones ones_like range=arange reshape shape squeeze stack transpose where zeros zeros_like"
)


def _of(module: Any, names: str) -> dict[str, Any]:
    """What `names` stand for: ``ours`` or ``ours=theirs``."""
    pairs = ((name, theirs or name) for name, _, theirs in (word.partition("=") for word in names.split()))
    return {name: getattr(module, theirs) for name, theirs in pairs}


tf = SimpleNamespace(
    GradientTape=GradientTape,
    Variable=Variable,
    custom_gradient=minimal.custom_gradient,
    stop_gradient=jax.lax.stop_gradient,
    add_n=sum,
    cast=lambda x, dtype: jnp.asarray(x, dtype),
    math=SimpleNamespace(**_of(jnp, _MATH), **_of(jnp, _REDUCTIONS)),
    nn=SimpleNamespace(**_of(jax.nn, "elu relu sigmoid softmax softplus tanh")),
    linalg=SimpleNamespace(**_of(jnp.linalg, "det inv norm solve")),
    UnconnectedGradients=SimpleNamespace(NONE="none", ZERO="zero"),
    **_of(jnp, _MATH),
    **_of(jnp, _REDUCTIONS),
    **_of(jnp, _ARRAYS),
)
