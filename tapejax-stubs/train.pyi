from tapejax.tf.programs.train import Checkpoint as Checkpoint
from tapejax.tf.programs.train import CheckpointManager as CheckpointManager
from tapejax.tf.programs.train import CheckpointOptions as CheckpointOptions
from tapejax.tf.programs.train import get_checkpoint_state as get_checkpoint_state
from tapejax.tf.programs.train import latest_checkpoint as latest_checkpoint
from tapejax.tf.programs.train import list_variables as list_variables
from tapejax.tf.programs.train import load_checkpoint as load_checkpoint
from tapejax.tf.programs.train import load_variable as load_variable
