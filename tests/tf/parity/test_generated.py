"""Programs made at random agree with TensorFlow. `python -m tests.tf.parity.generated` runs more of them."""

from generated import TOLERANCE, body_of
from tables import Table

table = Table(**TOLERANCE)
for seed in range(100):
    table.values(f"program-{seed}", body_of(seed), slow=seed >= 24)

test_programs = table.test()
