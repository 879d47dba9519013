"""Results of runs as one HTML file that needs nothing else."""

from holokube.report.document import report_html, write_report
from holokube.report.sweep import small_multiples_html, write_sweep_report

__all__ = ["report_html", "small_multiples_html", "write_report", "write_sweep_report"]
