"""Made by .ci/stubs of the live namespace."""

import tapejax as tf

from tapejax.tf.programs.distribute import CentralStorageStrategy as CentralStorageStrategy
from tapejax.tf.programs.distribute import CommunicationImplementation as CollectiveCommunication
from tapejax.tf.programs.distribute import CommunicationImplementation as CommunicationImplementation
from tapejax.tf.programs.distribute import CommunicationOptions as CommunicationOptions
from tapejax.tf.programs.distribute import MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
from tapejax.tf.programs.distribute import ParameterServerStrategy as ParameterServerStrategy
from tapejax.tf.programs.distribute import TPUStrategy as TPUStrategy
from tapejax.tf.programs.distribute import ValueContext as ValueContext
