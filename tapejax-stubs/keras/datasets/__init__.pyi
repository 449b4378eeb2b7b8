from keras._tf_keras.keras.datasets import boston_housing as boston_housing
from keras._tf_keras.keras.datasets import california_housing as california_housing
from keras._tf_keras.keras.datasets import cifar10 as cifar10
from keras._tf_keras.keras.datasets import cifar100 as cifar100
from keras._tf_keras.keras.datasets import fashion_mnist as fashion_mnist
from keras._tf_keras.keras.datasets import imdb as imdb
from keras._tf_keras.keras.datasets import mnist as mnist
from keras._tf_keras.keras.datasets import reuters as reuters
