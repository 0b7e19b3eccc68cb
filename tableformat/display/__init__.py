"""Renders results of the library as text and tables: plain functions from results to rich renderables.

Nothing here reads a table or decides anything; the command line and notebooks print what it returns.
"""
