"""Figures as a page: `page` is Markdown, `plots` are small pictures, and `behind` lists the figures in which others are
better."""
