"""Text and tables for people: plain functions from the library's results to rich renderables.

Nothing here reads a table or decides anything; the command line and notebooks print what it returns.
"""
