"""Made by .ci/stubs of the live namespace."""

import contextlib
from typing import Any, TypeVar, overload
import jax
import numpy as np
import tapejax as tf
from tapejax.tf.values.types import Nest, Array

_K = TypeVar("_K")
_T = TypeVar("_T")
_V = TypeVar("_V", tf.Tensor, tf.Variable)
class ForwardAccumulator:
    """Computes Jacobian-vector products of what JAX computes inside a ``with`` block.

    Forward mode takes one pass per direction. It is the cheaper one for few inputs and many outputs, a `GradientTape` for many
    inputs and few outputs.

    Args:
      primals: a tensor, array or variable, or a structure of them: where the derivative is taken.
      tangents: the direction, structured as `primals`, each of its primal's shape and dtype.

    Raises:
      ValueError: `tangents` has another structure than `primals`; a tangent has another shape or dtype than its primal; a
        primal comes twice.
      TypeError: `primals` holds something that is no tensor, array or variable; the containers of `tangents` are of other types.

    >>> import tapejax as tf
    >>> x = tf.constant([2.0, 3.0])
    >>> with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as acc:
    ...     y = x * x
    >>> print(acc.jvp(y).numpy())
    [4. 0.]

    After ``tf.autodiff.ForwardAccumulator``; the derivative is `jax.jvp`'s.
    """
    def __init__(self, primals: Any, tangents: Any) -> None:
        """Initialize self.  See help(type(self)) for accurate signature."""
    def __enter__(self) -> tf.ForwardAccumulator: ...
    def __exit__(self, kind: type[BaseException] | None = None, *exception: Any) -> None: ...
    @overload
    def jvp(self, primals: tf.Tensor | tf.Variable, unconnected_gradients: tf.UnconnectedGradients | str = ...) -> tf.Tensor:
        """The derivative of `primals`, computed in the block, in the direction of the tangents.

        Args:
          primals: a tensor or array, or a structure of them.
          unconnected_gradients: what stands for one that does not depend on the accumulator's primals: None or zeros.

        Returns:
          The structure of `primals`, with a tangent of each one's shape and dtype, or None. For a ``jax.Array`` a ``jax.Array``,
          for a `Tensor` or a variable a `Tensor`.

        Raises:
          TypeError: `primals` holds something that is no tensor, array or variable.
          ValueError: `unconnected_gradients` is unknown.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x, c = tf.constant(3.0), tf.constant(2.0)
        >>> with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        ...     y = x * x * c
        >>> acc.jvp([y, c])
        [<tf.Tensor: shape=(), dtype=float32, numpy=12.0>, None]
        """
    @overload
    def jvp(self, primals: list[_V], unconnected_gradients: tf.UnconnectedGradients | str = ...) -> list[tf.Tensor]:
        """The derivative of `primals`, computed in the block, in the direction of the tangents.

        Args:
          primals: a tensor or array, or a structure of them.
          unconnected_gradients: what stands for one that does not depend on the accumulator's primals: None or zeros.

        Returns:
          The structure of `primals`, with a tangent of each one's shape and dtype, or None. For a ``jax.Array`` a ``jax.Array``,
          for a `Tensor` or a variable a `Tensor`.

        Raises:
          TypeError: `primals` holds something that is no tensor, array or variable.
          ValueError: `unconnected_gradients` is unknown.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x, c = tf.constant(3.0), tf.constant(2.0)
        >>> with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        ...     y = x * x * c
        >>> acc.jvp([y, c])
        [<tf.Tensor: shape=(), dtype=float32, numpy=12.0>, None]
        """
    @overload
    def jvp(self, primals: tuple[_V, ...], unconnected_gradients: tf.UnconnectedGradients | str = ...) -> tuple[tf.Tensor, ...]:
        """The derivative of `primals`, computed in the block, in the direction of the tangents.

        Args:
          primals: a tensor or array, or a structure of them.
          unconnected_gradients: what stands for one that does not depend on the accumulator's primals: None or zeros.

        Returns:
          The structure of `primals`, with a tangent of each one's shape and dtype, or None. For a ``jax.Array`` a ``jax.Array``,
          for a `Tensor` or a variable a `Tensor`.

        Raises:
          TypeError: `primals` holds something that is no tensor, array or variable.
          ValueError: `unconnected_gradients` is unknown.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x, c = tf.constant(3.0), tf.constant(2.0)
        >>> with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        ...     y = x * x * c
        >>> acc.jvp([y, c])
        [<tf.Tensor: shape=(), dtype=float32, numpy=12.0>, None]
        """
    @overload
    def jvp(self, primals: dict[_K, _V], unconnected_gradients: tf.UnconnectedGradients | str = ...) -> dict[_K, tf.Tensor]:
        """The derivative of `primals`, computed in the block, in the direction of the tangents.

        Args:
          primals: a tensor or array, or a structure of them.
          unconnected_gradients: what stands for one that does not depend on the accumulator's primals: None or zeros.

        Returns:
          The structure of `primals`, with a tangent of each one's shape and dtype, or None. For a ``jax.Array`` a ``jax.Array``,
          for a `Tensor` or a variable a `Tensor`.

        Raises:
          TypeError: `primals` holds something that is no tensor, array or variable.
          ValueError: `unconnected_gradients` is unknown.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x, c = tf.constant(3.0), tf.constant(2.0)
        >>> with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        ...     y = x * x * c
        >>> acc.jvp([y, c])
        [<tf.Tensor: shape=(), dtype=float32, numpy=12.0>, None]
        """
    @overload
    def jvp(self, primals: _T, unconnected_gradients: tf.UnconnectedGradients | str = ...) -> _T:
        """The derivative of `primals`, computed in the block, in the direction of the tangents.

        Args:
          primals: a tensor or array, or a structure of them.
          unconnected_gradients: what stands for one that does not depend on the accumulator's primals: None or zeros.

        Returns:
          The structure of `primals`, with a tangent of each one's shape and dtype, or None. For a ``jax.Array`` a ``jax.Array``,
          for a `Tensor` or a variable a `Tensor`.

        Raises:
          TypeError: `primals` holds something that is no tensor, array or variable.
          ValueError: `unconnected_gradients` is unknown.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x, c = tf.constant(3.0), tf.constant(2.0)
        >>> with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        ...     y = x * x * c
        >>> acc.jvp([y, c])
        [<tf.Tensor: shape=(), dtype=float32, numpy=12.0>, None]
        """
    def explain(self, primals: Nest) -> Any:
        """Says why `jvp` of `primals` is what it is: along which path it comes from each primal, or why it is None.

        Args:
          primals: as for `jvp`: a tensor or array that the block computed, or a structure of them.

        Returns:
          An `Explanation`, as of `GradientTape.explain`, with a report for each primal of the accumulator's.

        Raises:
          TypeError: `primals` holds something that is no tensor.

        >>> import tapejax as tf
        >>> x = tf.constant(2.5)
        >>> with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        ...     y = tf.round(x) * 3.0
        >>> print(acc.jvp(y), acc.explain(y)[0].kinds)
        None ('no derivative',)
        """
class GradientTape:
    """Records what JAX computes inside a ``with`` block, so that it can be differentiated afterwards.

    Whatever JAX executes in the block is recorded, whoever wrote it. *Watched* values carry gradient, and so does all that is
    computed from them. A trainable variable is watched when it is read, any other value when it is passed to `watch`.

    Args:
      persistent: whether `gradient` may be called more than once.
      watch_accessed_variables: whether trainable variables are watched when they are read.

    >>> import jax.numpy as jnp
    >>> import tapejax as tf
    >>> x = jnp.array(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = jnp.sin(x) * x
    >>> print(tape.gradient(y, x))
    -2.8288574

    After ``tf.GradientTape`` of TensorFlow, whose rules it keeps; the derivatives are `jax.vjp`'s.
    """
    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        """Initialize self.  See help(type(self)) for accurate signature."""
    def __enter__(self) -> tf.GradientTape: ...
    def __exit__(self, kind: type[BaseException] | None = None, *exception: Any) -> None: ...
    def watch(self, tensor: Any) -> None:
        """Makes `tensor` carry gradient from here on.

        What was computed from it before counts only if another input of that operation was watched by then.

        Args:
          tensor: a tensor, array or variable, or any structure of these (lists, dicts, pytrees), of a float or complex
            dtype; of another dtype it is reported (logged) and left alone.

        Raises:
          ValueError: `tensor` holds something else, for instance a NumPy array.
          AttributeError: the tape was never entered, or is used up.
        """
    def watched_variables(self) -> tuple[Any, ...]:
        """The variables that the tape watches, in the order in which they were created.

        >>> import tapejax as tf
        >>> x, y = tf.Variable(1.0, name="x"), tf.Variable(2.0, name="y")
        >>> with tf.GradientTape() as tape:
        ...     z = y * 3.0
        >>> [v.name for v in tape.watched_variables()]
        ['y:0']
        """
    def stop_recording(self) -> contextlib.AbstractContextManager[None]:
        """Suspends recording inside a ``with`` block: to the tape, what is computed there is constant.

        Raises:
          RuntimeError: the tape was never entered.
          ValueError: the tape is not recording.

        >>> import tapejax as tf
        >>> x = tf.Variable(2.0)
        >>> with tf.GradientTape() as tape:
        ...     with tape.stop_recording():
        ...         factor = x * x
        ...     y = factor * x
        >>> print(tape.gradient(y, x).numpy())
        4.0
        """
    def reset(self) -> None:
        """Forgets all that was recorded and watched so far. To be called inside the tape's block.

        Raises:
          ValueError: the tape is not recording.

        >>> import tapejax as tf
        >>> x = tf.Variable(2.0)
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        ...     tape.reset()
        ...     z = x * 3.0
        >>> len(tape)
        1
        """
    @overload
    def gradient(self, target: Any, sources: tf.Tensor | tf.Variable, output_gradients: Any = None, unconnected_gradients: tf.UnconnectedGradients | str = ...) -> tf.Tensor:
        """The gradient of the sum of all elements of `target` with respect to each of `sources`.

        Args:
          target: a tensor or array, or a structure of them: all are summed. Integers are left out.
          sources: a structure of tensors, arrays and variables.
          output_gradients: the cotangents to start from: one for each target, of its shape and dtype; default ones.
          unconnected_gradients: what stands for a source that `target` does not depend on: None or zeros.

        Returns:
          The structure of `sources`, with a gradient of each source's shape and dtype, or None. For a ``jax.Array`` a
          ``jax.Array``, for a `Tensor` or a variable a `Tensor`.

        Raises:
          RuntimeError: a second call on a tape that is not persistent, or a tape that recorded nothing yet; or a source, or a
            value that was recorded, was deleted since, as by donation.
          TypeError: `target` or `sources` holds something that is no tensor.
          ValueError: `unconnected_gradients` or the number of `output_gradients` is wrong.
          InvalidArgumentError: an output gradient has another shape or dtype than its target.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x, y = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     z = tf.reduce_sum(x**2)
        >>> tape.gradient(z, {"x": x, "y": y})
        {'x': <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 4.], dtype=float32)>, 'y': None}
        """
    @overload
    def gradient(self, target: Any, sources: list[_V], output_gradients: Any = None, unconnected_gradients: tf.UnconnectedGradients | str = ...) -> list[tf.Tensor]:
        """The gradient of the sum of all elements of `target` with respect to each of `sources`.

        Args:
          target: a tensor or array, or a structure of them: all are summed. Integers are left out.
          sources: a structure of tensors, arrays and variables.
          output_gradients: the cotangents to start from: one for each target, of its shape and dtype; default ones.
          unconnected_gradients: what stands for a source that `target` does not depend on: None or zeros.

        Returns:
          The structure of `sources`, with a gradient of each source's shape and dtype, or None. For a ``jax.Array`` a
          ``jax.Array``, for a `Tensor` or a variable a `Tensor`.

        Raises:
          RuntimeError: a second call on a tape that is not persistent, or a tape that recorded nothing yet; or a source, or a
            value that was recorded, was deleted since, as by donation.
          TypeError: `target` or `sources` holds something that is no tensor.
          ValueError: `unconnected_gradients` or the number of `output_gradients` is wrong.
          InvalidArgumentError: an output gradient has another shape or dtype than its target.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x, y = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     z = tf.reduce_sum(x**2)
        >>> tape.gradient(z, {"x": x, "y": y})
        {'x': <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 4.], dtype=float32)>, 'y': None}
        """
    @overload
    def gradient(self, target: Any, sources: tuple[_V, ...], output_gradients: Any = None, unconnected_gradients: tf.UnconnectedGradients | str = ...) -> tuple[tf.Tensor, ...]:
        """The gradient of the sum of all elements of `target` with respect to each of `sources`.

        Args:
          target: a tensor or array, or a structure of them: all are summed. Integers are left out.
          sources: a structure of tensors, arrays and variables.
          output_gradients: the cotangents to start from: one for each target, of its shape and dtype; default ones.
          unconnected_gradients: what stands for a source that `target` does not depend on: None or zeros.

        Returns:
          The structure of `sources`, with a gradient of each source's shape and dtype, or None. For a ``jax.Array`` a
          ``jax.Array``, for a `Tensor` or a variable a `Tensor`.

        Raises:
          RuntimeError: a second call on a tape that is not persistent, or a tape that recorded nothing yet; or a source, or a
            value that was recorded, was deleted since, as by donation.
          TypeError: `target` or `sources` holds something that is no tensor.
          ValueError: `unconnected_gradients` or the number of `output_gradients` is wrong.
          InvalidArgumentError: an output gradient has another shape or dtype than its target.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x, y = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     z = tf.reduce_sum(x**2)
        >>> tape.gradient(z, {"x": x, "y": y})
        {'x': <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 4.], dtype=float32)>, 'y': None}
        """
    @overload
    def gradient(self, target: Any, sources: dict[_K, _V], output_gradients: Any = None, unconnected_gradients: tf.UnconnectedGradients | str = ...) -> dict[_K, tf.Tensor]:
        """The gradient of the sum of all elements of `target` with respect to each of `sources`.

        Args:
          target: a tensor or array, or a structure of them: all are summed. Integers are left out.
          sources: a structure of tensors, arrays and variables.
          output_gradients: the cotangents to start from: one for each target, of its shape and dtype; default ones.
          unconnected_gradients: what stands for a source that `target` does not depend on: None or zeros.

        Returns:
          The structure of `sources`, with a gradient of each source's shape and dtype, or None. For a ``jax.Array`` a
          ``jax.Array``, for a `Tensor` or a variable a `Tensor`.

        Raises:
          RuntimeError: a second call on a tape that is not persistent, or a tape that recorded nothing yet; or a source, or a
            value that was recorded, was deleted since, as by donation.
          TypeError: `target` or `sources` holds something that is no tensor.
          ValueError: `unconnected_gradients` or the number of `output_gradients` is wrong.
          InvalidArgumentError: an output gradient has another shape or dtype than its target.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x, y = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     z = tf.reduce_sum(x**2)
        >>> tape.gradient(z, {"x": x, "y": y})
        {'x': <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 4.], dtype=float32)>, 'y': None}
        """
    @overload
    def gradient(self, target: Any, sources: _T, output_gradients: Any = None, unconnected_gradients: tf.UnconnectedGradients | str = ...) -> _T:
        """The gradient of the sum of all elements of `target` with respect to each of `sources`.

        Args:
          target: a tensor or array, or a structure of them: all are summed. Integers are left out.
          sources: a structure of tensors, arrays and variables.
          output_gradients: the cotangents to start from: one for each target, of its shape and dtype; default ones.
          unconnected_gradients: what stands for a source that `target` does not depend on: None or zeros.

        Returns:
          The structure of `sources`, with a gradient of each source's shape and dtype, or None. For a ``jax.Array`` a
          ``jax.Array``, for a `Tensor` or a variable a `Tensor`.

        Raises:
          RuntimeError: a second call on a tape that is not persistent, or a tape that recorded nothing yet; or a source, or a
            value that was recorded, was deleted since, as by donation.
          TypeError: `target` or `sources` holds something that is no tensor.
          ValueError: `unconnected_gradients` or the number of `output_gradients` is wrong.
          InvalidArgumentError: an output gradient has another shape or dtype than its target.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x, y = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     z = tf.reduce_sum(x**2)
        >>> tape.gradient(z, {"x": x, "y": y})
        {'x': <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 4.], dtype=float32)>, 'y': None}
        """
    @overload
    def jacobian(self, target: Any, sources: tf.Tensor | tf.Variable, unconnected_gradients: tf.UnconnectedGradients | str = ..., parallel_iterations: int | None = None, experimental_use_pfor: bool = True) -> tf.Tensor:
        """The derivative of every element of `target` with respect to every element of each of `sources`.

        Reverse or forward mode, as `jax.jacrev` and `jax.jacfwd` do it, whichever takes fewer passes; in chunks where all
        of them together would not fit in memory.

        Args:
          target: one tensor or array, of any rank.
          sources: a structure of tensors, arrays and variables, of any rank.
          unconnected_gradients: what stands for a source that `target` does not depend on: None or zeros.
          parallel_iterations: taken for TensorFlow's sake; the chunks are chosen by memory.
          experimental_use_pfor: likewise; the passes are always vectorised.

        Returns:
          The structure of `sources`, with an array of shape ``target.shape + source.shape`` for each, or None.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.
          TypeError: `target` is not one tensor, or `sources` holds something that is none.
          ValueError: `unconnected_gradients` is unknown.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x = tf.Variable([1.0, 2.0, 3.0])
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.jacobian(y, x).numpy())
        [[2. 0. 0.]
         [0. 4. 0.]
         [0. 0. 6.]]
        """
    @overload
    def jacobian(self, target: Any, sources: list[_V], unconnected_gradients: tf.UnconnectedGradients | str = ..., parallel_iterations: int | None = None, experimental_use_pfor: bool = True) -> list[tf.Tensor]:
        """The derivative of every element of `target` with respect to every element of each of `sources`.

        Reverse or forward mode, as `jax.jacrev` and `jax.jacfwd` do it, whichever takes fewer passes; in chunks where all
        of them together would not fit in memory.

        Args:
          target: one tensor or array, of any rank.
          sources: a structure of tensors, arrays and variables, of any rank.
          unconnected_gradients: what stands for a source that `target` does not depend on: None or zeros.
          parallel_iterations: taken for TensorFlow's sake; the chunks are chosen by memory.
          experimental_use_pfor: likewise; the passes are always vectorised.

        Returns:
          The structure of `sources`, with an array of shape ``target.shape + source.shape`` for each, or None.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.
          TypeError: `target` is not one tensor, or `sources` holds something that is none.
          ValueError: `unconnected_gradients` is unknown.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x = tf.Variable([1.0, 2.0, 3.0])
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.jacobian(y, x).numpy())
        [[2. 0. 0.]
         [0. 4. 0.]
         [0. 0. 6.]]
        """
    @overload
    def jacobian(self, target: Any, sources: tuple[_V, ...], unconnected_gradients: tf.UnconnectedGradients | str = ..., parallel_iterations: int | None = None, experimental_use_pfor: bool = True) -> tuple[tf.Tensor, ...]:
        """The derivative of every element of `target` with respect to every element of each of `sources`.

        Reverse or forward mode, as `jax.jacrev` and `jax.jacfwd` do it, whichever takes fewer passes; in chunks where all
        of them together would not fit in memory.

        Args:
          target: one tensor or array, of any rank.
          sources: a structure of tensors, arrays and variables, of any rank.
          unconnected_gradients: what stands for a source that `target` does not depend on: None or zeros.
          parallel_iterations: taken for TensorFlow's sake; the chunks are chosen by memory.
          experimental_use_pfor: likewise; the passes are always vectorised.

        Returns:
          The structure of `sources`, with an array of shape ``target.shape + source.shape`` for each, or None.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.
          TypeError: `target` is not one tensor, or `sources` holds something that is none.
          ValueError: `unconnected_gradients` is unknown.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x = tf.Variable([1.0, 2.0, 3.0])
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.jacobian(y, x).numpy())
        [[2. 0. 0.]
         [0. 4. 0.]
         [0. 0. 6.]]
        """
    @overload
    def jacobian(self, target: Any, sources: dict[_K, _V], unconnected_gradients: tf.UnconnectedGradients | str = ..., parallel_iterations: int | None = None, experimental_use_pfor: bool = True) -> dict[_K, tf.Tensor]:
        """The derivative of every element of `target` with respect to every element of each of `sources`.

        Reverse or forward mode, as `jax.jacrev` and `jax.jacfwd` do it, whichever takes fewer passes; in chunks where all
        of them together would not fit in memory.

        Args:
          target: one tensor or array, of any rank.
          sources: a structure of tensors, arrays and variables, of any rank.
          unconnected_gradients: what stands for a source that `target` does not depend on: None or zeros.
          parallel_iterations: taken for TensorFlow's sake; the chunks are chosen by memory.
          experimental_use_pfor: likewise; the passes are always vectorised.

        Returns:
          The structure of `sources`, with an array of shape ``target.shape + source.shape`` for each, or None.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.
          TypeError: `target` is not one tensor, or `sources` holds something that is none.
          ValueError: `unconnected_gradients` is unknown.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x = tf.Variable([1.0, 2.0, 3.0])
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.jacobian(y, x).numpy())
        [[2. 0. 0.]
         [0. 4. 0.]
         [0. 0. 6.]]
        """
    @overload
    def jacobian(self, target: Any, sources: _T, unconnected_gradients: tf.UnconnectedGradients | str = ..., parallel_iterations: int | None = None, experimental_use_pfor: bool = True) -> _T:
        """The derivative of every element of `target` with respect to every element of each of `sources`.

        Reverse or forward mode, as `jax.jacrev` and `jax.jacfwd` do it, whichever takes fewer passes; in chunks where all
        of them together would not fit in memory.

        Args:
          target: one tensor or array, of any rank.
          sources: a structure of tensors, arrays and variables, of any rank.
          unconnected_gradients: what stands for a source that `target` does not depend on: None or zeros.
          parallel_iterations: taken for TensorFlow's sake; the chunks are chosen by memory.
          experimental_use_pfor: likewise; the passes are always vectorised.

        Returns:
          The structure of `sources`, with an array of shape ``target.shape + source.shape`` for each, or None.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.
          TypeError: `target` is not one tensor, or `sources` holds something that is none.
          ValueError: `unconnected_gradients` is unknown.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x = tf.Variable([1.0, 2.0, 3.0])
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.jacobian(y, x).numpy())
        [[2. 0. 0.]
         [0. 4. 0.]
         [0. 0. 6.]]
        """
    @overload
    def batch_jacobian(self, target: Any, source: tf.Tensor | tf.Variable, unconnected_gradients: tf.UnconnectedGradients | str = ..., parallel_iterations: int | None = None, experimental_use_pfor: bool = True) -> tf.Tensor:
        """The Jacobian of each example of a batch, where ``target[b]`` depends on ``source[b]`` only.

        Where examples do mix (batch normalisation), entry ``[b, i, j]`` is the derivative of ``sum(target[:, i])`` with
        respect to ``source[b, j]``, as in TensorFlow.

        Args:
          target: a tensor of shape ``(batch, *outs)``.
          source: a tensor of shape ``(batch, *ins)``.
          unconnected_gradients: a source that is not connected gives zeros either way, as in TensorFlow.
          parallel_iterations: taken for TensorFlow's sake.
          experimental_use_pfor: likewise.

        Returns:
          A tensor of shape ``(batch, *outs, *ins)``.

        Raises:
          ValueError: the rank of one of them is below 2, the first dimensions differ, or `unconnected_gradients` is unknown.
          RuntimeError, TypeError, LookupError: as for `jacobian`.

        >>> import tapejax as tf
        >>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> print(tape.batch_jacobian(y, x).numpy().tolist())
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
    @overload
    def batch_jacobian(self, target: Any, source: list[_V], unconnected_gradients: tf.UnconnectedGradients | str = ..., parallel_iterations: int | None = None, experimental_use_pfor: bool = True) -> list[tf.Tensor]:
        """The Jacobian of each example of a batch, where ``target[b]`` depends on ``source[b]`` only.

        Where examples do mix (batch normalisation), entry ``[b, i, j]`` is the derivative of ``sum(target[:, i])`` with
        respect to ``source[b, j]``, as in TensorFlow.

        Args:
          target: a tensor of shape ``(batch, *outs)``.
          source: a tensor of shape ``(batch, *ins)``.
          unconnected_gradients: a source that is not connected gives zeros either way, as in TensorFlow.
          parallel_iterations: taken for TensorFlow's sake.
          experimental_use_pfor: likewise.

        Returns:
          A tensor of shape ``(batch, *outs, *ins)``.

        Raises:
          ValueError: the rank of one of them is below 2, the first dimensions differ, or `unconnected_gradients` is unknown.
          RuntimeError, TypeError, LookupError: as for `jacobian`.

        >>> import tapejax as tf
        >>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> print(tape.batch_jacobian(y, x).numpy().tolist())
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
    @overload
    def batch_jacobian(self, target: Any, source: tuple[_V, ...], unconnected_gradients: tf.UnconnectedGradients | str = ..., parallel_iterations: int | None = None, experimental_use_pfor: bool = True) -> tuple[tf.Tensor, ...]:
        """The Jacobian of each example of a batch, where ``target[b]`` depends on ``source[b]`` only.

        Where examples do mix (batch normalisation), entry ``[b, i, j]`` is the derivative of ``sum(target[:, i])`` with
        respect to ``source[b, j]``, as in TensorFlow.

        Args:
          target: a tensor of shape ``(batch, *outs)``.
          source: a tensor of shape ``(batch, *ins)``.
          unconnected_gradients: a source that is not connected gives zeros either way, as in TensorFlow.
          parallel_iterations: taken for TensorFlow's sake.
          experimental_use_pfor: likewise.

        Returns:
          A tensor of shape ``(batch, *outs, *ins)``.

        Raises:
          ValueError: the rank of one of them is below 2, the first dimensions differ, or `unconnected_gradients` is unknown.
          RuntimeError, TypeError, LookupError: as for `jacobian`.

        >>> import tapejax as tf
        >>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> print(tape.batch_jacobian(y, x).numpy().tolist())
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
    @overload
    def batch_jacobian(self, target: Any, source: dict[_K, _V], unconnected_gradients: tf.UnconnectedGradients | str = ..., parallel_iterations: int | None = None, experimental_use_pfor: bool = True) -> dict[_K, tf.Tensor]:
        """The Jacobian of each example of a batch, where ``target[b]`` depends on ``source[b]`` only.

        Where examples do mix (batch normalisation), entry ``[b, i, j]`` is the derivative of ``sum(target[:, i])`` with
        respect to ``source[b, j]``, as in TensorFlow.

        Args:
          target: a tensor of shape ``(batch, *outs)``.
          source: a tensor of shape ``(batch, *ins)``.
          unconnected_gradients: a source that is not connected gives zeros either way, as in TensorFlow.
          parallel_iterations: taken for TensorFlow's sake.
          experimental_use_pfor: likewise.

        Returns:
          A tensor of shape ``(batch, *outs, *ins)``.

        Raises:
          ValueError: the rank of one of them is below 2, the first dimensions differ, or `unconnected_gradients` is unknown.
          RuntimeError, TypeError, LookupError: as for `jacobian`.

        >>> import tapejax as tf
        >>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> print(tape.batch_jacobian(y, x).numpy().tolist())
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
    @overload
    def batch_jacobian(self, target: Any, source: _T, unconnected_gradients: tf.UnconnectedGradients | str = ..., parallel_iterations: int | None = None, experimental_use_pfor: bool = True) -> _T:
        """The Jacobian of each example of a batch, where ``target[b]`` depends on ``source[b]`` only.

        Where examples do mix (batch normalisation), entry ``[b, i, j]`` is the derivative of ``sum(target[:, i])`` with
        respect to ``source[b, j]``, as in TensorFlow.

        Args:
          target: a tensor of shape ``(batch, *outs)``.
          source: a tensor of shape ``(batch, *ins)``.
          unconnected_gradients: a source that is not connected gives zeros either way, as in TensorFlow.
          parallel_iterations: taken for TensorFlow's sake.
          experimental_use_pfor: likewise.

        Returns:
          A tensor of shape ``(batch, *outs, *ins)``.

        Raises:
          ValueError: the rank of one of them is below 2, the first dimensions differ, or `unconnected_gradients` is unknown.
          RuntimeError, TypeError, LookupError: as for `jacobian`.

        >>> import tapejax as tf
        >>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> print(tape.batch_jacobian(y, x).numpy().tolist())
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
    def __bool__(self) -> bool: ...
    def __len__(self) -> int:
        """How many operations were recorded."""
    def __iter__(self) -> Any: ...
    def __getitem__(self, index: int | slice) -> Any:
        """The recorded operations: an `Entry` with ``op``, ``inputs``, ``outputs`` and ``line``, or a list of them."""
    def as_function(self, target: Nest, sources: Nest, arguments: Nest = ..., flat: bool = False) -> Any:
        """The pure function from `sources` to `target` that the tape recorded.

        Args:
          target: a tensor or array, or a structure of them.
          sources: a structure of tensors, arrays and variables.
          arguments: what else varies, such as batches, labels, keys and learning rates: tensors, arrays and variables, as a
            list, a tuple, or a dict from names to values. Each becomes a parameter after `sources`, in this order, of the
            shape and dtype that it has here. What was computed of an argument before the block is another value. Of a
            plain ``jax.Array`` the tape does not see that Python takes a number (``float(x)``): pass a `Tensor` where in doubt.
            One may be a pytree of tensors, ``{"state": {"mean": mean}}``: it is a parameter as a whole.
          flat: whether the code has one line for each operation, without the functions of the recorded program.

        Returns:
          A function of one argument, structured as `sources`, and of `arguments`, by position or by name, that returns
          arrays structured as `target`. What it is given has the shapes and dtypes that were recorded; any other is a
          TypeError. Its `jax.grad` at `sources` is the tape's gradient; what the tape did not see depend on the sources is
          constant.
          Printed, it is code: plain ``jnp`` that runs where it is pasted (after ``import jax``, ``import jax.numpy as
          jnp`` and ``import numpy as np``). Functions that the block called are functions in it, and derivatives that it took
          are `jax.grad` and its kin; a notebook shows it beside the recorded lines. Arrays too large to write down are names
          in it: its ``constants``. Variables with paths, as Keras's, are a tree in it, ``params["dense"]["kernel"]``: its
          ``tree`` makes that of their list.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.
          TypeError: `target`, `sources` or an argument holds something that is no tensor, array or variable.
          ValueError: `target` does not depend on an argument, or depends on it through what was not recorded: a value that
            Python looked at or that went to NumPy, a variable that was assigned to; an argument is the same array as
            another or as a source; or a source was computed from another, or assigned to between two reads.

        >>> import jax, jax.numpy as jnp
        >>> import tapejax as tf
        >>> x = jnp.array(3.0)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x**2
        >>> f = tape.as_function(y, x)
        >>> print(f(jnp.array(5.0)), jax.grad(f)(x))
        25.0 6.0
        >>> print(f)
        def f(x):
            y = x**2
            return y
        <BLANKLINE>

        >>> with tf.GradientTape() as outer:
        ...     outer.watch(x)
        ...     with tf.GradientTape() as inner:
        ...         inner.watch(x)
        ...         y = jnp.sin(x) * x
        ...     slope = inner.gradient(y, x)
        ...     loss = slope**2
        >>> print(outer.as_function(loss, x))
        def f(x):
            slope = jax.grad(lambda x: jnp.sin(x) * x)(x)
            loss = slope**2
            return loss
        <BLANKLINE>

        >>> rate = tf.constant(0.5)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * rate
        >>> f = tape.as_function(y, x, arguments={"rate": rate})
        >>> print(f(x, rate=2.0))
        6.0
        """
    def __str__(self) -> str:
        """Return str(self)."""
    def __repr__(self) -> str:
        """Return repr(self)."""
    def explain(self, target: Nest, sources: Nest) -> Any:
        """Says for each source why its gradient is what it is: along which path it comes, or why it is None.

        Args:
          target, sources: as for `gradient`.

        Returns:
          An `Explanation`. Print it, or iterate over its reports, each with ``connected``, the ``path``, and ``reasons``
          with ``kind``, ``message``, ``remedy``, ``operation`` and ``line``. Reasons of a connected source are notes: the
          gradient is zero, nan or infinite, is of a part of `target` only, or with respect to another value than was meant.
          For these one backward pass is run, as by `steps`. The tape is not used up.

        Raises:
          TypeError: `target` or `sources` holds something that is no tensor.

        >>> import tapejax as tf
        >>> x, c = tf.Variable(2.0), tf.constant(3.0)
        >>> with tf.GradientTape() as tape:
        ...     y = tf.round(x) * c
        >>> for report in tape.explain(y, [x, c]):
        ...     print(report.connected, report.kinds, report.reasons[0].operation)
        False ('no derivative',) round
        False ('never watched',) multiply
        """
    def memory(self, target: Nest, sources: Nest) -> Any:
        """The bytes that the tape keeps for the backward pass, by line of your code, largest first.

        Args:
          target: a tensor or array, or a structure of them.
          sources: a structure of tensors, arrays and variables.

        Returns:
          A `Memory`: printed, or shown by a notebook, a table with bars. For each line the bytes that are freed with the tape,
          those that the gradient of `target` with respect to `sources` reads, and what `recompute_grad` around the line's
          function would save. What nested tapes both keep is freed with the last of them.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.

        >>> import jax.numpy as jnp
        >>> import tapejax as tf
        >>> x = jnp.ones(1000)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = jnp.sum(jnp.exp(jnp.sin(x)))
        >>> tape.memory(y, x).bytes
        8000
        """
    def summary(self, target: Nest, sources: Any) -> Any:
        """For each source the size of its value and of its gradient: what vanishes, explodes, is zero or is no number.

        The tape is not used up.

        Args:
          target: a tensor or array, or a structure of them.
          sources: a structure of tensors, arrays and variables; or a model (Keras's, a `Module`): its trainable variables.

        Returns:
          A `Summary`, an iterable of rows: norm, mean, share of zeros, nan and infinities, of value and gradient. Printed, or
          shown by a notebook, it is a table with a bar for the norm of each gradient, on a logarithmic scale.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.

        >>> import jax.numpy as jnp
        >>> import tapejax as tf
        >>> w = {"first": jnp.full(2, 1e-4), "second": jnp.full(2, 3.0)}
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(w)
        ...     y = jnp.sum(w["first"] * w["second"])
        >>> [f"{row.gradient.norm:.2g}" for row in tape.summary(y, w)]
        ['4.2', '0.00014']
        """
    def draw(self, target: Nest = None, sources: Nest = None) -> Any:
        """A picture of the recording: what leads to `target` (by default everything), with the `sources` marked.

        What carries gradient is drawn in one colour, what does not in another; edges are labelled with shapes. A dotted red
        one is an assignment to a variable, which takes the value and not its gradient. Beyond 60 operations,
        neighbouring ones are folded together, and assignments left out. Needs Matplotlib.

        Args:
          target: a tensor or array, or a structure of them.
          sources: a structure of tensors, arrays and variables; by default all that the tape watches.

        Returns:
          A `Drawing`. A notebook shows it as SVG, ``drawing.savefig(file)`` writes it, ``drawing.figure`` is Matplotlib's.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.
          ImportError: Matplotlib is not installed.
        """
    def jaxpr(self, target: Nest, sources: Nest) -> Any:
        """What leads from `sources` to `target`, as JAX sees it: ``jax.make_jaxpr`` of `as_function`.

        Raises:
          RuntimeError, TypeError: as `as_function`.

        >>> import tapejax as tf
        >>> x = tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(len(tape.jaxpr(y, x).eqns))
        1
        """
    def steps(self, target: Nest, sources: Nest, output_gradients: Nest = None) -> Any:
        """The backward pass of `gradient`, one operation at a time, from the target to the sources.

        Args:
          target, sources, output_gradients: as for `gradient`.

        Returns:
          A `Backward`. Iterate over its steps, each with the ``operation``, the ``line`` that ran it, the ``incoming``
          cotangents and the ``outgoing`` ones; ``gradients`` is what they add up to. The tape is not used up. Iterating
          computes what `gradient` computes: a ``jax.pure_callback`` in a function with a gradient is called again, as there.

        Raises:
          RuntimeError, TypeError, ValueError, LookupError: as `gradient`.

        >>> import tapejax as tf
        >>> x = tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     y = tf.sin(x) * 2.0
        >>> for step in tape.steps(y, x):
        ...     print(step.operation, [name for name, _ in step.outgoing])
        multiply ['t0']
        sin ['x']
        """
    def play(self, target: Nest, sources: Nest, output_gradients: Nest = None, tangents: Nest = None, *, split: bool = False) -> Any:
        """The recording as a page to step through: forward, value by value; backward, cotangent by cotangent.

        It shows the graph of `draw`, beside it the user's lines, and at each step of the backward pass what is added to the
        cotangent of which value, and why: the local derivative. *Forward mode* shows the tangents instead. A double-framed
        operation (a jitted function, a ``scan``, a ``cond``, an inner gradient) opens at a click. Buttons, a slider, the
        arrow keys and a presenter's clicker step; *Predict* covers each result until one asks for it. *Beside JAX's
        programs* sets three listings next to the tape, which step with it: the jaxpr, its linear part and the transposed of
        that, from ``jax.make_jaxpr``, ``jax.linearize`` and ``jax.linear_transpose``; with ``split=True`` the page begins so. The
        address of the saved page has the step: ``tape.html#7`` leads to the seventh. Beyond 60 operations, neighbouring
        ones are one step. The page is one piece of HTML, which needs no server and no network; a notebook that is
        not trusted shows the picture of `draw`, for which Matplotlib is needed. The tape is not used up.

        Args:
          target, sources, output_gradients: as for `gradient`.
          tangents: the direction of forward mode, structured as `sources`; ones if None.
          split: whether the page begins with JAX's programs beside the tape.

        Returns:
          A `Play`. A notebook plays it, ``save(file)`` writes the page, ``data`` is what it shows.

        Raises:
          RuntimeError, TypeError, ValueError, LookupError: as `gradient`.
          ValueError: `split`, and JAX has no program of the recording: a source is computed from another or is an integer.

        >>> import tapejax as tf
        >>> x = tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> page = tape.play(y, x)  # page.save("tape.html") writes it
        >>> print(page)
        <The tape of y: 1 operation, forward and backward; a notebook plays it, .save(file) writes the page>
        """
    def check_numerics(self, target: Nest, sources: Nest, output_gradients: Nest = None) -> None:
        """Looks for the first operation, forward or backward, whose value or cotangent is NaN or infinite.

        Forward it looks at all that `target` was computed from, in the order in which it ran; then at the cotangents, in
        the order of the backward pass. The tape is not used up. Inside a loop it names the round, counted from 1 also where
        the backward pass begins with the last one; inside a loop, a branch or a jitted function the operation and its line.

        Raises:
          tf.errors.NonFiniteError: there is one (an `InvalidArgumentError`, as ``tf.debugging.check_numerics`` raises). The
            message names the operation and the line that ran it, and where versions of JAX differ in it the row of
            docs/newest.md; ``error.entry``, ``error.line``, ``error.direction`` and ``error.value`` are for programs.

        >>> import jax.numpy as jnp
        >>> import tapejax as tf
        >>> x = tf.Variable([0.0, 4.0])
        >>> with tf.GradientTape() as tape:
        ...     y = jnp.where(x > 0.0, jnp.sqrt(x), 0.0)
        >>> tape.check_numerics(y, x)
        Traceback (most recent call last):
        tapejax.tf.values.errors.NonFiniteError: backward: operation 1, sqrt ... makes ∂y/∂x ...
        """
