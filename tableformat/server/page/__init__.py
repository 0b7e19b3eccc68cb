"""The web page of a server: server-rendered HTML without scripts, at `/` beside the API at `/v1`.

request    routes.py      access, sessions, forms, security headers
page       lake.py, table_pages.py, engines.py, query_pages.py, job_pages.py
html       rendering.py   Jinja2 templates, in which every value is escaped
SQL        queries.py     one process for each query, with limits; query_process.py runs in it
jobs       job_runner.py  one thread for each job
"""
