from keras._tf_keras.keras.mixed_precision import DTypePolicy as DTypePolicy
from keras._tf_keras.keras.mixed_precision import LossScaleOptimizer as LossScaleOptimizer
from keras._tf_keras.keras.mixed_precision import Policy as Policy
from keras._tf_keras.keras.mixed_precision import dtype_policy as dtype_policy
from keras._tf_keras.keras.mixed_precision import global_policy as global_policy
from keras._tf_keras.keras.mixed_precision import set_dtype_policy as set_dtype_policy
from keras._tf_keras.keras.mixed_precision import set_global_policy as set_global_policy
