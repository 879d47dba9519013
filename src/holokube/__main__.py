"""``python -m holokube`` is ``holokube``."""

from holokube.cli.main import main

main()
