from .protocol import METRICS as METRICS
from .protocol import PROTOCOLS as PROTOCOLS
from .protocol import Metric as Metric
from .protocol import Protocol as Protocol
from .report import Report as Report
