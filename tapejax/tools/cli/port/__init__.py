"""``python -m tapejax port PROGRAM.py -o OUT.py``: the training step of a TensorFlow program, as a JAX module.

The program is run, as `tapejax run` does, with its ``tf.function``s run by Python, and its steps are observed (`observing`). What
the steps have in common (`steps`, of `pieces`) is printed by `GradientTape.as_function`: the loss of each gradient, and what the
program does with gradients and variables itself. `module` writes these, and `init`, ``update`` and ``main`` around
them; `optimizers` has Keras's optimizers in Optax. The program's loop is not rewritten.

Programs of these shapes are taken:

* a step with one or more tapes, nested ones as well, whose gradients with respect to variables change these variables, by a Keras
  optimizer or by ``assign``, ``assign_add``, ``assign_sub``, also twice in a step; or with respect to tensors that the program
  carries by names (``x = x - rate * gradient``); in a function, compiled or not, in a method or in a loop;
* several steps (a discriminator and a generator; batches of a few sizes), each the same operations whenever it runs;
* steps by Jacobians, `output_gradients`, `vectorized_map`, tensors that are handed on, optimizers outside (SciPy's);
* state that a step assigns or reads (averages of batch normalisation, counters, target networks, seeds of dropout).

Refused, with the line: steps whose operations change from one to the next, Python that reads a batch's values, optimizers
and settings of them that have no equal in Optax, complex variables.

OUT.py is run on the recorded batches, and its losses, and the parameters and state after the last of them, are compared with
the program's (`comparing`), in a process of its own in which neither tapejax nor TensorFlow can be imported.
"""

from .command import port as port
