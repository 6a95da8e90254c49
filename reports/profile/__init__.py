"""Profiles of launches as text, pages and files of other profilers."""
