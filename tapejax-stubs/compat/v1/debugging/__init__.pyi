"""Made by .ci/stubs of the live namespace."""



from tapejax.debugging import Assert as Assert
from tapejax.compat.v1 import assert_equal as assert_equal
from tapejax.compat.v1 import assert_greater as assert_greater
from tapejax.compat.v1 import assert_greater_equal as assert_greater_equal
from tapejax.debugging import assert_integer as assert_integer
from tapejax.compat.v1 import assert_less as assert_less
from tapejax.compat.v1 import assert_less_equal as assert_less_equal
from tapejax.compat.v1 import assert_near as assert_near
from tapejax.compat.v1 import assert_negative as assert_negative
from tapejax.compat.v1 import assert_non_negative as assert_non_negative
from tapejax.compat.v1 import assert_non_positive as assert_non_positive
from tapejax.compat.v1 import assert_none_equal as assert_none_equal
from tapejax.compat.v1 import assert_positive as assert_positive
from tapejax.debugging import assert_proper_iterable as assert_proper_iterable
from tapejax.compat.v1 import assert_rank as assert_rank
from tapejax.compat.v1 import assert_rank_at_least as assert_rank_at_least
from tapejax.compat.v1 import assert_rank_in as assert_rank_in
from tapejax.debugging import assert_same_float_dtype as assert_same_float_dtype
from tapejax.debugging import assert_scalar as assert_scalar
from tapejax.debugging import assert_shapes as assert_shapes
from tapejax.debugging import assert_type as assert_type
from tapejax.debugging import check_numerics as check_numerics
from tapejax.debugging import is_numeric_tensor as is_numeric_tensor
