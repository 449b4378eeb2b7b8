from keras._tf_keras.keras.export import ExportArchive as ExportArchive
