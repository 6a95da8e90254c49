"""`python -m simtbed`: the command line."""

from .reports.cli.app import main

main()
