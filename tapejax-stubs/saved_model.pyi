from tapejax.programs.saved_model import SaveOptions as SaveOptions
from tapejax.programs.saved_model import contains_saved_model as contains_saved_model
from tapejax.programs.saved_model import load as load
from tapejax.programs.saved_model import save as save
