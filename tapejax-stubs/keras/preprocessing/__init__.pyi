from keras._tf_keras.keras.preprocessing import image as image
from keras._tf_keras.keras.preprocessing import image_dataset_from_directory as image_dataset_from_directory
from keras._tf_keras.keras.preprocessing import sequence as sequence
from keras._tf_keras.keras.preprocessing import text as text
from keras._tf_keras.keras.preprocessing import text_dataset_from_directory as text_dataset_from_directory
from keras._tf_keras.keras.preprocessing import timeseries_dataset_from_array as timeseries_dataset_from_array
