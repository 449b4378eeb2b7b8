from keras._tf_keras.keras.models import Model as Model
from keras._tf_keras.keras.models import Sequential as Sequential
from keras._tf_keras.keras.models import clone_model as clone_model
from keras._tf_keras.keras.models import load_model as load_model
from keras._tf_keras.keras.models import model_from_json as model_from_json
from keras._tf_keras.keras.models import save_model as save_model
