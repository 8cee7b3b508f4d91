"""What TVM's server needs of cloudpickle, where that is not installed: its worker is a function of a module, which `pickle` names."""
from pickle import *  # noqa: F401,F403
