from .checkpoint import Checkpoint as Checkpoint
from .samplers import CLOSEST as CLOSEST
from .samplers import SAMPLERS as SAMPLERS
from .samplers import NegativeSampler as NegativeSampler
from .trainer import History as History
from .trainer import Trainer as Trainer
