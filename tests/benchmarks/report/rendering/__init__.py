"""Figures as a page: `page` is Markdown, `plots` are small pictures, `behind` says where others are better."""
