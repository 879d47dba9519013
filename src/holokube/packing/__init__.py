"""The shared feasibility engine: which pods could go to which nodes, on integer arrays.

Start reading in ``state.py``. ``podclass.py`` says what makes pods alike, ``filters/`` has one rule per file,
``feasibility.py`` remembers verdicts, ``counters.py`` counts pods per topology domain.
"""

from holokube.packing.errors import PackingError, StaleClassError
from holokube.packing.feasibility import Diagnosis
from holokube.packing.placed import PlacedPod
from holokube.packing.podclass import PodClass
from holokube.packing.state import ClusterState

__all__ = ["ClusterState", "Diagnosis", "PackingError", "PlacedPod", "PodClass", "StaleClassError"]
