"""Made by .ci/stubs of the live namespace."""



from tapejax.debugging import Assert as Assert
from tapejax.debugging import assert_all_finite as assert_all_finite
from tapejax.debugging import assert_equal as assert_equal
from tapejax.debugging import assert_greater as assert_greater
from tapejax.debugging import assert_greater_equal as assert_greater_equal
from tapejax.debugging import assert_integer as assert_integer
from tapejax.debugging import assert_less as assert_less
from tapejax.debugging import assert_less_equal as assert_less_equal
from tapejax.debugging import assert_near as assert_near
from tapejax.debugging import assert_negative as assert_negative
from tapejax.debugging import assert_non_negative as assert_non_negative
from tapejax.debugging import assert_non_positive as assert_non_positive
from tapejax.debugging import assert_none_equal as assert_none_equal
from tapejax.debugging import assert_positive as assert_positive
from tapejax.debugging import assert_proper_iterable as assert_proper_iterable
from tapejax.debugging import assert_rank as assert_rank
from tapejax.debugging import assert_rank_at_least as assert_rank_at_least
from tapejax.debugging import assert_rank_in as assert_rank_in
from tapejax.debugging import assert_same_float_dtype as assert_same_float_dtype
from tapejax.debugging import assert_scalar as assert_scalar
from tapejax.debugging import assert_shapes as assert_shapes
from tapejax.debugging import assert_type as assert_type
from tapejax.debugging import check_numerics as check_numerics
from tapejax.debugging import clear_caches as clear_caches
from tapejax.debugging import disable_shadow_mode as disable_shadow_mode
from tapejax.debugging import enable_shadow_mode as enable_shadow_mode
from tapejax.debugging import is_numeric_tensor as is_numeric_tensor
from tapejax.debugging import shadow_mode as shadow_mode
