from .app import create_app as create_app
from .settings import Limits as Limits
from .settings import ServeSettings as ServeSettings
