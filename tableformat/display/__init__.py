"""Renders results of the library as text and tables: plain functions from results to rich renderables.

This package does not read tables and makes no decisions. The command line and notebooks print its output.
"""
