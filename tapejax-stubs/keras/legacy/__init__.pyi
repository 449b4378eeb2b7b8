from keras._tf_keras.keras.legacy import saving as saving
