"""``python -m tapejax port PROGRAM.py -o OUT.py``: a JAX program for a TensorFlow program that trains with a tape.

The program is run, as `tapejax run` does, with its ``tf.function``s run by Python; its steps are observed (`observing`), and the
values of its expressions are noted (`probes`). What the steps have in common (`steps`, of `pieces`) is printed by
``tape.as_function``: the loss of each gradient, and what the program does with gradients and variables itself. Around that come
``jax.value_and_grad`` and ``jax.jit`` and Optax (`functions`); and the text of the program (`kept`),
where what TensorFlow evaluated is a call of a recorded function. `program` puts it together.

Programs of these shapes are taken:

* a step with one or more tapes, nested ones as well, whose gradients with respect to variables change these variables, by a Keras
  optimizer or by ``assign``, ``assign_add``, ``assign_sub``, also twice in a step; or with respect to tensors that the program
  carries by names (``x = x - rate * gradient``); in a function, compiled or not, in a method or in a loop;
* several steps (a discriminator and a generator; batches of a few sizes), each the same operations whenever it runs;
* state that a step assigns (averages of batch normalisation, counters, velocities, seeds of dropout), or a statement between the
  steps (metrics, a target network), is passed along.

Refused, with the line: steps whose operations change from one to the next, Python that reads a batch's values, gradients
started by ``output_gradients``, optimizers and settings of them that have no equal in Optax, complex variables.

What OUT.py computes is compared with what the program computed (`comparing`), in a process of its own in which neither tapejax
nor TensorFlow can be imported (`alone`): its step on the arguments of the first steps; and OUT.py as a whole where the program's
loop was kept.
"""

from .command import port as port
