from keras._tf_keras.keras.wrappers import SKLearnClassifier as SKLearnClassifier
from keras._tf_keras.keras.wrappers import SKLearnRegressor as SKLearnRegressor
from keras._tf_keras.keras.wrappers import SKLearnTransformer as SKLearnTransformer
