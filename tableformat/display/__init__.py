"""Text and tables for people: plain functions from the library's results to rich renderables."""
