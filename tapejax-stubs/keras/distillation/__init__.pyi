from keras._tf_keras.keras.distillation import DistillationLoss as DistillationLoss
from keras._tf_keras.keras.distillation import Distiller as Distiller
from keras._tf_keras.keras.distillation import FeatureDistillation as FeatureDistillation
from keras._tf_keras.keras.distillation import LogitsDistillation as LogitsDistillation
