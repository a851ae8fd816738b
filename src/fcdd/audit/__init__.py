"""The Clever Hans audit: which evidence does the score rest on, and is it the part?"""

from __future__ import annotations

from fcdd.audit.findings import Audit, Finding, Severity
from fcdd.audit.run import audit, region_beside, write

__all__ = ["Audit", "Finding", "Severity", "audit", "region_beside", "write"]
