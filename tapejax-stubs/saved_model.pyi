from tapejax.tf.programs.saved_model import SaveOptions as SaveOptions
from tapejax.tf.programs.saved_model import contains_saved_model as contains_saved_model
from tapejax.tf.programs.saved_model import load as load
from tapejax.tf.programs.saved_model import save as save
